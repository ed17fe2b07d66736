#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""openmp.py <muster> [option...]: barriers of an unmodified program, with and without `muster run
--barrier`: GCC's OpenMP, LLVM's and the C library's, as they are and with the settings that their
manuals have for waiting. All variants in turns; of each the mean, as a ratio to ours."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

SETTINGS = {
    "gcc": ["GOMP_SPINCOUNT=0", "GOMP_SPINCOUNT=1000", "OMP_WAIT_POLICY=passive",
            "OMP_WAIT_POLICY=active"],
    "clang": ["KMP_BLOCKTIME=0", "KMP_BLOCKTIME=infinite", "OMP_WAIT_POLICY=passive"] +
             ["KMP_PLAIN_BARRIER_PATTERN=" + both for both in
              ("linear,linear", "tree,tree", "hyper,hyper", "dist,dist")],
}
# Until it has lost its parent.
HOG = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("muster")
arguments.add_argument("--what", default="barrier,for,single")
arguments.add_argument("--threads", default="2,4,8")
arguments.add_argument("--compilers", default="gcc,clang")
arguments.add_argument("--rounds", type=int, default=9)
arguments.add_argument("--seconds", type=float, default=0.05, help="of each run")
arguments.add_argument("--busy", action="store_true", help="a busy loop on each CPU")
arguments.add_argument("--options", default="", help="of muster run, beside --barrier")
arguments.add_argument("--defaults", action="store_true", help="no settings of the runtimes")
options = arguments.parse_args()
environment = {name: value for name, value in os.environ.items()
               if not name.startswith(("MUSTER_", "OMP_", "GOMP_", "KMP_", "LD_"))}
source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "openmp_worker.c")


def cpu_time():
    """All CPUs' since the start, and what of it a hypervisor took."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = list(map(int, stat.readline().split()[1:9]))
    return sum(ticks), ticks[7]


def run_once(command, settings):
    more = dict(setting.split("=", 1) for setting in settings)
    try:
        done = subprocess.run([*command, str(options.seconds)], env={**environment, **more},
                              capture_output=True, text=True, check=True, timeout=30)
    except subprocess.TimeoutExpired:
        return None
    return float(done.stdout)


def measure(worker, what, threads, settings):
    command = [worker, what, str(threads)]
    ours = [options.muster, "run", "--barrier", *options.options.split(), "--"]
    variants = {"ours": (ours + command, []), "as it is": (command, [])}
    if what != "pthread" and not options.defaults:
        variants.update({one: (command, [one]) for one in settings})
    taken = {name: [] for name in variants}
    for _ in range(options.rounds):
        for name, (words, more) in variants.items():
            if taken[name] is not None:
                once = run_once(words, more)
                taken[name] = None if once is None else taken[name] + [once]
    return taken


def main():
    folder = tempfile.mkdtemp()
    cpus = sorted(os.sched_getaffinity(0))
    hogs = [subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", HOG])
            for cpu in cpus] if options.busy else []
    before = cpu_time()
    try:
        for compiler in options.compilers.split(","):
            worker = os.path.join(folder, "worker-" + compiler)
            subprocess.run([compiler, "-fopenmp", "-O2", "-pthread", source, "-o", worker],
                           check=True)
            for what in options.what.split(","):
                if what == "pthread" and compiler != options.compilers.split(",", maxsplit=1)[0]:
                    continue
                for threads in map(int, options.threads.split(",")):
                    taken = measure(worker, what, threads, SETTINGS[compiler])
                    own = taken.pop("ours")
                    ours = statistics.mean(own)
                    print(f"{'C library' if what == 'pthread' else compiler}, {what}, {threads} "
                          f"threads: ours {ours / 1000:.3f} us "
                          f"[{min(own) / 1000:.3f}, {max(own) / 1000:.3f}]; times as long: " +
                          ", ".join(f"{name} {statistics.mean(theirs) / ours:.2f}" if theirs
                                    else f"{name} no end" for name, theirs in taken.items()),
                          flush=True)
        total, stolen = (now - then for now, then in zip(cpu_time(), before))
        print(f"a hypervisor took {100 * stolen / total:.1f} % of the CPUs' time")
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        shutil.rmtree(folder)


main()
