# SPDX-License-Identifier: BSD-3-Clause
"""5. Flow cache: look-up, insert, expire, memory and fill, beside DPDK's rte_hash."""

TITLE = "the flow cache, and rte_hash in the same run"
MEASURES = [
    ("find_ns", "find, batch of 64", "ns", "lower"),
    ("stage_ns", "find as the stage does", "ns", "lower"),
    ("add_ns", "insert", "ns", "lower"),
    ("expire_ns", "expire", "ns", "lower"),
    ("bytes", "table memory a flow", "bytes", "lower"),
    ("lost", "flows without a place", "flows", "lower"),
    ("first_loss_percent", "filled at first loss", "%", "higher"),
]


def run(context):
    lab, report = context.lab, context.report
    sizes = ["100000", "1000000"] if context.quick else ["100000", "1000000", "4000000", "10000000"]
    tables = {}

    def take(row):
        name = f"{row['table']}, {row['flows']:,} flows"
        if "load_percent" in row:
            name += f", {row['load_percent']} % full"
        for key, _, _, _ in MEASURES:
            if key in row:
                tables.setdefault(name, {}).setdefault(key, []).append(row[key])

    # A process a run: another address layout is another cache layout.
    for number in range(1 if context.quick else 3):
        report.progress(f"flow cache and rte_hash, run {number + 1}")
        lab.run_json([lab.program("tests/bench/bench_flow_table"), *lab.eal_alone(f"0@{lab.worker}"), "--", "--json",
                      *sizes], {lab.worker}, 300, take)
    for name, values in tables.items():
        for key, metric, unit, better in MEASURES:
            if key in values:
                report.add(name, metric, unit, values[key], better)
