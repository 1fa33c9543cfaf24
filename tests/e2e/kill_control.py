#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills halbach-control at random moments while an operator gives orders, and compares what it remembers with what it had
acknowledged. Python standard library only; for test_kill_control.sh.

  kill_control.py --socket API --pid FILE --config FILE --first FILE --other FILE --kills N --seconds S --seed N BACKEND...

Orders: drain with and without a deadline, undrain, weight, weight back, reload of one of the two configurations. An order
that was answered (200) must hold from then on, whatever happens; one that was cut off by the kill may hold or not, but
nothing in between, and holds to the end once it was seen. The last line is JSON: kills, orders, acknowledged, cut_off,
wrong (a list), slowest_back_s.
"""
import argparse
import http.client
import json
import os
import random
import signal
import socket
import sys
import threading
import time


NOT_SEEN = "not seen yet"  # a deadline that was acknowledged, but whose moment no answer told


class Unreachable(Exception):
    pass


def ask(path, method, url, timeout=10):
    """(status, document) of a request; Unreachable when there is no whole answer."""
    connection = http.client.HTTPConnection("halbach", timeout=timeout)
    try:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(timeout)
        connection.sock.connect(path)
        connection.request(method, url, headers={"Connection": "close"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(str(error)) from error
    finally:
        connection.close()


def facts(backend):
    """What an operator has said of a backend, as the API tells it."""
    drain = backend["drain"]
    return {"draining": backend["draining"],
            "deadline": drain and drain["deadline_unix"],
            "at_deadline": drain and drain["at_deadline"],
            "weight": backend["weight"]}


class Operator:
    def __init__(self, options):
        self.options, self.random = options, random.Random(options.seed)
        self.expected = {}   # backend: facts
        self.doubt = None    # the backend of an order that was cut off
        self.result = {"kills": 0, "orders": 0, "acknowledged": 0, "cut_off": 0, "wrong": [],
                       "slowest_back_s": 0.0}

    def state(self):
        _, document = ask(self.options.socket, "GET", "/v1/backends")
        return {b["name"]: facts(b) for b in document["backends"]
                if b["pool"] == "web" and b["name"] in self.options.backend}

    def order(self):
        """Gives one order. Notes what is to hold from now on."""
        backend = self.random.choice(self.options.backend)
        kind = self.random.choice(["drain", "deadline", "undrain", "weight", "reset", "reload"])
        url = {"drain": f"/v1/backends/{backend}/drain",
               "deadline": f"/v1/backends/{backend}/drain?deadline=1h&at_deadline="
                           + self.random.choice(["keep", "reassign", "reset"]),
               "undrain": f"/v1/backends/{backend}/undrain",
               "weight": f"/v1/backends/{backend}/weight?weight={self.random.randint(1, 9)}",
               "reset": f"/v1/backends/{backend}/weight?reset=1",
               "reload": "/v1/reload"}[kind]
        if kind == "reload":
            source = self.random.choice([self.options.first, self.options.other])
            with open(source, encoding="utf-8") as file:
                text = file.read()
            with open(self.options.config + ".next", "w", encoding="utf-8") as file:
                file.write(text)
            os.rename(self.options.config + ".next", self.options.config)
        self.result["orders"] += 1
        try:
            status, _ = ask(self.options.socket, "POST", url)
            if status != 200:
                self.result["wrong"].append(f"{url}: status {status}")
            self.result["acknowledged"] += 1
            if kind != "reload":
                self.expected.update(self.learn(backend, kind, url))
        except Unreachable:
            self.result["cut_off"] += 1
            self.doubt = backend if kind != "reload" else None

    def learn(self, backend, kind, url):
        """What the acknowledged order means for the backend."""
        now = dict(self.expected[backend])
        if kind in ("drain", "deadline"):
            now["draining"] = True
        if kind == "deadline":
            now.update(at_deadline=url.rsplit("=", 1)[1], deadline=NOT_SEEN)
        if kind == "undrain":
            now.update(draining=False, deadline=None, at_deadline=None)
        if kind == "weight":
            now["weight"] = int(url.rsplit("=", 1)[1])
        if kind == "reset":
            now["weight"] = 1
        return {backend: now}

    def compare(self, seen):
        for backend, want in self.expected.items():
            have = seen.get(backend)
            if backend == self.doubt or have == want:
                continue
            if have and want["deadline"] == NOT_SEEN and have["deadline"] and \
                    dict(want, deadline=have["deadline"]) == have:
                continue
            self.result["wrong"].append(f"{backend}: {want} was acknowledged, {have} is remembered")
        self.expected, self.doubt = seen, None

    def wait_until_back(self, old_pid):
        begin = time.monotonic()
        while True:
            try:
                with open(self.options.pid, encoding="utf-8") as file:
                    pid = int(file.read())
                if pid != old_pid:
                    status, document = ask(self.options.socket, "GET", "/v1/status", timeout=5)
                    if status == 200 and document["generation"]["in_sync"]:
                        break
            except (Unreachable, OSError, ValueError):
                pass
            if time.monotonic() - begin > 20:
                sys.exit("control does not come back")
            time.sleep(0.005)
        self.result["slowest_back_s"] = max(self.result["slowest_back_s"],
                                            round(time.monotonic() - begin, 3))

    def kill_once(self):
        """Orders until the kill, which comes at a moment that nobody has chosen."""
        with open(self.options.pid, encoding="utf-8") as file:
            pid = int(file.read())
        killed = threading.Event()

        def kill():
            os.kill(pid, signal.SIGKILL)
            killed.set()
        timer = threading.Timer(self.random.uniform(0.0, 0.35), kill)
        timer.start()
        while not killed.is_set():
            self.order()
            if self.doubt is not None:
                break
            if not killed.is_set() and self.random.random() < 0.3:
                try:
                    self.compare(self.state())
                except Unreachable:
                    pass
        timer.join()
        self.wait_until_back(pid)
        self.compare(self.state())
        self.result["kills"] += 1

    def run(self):
        self.expected = self.state()
        end = time.monotonic() + self.options.seconds
        while self.result["kills"] < self.options.kills and time.monotonic() < end:
            self.kill_once()
        print(json.dumps(self.result))
        return 0 if not self.result["wrong"] else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("socket", "pid", "config", "first", "other"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=170)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("backend", nargs="+")
    return Operator(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
