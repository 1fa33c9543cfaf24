# SPDX-License-Identifier: BSD-3-Clause
"""4. Latency: from the generator through the balancer back to the generator, at parts of the highest rate."""
from .pair import Pair, search

TITLE = "there and back, at parts of the highest rate without loss on that way"
PARTS = [10, 50, 90]
FLOWS = 100_000
QUANTILES = ["p50", "p99", "p99.9"]


def rows(context, send, name, rate):
    samples = {}
    for number in range(context.runs):
        context.report.progress(f"{name}, run {number + 1}")
        got = send(context.seconds, rate=int(rate), flows=FLOWS)
        for quantile in QUANTILES if "latency_ns" in got else []:
            samples.setdefault(quantile, []).append(got["latency_ns"][quantile] / 1e3)
    for quantile in QUANTILES:
        context.report.add(name, quantile, "us", samples.get(quantile, []), "lower")


def highest_rate(context, pair):
    """With at most one packet of a thousand lost. Where CPUs are taken away there is no such rate worth the name;
    then what gets through when all is offered again."""
    context.report.progress("the highest rate there and back")
    got = pair.send(context.seconds, flows=FLOWS)
    top = got["received"] / got["seconds"]

    def try_rate(rate):
        sent = pair.send(context.seconds, rate=int(rate), flows=FLOWS)
        offered = sent["sent"] + sent["refused"]
        return 1 - sent["received"] / max(1, offered), offered / sent["seconds"]

    found = search(top, 0.001, try_rate, 4 if context.quick else 8)
    if found < top / 5:
        context.report.remark(f"hardly a rate without loss was found ({found / 1e6:.2f} Mpps): this machine is not "
                              "quiet, and the times below are those of waiting for a CPU")
        return top
    return found


def run(context):
    if context.lab.helper == context.lab.worker:
        return context.report.remark("this machine gives us one CPU; two are needed for two processes")
    with Pair(context, back=True) as pair:
        pair.publish()
        pair.establish(FLOWS)
        rate = highest_rate(context, pair)
        context.report.add("there and back", "highest rate", "Mpps", rate / 1e6, "higher",
                           "one CPU sends and receives: often its limit, not the balancer's")
        for part in PARTS:
            rows(context, pair.send, f"halbach, {part} % of it", rate * part / 100)
    with Pair(context, back=True, instead="macswap") as pair:
        for part in PARTS:
            rows(context, lambda *a, **w: pair.send(*a, tunnel=0, **w), f"testpmd macswap, the same {part} %",
                 rate * part / 100)
    context.report.remark("both rings and the generator's own waiting are in these times; what the balancer adds is "
                          "the difference to testpmd")
