# SPDX-License-Identifier: BSD-3-Clause
"""Where measuring happens: a folder, hugepages, pinned processes, and the end of all of them.

Everything that a Lab starts or mounts it ends and removes, also after an error or SIGTERM. It touches no
process that it did not start. Each process runs in a session of its own, on the CPUs it was given.
"""
import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


class LabError(Exception):
    """Something needed is not there; the text says what and what to do."""


class Lab:
    def __init__(self, build, helper_cpu, worker_cpu, no_huge=False):
        self.build, self.helper, self.worker = os.path.abspath(build), helper_cpu, worker_cpu
        self.no_huge = no_huge
        self.folder = tempfile.mkdtemp(prefix="hb-bench-")
        self.running = []
        self.prefixes = set()
        self.mounted = None
        self.count = 0

    # ---- processes ------------------------------------------------------------------------------

    def program(self, name):
        path = os.path.join(self.build, name)
        if not os.access(path, os.X_OK):
            raise LabError(f"{path} is not there; build it: ninja -C {self.build}")
        return path

    def start(self, command, cpus, conversation=False):
        """Starts a pinned process; a conversation has pipes for its input and output."""
        self.count += 1
        log = os.path.join(self.folder, f"{self.count}-{os.path.basename(command[0])}.log")
        with open(log, "wb") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE if conversation else subprocess.DEVNULL,
                stdout=subprocess.PIPE if conversation else errors, stderr=errors, start_new_session=True,
                preexec_fn=lambda: (os.sched_setaffinity(0, cpus),
                                    # Even when the bench itself is killed, nothing goes on polling.
                                    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)))
        process.log, process.name = log, os.path.basename(command[2] if command[0] == "stdbuf" else command[0])
        self.running.append(process)
        return process

    def stop(self, process, seconds=5):
        if process not in self.running:
            return
        if process.stdin:
            try:
                process.stdin.close()  # a conversation ends at the end of its input
            except OSError:
                pass
            try:
                process.wait(seconds if process.stdout else 0.1)
            except subprocess.TimeoutExpired:
                pass
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                process.send_signal(number)
                try:
                    process.wait(seconds)
                except subprocess.TimeoutExpired:
                    pass
        if process.stdout:
            process.stdout.close()
        self.running.remove(process)

    def last_words(self, process):
        try:
            with open(process.log, encoding="utf-8", errors="replace") as text:
                lines = [line for line in text.read().splitlines() if line.strip()]
        except OSError:
            lines = []
        return "; ".join(lines[-4:])[-600:] or "it said nothing"

    def run_lines(self, command, cpus, seconds, on_line):
        """Runs a program to its end and hands over each line of its output as it comes."""
        process = self.start(command, cpus, conversation=True)
        talk = Conversation(self, process)
        deadline = time.monotonic() + seconds
        try:
            while True:
                line = talk.read_line(deadline - time.monotonic())
                if line is None:
                    break
                on_line(line)
            if process.wait(10) != 0:
                raise LabError(f"{process.name} failed: {self.last_words(process)}")
        finally:
            self.stop(process, 1)

    def run_json(self, command, cpus, seconds, on_object=None):
        """The same for programs that print one JSON object a line; returns all of them."""
        objects = []

        def take(line):
            if line.startswith("{"):
                objects.append(json.loads(line))
                if on_object:
                    on_object(objects[-1])
        self.run_lines(command, cpus, seconds, take)
        return objects

    # ---- EAL ------------------------------------------------------------------------------------

    def eal_alone(self, lcores=None):
        """EAL arguments of a process that shares no memory; the worker is lcore 1."""
        lcores = lcores or f"0@{self.helper},1@{self.worker}"
        memory = ["--no-huge", "--no-shconf", "-m", "2000"] if self.no_huge else ["--in-memory"]
        return ["--lcores", lcores, *memory, "--no-pci", "--log-level=lib.*:error", "--log-level=bus.*:error"]

    def eal_shared(self, prefix, cpu):
        """EAL arguments of a process that shares packet memory with another (memif, vhost)."""
        prefix = f"hb-bench-{os.getpid()}-{prefix}"
        self.prefixes.add(prefix)
        return ["--lcores", f"0@{self.helper},1@{cpu}", "--huge-dir", self.huge_dir(), "--single-file-segments",
                "--file-prefix", prefix, "--no-pci", "--iova-mode=va", "--log-level=lib.*:error",
                "--log-level=bus.*:error"]

    def huge_dir(self):
        """A hugetlbfs of our own, so that nothing is left in another one."""
        if self.mounted is None:
            folder = os.path.join(self.folder, "huge")
            os.mkdir(folder)
            done = subprocess.run(["mount", "-t", "hugetlbfs", "none", folder], capture_output=True, text=True,
                                  check=False)
            if done.returncode != 0:
                raise LabError(f"no hugetlbfs can be mounted ({done.stderr.strip()}); run as root")
            self.mounted = folder
        return self.mounted

    def testpmd(self, arguments):
        binary = shutil.which("dpdk-testpmd") or shutil.which("testpmd")
        if not binary:
            raise LabError("dpdk-testpmd is not installed; run scripts/deps bench")
        # Its prompt is not buffered; its answers are, unless told otherwise, and would come after the prompt.
        return Testpmd(self, ["stdbuf", "-oL", binary, *arguments])

    # ---- end ------------------------------------------------------------------------------------

    def end_processes(self):
        for process in list(reversed(self.running)):
            self.stop(process, 2)

    def close(self):
        self.end_processes()
        if self.mounted:
            subprocess.run(["umount", self.mounted], check=False)
        for prefix in self.prefixes:
            shutil.rmtree(f"/var/run/dpdk/{prefix}", ignore_errors=True)
        if not self.mounted or not os.path.ismount(self.mounted):
            shutil.rmtree(self.folder, ignore_errors=True)


