# SPDX-License-Identifier: BSD-3-Clause
"""What the project aims at, beside what was measured. Told, never judged: the exit status does not know it.

The aims are for one core of a current server CPU on a quiet machine, frames of 64 bytes.
"""

# (section, name, metric, "at most" or "at least", value)
AIMS = [
    ("pipeline", "tcp4-1", "cost", "at most", 15),
    ("pipeline", "tcp4-1M-full", "cost", "at most", 35),
    ("pipeline", "tcp4-10M-full", "cost", "at most", 50),
    ("pipeline", "tcp4-10M-changed", "cost", "at most", 18),
    ("flood", "syn-flood", "cost", "at most", 70),
    ("flood", "syn-flood-half-established", "established lost", "at most", 0),
    ("flood", "flood through memif", "established lost", "at most", 0),
    ("endtoend", "64 B, 1M flows, no loss", "rate", "at least", 14.88),
    ("endtoend", "64 B, 1M flows, no loss, long rings", "rate", "at least", 14.88),
    ("ceiling", "halbach-dataplane / macswap, 1,000,000", "share", "at least", 0.55),
    ("tables", "1000 services, 250 tables of 4099", "publish to answer", "at most", 5),
    ("tables", "worker's loop, 100 swaps/s", "longest turn", "at most", 50),
    ("cache", "own, 1,000,000 flows, 90 % full", "table memory a flow", "at most", 32),
    ("fleet", "10,000 backends", "reload, one backend", "at most", 1000),
    ("fleet", "10,000 backends", "verdict to served", "at most", 10),
    ("fleet", "10,000 backends", "verdict to served, 90 %", "at most", 15),
    ("fleet", "10,000 backends", "CPU of a verdict", "at most", 4),
    ("fleet", "10,000 backends", "resident memory", "at most", 300),
]


def show(report):
    """Prints those aims whose rows were measured; returns (reached, measured)."""
    reached = measured = 0
    for section, name, metric, side, value in AIMS:
        row = next((r for r in report.rows if (r["section"], r["name"], r["metric"]) == (section, name, metric)), None)
        if row is None:
            continue
        if measured == 0:
            busy = report.machine.get("busy_before_percent", 0)
            print("\naims, for one core of a quiet machine" +
                  (f" (this one was not: {busy} % of its CPUs were taken before)" if busy > 5 else ""))
        good = row["median"] <= value if side == "at most" else row["median"] >= value
        measured, reached = measured + 1, reached + good
        print(f"  {name:<38} {metric:<22} {row['median']:>10.4g} {row['unit']:<10} {side} {value:g}: "
              f"{'reached' if good else 'FALLS SHORT'}")
    return reached, measured
