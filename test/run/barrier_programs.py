#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""barrier_programs.py <muster> <case> <argument>...: programs that are not changed, their barriers
ours: they do what they do alone, and the counters show that ours were at work. Exits with 77 where
something that they need is not installed."""

import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from under_run import ENVIRONMENT, alone, expect, muster, need, run, run_case, scratch  # noqa: E402


def uncounted(*command):
    """What nobody is to be told is not counted."""
    done = subprocess.run([muster, "run", "--barrier", "--", *command], capture_output=True,
                          text=True, check=True, timeout=900, env=ENVIRONMENT)
    expect(done.stdout.split()[0] == "passed" and not done.stderr, f"uncounted: {done}")


def case_barriers():
    """A C++ program at pthread barriers: teams, crowds, ends, forks."""
    expect(alone([sys.argv[3]]) == "passed\n", "alone it fails")
    for options in ([], ["--affinity", "none"], ["--mutex", "cna", "--bind-main"]):
        done, processes = run(["--barrier", *options], [sys.argv[3]])
        expect(done.stdout == "passed\n", f"{options}: {done.stdout}")
        waits = [process["barriers"]["pthread"] for process in processes]
        expect(sum(one["ours"] for one in waits) >= 2 * 70_000 + 3 * 5000, f"not ours: {waits}")
        # The child that shares one ends without a report.
        expect(sum(one["shared"] for one in waits) == 50, f"shared ones: {waits}")
        expect(sum(one["too_many"] for one in waits) == 0, f"too many: {waits}")
        expect(all(0 < sum(one["last"]) <= one["ours"] / 2 for one in waits if one["ours"]),
               f"last: {waits}")
    uncounted(sys.argv[3])
    done, _ = run(["--barrier", "--verbose"], [sys.argv[3]])
    expect("waits at pthread barriers" in done.stderr, f"it told {done.stderr}")


def case_ggml():
    """ggml's barrier where it has no OpenMP: pools in plans and pools made for a graph, of changing
    sizes, several at a time, nested; the library linked to, and opened by Python."""
    source = sys.argv[3]
    library, program = (os.path.join(scratch, name) for name in ("libggml.so", "ggml"))
    build = [need("gcc"), "-O2", "-fPIC", "-shared", "-pthread"]
    subprocess.run([*build, source.replace(".c", "_library.c"), "-o", library], check=True)
    subprocess.run([*build[:2], "-pthread", source, library, "-Wl,-rpath," + scratch, "-o",
                    program], check=True)
    subprocess.run([*build, source, library, "-Wl,-rpath," + scratch, "-o", program + ".so"],
                   check=True)
    barriers = int(alone([program]).split()[1])
    opened = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).main()"
    for command in ([program], ["python3", "-c", opened, program + ".so"]):
        done, processes = run(["--barrier"], command)
        said = done.stdout.split()
        waits = [process["barriers"]["ggml"] for process in processes]
        ours, first = (sum(one[which] for one in waits) for which in ("ours", "first"))
        expect(said[0] == "passed" and ours + int(said[1]) == barriers and
               ours > 0.9 * barriers and first >= int(said[1]), f"{said}, {barriers}, {waits}")
        print(command[0], waits)
    uncounted(program)


def build_openmp(compiler, source, *flags):
    """A program, and the same as a library."""
    built = []
    for ending, more in (("", []), (".so", ["-shared", "-fPIC"])):
        built.append(os.path.join(scratch, os.path.basename(source) + "." + compiler + ending))
        if compiler != "intel":
            command = [need(compiler), "-fopenmp"]
        else:
            folder = os.environ.get("LIBIOMP5")
            if not folder:
                print("skipped: Intel's runtime (LIBIOMP5=its folder; pip's intel-openmp)")
                sys.exit(77)
            command = [need("clang"), "-fopenmp=libiomp5", "-L" + folder, "-Wl,-rpath," + folder]
        done = subprocess.run([*command, "-O2", *flags, *more, source, "-o", built[-1]],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print("skipped: it has no OpenMP (package libomp-dev):", done.stderr)
            sys.exit(77)
    return built


def case_openmp():
    """An OpenMP program: what its constructs promise, with tasks, nests, roots, forks; the same as
    a library that a program opens, which brings the runtime along."""
    program, library = build_openmp(sys.argv[4], sys.argv[3])
    cases = ["barriers", "worksharing", "tasks", "late-tasks", "nested", "roots", "forks", "errno"]
    opened = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).main(2, (ctypes.c_char_p * 2)(b'', " \
             "sys.argv[2].encode()))"
    need("python3")
    # A process each: libomp's threads of earlier teams look for work, and take others' time.
    every = [[], ["--affinity", "none"], ["--bind-main", "--mutex", "mcs"]]
    for command, ways in (([program], every), (["python3", "-c", opened, library], every[:1])):
        for options in ways:
            waits = []
            for case in cases:
                done, processes = run(["--barrier", *options], [*command, case])
                expect(done.stdout == "passed\n", f"{options}: {case}: {done.stdout}")
                waits += [process["barriers"]["openmp"] for process in processes]
            ours = sum(one["ours"] for one in waits)
            expect(ours >= 2000 * sum(range(2, 10)), f"not ours: {waits}")
            expect(sum(one["tasks"] for one in waits) > 0, f"no tasks were seen: {waits}")
            expect(sum(one["unknown"] for one in waits) == 0, f"unknown teams: {waits}")
            print(command[0], options, ours, "waits")
    for case in cases:
        uncounted(program, case)
    _, processes = run(["--barrier"], [program, "barriers"])
    teams = processes[0]["barriers"]["openmp"]["teams"]
    expect([one["size"] for one in teams] == list(range(2, 10)) and
           all(one["algorithm"] for one in teams), f"teams: {teams}")
    for name in ("sense-reversing", "mcs", "combining-tree:3"):
        done, processes = run([f"--barrier={name}"], [program, "barriers"])
        expect(done.stdout == "passed\n" and processes[0]["barriers"]["algorithm"] == name, name)
    # What can be cancelled is left to the runtime; LLVM 14's hangs there, alone, too.
    if sys.argv[4] != "gcc":
        return
    # Only a barrier that knows where its members sit can be this one.
    if len(os.sched_getaffinity(0)) > 1:
        _, processes = run(["--barrier=topo", "--bind-main"], [program, "barriers"])
        teams = processes[0]["barriers"]["openmp"]["teams"]
        expect(teams[0]["size"] == 2 and teams[0]["algorithm"] == "topo", f"teams: {teams}")
        nowhere = {**ENVIRONMENT, "MUSTER_TOPOLOGY": "/nonexistent", "OMP_PROC_BIND": "true"}
        done = subprocess.run([muster, "run", "--affinity", "none", "--barrier", "--", program,
                               "barriers"], capture_output=True, text=True, timeout=900,
                              env=nowhere, check=True)
        expect(done.stdout == "passed\n" and done.stderr.count("\n") == 1 and
               "no barrier for a team" in done.stderr, f"without a barrier: {done}")
    cancels = {**ENVIRONMENT, "OMP_CANCELLATION": "true"}
    done = subprocess.run([muster, "run", "--verbose", "--barrier", "--", program, "cancellation"],
                          capture_output=True, text=True, timeout=900, env=cancels, check=True)
    expect(done.stdout == "passed\n" and "waits of teams: 0" in done.stderr, done.stderr)


def case_flang():
    """Regions of flang's, which say under which condition they are ones."""
    compiler = next(filter(shutil.which, ("flang-new-19", "flang-new", "flang")), None)
    if compiler is None:
        print("skipped: flang (package flang-19)")
        sys.exit(77)
    program = os.path.join(scratch, "flang")
    subprocess.run([compiler, "-fopenmp", "-O1", sys.argv[3], "-o", program], check=True)
    done, processes = run(["--barrier"], [program])
    waits = processes[0]["barriers"]["openmp"]
    expect(done.stdout.split() == ["passed"] and waits["ours"] >= 4 * 1900 and
           waits["unknown"] == 0, f"{done.stdout}, {waits}")


