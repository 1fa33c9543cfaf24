# SPDX-License-Identifier: BSD-3-Clause
"""What a result was measured on, and whether it may be called one."""
import json
import os
import platform
import subprocess
import time


def read(path, otherwise=""):
    try:
        with open(path, encoding="utf-8") as text:
            return text.read().strip()
    except OSError:
        return otherwise


def ask(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def cpu_list(text):
    """The CPUs of a list such as 0-3,8."""
    cpus = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def siblings(cpu):
    return cpu_list(read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", str(cpu)))


def choose_cpus():
    """(helper, worker): the last CPU for what is measured, the last one that is no thread of the same core for
    generator, control and housekeeping."""
    allowed = sorted(os.sched_getaffinity(0))
    worker = allowed[-1]
    others = [cpu for cpu in allowed if cpu not in siblings(worker)] or \
             [cpu for cpu in allowed if cpu != worker] or [worker]
    return others[-1], worker


def taken_by_others(seconds=0.5):
    """The share of all CPUs that is busy while we do nothing."""
    def sample():
        fields = [int(x) for x in read("/proc/stat").splitlines()[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]
    total, idle = sample()
    time.sleep(seconds)
    total2, idle2 = sample()
    return 1 - (idle2 - idle) / max(1, total2 - total)


def build_options(build):
    with open(os.path.join(build, "meson-info/intro-buildoptions.json"), encoding="utf-8") as text:
        return {option["name"]: option["value"] for option in json.load(text)}


def why_not_a_result(options):
    """A reason why figures of this build would mislead, or ""."""
    args = " ".join(options.get("c_args", []))
    if options.get("optimization") not in ("2", "3") or "-O0" in args or "-O1" in args:
        return f"the build is not optimised (buildtype {options.get('buildtype')}, " \
               f"optimization {options.get('optimization')})"
    if options.get("b_sanitize", "none") != "none" or "-fsanitize" in args:
        return f"it is a sanitizer build (b_sanitize {options.get('b_sanitize')})"
    if options.get("b_coverage"):
        return "it counts coverage (b_coverage)"
    return ""


def compiler_of(build):
    try:
        with open(os.path.join(build, "meson-info/intro-compilers.json"), encoding="utf-8") as text:
            c = json.load(text)["host"]["c"]
        return f"{c['id']} {c['version']}"
    except (OSError, KeyError, ValueError):
        return ask("cc", "-dumpfullversion") and "cc " + ask("cc", "-dumpfullversion")


def cpu_model():
    for line in read("/proc/cpuinfo").splitlines():
        if line.lower().startswith(("model name", "cpu model")):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def describe(build, root, quick, cpus):
    options = build_options(build)
    helper, worker = cpus
    meminfo = dict(line.split(":", 1) for line in read("/proc/meminfo").splitlines() if ":" in line)
    huge = {key: meminfo.get(f"Huge{key}", "0").split()[0] for key in ("Pages_Total", "Pages_Free", "pagesize")}
    revision = ask("git", "-C", root, "rev-parse", "--short=12", "HEAD")
    if revision and ask("git", "-C", root, "status", "--porcelain", "--untracked-files=no"):
        revision += " with local changes"
    reason = why_not_a_result(options)
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": platform.node(),
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "virtual": ask("systemd-detect-virt") or ("yes" if " hypervisor" in read("/proc/cpuinfo") else "no"),
        "numa_nodes": len(cpu_list(read("/sys/devices/system/node/online", "0"))),
        "threads_a_core": len(siblings(worker)),
        "measured_on_cpu": worker,
        "helpers_on_cpu": helper,
        "isolated_cpus": read("/sys/devices/system/cpu/isolated") or "none",
        "governor": read(f"/sys/devices/system/cpu/cpu{worker}/cpufreq/scaling_governor", "not visible"),
        "kernel": platform.release(),
        "hugepages": f"{huge['Pages_Total']} of {huge['pagesize']} kB, {huge['Pages_Free']} free",
        "dpdk": ask("pkg-config", "--modversion", "libdpdk") or "unknown",
        "compiler": compiler_of(build),
        "build_type": f"{options.get('buildtype')}, optimization {options.get('optimization')}, "
                      f"sanitizers {options.get('b_sanitize', 'none')}",
        "c_args": " ".join(options.get("c_args", [])),
        "revision": revision or "unknown",
        "busy_before_percent": round(100 * taken_by_others(), 1),
        "quick": quick,
        "result": reason == "",
        "not_a_result_because": reason,
    }


def show(machine):
    for key, value in machine.items():
        if value not in ("", None) and key not in ("result", "not_a_result_because", "quick"):
            print(f"  {key.replace('_', ' '):<20} {value}")
    if machine["busy_before_percent"] > 5:
        print(f"  careful: other programs take {machine['busy_before_percent']} % of the CPUs; figures will be noisy "
              f"and rates too low")
