# SPDX-License-Identifier: BSD-3-Clause
"""8. SYN flood: what it costs, and whether an established flow is lost (never)."""
from . import pipeline
from .pair import Pair

TITLE = "a flood of SYNs, every packet a new flow"
CASES = ["syn-flood", "syn-flood-half-established", "syn-flood-90%-established"]
ESTABLISHED = 500_000
STRANGERS = 4_000_000


def end_to_end(context):
    name = "flood through memif"
    with Pair(context, flows_max=1_000_000) as pair:
        pair.publish()
        context.report.progress("establishing flows")
        known = pair.establish(ESTABLISHED)
        samples, busy = [], []
        for _ in range(context.runs):
            context.report.progress(name)
            before = pair.counters()
            got = pair.trial(context.seconds, kind="syn", flows=STRANGERS, first=ESTABLISHED)
            after = pair.counters()
            samples.append(got["forwarded"] / got["seconds"] / 1e6)
            busy.append(100 * (after["busy_loops"] - before["busy_loops"]) / max(1, after["loops"] - before["loops"]))
        context.report.add(name, "absorbed", "Mpps", samples, "higher",
                           f"{ESTABLISHED} established, {STRANGERS} strangers")
        context.report.add(name, "busy turns", "%", busy, None, "of the worker's loop")
        context.report.progress("asking for the established flows")
        lost = known - pair.pass_all(ESTABLISHED)
        context.report.add(name, "established lost", "flows", max(0, lost), "lower", f"must be 0; of {known}")


def run(context):
    context.report.progress("flood in the pipeline")
    context.lab.run_json(pipeline.command(context, CASES[:2] if context.quick else CASES), {context.lab.worker}, 600,
                         lambda row: pipeline.show(context.report, row))
    if context.lab.helper == context.lab.worker:
        return context.report.remark("end to end: needs two CPUs")
    end_to_end(context)
