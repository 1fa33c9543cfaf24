#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The parts of scripts/bench that can be tested without measuring anything. Prints TAP."""
import io
import json
import os
import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True

from halbach_bench import aims, capture, compare, machine, tables  # noqa: E402
from halbach_bench.pair import search, share  # noqa: E402
from halbach_bench.report import Report  # noqa: E402


def row(samples, better="lower", name="case"):
    report = Report({"result": True})
    report.section = "pipeline"
    sys.stdout = io.StringIO()
    try:
        return report.add(name, "cost", "ns", samples, better)
    finally:
        sys.stdout = sys.__stdout__


class Builds(unittest.TestCase):
    def test_a_release_build_is_a_result(self):
        self.assertEqual(machine.why_not_a_result({"buildtype": "release", "optimization": "3"}), "")

    def test_others_are_refused_and_the_reason_is_said(self):
        for options, word in (({"optimization": "0", "buildtype": "debug"}, "debug"),
                              ({"optimization": "s"}, "optimised"),
                              ({"optimization": "3", "b_sanitize": "address,undefined"}, "address"),
                              ({"optimization": "3", "c_args": ["-O0"]}, "optimised"),
                              ({"optimization": "3", "c_args": ["-fsanitize=thread"]}, "sanitizer"),
                              ({"optimization": "2", "b_coverage": True}, "coverage")):
            self.assertIn(word, machine.why_not_a_result(options))


class Rows(unittest.TestCase):
    def test_median_and_spread(self):
        made = row([3, 1, 2])
        self.assertEqual((made["median"], made["least"], made["most"], made["runs"]), (2, 1, 3, 3))


class Comparing(unittest.TestCase):
    def verdict(self, before, after, better="lower"):
        return compare.judge(row(before, better), row(after, better))[1]

    def test_overlapping_runs_are_noise(self):
        self.assertEqual(self.verdict([10, 11, 14], [12, 13, 14]), "")

    def test_apart_but_close_is_noise(self):
        self.assertEqual(self.verdict([100, 100, 100], [104, 104, 104]), "")

    def test_direction(self):
        self.assertEqual(self.verdict([10, 10, 10], [20, 20, 20]), "SLOWER")
        self.assertEqual(self.verdict([10, 10, 10], [20, 20, 20], "higher"), "faster")
        self.assertEqual(self.verdict([20, 20, 20], [10, 10, 10], "higher"), "SLOWER")
        self.assertEqual(self.verdict([20, 20, 20], [10, 10, 10], None), "")

    def test_a_single_run_needs_more(self):
        self.assertEqual(self.verdict([10], [11.5]), "")
        self.assertEqual(self.verdict([10], [13]), "SLOWER")

    def test_from_zero(self):
        self.assertEqual(self.verdict([0], [3]), "WORSE")
        self.assertEqual(self.verdict([3], [0]), "better")
        self.assertEqual(self.verdict([0], [0]), "")

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, value in enumerate((10, 30)):
                paths.append(os.path.join(folder, f"{number}.json"))
                with open(paths[-1], "w", encoding="utf-8") as out:
                    json.dump({"format": 1, "machine": {"result": number == 0, "cpu": f"cpu {number}"},
                               "rows": [row([value] * 3)]}, out)
            out = io.StringIO()
            self.assertEqual(compare.compare(*paths, out), 1)
            for words in ("SLOWER", "3.00", "cpu differs", "is not a result", "1 slower, 0 faster"):
                self.assertIn(words, out.getvalue())
            with open(paths[0], "w", encoding="utf-8") as out:
                out.write("[]")
            self.assertRaises(ValueError, compare.compare, *paths, io.StringIO())


