# SPDX-License-Identifier: BSD-3-Clause
"""Results: rows of samples, printed as they come and written as JSON at the end.

A row is (section, name, metric) with samples of one unit; better says which direction is good: "lower",
"higher", or None for what is only told. Median and spread come from the samples.
"""
import json
import statistics
import sys


def round_to(value, digits=4):
    return float(f"{value:.{digits}g}") if value else 0.0


class Report:
    def __init__(self, machine):
        self.machine = machine
        self.rows = []
        self.remarks = []
        self.section = ""

    def begin(self, section, title):
        self.section = section
        self.clear_progress()
        print(f"\n{section}: {title}", flush=True)

    def add(self, name, metric, unit, samples, better="lower", note=""):
        """Prints a row and keeps it. `samples` is a number or a list of numbers."""
        samples = [float(s) for s in (samples if isinstance(samples, (list, tuple)) else [samples])]
        if not samples:
            return self.remark(f"{name}, {metric}: no sample was taken")
        row = {
            "section": self.section, "name": name, "metric": metric, "unit": unit, "better": better,
            "median": round_to(statistics.median(samples), 6), "least": round_to(min(samples), 6),
            "most": round_to(max(samples), 6), "runs": len(samples), "note": note,
        }
        self.rows.append(row)
        self.clear_progress()
        spread = f"({row['least']:g} to {row['most']:g}, {len(samples)} runs)" if len(samples) > 1 else ""
        print(f"  {name:<38} {metric:<22} {round_to(row['median']):>10g} {unit:<10} {spread}"
              f"{'  ' + note if note else ''}", flush=True)
        return row

    def remark(self, text):
        """A sentence that belongs to the results: what could not be measured, and why."""
        self.remarks.append(f"{self.section}: {text}")
        self.clear_progress()
        print(f"  note: {text}", flush=True)

    def progress(self, text):
        """What is going on now; overwritten by the next line where the output is a terminal."""
        if sys.stderr.isatty():
            print(f"\r\033[K  ... {text}", end="", file=sys.stderr, flush=True)
        else:
            print(f"  ... {text}", file=sys.stderr, flush=True)

    @staticmethod
    def clear_progress():
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def median(self, section, name, metric):
        for row in self.rows:
            if (row["section"], row["name"], row["metric"]) == (section, name, metric):
                return row["median"]
        return None

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"format": 1, "machine": self.machine, "rows": self.rows, "remarks": self.remarks},
                      out, indent=1)
            out.write("\n")
