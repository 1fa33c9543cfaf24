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
from rules import Rules
from wire import PROTOCOLS

AT_ONCE = 8  # packets on their way to drive
PATIENCE = 400  # packets after which the clock goes on
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
    if outcome.kind == "kernel":
        return "" if answer == [f"kernel {frame.hex()}"] else "wanted the frame at the kernel as it came"
    drops = sorted(line for line in answer if line.startswith("drop "))
    if drops != sorted(f"drop {reason}" for reason in outcome.reasons):
        return f"wanted {outcome.kind} {' '.join(outcome.reasons)}"
    got = [bytes.fromhex(line[3:]) for line in answer if line.startswith("tx ")]
    if len(got) != outcome.count or len(answer) != len(got) + len(drops):
        return f"wanted {outcome.count} frames to {outcome.backend}"
    # With room for each field that rules look for in it.
    for sent, wanted in zip(got, outcome.make([sent + bytes(128) for sent in got]) if got else ()):
        if len(sent) != len(wanted):
            return f"wanted {len(wanted)} bytes to {outcome.backend}: {wanted.hex()}"
        wrong = [i for i, (a, b) in enumerate(zip(sent, wanted)) if a != b]
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
        requests = ["rx " + frame.hex() for frame in frames]
        if number % PATIENCE == 0:  # so that fragments never wait because there are too many of them
            frames, requests = frames + [None], requests + ["time 16000"]
        for frame, answer in zip(frames, drive.ask(requests)):
            outcome = rules.judge(frame) if frame else rules.forget_datagrams()
            for name in outcome.reasons or (outcome.kind,) if frame else outcome.reasons:
                kinds[name] = kinds.get(name, 0) + 1
            problem = differs(frame, outcome, answer)
            if problem and (wrong := wrong + 1) <= SHOWN:
                print(f"# packet from {number}: {frame.hex() if frame else 'time'}\n#   {problem}\n#   got {answer}")
    for complaint in rules.choices.complaints() if options.packets >= 5000 else ():
        wrong += 1
        print(f"# {complaint}")
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