class Searching(unittest.TestCase):
    def find(self, capacity, highest, steps=12):
        def try_rate(rate):
            return (1 - capacity / rate if rate > capacity else 0.0), rate
        return search(highest, 0.0, try_rate, steps)

    def test_finds_the_capacity(self):
        self.assertAlmostEqual(self.find(7.3e6, 20e6), 7.3e6, delta=0.02e6)

    def test_all_is_carried(self):
        self.assertEqual(self.find(30e6, 20e6), 20e6)

    def test_nothing_is_carried(self):
        self.assertEqual(self.find(0, 20e6), 0)

    def test_counts_only_what_was_offered(self):
        # A generator that is slower than it was told to be proves nothing about higher rates.
        self.assertEqual(search(20e6, 0.0, lambda rate: (0.0, min(rate, 5e6)), 8), 5e6)

    def test_share_of_a_cpu(self):
        self.assertEqual(share((1.0, 0.0), (1.5, 0.5)), 50)
        self.assertEqual(share(None, (1.5, 0.5)), 100)


class Captures(unittest.TestCase):
    def test_packets_are_whole_and_every_client_is_there_once(self):
        flows = 257
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pcap")
            capture.write(path, flows)
            with open(path, "rb") as text:
                data = text.read()
        self.assertEqual(struct.unpack("<I", data[:4])[0], 0xA1B2C3D4)
        sources = set()
        at = 24
        while at < len(data):
            kept, length = struct.unpack("<II", data[at + 8:at + 16])
            frame = data[at + 16:at + 16 + kept]
            self.assertEqual((kept, length, len(frame)), (60, 60, 60))
            total = sum(struct.unpack(">10H", frame[14:34]))
            while total >> 16:
                total = (total & 0xFFFF) + (total >> 16)
            self.assertEqual(total, 0xFFFF, "the checksum of the IPv4 header")
            self.assertEqual(frame[30:34], bytes((192, 0, 2, 10)))
            sources.add(frame[26:30])
            at += 16 + kept
        self.assertEqual(len(sources), flows)


class Aims(unittest.TestCase):
    def show(self, value):
        report = Report({})
        report.section = "pipeline"
        sys.stdout = io.StringIO()
        try:
            report.add("tcp4-1", "cost", "ns", value)
            counts = aims.show(report)
            return counts, sys.stdout.getvalue()
        finally:
            sys.stdout = sys.__stdout__

    def test_only_what_was_measured_is_told(self):
        counts, text = self.show(14)
        self.assertEqual(counts, (1, 1))
        self.assertIn("at most 15: reached", text)

    def test_falling_short_is_said(self):
        counts, text = self.show(16)
        self.assertEqual(counts, (0, 1))
        self.assertIn("FALLS SHORT", text)


class Texts(unittest.TestCase):
    def test_lines_of_the_table_bench(self):
        found = tables.LINE.match("jump, half empty      10000    655373  one 65535, rest 1      20.300     21.125")
        self.assertEqual(found.groups(),
                         ("jump, half empty", "10000", "655373", "one 65535, rest 1", "20.300", "21.125"))
        self.assertIsNone(tables.LINE.match("algorithm   backends   slots  weights    best ms  median ms"))

    def test_the_table_bench_prints_such_lines(self):
        """Its format strings, from its source: a change there must be seen here."""
        source = pathlib.Path(__file__).with_name("bench_tables.c").read_text()
        self.assertRegex(source, r'printf\("%-\d+s +%\d+u +%\d+u  %-\d+s +%\d+\.3f +%\d+\.3f')

    def test_lists_of_cpus(self):
        self.assertEqual(machine.cpu_list("0-2,5"), [0, 1, 2, 5])
        self.assertEqual(machine.cpu_list(""), [])


class Tap(unittest.TextTestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        print(f"ok - {test.id().split('.', 1)[1]}")

    def bad(self, test):
        print(f"not ok - {test.id().split('.', 1)[1]}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.bad(test)

    def addError(self, test, err):
        super().addError(test, err)
        self.bad(test)


if __name__ == "__main__":
    unittest.main(testRunner=unittest.TextTestRunner(stream=sys.stderr, resultclass=Tap))
