#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""GET /metrics: valid for Prometheus, no series of what is gone, and no alarm by clean traffic.

    test_metrics.py HALBACH-DATAPLANE HALBACH-CONTROL
"""
import re
import shutil
import subprocess
import sys

from daemons import CONFIG, FULL_NAT, Daemons, Tap

SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\d+)$')
ROUNDS = 200  # reloads with new addresses; the model is the same for any number


def parse(text):
    """{(name, labels): value}; raises on a line that is not as the format says."""
    series, family, families = {}, None, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            if family in families:
                raise ValueError(f"family {family} comes twice")
            families.add(family)
            continue
        if line.startswith("# TYPE "):
            continue
        match = SAMPLE.match(line)
        if not match or match.group(1) != family:
            raise ValueError(f"not a sample of {family}: {line}")
        key = (match.group(1), match.group(2) or "")
        if key in series:
            raise ValueError(f"series {key} comes twice")
        series[key] = int(match.group(3))
    return series


def scrape(daemons):
    answer = daemons.call("GET", "/metrics")
    return answer.body.decode()


def promtool(tap, text):
    program = shutil.which("promtool")
    if not program:
        print("ok - promtool check metrics # skip: promtool (package prometheus) is not installed")
        return
    run = subprocess.run([program, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    tap.check(run.returncode == 0 and not run.stderr, "promtool check metrics finds nothing", run.stdout + run.stderr)


def bl114(tap, daemons):
    """BL-114: as many series as there are objects, whatever came and went."""
    before = parse(scrape(daemons))
    for number in range(ROUNDS):
        octets = f"198.18.{number // 250}.{number % 250 + 1}"
        daemons.write_config(CONFIG.replace("198.51.100.12", octets).replace("web2", f"web-{number}"))
        if daemons.call("POST", "/v1/reload").status != 200:
            tap.check(False, f"reload {number}")
        series = parse(scrape(daemons))
        if len(series) != len(before):
            tap.equal(len(series), len(before), f"series after {number} changes")
            break
    tap.equal(len(series), len(before), f"BL-114: the same number of series after {ROUNDS} changes of a backend")
    tap.check(not any("web-1\"" in labels for _, labels in series), "BL-114: none of one that is gone")
    new = [v for (n, l), v in series.items() if n == "halbach_backend_packets_total" and f"web-{ROUNDS - 1}" in l]
    tap.equal(new, [0], "BL-114: one that is new begins at 0")
    labels = {name for _, text in series for name in re.findall(r'([a-z_]+)="', text)}
    tap.equal(sorted(labels - {"pool", "backend", "address", "service", "vip", "protocol", "port", "reason", "worker",
                               "fate", "version", "outcome"}), [], "BL-114: labels name what is configured, never clients")
    daemons.write_config(CONFIG)
    daemons.call("POST", "/v1/reload")


def full_nat(tap, daemons):
    """Ports of full NAT for pools that have it, sessions and answers for every backend."""
    daemons.write_config(FULL_NAT)
    daemons.call("POST", "/v1/reload")
    text = scrape(daemons)
    promtool(tap, text)
    series = parse(text)
    tap.equal({k: v for k, v in series.items() if k[0].startswith("halbach_pool_nat_")},
              {("halbach_pool_nat_ports", 'pool="shop"'): 16000, ("halbach_pool_nat_ports_used", 'pool="shop"'): 0},
              "ports of full NAT are told for the pool that has some")
    for name in ("halbach_backend_nat_sessions", "halbach_backend_nat_exhausted_total",
                 "halbach_backend_returned_packets_total", "halbach_backend_unreachable_total"):
        tap.equal([v for (n, _), v in series.items() if n == name], [0, 0, 0], f"each backend has {name}")
    daemons.write_config(CONFIG)
    daemons.call("POST", "/v1/reload")


def main():
    tap = Tap()
    daemons = Daemons(sys.argv[1], sys.argv[2])
    try:
        daemons.start()
        text = scrape(daemons)
        series = parse(text)
        promtool(tap, text)
        for name in ("halbach_dataplane_connected", "halbach_service_usable_backends", "halbach_backend_up",
                     "halbach_worker_received_packets_total", "halbach_dropped_packets_total", "halbach_pool_normal",
                     "halbach_backend_assumed", "halbach_service_denied_packets_total",
                     "halbach_steered_packets_total", "halbach_worker_icmp_sent_total",
                     "halbach_worker_kernel_lost_packets_total", "halbach_worker_nat_sessions",
                     "halbach_service_too_big_packets_total", "halbach_maintenance_withdrawn"):
            tap.check(any(n == name for n, _ in series), f"there is {name}")
        counters = re.findall(r"^# TYPE (\S+) counter$", text, re.M)
        tap.equal([n for n in counters if not n.endswith("_total")], [], "counters end in _total")
        # BL-115: nothing has been received, so nothing that an alarm watches may be above 0.
        alarms = {k: v for k, v in series.items() if re.search(r"drop|error|miss_unexpected|reject|failed|full", k[0])}
        tap.check(alarms and not any(alarms.values()), "BL-115: what alarms watch is 0", alarms)
        bl114(tap, daemons)
        full_nat(tap, daemons)
        daemons.stop("dataplane")
        text = scrape(daemons)
        parse(text)
        promtool(tap, text)
    except Exception as error:  # noqa: BLE001
        tap.check(False, f"the test came to its end: {error!r}", daemons.log("control")[-4000:])
    finally:
        daemons.clean_up()
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