def case_openmp_kinds():
    """What is seldom in OpenMP programs, of each compiler; and both runtimes in one process."""
    built = {compiler: build_openmp(compiler, sys.argv[3], "-std=c++20")
             for compiler in ("g++", "clang++")}

    def waits(command, code=0):
        done, processes = run(["--barrier"], command, code)
        expect(done.stdout == "passed\n", f"{command}: {done.stdout}")
        both = [process["barriers"]["openmp"] for process in processes]
        return {what: sum((one[what] for one in both), type(none)())
                for what, none in both[0].items()}

    for compiler, (program, _) in built.items():
        for case, at_least in (("exceptions", {"ours": 400}),
                               ("reductions", {"tasks": 1, "inside": 1400}),
                               ("leagues", {"ours": 3, "tasks": 100}),
                               ("sizes", {"ours": 1000, "joins": 380}),
                               ("forks", {"ours": 1000}), ("many", {"ours": 3})):
            counted = waits([program, case])
            for what, least in at_least.items():
                expect(counted[what] >= least, f"{compiler}: {case}: {counted}")
            expect(counted["unknown"] == 0, f"{compiler}: {case}: {counted}")
        counted = waits([program, "late"])
        last = counted["last"]
        expect(sum(last) >= 199 and last[1] > 0.9 * sum(last), f"{compiler}: late: {counted}")
        expect(counted["until_the_last_ns"] > 2 * 199 * 100_000, f"{compiler}: late: {counted}")
        expect(waits([program, "ends"], 3)["ours"] > 0, "not ours where a region never ends")
    counted = waits([built["g++"][0], "old"])
    expect(counted["unknown"] == 20 * 2 * 20 * 4 and counted["ours"] > 0, f"old: {counted}")
    for one, another in (("g++", "clang++"), ("clang++", "g++")):
        counted = waits([built[one][0], "other", built[another][1]])
        expect(counted["ours"] > 10_000 and counted["unknown"] == 0, f"two runtimes: {counted}")
    # Neither is the program's own: each is found by who calls it.
    counted = waits(["python3", "-c", """
import ctypes, sys
for library in [ctypes.CDLL(name) for name in sys.argv[1:]] * 2:
    library.team_of(3, 500, None)
print("passed")""", built["g++"][1], built["clang++"][1]])
    expect(counted["ours"] >= 4 * 3 * 1990 and counted["unknown"] == 0, f"two libraries: {counted}")


