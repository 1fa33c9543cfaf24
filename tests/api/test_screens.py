#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What halbachctl prints on a terminal, in a pipe and as JSON.

    test_screens.py HALBACH-DATAPLANE HALBACH-CONTROL HALBACHCTL

On a terminal (a real pty) no line is wider than it, long names are cut with an ellipsis, and colour is used unless
NO_COLOR is set. In a pipe there is neither colour nor a limit, but for COLUMNS.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata

from daemons import Daemons, Tap

LONG = "a-name-as-long-as-a-name-may-be-which-is-sixty-three-characters"
CONFIG = f"""seed: 0123456789abcdef0123456789abcdef
pools:
  - name: {LONG}
    table_size: 251
    health: {{ type: tcp, port: 9, interval: 10s, timeout: 9s }}
    backends:
      - {{ name: {LONG}, address: "2001:db8:1111:2222:3333:4444:5555:6666" }}
      - {{ name: web2, address: 198.51.100.12 }}
  - name: web
    table_size: 251
    health: {{ type: none }}
    backends:
      - {{ name: web1, address: 198.51.100.11 }}
services:
  - {{ name: {LONG}, vip: "2001:db8:7777:8888:9999:aaaa:bbbb:cccc", protocol: tcp, port: 65535, pool: {LONG} }}
  - {{ name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }}
"""
SCREENS = ["status", "services", "backends", "backends --traffic", "backends --down", "stats", "drops --all", "history",
           "top --once", "talkers --all"]