class Conversation:
    """A process that answers a line with a line of JSON."""

    def __init__(self, lab, process):
        self.lab, self.process, self.buffer = lab, process, b""

    def read_some(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], max(0, seconds))
        if not ready:
            raise LabError(f"{self.process.name} was silent for too long: {self.lab.last_words(self.process)}")
        data = os.read(self.process.stdout.fileno(), 65536)
        self.buffer += data
        return bool(data)

    def read_line(self, seconds):
        """The next line, or None at the end."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            if not self.read_some(deadline - time.monotonic()):
                return None
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode(errors="replace")

    def hear(self, seconds=15):
        """The next line of JSON."""
        deadline = time.monotonic() + seconds
        while True:
            line = self.read_line(deadline - time.monotonic())
            if line is None:
                raise LabError(f"{self.process.name} ended: {self.lab.last_words(self.process)}")
            if line.startswith(("{", "[")):
                return json.loads(line)

    def say(self, text):
        try:
            self.process.stdin.write(text.encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise LabError(f"{self.process.name} ended: {self.lab.last_words(self.process)}") from error

    def ask(self, text, seconds=15):
        self.say(text)
        return self.hear(seconds)

    def stop(self):
        self.lab.stop(self.process)


class Testpmd(Conversation):
    """dpdk-testpmd, driven by its prompt. Lcore 0 manages, lcore 1 forwards."""
    PROMPT = b"testpmd> "

    def __init__(self, lab, command):
        super().__init__(lab, lab.start(command, {lab.helper, lab.worker}, conversation=True))
        self.wait_for_prompt(60)

    def wait_for_prompt(self, seconds=15):
        deadline = time.monotonic() + seconds
        while not self.buffer.rstrip(b" ").endswith(self.PROMPT.rstrip()):
            if not self.read_some(deadline - time.monotonic()):
                raise LabError(f"dpdk-testpmd ended: {self.lab.last_words(self.process)}")
        text, self.buffer = self.buffer.decode(errors="replace"), b""
        return text

    def command(self, text):
        self.say(text)
        return self.wait_for_prompt()

    def received_pps(self):
        """Of all ports, since the last call."""
        return sum(int(pps) for pps in re.findall(r"Rx-pps:\s+(\d+)", self.command("show port stats all")))

    def rates(self, mode, runs, seconds):
        """Packets a second that it forwards in `mode`, measured `runs` times."""
        self.command(f"set fwd {mode}")
        self.command("start")
        time.sleep(0.3)
        self.received_pps()
        samples = []
        for _ in range(runs):
            time.sleep(seconds)
            samples.append(self.received_pps())
        self.command("stop")
        return samples
