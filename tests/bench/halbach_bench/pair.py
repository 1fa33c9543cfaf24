# SPDX-License-Identifier: BSD-3-Clause
"""Two processes on two CPUs: generator -> halbach-dataplane, through shared memory.

      CPU helper                                   CPU worker
    bench_generator  --- port 0 (memif/vhost) --->  halbach-dataplane  --- port 1 ---> null: packets are freed
         ^                                               |                    or memif: back to the generator
         '---------------- memif, when it comes back ----'
    bench_control (on the helper's CPU; asleep) publishes and reads the dataplane's counters

With one CPU both share it; then no rate means anything, but everything works.
"""
import glob
import os
import time

from .lab import Conversation, LabError
from .machine import read


RING = 11  # 2,048 packets, as long as the rings of NICs
LONG_RING = 14  # as long as memif can


def memif(number, role, folder, ring, extra=""):
    return (f"net_memif{number},role={role},socket={folder}/memif{number}.sock,socket-abstract=no,rsize={ring},id=0"
            f"{extra}")


def ran_and_waited(process):
    """(seconds on a CPU, seconds waiting for one) of the thread of lcore 1; None where the kernel does not say."""
    for folder in glob.glob(f"/proc/{process.pid}/task/*"):
        if read(f"{folder}/comm") in ("rte-worker-1", "lcore-worker-1"):
            fields = read(f"{folder}/schedstat").split()
            return (int(fields[0]) / 1e9, int(fields[1]) / 1e9) if len(fields) > 1 else None
    return None


def share(before, after):
    """The part of its time in which a thread had the CPU that it wanted, in percent."""
    if not before or not after:
        return 100.0
    ran, waited = after[0] - before[0], after[1] - before[1]
    return 100 * ran / max(1e-9, ran + waited)


def start_dataplane(lab, eal, *options):
    """halbach-dataplane and a bench_control that talks to it: (process, conversation)."""
    socket = f"{lab.folder}/dataplane.sock"
    dataplane = lab.start([lab.program("dataplane/halbach-dataplane"), *eal, "--", "--socket", socket, *options],
                          {lab.helper, lab.worker})
    deadline = time.monotonic() + 60
    while not os.path.exists(socket):
        if dataplane.poll() is not None or time.monotonic() > deadline:
            raise LabError(f"halbach-dataplane did not start: {lab.last_words(dataplane)}")
        time.sleep(0.05)
    control = Conversation(lab, lab.start([lab.program("tests/bench/bench_control"), socket], {lab.helper},
                                          conversation=True))
    control.hear()
    return dataplane, control


class Pair:
    def __init__(self, context, back=False, flows_max=1_250_000, transport="memif", instead=None, ring=RING):
        """`back`: packets come back to the generator. `instead`: a forwarding mode of dpdk-testpmd, which then
        takes the dataplane's place. `ring`: memif's rings hold 2 to the power of it packets."""
        self.context, self.lab = context, context.lab
        lab, folder = context.lab, context.lab.folder
        self.dataplane = self.control = self.generator = self.testpmd = None
        if transport == "memif":
            inside, outside = memif(0, "server", folder, ring), memif(0, "client", folder, ring,
                                                                               ",zero-copy=yes")
        else:
            inside = f"net_vhost0,iface={folder}/vhost.sock"
            outside = f"net_virtio_user0,path={folder}/vhost.sock,queue_size=1024,in_order=1"
        out = memif(1, "server", folder, ring) if back else "net_null1,no-rx=1"
        for name in ("memif0", "memif1", "vhost", "dataplane"):
            if os.path.exists(f"{folder}/{name}.sock"):
                os.unlink(f"{folder}/{name}.sock")
        ports = ["--vdev", inside, "--vdev", out]
        eal = lab.eal_shared("balancer", lab.worker)
        if instead:
            self.testpmd = lab.testpmd([*eal, *ports, "--", "-i", "--nb-cores=1", f"--forward-mode={instead}",
                                        "--port-topology=paired", "--no-lsc-interrupt"])
        else:
            self.dataplane, self.control = start_dataplane(lab, [*eal, *ports], "--flows", str(flows_max))
        ports = ["--vdev", outside] + (["--vdev", memif(1, "client", folder, ring)] if back else [])
        process = lab.start([lab.program("tests/bench/bench_generator"), *lab.eal_shared("generator", lab.helper),
                             *ports], {lab.helper}, conversation=True)
        self.generator = Conversation(lab, process)
        self.generator.hear(30)
        if instead:
            self.testpmd.command("start")

    def publish(self, vips=1, pools=1, backends=10, slots=65537):
        return self.control.ask(f"publish {vips} {pools} {backends} {slots} 1", 60)

    def counters(self):
        return self.control.ask("counters")

    def send(self, seconds=1.0, **words):
        """One job of the generator; see bench_generator.c."""
        text = " ".join(f"{key}={value}" for key, value in {"seconds": seconds, **words}.items())
        return self.generator.ask(text, seconds + 20)

    def pass_all(self, flows, **words):
        """One packet of each flow, none lost: what the ring does not take is offered again. Returns how many found
        an entry of their flow."""
        before = self.counters()
        self.send(seconds=max(5, flows / 200_000), packets=flows, flows=flows, order="turn", **words)
        return self.settled(before, flows)["flow_hits"] - before["flow_hits"]

    def establish(self, flows, **words):
        """The second packet of a flow establishes it. Returns how many have an entry."""
        self.pass_all(flows, **words)
        return self.pass_all(flows, **words)

    def settled(self, before, sent):
        """The counters once all that was sent is through, or after 2 s."""
        deadline = time.monotonic() + 2
        after = self.counters()
        while after["rx_packets"] - before["rx_packets"] < sent and time.monotonic() < deadline:
            time.sleep(0.01)
            after = self.counters()
        return after

    def trial(self, seconds, **words):
        """Sends and tells what became of it: adds to the generator's answer what was forwarded and lost, and how
        much of its CPU the worse served of both sides had."""
        before = self.counters()
        threads = self.dataplane, self.generator.process
        had = [ran_and_waited(t) for t in threads]
        sent = self.send(seconds, **words)
        shares = [share(h, ran_and_waited(t)) for h, t in zip(had, threads)]
        after = self.settled(before, sent["sent"])
        forwarded = after["tx_packets"] - before["tx_packets"]
        return {**sent, "forwarded": forwarded, "offered": sent["sent"] + sent["refused"],
                "lost": sent["sent"] + sent["refused"] - forwarded, "cpu_percent": min(shares),
                "drops": {k: v - before["drops"].get(k, 0) for k, v in after["drops"].items()
                          if v != before["drops"].get(k, 0)}}

    def close(self):
        # The generator first: a memif client in zero-copy does not survive its server's end.
        if self.testpmd:
            self.testpmd.command("stop")
        for talk in (self.generator, self.testpmd, self.control):
            if talk:
                talk.stop()
        if self.dataplane:
            self.lab.stop(self.dataplane)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.close()
        except LabError:
            pass  # what failed is on its way already; Lab.close ends the rest


def search(highest, tolerated, try_rate, steps):
    """RFC 2544 style: the highest rate, found by halving, at which at most the share `tolerated` is lost; 0 when
    there is none. try_rate(rate) returns the share that was lost and the rate that was really offered."""
    low, high, best = 0.0, float(highest), 0.0
    rate = high
    for _ in range(steps):
        lost, offered = try_rate(rate)
        if lost <= tolerated:
            best, low = max(best, min(rate, offered)), rate
            if rate >= highest:
                break
        else:
            high = rate
        rate = (low + high) / 2
    return best
