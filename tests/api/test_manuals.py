#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each command and option that a program's own help names stands in its man page, and the reverse.

    test_manuals.py MAN-FOLDER HALBACHCTL HALBACH-CONTROL HALBACH-DATAPLANE HALBACH-BACKEND
"""
import os
import re
import shutil
import subprocess
import sys

from daemons import Tap

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def plain(file):
    """A man page without its requests: what a reader sees, roughly."""
    with open(file) as source:
        text = source.read()
    text = re.sub(r"\\f[A-Z]", "", text).replace("\\-", "-").replace("\\ ", " ").replace("\\&", "")
    lines = []
    for line in text.splitlines():
        if line.startswith('.\\"') or re.match(r"\.(TH|SH|TP|PP|RS|RE|EX|EE|nf|fi|br)\b", line):
            continue
        # .BI "x" y and .BR x , y set their arguments side by side.
        macro = re.match(r"\.[BI][BIR]? (.*)", line) or re.match(r"\.R[BI] (.*)", line)
        if macro:
            words = re.findall(r'"([^"]*)"|(\S+)', macro.group(1))
            line = (" " if line[:3] in (".B ", ".I ") else "").join(a or b for a, b in words)
        lines.append(line)
    return "\n".join(lines)


def help_of(program, *words):
    run = subprocess.run([program, *words], capture_output=True, text=True, timeout=30, check=False)
    return run.stdout + run.stderr


def check_groff(tap, page):
    if not shutil.which("groff"):
        print(f"ok - {os.path.basename(page)} for groff # skip: groff is not installed")
        return
    run = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True, check=False)
    tap.equal(run.stderr, "", f"{os.path.basename(page)}: groff has nothing to complain about")


def check_options(tap, page, text, options, known):
    name = os.path.basename(page)
    tap.equal(sorted(o for o in options if o not in OPTION.findall(text)), [], f"{name} has every option")
    tap.equal(sorted(set(OPTION.findall(text)) - set(known)), [], f"{name} has no option that there is not")


def halbachctl(tap, page, program):
    text = plain(page)
    section = help_of(program, "--help").split("Commands:\n")[1].split("\n\n")[0]
    commands = [re.split(r"  +", line.strip())[0] for line in section.splitlines()]
    commands = [" ".join(c.split()[:2]) if c.split()[0] in ("hash", "config") else c.split()[0] for c in commands]
    options = set()
    for command in commands:
        explained = help_of(program, "help", *command.split())
        own = set(OPTION.findall(explained.split("Options:")[1].split("Example:")[0]))
        options |= own
        tap.check(re.search(rf"^{re.escape(command)}\b", text, re.M), f"halbachctl.1 has '{command}'")
    check_options(tap, page, text, options, options)


def others(tap, folder, programs):
    for page, program in programs.items():
        file = os.path.join(folder, page)
        if not tap.check(os.path.exists(file), f"there is {page}"):
            continue
        options = set(OPTION.findall(help_of(program, "--help")))
        # DPDK's own options are its manual's.
        check_options(tap, file, plain(file), options - {"--lcores", "--vdev"}, options)
        check_groff(tap, file)


def main():
    folder, ctl, control, dataplane, backend = sys.argv[1:6]
    tap = Tap()
    page = os.path.join(folder, "halbachctl.1")
    halbachctl(tap, page, ctl)
    check_groff(tap, page)
    others(tap, folder, {"halbach-control.8": control, "halbach-dataplane.8": dataplane, "halbach-backend.8": backend})
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
