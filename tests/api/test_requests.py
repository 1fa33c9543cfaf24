#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Requests and files that are wrong, on the real daemons: refused, nothing changes, and the next one is served.

    test_requests.py HALBACH-DATAPLANE HALBACH-CONTROL HALBACHCTL
"""
import os
import socket
import subprocess
import sys
import time

from daemons import CONFIG, Daemons, Tap, wait_until

VALID = {("since", "65536")}
WITHIN_S = 10  # for an answer that comes at once unless something hangs


def facts(daemons):
    """What must not change by something that is refused."""
    status = daemons.call("GET", "/v1/status").json
    return (status["generation"]["serving"], status["config"]["configuration"], status["pools"],
            [(b["name"], b["weight"], b["draining"]) for b in daemons.call("GET", "/v1/backends").json["backends"]])


def bl88(tap, daemons):
    """BL-88: each command with each argument invalid in turn, then a valid one."""
    bad = ["", "%00", "%ff", "x" * 300, "-1", "65536", "99999999999999999999", "a/b", "%2e%2e", "web1%20", "0x10"]
    rows = [("GET", "/v1/lookup", {"client": "203.0.113.9:40000", "vip": "192.0.2.10:80", "protocol": "tcp"}),
            ("GET", "/v1/events", {"since": "0", "follow": "0"}),
            ("POST", "/v1/rollback", {"to": "1"}),
            ("POST", "/v1/backends/web1/drain", {"pool": "web"}),
            ("POST", "/v1/backends/web1/undrain", {"pool": "web"})]
    good = [("GET", "/v1/status", 200), ("POST", "/v1/reload", 200)]
    before = facts(daemons)
    late, odd = [], []
    for method, path, arguments in rows:
        for name in arguments:
            for value in bad:
                query = "&".join(f"{n}={value if n == name else v}" for n, v in arguments.items())
                answer = daemons.call(method, f"{path}?{query}")
                if answer.status not in (400, 404) and (name, value) not in VALID:
                    odd.append(f"{method} {path}?{query}: {answer.status}")
                elif answer.status >= 400 and len(answer.json["error"]["message"]) < 20:
                    odd.append(f"{path}?{query}: {answer.body}")
                start = time.monotonic()
                for good_method, good_path, status in good:
                    if daemons.call(good_method, good_path).status != status:
                        odd.append(f"after {path}?{query}: {good_path} fails")
                if time.monotonic() - start > WITHIN_S:
                    late.append(f"after {path}?{query}")
    for name in bad:
        for verb in ("drain", "undrain"):
            answer = daemons.call("POST", f"/v1/backends/{name}/{verb}")
            if answer.status != 404:
                odd.append(f"backend {name!r}: {answer.status}")
    tap.equal(odd, [], "BL-88: each invalid argument is refused with a reason")
    tap.equal(late, [], "BL-88: a valid request is served right after each")
    tap.equal(facts(daemons), before, "BL-88: nothing has changed")


def bl88_cli(tap, daemons, halbachctl):
    """BL-88 from the command line: wrong words end with 2 and say what is right, failures with 1."""
    rows = [("drain", 2), ("drain nobody", 1), ("drain web1 --pool nowhere", 1), ("drain web1 web2", 2),
            ("undrain nobody", 1), ("rollback x", 2), ("rollback 99", 1), ("rollback 1 2", 2), ("events --since x", 2),
            ("events --since", 2), ("status --watch 0", 2), ("status --watch=x", 2), ("stats --watch 1e9", 2),
            ("history now", 2), ("completion", 2), ("completion fish", 2), ("top --once=1", 2), ("talkers x", 2),
            ("lookup 1.2.3.4:5", 2), ("lookup 1.2.3.4 192.0.2.10:80", 2), ("lookup 1.2.3.4:5 192.0.2.10:80 icmp", 2),
            ("config check /nonexistent", 1), ("plan", 2), ("backends --pool nowhere", 1), ("frobnicate", 2),
            ("--colour status", 2), ("help nothing", 2)]
    wrong = []
    for line, status in rows:
        run = subprocess.run([halbachctl, "--socket", daemons.socket, *line.split()], capture_output=True, text=True,
                             timeout=30, check=False)
        if run.returncode != status or len(run.stderr) < 20:
            wrong.append(f"{line}: status {run.returncode}, expected {status}: {run.stderr}")
        if subprocess.run([halbachctl, "--socket", daemons.socket, "status"], capture_output=True, timeout=30,
                          check=False).returncode != 0:
            wrong.append(f"after {line}: status fails")
    tap.equal(wrong, [], "BL-88: each command with wrong arguments tells why, and the next one works")


def bl91(tap, daemons):
    """BL-91: a file cut at every byte, and what else a reload may find in its place."""
    before = facts(daemons)
    refused = daemons.call("GET", "/v1/status").json["config"]["reloads_refused"]
    accepted = []
    for size in range(len(CONFIG)):
        daemons.write_config(CONFIG[:size])
        if daemons.call("POST", "/v1/reload").status != 422:
            accepted.append(size)
    tap.equal(accepted, [], "BL-91: a file cut at any byte is refused")
    others = {"only comments": "# nothing\n", "no services": CONFIG.split("services:")[0] + "services: []\n",
              "no backends": CONFIG.split("    backends:")[0] + "    backends: []\n" + "services:" +
              CONFIG.split("services:")[1]}
    for what, text in others.items():
        daemons.write_config(text)
        tap.equal(daemons.call("POST", "/v1/reload").status, 422, f"BL-91: {what}: refused")
    os.unlink(daemons.config_file)
    tap.equal(daemons.call("POST", "/v1/reload").status, 422, "BL-91: no file: refused")
    os.mkdir(daemons.config_file)
    tap.equal(daemons.call("POST", "/v1/reload").status, 422, "BL-91: a folder: refused")
    os.rmdir(daemons.config_file)
    tap.equal(facts(daemons), before, "BL-91: what was running goes on unchanged")
    status = daemons.call("GET", "/v1/status").json["config"]
    tap.equal(status["reloads_refused"] - refused, len(CONFIG) + len(others) + 2, "BL-91: each refusal is counted")
    metrics = daemons.call("GET", "/metrics").body.decode()
    tap.check(f"halbach_config_reload_failed_total {status['reloads_refused']}\n" in metrics, "BL-91: also for Prometheus")
    tap.check(f"halbach_config_last_reload_success_timestamp_seconds {status['loaded_unix']}\n" in metrics,
              "BL-91: with the time of the last success")
    daemons.write_config(CONFIG)
    tap.equal(daemons.call("POST", "/v1/reload").status, 200, "BL-91: the whole file is accepted")


def bl86(tap, daemons):
    """BL-86: numbers at the borders of their widths come back as they were, or are refused."""
    wrong = []
    for port in (0, 1, 255, 256, 32767, 32768, 40000, 65535, 65536, -1):
        daemons.write_config(CONFIG.replace("port: 80,", f"port: {port},"))
        status = daemons.call("POST", "/v1/reload").status
        if (status == 200) != (1 <= port <= 65535):
            wrong.append(f"port {port}: {status}")
        if status != 200:
            continue
        service = daemons.call("GET", "/v1/services").json["services"][0]
        wait_until(daemons.in_sync, "the dataplane has it")
        found = daemons.call("GET", f"/v1/lookup?client=203.0.113.9:{port}&vip=192.0.2.10:{port}").json
        if service["port"] != port or found["service"] != "www":
            wrong.append(f"port {port} came back as {service['port']}, the dataplane says {found['source']}")
    for weight in (0, 1, 255, 256, 32767, 32768, 65535, 65536, -1):
        daemons.write_config(CONFIG.replace("198.51.100.12", f"198.51.100.12, weight: {weight}"))
        status = daemons.call("POST", "/v1/reload").status
        if (status == 200) != (0 <= weight <= 65535):
            wrong.append(f"weight {weight}: {status}")
        if status == 200 and daemons.call("GET", "/v1/backends").json["backends"][1]["weight"] != weight:
            wrong.append(f"weight {weight} came back as another one")
    for number in (0, 2**31, 2**32, 2**53 + 1, 2**63 - 1):
        if daemons.call("GET", f"/v1/events?since={number}").status != 200:
            wrong.append(f"since={number} is refused")
    for number in (2**63, 2**64, -1):
        if daemons.call("GET", f"/v1/events?since={number}").status != 400:
            wrong.append(f"since={number} is not refused")
    tap.equal(wrong, [], "BL-86: ports, weights and numbers come back as they were, or are refused")
    daemons.write_config(CONFIG)
    daemons.call("POST", "/v1/reload")


def bad_http(tap, daemons):
    """Bytes that are no request, and requests that end early: the next client is served."""
    for text in (b"\0" * 100, b"GET\r\n\r\n", b"GET /v1/status HTTP/1.1\r\n", b"POST /v1/plan HTTP/1.1\r\nHost: h\r\n"
                 b"Content-Length: 99999999\r\n\r\nseed", b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n"):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(5)
            peer.connect(daemons.socket)
            peer.sendall(text)
        tap.equal(daemons.call("GET", "/v1/status").status, 200, f"after {text[:20]!r} the next client is served")


def slow_reader(tap, daemons):
    """A follower that never reads is cut off with a notice, and control serves all others meanwhile."""
    with socket.socket(socket.AF_UNIX) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(30)
        slow.connect(daemons.socket)
        slow.sendall(b"GET /v1/events?follow=1&since=0 HTTP/1.1\r\nHost: h\r\n\r\n")
        daemons.write_config("seed: x\n")
        for _ in range(2500):
            daemons.call("POST", "/v1/reload")
        daemons.write_config(CONFIG)
        tap.equal(daemons.call("POST", "/v1/reload").status, 200, "control serves while somebody does not read")
        received = b""
        while True:
            piece = slow.recv(65536)
            if not piece:
                break
            received += piece
            if received.endswith(b"0\r\n\r\n"):
                break
    tap.check(b"cut off" in received[-2000:], "the slow reader is told that it was cut off", received[-500:])
    tap.check(len(received) < 2 << 20, "and its backlog was bounded", len(received))


def main():
    tap = Tap()
    daemons = Daemons(sys.argv[1], sys.argv[2])
    try:
        daemons.start()
        bl88(tap, daemons)
        bl88_cli(tap, daemons, sys.argv[3])
        bl91(tap, daemons)
        bl86(tap, daemons)
        bad_http(tap, daemons)
        slow_reader(tap, daemons)
        tap.equal(daemons.stop("control"), 0, "control ends well")
    except Exception as error:  # noqa: BLE001
        tap.check(False, f"the test came to its end: {error!r}", daemons.log("control")[-4000:])
    finally:
        daemons.clean_up()
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
