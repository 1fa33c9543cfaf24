# SPDX-License-Identifier: BSD-3-Clause
"""7. Scaling: how the cost of a packet grows with flows, services, backends and tables; as numbers and as a picture."""
import os
import shutil
import subprocess

from . import pipeline
from .lab import Conversation

TITLE = "how the cost of a packet grows"
CURVES = {  # what grows: (cases of bench_pipeline, their x)
    "flows": [(n, f"tcp4:{n}:{max(4096, n * 5 // 4)}:1:10") for n in
              (1, 1000, 10_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)],
    "services": [(4 * n, f"tcp4:100000:200000:{n}:10") for n in (1, 16, 64, 256, 1024)],
    "backends": [(n, f"tcp4:100000:200000:1:{n}") for n in (1, 10, 100, 1000, 10_000)],
    # Settled, with tracking: changed: each packet reads a slot. 1,024 VIPs and 4,096 backends whatever the number.
    "tables": [(n, f"tcp4-changed:1000000:1000000:1024:4096:{n}") for n in (1, 10, 100, 1000)],
}


def measure(context):
    """{what: [(x, median, least, most)]}"""
    report, points = context.report, {}
    for what, curve in CURVES.items():
        wanted = [(x, case) for x, case in curve if not context.quick or x <= 1_000_000]
        if context.quick:
            wanted = wanted[::2]
        for x, case in wanted:
            report.progress(f"{what}: {x}")
            for row in context.lab.run_json(pipeline.command(context, [case]), {context.lab.worker}, 120):
                kept = report.add(f"{what}: {x:,}", "cost", "ns/packet", row["ns"], "lower")
                points.setdefault(what, []).append((x, kept["median"], kept["least"], kept["most"]))
    return points


def together(context, case, cpus):
    """The case on several CPUs at once: packets a second of all together, millions, run by run."""
    lab = context.lab
    processes = [lab.start([lab.program("tests/bench/bench_pipeline"), *lab.eal_alone(f"0@{cpu}"), "--",
                            *(["--quick"] if context.quick else []), "--json", case], {cpu}, conversation=True)
                 for cpu in cpus]
    rows = [Conversation(lab, process).hear(300) for process in processes]
    for process in processes:
        lab.stop(process)
    return [sum(1e3 / ns for ns in run) for run in zip(*(row["ns"] for row in rows))]


def workers(context):
    """Workers share nothing that they write, so the pipeline alone, on so many CPUs at once, is what a NIC with a
    queue for each would feed. What they do share is here too: the last cache, memory, and how CPUs are made up of
    threads of one core."""
    points = []
    cpus = sorted(os.sched_getaffinity(0), key=lambda cpu: (cpu != context.lab.worker, cpu))
    for count in [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= len(cpus)]:
        for case, name in (("tcp4-1", "1 flow"), ("tcp4-1M", "1M flows each")):
            context.report.progress(f"workers: {count}, {name}")
            samples = together(context, case, cpus[:count])
            kept = context.report.add(f"workers: {count}, {name}", "rate of all", "Mpps", samples, "higher")
            if case == "tcp4-1M":
                points.append((count, kept["median"], kept["least"], kept["most"]))
    return points


def script(points, folder, svg, title):
    # Two in a row: as wide as a page shows it, so that the letters keep their size.
    rows = (len(points) + 1) // 2
    lines = [f"set terminal svg size 900,{340 * rows} font 'sans,13' background '#ffffff'", f"set output '{svg}'",
             f"set multiplot layout {rows},2 title '{title}'", "set logscale x", "set yrange [0:*]",
             "set grid linecolor '#dddddd' linetype 1", "set border 3", "set tics nomirror out",
             "set ylabel 'ns a packet'", "set format x '10^{%L}'", "unset key"]
    for what, values in points.items():
        if what == "workers":
            lines += ["set ylabel 'million packets a second'", "unset logscale x", "set xrange [0:*]",
                      "set format x '%g'", "set xtics 1"]
        data = os.path.join(folder, f"scaling-{what}.data")
        with open(data, "w", encoding="utf-8") as out:
            out.writelines(f"{x} {median} {least} {most}\n" for x, median, least, most in values)
        lines += [f"set xlabel '{what}'",
                  f"plot '{data}' using 1:2:3:4 with yerrorlines linewidth 2 "
                  "linecolor '#0072b2' pointtype 7 pointsize 0.6"]
    return "\n".join([*lines, "unset multiplot", ""])


def draw(context, points):
    svg = os.path.abspath(context.svg)
    title = f"Halbach: {context.report.machine['cpu']}, {context.report.machine['revision'][:12]}"
    if not shutil.which("gnuplot"):
        return context.report.remark("no picture: gnuplot is not installed; run scripts/deps bench")
    done = subprocess.run(["gnuplot"], input=script(points, context.lab.folder, svg, title.replace("'", "")),
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        return context.report.remark(f"no picture: gnuplot says: {done.stderr.strip()[-200:]}")
    context.report.remark(f"picture: {svg}")


def run(context):
    points = measure(context)
    points["workers"] = workers(context)
    if points:
        draw(context, points)
    context.report.remark("workers are processes here, one on each CPU, without ports; with ports it takes a NIC with "
                          "several queues: docs/benchmarking.md")
