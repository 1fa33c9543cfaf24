#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs each example of docs/api.md against a control and compares the answer with what the page shows.

  examples.py API.md SOCKET FOLDER     FOLDER has the files that examples read: halbach.yaml, new.yaml

Prints a line an example: what it is, a tab, and what is wrong with it (nothing when all is well). An example is a curl
command, with its answer below it, or the JSON below a heading such as "## GET /v1/status". Values may be others; members
may not, except where the page leaves some out ("..."). An error must have the very words, and the status that stands
before it in the text. Python standard library and curl only.
"""
import json
import re
import subprocess
import sys

ARGUMENTS = {
    "/v1/backends/NAME/drain": "?pool=web&deadline=10m",
    "/v1/flush": "?force=1",
    "/v1/lookup": "?client=203.0.113.10:40000&vip=192.0.2.10:80&protocol=tcp",
}
NO_JSON = {"/metrics", "/v1/rollback"}
WAYS_BACK = {"/v1/backends/NAME/drain": "/v1/backends/b3/undrain"}


class Control:
    def __init__(self, socket, folder):
        self.socket, self.folder = socket, folder

    def run(self, command):
        """A curl command as the page has it; its status and its text."""
        command = command.replace("/run/halbach/control.sock", self.socket).replace("curl ", "curl -sS -w '\\n%{http_code}' ", 1)
        done = subprocess.run(["bash", "-c", f"S='--unix-socket {self.socket}'; {command}"], cwd=self.folder, check=False,
                              capture_output=True, text=True, timeout=60)
        text, _, status = done.stdout.rpartition("\n")
        return (int(status) if status.isdigit() else done.stderr), text

    def ask(self, method, path):
        body = "--data-binary @new.yaml " if path.startswith("/v1/plan") else ""
        return self.run(f"curl $S {body}-X {method} 'http://halbach{path}'")


def read_shown(text):
    """JSON as a page shows it: "..." in place of members, or of all that follows."""
    text = text.strip()
    if text.endswith("..."):
        text = text[:-3].rstrip(" ,")
        closing = []
        for character in re.sub(r'"(\\.|[^"\\])*"', "", text):
            if character in "{[":
                closing.append(character)
            elif character in "}]":
                closing.pop()
        text += "".join(', "...": 0}' if c == "{" else "]" for c in reversed(closing))
    return json.loads(re.sub(r",\s*\.\.\.\s*}", ', "...": 0}', text))


def differences(shown, answers, where="the answer"):
    """What is shown against all that stand in its place: those of each item of a list."""
    answers = [answer for answer in answers if answer is not None]
    if isinstance(shown, list):
        items = [item for answer in answers for item in answer]
        if shown and not items:
            return [f"{where} has no item, so nothing can be compared"]
        return [wrong for item in shown for wrong in differences(item, items, where + "[]")]
    if not isinstance(shown, dict):
        return [f"{where} is {answer}" for answer in answers if shown is not None and isinstance(answer, (dict, list))]
    wrong = []
    for answer in answers:
        if not isinstance(answer, dict):
            return [f"{where} is {answer!r}"]
        wrong += [f"{where} has no {name}" for name in sorted(set(shown) - set(answer) - {"..."})]
        if "..." not in shown:
            wrong += [f"{where} has {name}, which is not shown" for name in sorted(set(answer) - set(shown))]
    for name, value in shown.items():
        wrong += differences(value, [answer[name] for answer in answers if answer.get(name) is not None], f"{where}.{name}")
    return sorted(set(wrong))


def judge(shown, prose, status, text):
    if not isinstance(shown, dict) or "error" not in shown:
        if status != 200:
            return f"status {status}: {text}"
        try:
            return "; ".join(differences(shown, [json.loads(text)])) if shown is not None else ""
        except ValueError:
            return f"not JSON: {text[:100]}"
    expected = re.findall(r"\b4\d\d\b", prose)
    if [str(status)] != expected[-1:]:
        return f"status {status}, and the text before it says {expected[-1:]}"
    return "" if json.loads(text) == shown else f"got {text}"


def read_page(lines):
    """Each (heading, prose, block): a block is a paragraph of indented lines; prose is the last paragraph before it."""
    heading, prose, block = "", "", []
    for line in lines + ["end"]:
        if line.startswith("    ") and line.strip():
            block.append(line[4:])
            continue
        if block:
            yield heading, prose, block
            block = []
        if line.startswith("## "):
            heading, prose = line[3:], ""
        elif line.strip():
            prose = line if prose.endswith("\n") else prose + " " + line
        else:
            prose += "\n" * (prose != "" and not prose.endswith("\n"))


def read_commands(block):
    """Each (command, answer) of a block; the answer is None when none is shown."""
    for part in re.split(r"^(?:\$ )?(?=curl )", "\n".join(block), flags=re.M)[1:]:
        command, _, answer = part.replace("\\\n", " ").partition("\n")
        yield command, read_shown(answer) if answer.strip() else None


def run_command(control, command, shown, prose):
    # Two others drain already when the pool's minimum is to be in the way.
    few = shown is not None and "its minimum is" in json.dumps(shown)
    for name in ("b1", "b2") if few else ():
        control.ask("POST", f"/v1/backends/{name}/drain?pool=web&force=1")
    wrong = judge(shown, prose, *control.run(command))
    for name in ("b1", "b2") if few else ():
        control.ask("POST", f"/v1/backends/{name}/undrain?pool=web")
    return wrong


def main():
    control = Control(*sys.argv[2:])
    with open(sys.argv[1], encoding="utf-8") as page:
        lines = page.read().splitlines()
    wanted = {}
    for line in lines:
        heading = re.match(r"## (GET|POST) (/[^ ,]+)", line)
        if heading and heading[2] not in NO_JSON:
            wanted[heading[2]] = heading[1]
    commands = 0
    for heading, prose, block in read_page(lines):
        if "curl " in block[0]:
            for command, shown in read_commands(block):
                commands += 1
                print(command.strip(), run_command(control, command, shown, prose), sep="\t", flush=True)
            continue
        path = next((p for p in wanted if re.match(rf"(GET|POST) {re.escape(p)}($|,)", heading)), None)
        if path is None or not block[0].startswith("{"):
            continue
        method = wanted.pop(path)
        status, text = control.ask(method, path.replace("NAME", "b3") + ARGUMENTS.get(path, ""))
        print(f"{method} {path}", judge(read_shown("\n".join(block)), "", status, text), sep="\t", flush=True)
        if path in WAYS_BACK:
            control.ask("POST", WAYS_BACK[path])
    for path in wanted:
        print(f"{wanted[path]} {path}", "the page shows no answer", sep="\t")
    print("the page has curl examples", "" if commands >= 13 else f"only {commands} were found", sep="\t")


if __name__ == "__main__":
    main()