def noise(count, most):
    """The same numbers each time."""
    number = 1
    for _ in range(count):
        number = number * 48271 % 0x7fffffff
        yield number % most


def negative():
    """A camera's picture, as Adobe's DNG has it: one number a point, behind a filter of colours."""
    side = 128
    points = b"".join(struct.pack("<H", 200 + n) for n in noise(side * side, 16000))
    fields = [  # tag, type, count, value
        (254, 4, 1, 0), (256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 16), (259, 3, 1, 1),
        (262, 3, 1, 32803), (271, 2, 4, b"Its\0"), (272, 2, 4, b"One\0"), (273, 4, 1, None),
        (274, 3, 1, 1), (277, 3, 1, 1), (278, 4, 1, side), (279, 4, 1, len(points)),
        (284, 3, 1, 1), (33421, 3, 2, b"\2\0\2\0"), (33422, 1, 4, b"\0\1\1\2"),
        (50706, 1, 4, b"\1\1\0\0"), (50717, 4, 1, 16383),
        (50721, 10, 9, [90, 0, 0, 0, 100, 0, 0, 0, 80])]
    far, head = b"", struct.pack("<2sHIH", b"II", 42, 8, len(fields))
    begin = len(head) + 12 * len(fields) + 4
    for tag, kind, count, value in fields:
        if isinstance(value, list):
            far += b"".join(struct.pack("<ii", number, 100) for number in value)
            value = begin
        elif value is None:
            value = begin + 9 * 8
        head += struct.pack("<HHI", tag, kind, count) + (
            value if isinstance(value, bytes) else struct.pack("<I", value))
    return head + bytes(4) + far + points


PACKAGE = """Name: it
Version: 1
Release: 1
Summary: it
License: none
BuildArch: noarch
%description
it
%install
mkdir -p %{buildroot}/it
for i in 0 1 2 3 4 5; do seq ${i}0000 >%{buildroot}/it/$i; done
""" + "".join(f"""%package {i}
Summary: it
%description {i}
it
%files {i}
/it/{i}
""" for i in range(6))