SEQUENCE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def width_of(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Screen:
    """The program on a pty of a size."""

    def __init__(self, program, words, columns, lines=30, environment=None):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        environment = {**{k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")},
                       "TERM": "xterm", **(environment or {})}
        self.process = subprocess.Popen([program, *words], stdin=slave, stdout=slave, stderr=slave, env=environment)
        os.close(slave)
        self.master, self.text = master, b""

    def read(self, until=None, deadline=20):
        """All output; or until `until` holds of it."""
        end = time.monotonic() + deadline
        while time.monotonic() < end and not (until and until(self.text.decode(errors="replace"))):
            if not select.select([self.master], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(self.master, 65536)
            except OSError:
                break
            if not piece:
                break
            self.text += piece
        return self.text.decode(errors="replace").replace("\r\n", "\n")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(20)
        os.close(self.master)
        return status


def run_on(program, daemons, line, columns, **more):
    screen = Screen(program, ["--socket", daemons.socket, *line.split()], columns, **more)
    text = screen.read()
    screen.process.wait(20)
    os.close(screen.master)
    return text


def check_widths(tap, program, daemons):
    for columns in (80, 100, 160):
        for line in SCREENS:
            text = SEQUENCE.sub("", run_on(program, daemons, line, columns))
            # Sentences may wrap; tables may not. A table's rows have two blanks between columns.
            wide = [row for row in text.split("\n") if width_of(row) > columns and "  " in row.strip() and ": " not in row]
            tap.equal(wide, [], f"{line}: fits {columns} columns")
    text = run_on(program, daemons, "services", 80)
    tap.check("…" in text, "long names are cut with an ellipsis", text)
    tap.check(LONG in run_on(program, daemons, "services", 250), "and are whole where there is room")


def check_colour(tap, program, daemons):
    for line in ("status", "backends", "services", "history"):
        tap.check(COLOUR.search(run_on(program, daemons, line, 100)), f"{line}: has colour on a terminal")
        plain = run_on(program, daemons, line, 100, environment={"NO_COLOR": "1"})
        tap.check(not COLOUR.search(plain), f"{line}: has none with NO_COLOR")
        plain = run_on(program, daemons, line, 100, environment={"TERM": "dumb"})
        tap.check(not SEQUENCE.search(plain), f"{line}: has none on a dumb terminal")


def pipe(program, daemons, line, **environment):
    return subprocess.run([program, "--socket", daemons.socket, *line.split()], capture_output=True, text=True,
                          timeout=30, check=False, env={**os.environ, **environment})


def check_pipes(tap, program, daemons):
    for line in SCREENS:
        run = pipe(program, daemons, line)
        tap.check(run.returncode == 0 and not SEQUENCE.search(run.stdout), f"{line}: plain text in a pipe", run.stderr)
    tap.check(LONG in pipe(program, daemons, "services").stdout, "nothing is cut in a pipe")
    narrow = pipe(program, daemons, "services", COLUMNS="60").stdout
    tap.check(max(width_of(row) for row in narrow.split("\n")) <= 60, "but COLUMNS is honoured", narrow)
    for line in (*SCREENS, "events", "lookup 203.0.113.9:40000 192.0.2.10:80", "drain web1", "undrain web1", "reload"):
        run = pipe(program, daemons, line + " --json")
        try:
            good = isinstance(json.loads(run.stdout), dict)
        except ValueError:
            good = False
        tap.check(good and run.returncode == 0, f"{line} --json: one document", run.stdout[:500] + run.stderr)


def check_watch(tap, program, daemons):
    """Frames on a terminal, one after the other; a control that comes back is seen again."""
    for line in ("status --watch 0.2", "top --watch 0.2", "stats --watch 0.2", "history --watch=0.2", "talkers --watch 0.2"):
        screen = Screen(program, ["--socket", daemons.socket, *line.split()], 100, lines=24)
        text = screen.read(until=lambda t: t.count("ctrl-C ends") >= 3)
        frames = text.split("\x1b[H")[1:]
        tap.check(len(frames) >= 3, f"{line}: repeats", text[-500:])
        tall = [frame for frame in frames if frame.count("\n") >= 24]
        tap.equal(tall, [], f"{line}: a frame fits the height of the terminal")
        tap.equal(screen.end(), -signal.SIGINT, f"{line}: ctrl-C ends it")
    process = subprocess.Popen([program, "--socket", daemons.socket, "top", "--json", "--watch", "0.2"],
                               stdout=subprocess.PIPE, text=True)
    documents = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    process.wait(20)
    process.stdout.close()
    tap.equal([sorted(d) for d in documents], [["backends", "seconds", "services"]] * 3,
              "top --json: a document a line, with rates")
    for line, word in (("status --watch 0.2", "Control "), ("top --watch 0.2", "packets/s")):
        screen = Screen(program, ["--socket", daemons.socket, *line.split()], 100)
        screen.read(until=lambda t: "ctrl-C ends" in t)
        daemons.stop("control")
        screen.read(until=lambda t: "cannot reach" in t)
        tap.check("cannot reach" in screen.text.decode(), f"{line}: says that control is away")
        daemons.start_control()
        seen = len(screen.text)
        screen.read(until=lambda t, word=word, seen=seen: word in t[seen:])
        tap.check(word.encode() in screen.text[seen:], f"{line}: goes on when it is back")
        screen.end()


def check_events(tap, program, daemons):
    process = subprocess.Popen([program, "--socket", daemons.socket, "events", "-f"], stdout=subprocess.PIPE, text=True)
    daemons.call("POST", "/v1/backends/web1/drain")
    lines = []
    while not any("backend web1: draining" in line for line in lines):
        lines.append(process.stdout.readline())
        if not lines[-1]:
            break
    tap.check("pool web: backend web1: draining, by " in lines[-1], "events -f: tells of a drain, and by whom", lines)
    process.send_signal(signal.SIGINT)
    tap.equal(process.wait(20), -signal.SIGINT, "events -f: ctrl-C ends it")
    process.stdout.close()
    daemons.call("POST", "/v1/backends/web1/undrain")


def check_rollback(tap, program, daemons):
    daemons.write_config(CONFIG.replace("address: 198.51.100.11", "address: 198.51.100.11, weight: 5"))
    tap.equal(pipe(program, daemons, "reload").returncode, 0, "reload")
    run = pipe(program, daemons, "rollback")
    tap.equal(run.returncode, 0, "rollback")
    tap.check("was not touched" in run.stdout and "configuration 1 is in use, in place of 2" in run.stdout,
              "rollback: says that the file differs", run.stdout)
    status = pipe(program, daemons, "status").stdout
    tap.check("in use since a rollback" in status, "status: says so too", status)
    tap.check("in use (rollback)" in pipe(program, daemons, "history").stdout, "history: marks it")
    tap.equal(pipe(program, daemons, "reload").returncode, 0, "reload takes the file again")
    tap.check("since a rollback" not in pipe(program, daemons, "status").stdout, "and status says no more")


def main():
    tap = Tap()
    program = sys.argv[3]
    daemons = Daemons(sys.argv[1], sys.argv[2], CONFIG)
    try:
        daemons.start()
        check_events(tap, program, daemons)
        check_widths(tap, program, daemons)
        check_colour(tap, program, daemons)
        check_pipes(tap, program, daemons)
        check_rollback(tap, program, daemons)
        check_watch(tap, program, daemons)
    except Exception as error:  # noqa: BLE001
        tap.check(False, f"the test came to its end: {error!r}", daemons.log("control")[-4000:])
    finally:
        daemons.clean_up()
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
