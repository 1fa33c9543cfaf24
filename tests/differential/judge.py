#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
judge.py: thousands of random packets, each judged twice: by rules.py and by the real way of a packet (drive.c). No
difference is allowed. The packets depend on the seed alone.

    judge.py DRIVE CONFIG... [--packets N] [--seed N]      a TAP test for each configuration
"""
import argparse
import ipaddress
import random
import subprocess
import sys

import yaml

from packets import Source
from rules import PROTOCOLS, Rules

AT_ONCE = 8  # packets on their way to drive
SHOWN = 3  # differences of a configuration that are printed


class Drive:
    def __init__(self, program, config):
        self.process = subprocess.Popen([program, config], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.facts = list(iter(self.line, "ready"))

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"drive ended with status {self.process.wait()}")
        return line.rstrip("\n")

    def ask(self, requests):
        """The answers to some requests; few enough that neither side's pipe is ever full."""
        self.process.stdin.write("".join(request + "\n" for request in requests))
        self.process.stdin.flush()
        return [list(iter(self.line, "done")) for _ in requests]

    def end(self):
        self.process.stdin.close()
        return self.process.wait()


def differs(frame, outcome, answer):
    """What is wrong with what the dataplane did, or ""."""
    if outcome.kind == "drop":
        return "" if answer == [f"drop {outcome.reason}"] else f"wanted drop {outcome.reason}"
    if outcome.kind == "kernel":
        return "" if answer == [f"kernel {frame.hex()}"] else "wanted the frame at the kernel as it came"
    if len(answer) != len(outcome.frames):
        return f"wanted {len(outcome.frames)} frames"
    for line, (wanted, own) in zip(answer, outcome.frames):
        word, _, text = line.partition(" ")
        got = bytes.fromhex(text) if word == "tx" else b""
        if len(got) != len(wanted):
            return f"wanted {len(wanted)} bytes to {outcome.backend}: {wanted.hex()}"
        wrong = [i for i, (a, b) in enumerate(zip(got, wanted)) if a != b and i not in own]
        if wrong:
            return f"bytes {wrong[:8]} are not those for {outcome.backend}: {wanted.hex()}"
    return ""


def aims_of(config):
    """Where packets are aimed at: networks, protocols and ranges of ports of the services."""
    aims = []
    for service in config["services"]:
        first, _, last = ("0-65535" if service["port"] == "any" else str(service["port"])).partition("-")
        aims.append((ipaddress.ip_network(str(service["vip"])), PROTOCOLS[service["protocol"]], int(first),
                     int(last or first)))
    return aims


def run(options, file):
    with open(file, encoding="utf-8") as stream:
        config = yaml.safe_load(stream)
    drive = Drive(options.drive, file)
    rules = Rules(config, drive.facts)
    source = Source(random.Random(f"{options.seed} {file.rpartition('/')[2]}"), aims_of(config))
    kinds, wrong = {}, 0
    for number in range(0, options.packets, AT_ONCE):
        frames = [source.frame() for _ in range(AT_ONCE)]
        for frame, answer in zip(frames, drive.ask(["rx " + frame.hex() for frame in frames])):
            outcome = rules.judge(frame)
            name = outcome.reason or outcome.kind
            kinds[name] = kinds.get(name, 0) + 1
            problem = differs(frame, outcome, answer)
            if problem and (wrong := wrong + 1) <= SHOWN:
                print(f"# packet from {number}: {frame.hex()}\n#   {problem}\n#   got {answer}")
    if drive.end() != 0:
        wrong += 1
        print("# drive did not end well: buffers or flows are missing")
    print("# " + ", ".join(f"{name} {count}" for name, count in sorted(kinds.items(), key=lambda item: -item[1])))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("drive")
    parser.add_argument("config", nargs="+")
    parser.add_argument("--packets", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    for number, file in enumerate(options.config, 1):
        wrong = run(options, file)
        failed += wrong > 0
        print(f"{'not ok' if wrong else 'ok'} {number} - {file.rpartition('/')[2]}: {options.packets} packets, "
              f"{wrong} judged differently")
    print(f"1..{len(options.config)}")
    return failed > 0


sys.exit(main())