def case_openmp_packages():
    """Programs of Debian's that are built with OpenMP: what they write, bit for bit. The least
    number of what is counted shows that they were seen: not all of them have barriers."""
    fixed = ["_topdir " + scratch, "_rpmdir " + scratch + "/out", "_buildhost it",
             "use_source_date_epoch_as_buildtime 1", "clamp_mtime_to_source_date_epoch 1"]
    name, package, command, seen = {
        "gm": ("gm", "graphicsmagick", ["convert", "in.ppm", "-blur", "0x3", "-median", "2",
                                        "-resize", "300x300", "out/it.ppm"], "joins"),
        "sox": ("sox", "sox", ["--multi-threaded", "-R", "-n", "-b", "16", "-c", "4", "out/it.wav",
                               "synth", "2", "pinknoise", "reverb", "lowpass", "2000"], "joins"),
        "sumaclust": ("sumaclust", "sumaclust", ["-p", "4", "-F", "out/it", "in.fa"], "ours"),
        "dcraw": ("dcraw_emu", "libraw-bin", ["-q", "3", "-Z", "out/it.ppm", "in.dng"], "first"),
        # Tasks, in a region that can be cancelled.
        "rpmbuild": ("rpmbuild", "rpm", ["-bb", *[word for one in fixed for word in
                                                 ("--define", one)], "it.spec"], "cancellable"),
    }[sys.argv[3]]
    program = need(name, package)
    for file, data in (("in.ppm", b"P6 200 200 255\n" + bytes(noise(200 * 200 * 3, 256))),
                       ("in.fa", "".join(f">{i} count=1;\n" + "".join("acgt"[n % 4] for n in noise(
                           80 + i % 7, 5 + i % 50)) + "\n" for i in range(300)).encode()),
                       ("in.dng", negative()), ("it.spec", PACKAGE.encode())):
        with open(os.path.join(scratch, file), "wb") as into:
            into.write(data)
    out = os.path.join(scratch, "out")

    def written(runs):
        os.mkdir(out)
        report = runs()
        files = {}
        for path, _, names in os.walk(out):
            for one in names:
                with open(os.path.join(path, one), "rb") as file:
                    files[one] = hashlib.sha256(file.read()).hexdigest()
        shutil.rmtree(out)
        return files, report

    more = {**ENVIRONMENT, "OMP_NUM_THREADS": "4", "SOURCE_DATE_EPOCH": "1000000000"}
    ENVIRONMENT.update(more)
    alone, _ = written(lambda: subprocess.run([program, *command], cwd=scratch, check=True,
                                              capture_output=True, timeout=900, env=more))
    for options in ([], ["--affinity", "none"]):
        ours, (_, processes) = written(lambda some=options: run(["--barrier", *some],
                                                                [program, *command], cwd=scratch))
        counted = [one["barriers"]["openmp"] for one in processes]
        expect(alone and ours == alone, f"{options}: {ours}, not {alone}")
        expect(sum(one[seen] for one in counted) > 0, f"{options}: {counted}")
        print(name, options, counted)


def case_hybrid():
    """An MPI program with OpenMP teams: both kinds of barriers are ours, by both preloads."""
    mpi = sys.argv[5]
    program = os.path.join(scratch, "hybrid")
    package = {"openmpi": "libopenmpi-dev", "mpich": "libmpich-dev"}[mpi]
    subprocess.run([need("mpicc." + mpi, package), "-fopenmp", "-O2", sys.argv[3], "-o", program],
                   check=True)
    launcher = [need("mpirun." + mpi), "-n", "2"]
    launcher += ["--oversubscribe", "--bind-to", "none", "-x", "LD_PRELOAD=" + sys.argv[4]] \
        if mpi == "openmpi" else ["-genv", "LD_PRELOAD", sys.argv[4]]
    done = subprocess.run(
        [*launcher, muster, "run", "--barrier", "--affinity", "none", "--verbose", "--",
         program], capture_output=True, text=True, timeout=900, check=True,
        env={**ENVIRONMENT, "MUSTER_MPI_COUNTERS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    expect(done.stdout == "passed\n", done.stdout)
    for ours in (r"inside=400 .* theirs=0", r"OpenMP: waits of teams: 2397;"):
        expect(len(re.findall(ours, done.stderr)) == 2, f"{ours}: {done.stderr}")


run_case(globals())
