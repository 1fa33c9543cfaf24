# SPDX-License-Identifier: BSD-3-Clause
"""2. Pipeline: what a packet costs from the first header read to the last one written, without a driver."""
from . import ceiling

TITLE = "cost of a packet in the pipeline, without a driver"
QUICK = ["tcp4-1", "tcp4-1k", "tcp4-100k", "tcp4-1M", "tcp4-1M-full", "tcp4-1M-4096-services", "tcp4-1M-changed",
         "tcp4-1M-off", "udp4-1M", "tcp6-100k", "not-vip", "drop"]


def command(context, cases):
    # One lcore is enough: the program is one thread.
    return [context.lab.program("tests/bench/bench_pipeline"),
            *context.lab.eal_alone(f"0@{context.lab.worker}"), "--", *(["--quick"] if context.quick else []), "--json",
            *cases]


def show(report, row):
    note = "" if row.get("fit_percent", 100) >= 99.995 else f"only {row['fit_percent']} % of the flows have an entry"
    report.add(row["case"], "cost", "ns/packet", row["ns"], "lower", note or f"{row['cycles']:.0f} cycles")
    if "established_lost" in row:
        report.add(row["case"], "established lost", "flows", row["established_lost"], "lower", "must be 0")


def run(context):
    report, lab = context.report, context.lab
    report.progress("cases of the pipeline")
    lab.run_json(command(context, QUICK if context.quick else []), {lab.worker}, 900,
                 lambda row: (show(report, row), report.progress("next case")))
    path, flows = ceiling.capture_of(context)
    for swaps in (0, 100):
        name = f"worker on the capture, {swaps} swaps/s" if swaps else "worker on the capture"
        report.progress(name)
        runs = lab.run_json(ceiling.port_command(context, path, flows, f"swaps={swaps}"), {lab.helper, lab.worker}, 180)
        report.add(name, "cost", "ns/packet", [1e9 * r["seconds"] / max(1, r["received"]) for r in runs], "lower",
                   "driver included")
