# SPDX-License-Identifier: BSD-3-Clause
"""scripts/bench compare A.json B.json: what got slower or faster from A to B, beyond noise.

A difference counts when it is larger than 5 % and than what the runs of both sides spread: the intervals
from least to most must not overlap. Rows with a single run have no spread; they count from 20 % on, which is
how far apart the same loop can be on a shared machine.
"""
import json

ALWAYS_NOISE = 0.05
NOISE_OF_ONE_RUN = 0.20
MACHINE_KEYS = ["cpu", "cpus", "kernel", "governor", "dpdk", "compiler", "build_type", "quick"]


def load(path):
    with open(path, encoding="utf-8") as text:
        result = json.load(text)
    if not isinstance(result, dict) or result.get("format") != 1 or "rows" not in result:
        raise ValueError(f"{path} is not a result of scripts/bench --json")
    return result


def judge(before, after):
    """(ratio, verdict) of two rows of one name; verdict is "", "faster", "SLOWER" or "CHANGED"."""
    if before["median"] == 0 or after["median"] == 0:
        if before["median"] == after["median"] or before["better"] is None:
            return None, ""
        grew = after["median"] > before["median"]
        return None, "better" if grew == (before["better"] == "higher") else "WORSE"
    ratio = after["median"] / before["median"]
    if before["better"] is None:
        return ratio, ""
    if before["runs"] > 1 and after["runs"] > 1:
        apart = after["least"] > before["most"] or after["most"] < before["least"]
        beyond = apart and abs(ratio - 1) > ALWAYS_NOISE
    else:
        beyond = abs(ratio - 1) > NOISE_OF_ONE_RUN
    if not beyond:
        return ratio, ""
    return ratio, "faster" if (ratio > 1) == (before["better"] == "higher") else "SLOWER"


def compare(path_a, path_b, out):
    """Prints the table; returns how many rows got slower."""
    a, b = load(path_a), load(path_b)
    for key in MACHINE_KEYS:
        if a["machine"].get(key) != b["machine"].get(key):
            print(f"careful: {key} differs: {a['machine'].get(key)} and {b['machine'].get(key)}", file=out)
    for side, path in ((a, path_a), (b, path_b)):
        busy = side["machine"].get("busy_before_percent", 0)
        if busy > 5:
            print(f"careful: others took {busy} % of the CPUs when {path} was measured", file=out)
        if not side["machine"].get("result", False):
            print(f"careful: {path} is not a result ({side['machine'].get('not_a_result_because')})", file=out)
    old = {(r["section"], r["name"], r["metric"]): r for r in a["rows"]}
    new = {(r["section"], r["name"], r["metric"]): r for r in b["rows"]}
    counts = {"faster": 0, "SLOWER": 0, "better": 0, "WORSE": 0, "": 0}
    print(f"{'':<49} {'':<22} {'A':>10} {'B':>10} {'':<10} {'B / A':>6}", file=out)
    for key, after in new.items():
        if key not in old:
            continue
        ratio, verdict = judge(old[key], after)
        counts[verdict] += 1
        print(f"{key[0]:<10} {key[1]:<38} {key[2]:<22} {old[key]['median']:>10.5g} {after['median']:>10.5g} "
              f"{after['unit']:<10} {'' if ratio is None else format(ratio, '6.2f'):>6}  {verdict}", file=out)
    for keys, text in ((new.keys() - old.keys(), "only in B"), (old.keys() - new.keys(), "only in A")):
        if keys:
            print(f"{text}: {len(keys)} rows", file=out)
    slower, faster = counts["SLOWER"] + counts["WORSE"], counts["faster"] + counts["better"]
    print(f"{slower} slower, {faster} faster, {counts['']} within noise", file=out)
    return slower
