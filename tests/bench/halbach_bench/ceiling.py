# SPDX-License-Identifier: BSD-3-Clause
"""1. Ceiling: what dpdk-testpmd reaches on the same ports and the same capture, in the same run."""
import os
import time

from . import capture
from .pair import start_dataplane

TITLE = "what dpdk-testpmd reaches, and Halbach's worker on the same port"
MODES = ["io", "macswap", "csum"]
WANTED = 0.55  # of macswap on the capture


def pps_rows(report, name, samples, note=""):
    samples = [s / 1e6 for s in samples if s > 0]
    if not samples:
        return report.remark(f"{name}: no packet was forwarded")
    row = report.add(name, "rate", "Mpps", samples, "higher", note)
    report.add(name, "cost", "ns/packet", [1e3 / s for s in samples], "lower")
    return row


def capture_of(context):
    """The capture, made once a run; (path, number of flows)."""
    flows = 100_000 if context.quick else 1_000_000
    path = os.path.join(context.lab.folder, f"{flows}.pcap")
    if not os.path.exists(path):
        capture.write(path, flows, lambda share: context.report.progress(f"capture, {100 * share:.0f} %"))
    return path, flows


def pcap_port(path):
    """Receives the capture again and again from memory; what is sent is freed."""
    return f"net_pcap0,rx_pcap={path},infinite_rx=1"


def port_command(context, path, flows, *words):
    """bench_port on the capture."""
    buffers = flows + 20_000  # the capture, and those in hand
    return [context.lab.program("tests/bench/bench_port"), *context.lab.eal_alone(), "--vdev", pcap_port(path), "--",
            f"buffers={buffers}", "size=256", "in=0", "out=0", f"flows={flows * 5 // 4}",
            f"warm={1 if context.quick else 2}", f"runs={context.runs}", f"seconds={context.seconds}", *words]


def testpmd_rates(context, what, arguments, modes=MODES, when=""):
    talk = context.lab.testpmd(arguments)
    try:
        for mode in modes:
            context.report.progress(f"testpmd {mode} on {what}{when}")
            pps_rows(context.report, f"testpmd {mode}, {what}{when}", talk.rates(mode, context.runs, context.seconds))
    finally:
        talk.stop()


def share_rows(context, flows):
    """The share of macswap's rate: of the mean of before and after, since virtual machines change their speed."""
    def rate(name):
        return context.report.median("ceiling", name, "rate")
    own = rate("halbach-dataplane, capture")
    before, after = rate("testpmd macswap, capture"), rate("testpmd macswap, capture, again")
    if not own or not before or not after:
        return
    if abs(before - after) > 0.1 * max(before, after):
        context.report.remark(f"macswap did {before:.1f} Mpps before and {after:.1f} after: the machine changed its speed "
                              "meanwhile, and the share below is not worth much. Run it again")
    context.report.add(f"halbach-dataplane / macswap, {flows:,}", "share", "", 2 * own / (before + after), "higher",
                       f"of the rate; as many packets in the capture as flows; aim: {WANTED} with 1,000,000")


def whole_dataplane(context, path, flows):
    """halbach-dataplane itself on the capture, its options for buffers as dpdk-testpmd's above."""
    lab = context.lab
    dataplane, control = start_dataplane(lab, [*lab.eal_alone(), "--vdev", pcap_port(path)], "--flows",
                                         str(flows * 5 // 4), "--mbufs", str(flows + 20_000), "--mbuf-size", "128")
    control.ask("publish 1 1 10 65537 0", 60)
    time.sleep(1 if context.quick else 2)
    samples = []
    before, start = control.ask("counters"), time.monotonic()
    for _ in range(context.runs):
        time.sleep(context.seconds)
        after, now = control.ask("counters"), time.monotonic()
        samples.append((after["tx_packets"] - before["tx_packets"]) / (now - start))
        before, start = after, now
    pps_rows(context.report, "halbach-dataplane, capture", samples, "the whole process")
    control.stop()
    lab.stop(dataplane)


def run(context):
    lab = context.lab
    common = ["-i", "--nb-cores=1", "--forward-mode=io"]
    testpmd_rates(context, "net_null", [*lab.eal_alone(), "--vdev", "net_null0,size=64", "--vdev", "net_null1,size=64",
                                        "--", *common])
    path, flows = capture_of(context)
    on_capture = [*lab.eal_alone(), "--vdev", pcap_port(path), "--", *common, "--mbuf-size=256",
                  f"--total-num-mbufs={flows + 20_000}", "--port-topology=loop"]
    testpmd_rates(context, "capture", on_capture)
    context.report.progress("Halbach on the capture")
    runs = lab.run_json(port_command(context, path, flows), {lab.helper, lab.worker}, 180)
    pps_rows(context.report, "halbach, capture", [r["received"] / r["seconds"] for r in runs],
             f"{flows} flows, every packet tracked")
    lost = sum(r["received"] - r["sent"] for r in runs)
    if any(abs(r["received"] - r["sent"]) > 1000 for r in runs):
        context.report.remark(f"{lost} packets of the capture were not forwarded: the figure above is not what it says")
    context.report.progress("halbach-dataplane on the capture")
    whole_dataplane(context, path, flows)
    testpmd_rates(context, "capture", on_capture, ["macswap"], ", again")
    share_rows(context, flows)
