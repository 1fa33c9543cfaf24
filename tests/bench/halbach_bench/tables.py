# SPDX-License-Identifier: BSD-3-Clause
"""6. Tables: building them, handing generations over, and what workers notice of it."""
import re

from . import ceiling
from .pair import Pair

TITLE = "building tables, publishing generations, and what a worker notices"
LINE = re.compile(r"^(\S.*?)\s{2,}(\d+)\s+(\d+)\s{2,}(.+?)\s{2,}([\d.]+)\s+([\d.]+)\s*$")
SWAPS_A_SECOND = 100


def build_times(context):
    lab = context.lab
    times = {}

    def take(line):
        found = LINE.match(line)
        if found:
            name = f"{found[1]}, {found[2]} backends x {found[3]}, {found[4]}"
            times.setdefault(name, []).append(float(found[6]))
            context.report.progress(name)

    for _ in range(1 if context.quick else 3):
        lab.run_lines([lab.program("tests/bench/bench_tables")], {lab.worker}, 300, take)
    if not times:
        context.report.remark("the table bench printed nothing that could be read")
    for name, samples in times.items():
        context.report.add(name, "time", "ms", samples, "lower", "median of 15 builds")


def publish_times(context):
    count = 10 if context.quick else 50
    for vips, pools, slots in ((1, 1, 65537), (250, 250, 4099)):
        name = f"{4 * vips} services, {pools} tables of {slots}"
        with Pair(context) as pair:
            context.report.progress(name)
            first = pair.publish(vips, pools, 10, slots)
            context.report.add(name, "first, all tables", "ms", first["reply_ns"] / 1e6, "lower",
                               f"{first['bytes'] / 1e6:.1f} MB")
            swaps = pair.control.ask(f"swap {count} 20", count / 20 + 30)
            for key, metric in (("build_ns", "lay out one change"), ("adopt_ns", "adopt"), ("grace_ns", "reclaim"),
                                ("reply_ns", "publish to answer")):
                context.report.add(name, metric, "ms", [s[key] / 1e6 for s in swaps], "lower")


def gaps(context):
    """How long a worker leaves its queue alone, with and without swaps. A machine that takes the CPU away shows up
    in a loop that does nothing as well; what swaps cost is the difference."""
    path, flows = ceiling.capture_of(context)
    for name, words in (("a loop that does nothing", ["gaps=2"]),
                        ("worker's loop, 0 swaps/s", ["gaps=1"]),
                        (f"worker's loop, {SWAPS_A_SECOND} swaps/s", ["gaps=1", f"swaps={SWAPS_A_SECOND}"])):
        context.report.progress(name)
        runs = context.lab.run_json(ceiling.port_command(context, path, flows, *words, "vips=250", "pools=250",
                                                         "slots=4099"),
                                    {context.lab.helper, context.lab.worker}, 180)
        context.report.add(name, "longest turn", "us", [r["turn_longest_us"] for r in runs], "lower")
        context.report.add(name, "99.9 % of turns within", "us", [r["turn_p99.9_us"] for r in runs], "lower")
        context.report.add(name, "turns over 50 us", "a second",
                           [r["turns_over_50_us"] / r["seconds"] for r in runs], "lower")


def losses(context):
    """Packets lost while generations are swapped, at a rate that the machine carries."""
    if context.lab.helper == context.lab.worker:
        return context.report.remark("losses while swapping: needs two CPUs")
    flows, seconds = 10_000, max(2.0, context.seconds)
    with Pair(context) as pair:
        pair.publish(250, 250, 10, 4099)
        pair.establish(flows, vips=250)
        before = pair.counters()
        count = int(SWAPS_A_SECOND * (seconds - 0.5))
        context.report.progress("packets lost while swapping")
        pair.control.say(f"swap {count} {SWAPS_A_SECOND}")
        got = pair.send(seconds, rate=500_000, flows=flows, vips=250)
        pair.control.hear(60)
        after = pair.counters()
        received = after["rx_packets"] - before["rx_packets"]
        sent = after["tx_packets"] - before["tx_packets"]
        context.report.add(f"{count} swaps under traffic", "received, not forwarded", "packets", received - sent,
                           "lower", f"must be 0; of {received}")
        context.report.add(f"{count} swaps under traffic", "not received", "packets",
                           got["sent"] + got["refused"] - received, "lower",
                           "ring full: the worker's CPU was taken away, or it was away itself")


def run(context):
    build_times(context)
    publish_times(context)
    gaps(context)
    losses(context)
