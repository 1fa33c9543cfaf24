#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Completion in real shells, with names from the running control.

    test_completion.py HALBACH-DATAPLANE HALBACH-CONTROL HALBACHCTL BASH-FILE ZSH-FILE
"""
import os
import shutil
import subprocess
import sys

from daemons import Daemons, Tap

BASH = r'''
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_halbachctl
printf '%s\n' "${COMPREPLY[@]}"
'''

# What zsh's own functions would offer is printed in place of being shown.
ZSH = r'''
compadd() { while [[ $1 == -* ]]; do [[ $1 == -- ]] && { shift; break }; shift; done; print -l -- $@ }
_describe() { print -l -- ${(P)2%%:*} }
_files() { print -l -- FILES }
_message() { : }
source $1; shift
words=("$@"); CURRENT=$#
_halbachctl
'''


def commands_of(halbachctl):
    text = subprocess.run([halbachctl, "--help"], capture_output=True, text=True, check=True).stdout
    section = text.split("Commands:\n")[1].split("\n\n")[0]
    return sorted({line.split()[0] for line in section.splitlines()})


class Shell:
    def __init__(self, command, script, file, environment):
        self.command, self.script, self.file, self.environment = command, script, file, environment

    def complete(self, *words):
        """What the shell offers for the last of the words, sorted."""
        run = subprocess.run([*self.command, self.script, "shell", self.file, "halbachctl", *words], capture_output=True,
                             text=True, env=self.environment, timeout=30, check=False)
        last = words[-1]
        offered = [line for line in run.stdout.split("\n") if line and (line.startswith(last) or line == "FILES")]
        return sorted(set(offered)) if not run.stderr else [run.stderr]


def check_shell(tap, name, shell, commands, daemons):
    at = ("--socket", daemons.socket)
    rows = [
        ((*at, ""), commands, "commands"),
        ((*at, "dr"), ["drain", "drops"], "commands that begin so"),
        ((*at, "drain", ""), ["web1", "web2"], "backends of the running control"),
        ((*at, "drain", "web1", ""), [], "nothing after the last argument"),
        ((*at, "undrain", "web1", "--pool", ""), ["web"], "pools of the running control"),
        ((*at, "completion", "services", "--"), ["--help", "--json", "--socket", "--version"], "options of all commands"),
        ((*at, "drain", "--"), ["--at-deadline", "--deadline", "--force", "--help", "--json", "--pool", "--socket", "--version",
                                            "--wait"], "a command's options"),
        ((*at, "events", "-f", "--s"), ["--since", "--socket"], "options after -f"),
        (("drain", "web1", "--at-deadline", "re"), ["reassign", "reset"], "words of an option"),
        (("config", ""), ["check"], "second words"),
        (("hash", "pl"), ["plan", "plot"], "second words that begin so"),
        (("hash", "plot", "--kind", "b"), ["balance"], "words of an option"),
        (("lookup", "1.2.3.4:5", "192.0.2.10:80", ""), ["sctp", "tcp", "udp"], "words of an argument"),
        (("lookup", ""), [], "nothing where nobody can guess"),
        (("help", "dra"), ["drain"], "commands to explain"),
        (("stats", "--watch", "5", "--j"), ["--json"], "options after an argument that may be left out"),
        (("--socket", "/nonexistent", "drain", ""), [], "no names and no noise without a control"),
    ]
    for words, expected, what in rows:
        tap.equal(shell.complete(*words), sorted(expected), f"{name}: {what}: {' '.join(words[-3:])}")


def main():
    dataplane, control, halbachctl, bash_file, zsh_file = sys.argv[1:6]
    tap = Tap()
    daemons = Daemons(dataplane, control)
    try:
        daemons.start()
        programs = os.path.join(daemons.folder, "bin")
        os.mkdir(programs)
        os.symlink(os.path.realpath(halbachctl), os.path.join(programs, "halbachctl"))
        environment = {"PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": daemons.folder}
        commands = commands_of(halbachctl)
        bash = Shell(["bash", "--norc", "--noprofile", "-c"], BASH, bash_file, environment)
        check_shell(tap, "bash", bash, commands, daemons)
        tap.equal(bash.complete("drain", "--pool", "=", "x"), [], "bash: --pool=x is three words")
        files = bash.complete("plan", "-f", daemons.config_file[:-3])
        tap.equal(files, [daemons.config_file], "bash: files")
        if shutil.which("zsh"):
            zsh = Shell(["zsh", "-f", "-c"], ZSH, zsh_file, environment)
            check_shell(tap, "zsh", zsh, commands, daemons)
            tap.equal(zsh.complete("plan", "-f", ""), ["FILES"], "zsh: files")
        else:
            print("ok - zsh # skip: zsh is not installed")
        # Each command and option of the table is in both scripts.
        for file in (bash_file, zsh_file):
            with open(file) as script:
                text = script.read()
            missing = [c for c in commands if c not in text]
            tap.equal(missing, [], f"{os.path.basename(file)} has every command")
        names = subprocess.run([halbachctl, "--socket", daemons.socket, "completion", "services"], capture_output=True,
                               text=True, check=True).stdout
        tap.equal(names, "www\n", "names of services")
    except Exception as error:  # noqa: BLE001
        tap.check(False, f"the test came to its end: {error!r}", daemons.log("control"))
    finally:
        daemons.clean_up()
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
