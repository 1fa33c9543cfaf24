# SPDX-License-Identifier: BSD-3-Clause
"""Both daemons in a folder of their own: no root, no hugepages, no network (the dataplane's port receives nothing)."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

DEADLINE_S = 30

CONFIG = """seed: 0123456789abcdef0123456789abcdef
pools:
  - name: web
    table_size: 251
    health: { type: none }
    backends:
      - { name: web1, address: 198.51.100.11 }
      - { name: web2, address: 198.51.100.12 }
services:
  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }
"""

# The same beside a service over full NAT.
FULL_NAT = CONFIG.replace("services:\n", """  - name: shop
    forwarding: full_nat
    nat: { sources: [198.51.100.64/28], ports: 1000-1999 }
    health: { type: none }
    backends: [ { name: shop1, address: 198.51.100.21 } ]
services:
  - { name: shop, vip: 192.0.2.64/26, protocol: tcp, port: any, pool: shop }
""")


class Tap:
    """Counts checks and prints them the way scripts/test reads."""

    def __init__(self):
        self.failed = 0

    def check(self, good, text, detail=""):
        print(f"{'ok' if good else 'not ok'} - {text}", flush=True)
        if not good:
            self.failed += 1
            for line in str(detail).splitlines()[:40]:
                print(f"# {line}", flush=True)
        return good

    def equal(self, got, expected, text):
        return self.check(got == expected, text, f"got      {got!r}\nexpected {expected!r}")

    def finish(self):
        return 1 if self.failed else 0


def wait_until(condition, what):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {DEADLINE_S} s for: {what}")
        time.sleep(0.02)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("halbach", timeout=DEADLINE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.type = response.getheader("Content-Type", "").split(";")[0]
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Daemons:
    def __init__(self, dataplane, control, config=CONFIG):
        self.programs = {"dataplane": dataplane, "control": control}
        self.folder = tempfile.mkdtemp(prefix="hb-api-")
        self.state = os.path.join(self.folder, "state")
        os.mkdir(self.state)
        self.socket = os.path.join(self.folder, "control.sock")
        self.dataplane_socket = os.path.join(self.folder, "dataplane.sock")
        self.config_file = os.path.join(self.folder, "halbach.yaml")
        self.running = {}
        self.write_config(config)

    def write_config(self, text):
        with open(self.config_file + ".new", "w") as file:
            file.write(text)
        os.rename(self.config_file + ".new", self.config_file)

    def launch(self, name, arguments):
        with open(os.path.join(self.folder, name + ".log"), "a") as log:
            self.running[name] = subprocess.Popen([self.programs[name], *arguments], stdout=log, stderr=log)

    def log(self, name):
        with open(os.path.join(self.folder, name + ".log")) as log:
            return log.read()

    def start_dataplane(self):
        self.launch("dataplane", ["--lcores", "0@0,1@0", "--no-huge", "-m", "128", "--no-telemetry", "--vdev", "net_null0,no-rx=1",
                                  "--file-prefix", os.path.basename(self.folder), "--", "--socket",
                                  self.dataplane_socket, "--flows", "4K", "--idle-sleep", "1000"])

    def start_control(self):
        self.launch("control", ["--config", self.config_file, "--dataplane", self.dataplane_socket, "--socket",
                                self.socket, "--state", os.path.join(self.state, "state.json")])
        wait_until(self.answers, "control answers")

    def start(self):
        self.start_dataplane()
        self.start_control()
        wait_until(self.in_sync, "the dataplane is in sync")

    def stop(self, name, with_signal=signal.SIGTERM):
        process = self.running.pop(name)
        process.send_signal(with_signal)
        return process.wait(DEADLINE_S)

    def answers(self):
        try:
            return self.call("GET", "/v1/status").status == 200
        except (OSError, http.client.HTTPException):
            return False

    def in_sync(self):
        return self.call("GET", "/v1/status").json["generation"]["in_sync"]

    def call(self, method, path, body=None, headers=None, connection=None):
        connection = connection or UnixConnection(self.socket)
        connection.request(method, path, body=body, headers=headers or {})
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def clean_up(self):
        for name in list(self.running):
            self.stop(name, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
