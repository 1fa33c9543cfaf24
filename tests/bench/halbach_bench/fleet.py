# SPDX-License-Identifier: BSD-3-Clause
"""9. Control with a large fleet: reloads, verdicts of checks, backends that flap, memory."""

TITLE = "halbach-control with 1,000 services, 10,000 backends, 100 pools, on one CPU"
NAME = "10,000 backends"


def nine_in_ten(samples):
    """What nine in ten do not exceed."""
    return sorted(samples)[max(0, -(-9 * len(samples) // 10) - 1)]


def run(context):
    rounds = 10 if context.quick else 50
    context.report.progress(NAME)
    results = context.lab.run_json([context.lab.program("tests/bench/bench_fleet"), "1000", "100", "10000", str(rounds)],
                                   {context.lab.worker}, 300)
    for result in results:
        for key, metric, note in (
                ("reload_same", "reload, same file", "until it is known that nothing changes"),
                ("reload_one_backend", "reload, one backend", "read, compare, one table, publish, answer"),
                ("verdict_to_served", "verdict to served", "of it 2 ms of waiting for other changes"),
                ("verdict_cpu", "CPU of a verdict", ""),
                ("save", "save the state", "with each order of an operator; else in the background")):
            context.report.add(NAME, metric, "ms", result[key], "lower", note)
        context.report.add(NAME, "verdict to served, 90 %", "ms", nine_in_ten(result["verdict_to_served"]), "lower",
                           "one in ten takes longer")
        context.report.add(NAME, "start to all serving", "ms", result["start"], "lower")
        context.report.add("1,000 of them flap", "generations", "a second", result["flock_generations_per_s"], None,
                           f"{result['flock_verdicts']} verdicts")
        context.report.add(NAME, "resident memory", "MB", result["rss_mb"], "lower")
