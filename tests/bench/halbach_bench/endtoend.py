# SPDX-License-Identifier: BSD-3-Clause
"""3. End to end: a generator on one CPU, the whole halbach-dataplane on the other."""
from .lab import LabError
from .pair import LONG_RING, Pair, search

TITLE = "generator on one CPU, halbach-dataplane on another, through shared memory"
SIZES = [64, 128, 256, 512, 1024, 1280, 1518, "imix"]
IMIX_MEAN = (7 * 64 + 4 * 594 + 1518) / 12
OVERHEAD = 20  # preamble and gap: bytes on the wire beside the frame
LINE_10G = 10e9 / 8 / (64 + OVERHEAD)  # 14.88 Mpps
FLOWS = 1_000_000


def gbits(pps, size):
    return pps * 8 * ((IMIX_MEAN if size == "imix" else size) + OVERHEAD) / 1e9


def line_note(pps, size):
    share = gbits(pps, size) / 10
    return f"{'10 GbE line rate and more' if share >= 1 else f'{100 * share:.0f} % of 10 GbE line rate'}"


def most(context, pair, name, **words):
    """The rate when the generator offers all that is taken."""
    size = words.get("size", 64)
    samples, shares = [], []
    for number in range(context.runs):
        context.report.progress(f"{name}, run {number + 1}")
        got = pair.trial(context.seconds, **words)
        samples.append(got["forwarded"] / got["seconds"] / 1e6)
        shares.append(got["cpu_percent"])
    note = line_note(row_median(samples) * 1e6, size)
    if min(shares) < 98:
        note += f"; others took {100 - row_median(shares):.0f} % of a CPU"
    row = context.report.add(name, "rate", "Mpps", samples, "higher", note)
    context.report.add(name, "on the wire", "Gbit/s", [gbits(1e6 * s, size) for s in samples], "higher")
    return row["median"] * 1e6


def row_median(samples):
    return sorted(samples)[len(samples) // 2]


def no_loss(context, pair, highest, what="", **words):
    """Highest rates without loss, and with at most one packet of a thousand lost."""
    late = []

    def try_rate(rate):
        context.report.progress(f"search: {rate / 1e6:.2f} Mpps")
        got = pair.trial(context.seconds, rate=int(rate), **words)
        late.append(got["late"])
        return got["lost"] / max(1, got["offered"]), got["offered"] / got["seconds"]

    for tolerated, name in ((0.0, "64 B, 1M flows, no loss"), (0.001, "64 B, 1M flows, loss up to 0.1 %")):
        name += what
        found = [search(highest, tolerated, try_rate, 6 if context.quick else 9) / 1e6
                 for _ in range(1 if context.quick else 3)]
        note = line_note(1e6 * row_median(found), 64) if any(found) else "none of the rates that were tried"
        context.report.add(name, "rate", "Mpps", found, "higher", note)
    if sum(late):
        context.report.remark(f"the generator was late {sum(late)} times (its CPU was taken away); losses may be of "
                              "the machine and not of the balancer")


def ceiling(context):
    """dpdk-testpmd in the dataplane's place: what generator and rings can do."""
    with Pair(context, instead="macswap") as pair:
        samples = []
        for _ in range(context.runs):
            got = pair.send(context.seconds, flows=FLOWS)
            samples.append(got["sent"] / got["seconds"] / 1e6)
        context.report.add("testpmd macswap in its place, 64 B", "rate", "Mpps", samples, "higher",
                           "what the generator and memif allow")


def run(context):
    if context.lab.helper == context.lab.worker:
        return context.report.remark("this machine gives us one CPU; two are needed for two processes")
    context.report.progress("dpdk-testpmd in the dataplane's place")
    ceiling(context)
    with Pair(context) as pair:
        pair.publish()
        pair.establish(1)
        most(context, pair, "64 B, 1 flow", flows=1)
        context.report.progress("establishing 1M flows")
        known = pair.establish(FLOWS)
        if known < FLOWS * 0.999:
            context.report.remark(f"only {known} of {FLOWS} flows have an entry")
        highest = most(context, pair, "64 B, 1M flows", flows=FLOWS)
        for size in (["imix"] if context.quick else SIZES[1:]):
            most(context, pair, f"{size}{'' if size == 'imix' else ' B'}, 1M flows", flows=FLOWS, size=size)
        no_loss(context, pair, 1.05 * highest, flows=FLOWS)
    # A ring holds what comes while nobody reads it. If a longer one lets more through without loss, what is lost is
    # lost to the times when a CPU was away, and not to what a packet costs.
    with Pair(context, ring=LONG_RING) as pair:
        pair.publish()
        pair.establish(FLOWS)
        no_loss(context, pair, 1.05 * highest, ", long rings", flows=FLOWS)
    if not context.quick:
        try:
            with Pair(context, transport="vhost") as pair:
                pair.publish()
                pair.establish(FLOWS)
                most(context, pair, "64 B, 1M flows, vhost", flows=FLOWS)
        except LabError as error:
            context.report.remark(f"vhost: {error}")
