# SPDX-License-Identifier: BSD-3-Clause
"""7. Scaling: how the cost of a packet grows with flows, services and backends; as numbers and as a picture."""
import os
import shutil
import subprocess

from . import pipeline

TITLE = "how the cost of a packet grows"
CURVES = {  # what grows: (cases of bench_pipeline, their x)
    "flows": [(n, f"tcp4:{n}:{max(4096, n * 5 // 4)}:1:10") for n in
              (1, 1000, 10_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)],
    "services": [(4 * n, f"tcp4:100000:200000:{n}:10") for n in (1, 16, 64, 256, 1024)],
    "backends": [(n, f"tcp4:100000:200000:1:{n}") for n in (1, 10, 100, 1000, 10_000)],
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


def script(points, folder, svg, title):
    lines = [f"set terminal svg size 1200,420 font 'sans,12' background '#ffffff'", f"set output '{svg}'",
             f"set multiplot layout 1,{len(points)} title '{title}'", "set logscale x", "set yrange [0:*]", "set grid",
             "set ylabel 'ns a packet'", "set format x '10^{%L}'", "unset key"]
    for what, values in points.items():
        data = os.path.join(folder, f"scaling-{what}.data")
        with open(data, "w", encoding="utf-8") as out:
            out.writelines(f"{x} {median} {least} {most}\n" for x, median, least, most in values)
        lines += [f"set xlabel '{what}'",
                  f"plot '{data}' using 1:2:3:4 with yerrorlines linewidth 2 pointtype 7 pointsize 0.6"]
    return "\n".join([*lines, "unset multiplot", ""])


def draw(context, points):
    svg = os.path.abspath(context.svg)
    title = f"Halbach, one core: {context.report.machine['cpu']}, {context.report.machine['revision'][:12]}"
    if not shutil.which("gnuplot"):
        return context.report.remark("no picture: gnuplot is not installed; run scripts/deps bench")
    done = subprocess.run(["gnuplot"], input=script(points, context.lab.folder, svg, title.replace("'", "")),
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        return context.report.remark(f"no picture: gnuplot says: {done.stderr.strip()[-200:]}")
    context.report.remark(f"picture: {svg}")


def run(context):
    points = measure(context)
    if points:
        draw(context, points)
    context.report.remark("workers: each has its own queue, flow cache and counters; to measure several, use a NIC "
                          "with several queues as docs/benchmarking.md says")
