#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""plots.py <folder of the scripts>: every curve, bar, tick and title is the data's.

The figures are taken from the script before they are written, and looked at as matplotlib has them.
"""
import contextlib
import io
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
try:
    import common
except SystemExit:
    print("skipped: package python3-matplotlib")
    sys.exit(77)
import plot_barrier
import plot_lock
import plot_measure
import plot_mpi
import plot_sim
import plot_sim_lock
import plot_waits

PATTERNS = ["sequential", "strided", "random"]
figures = {}
drawings = {}  # what drawn() was called with
scripts = (plot_barrier, plot_lock, plot_measure, plot_mpi, plot_sim, plot_sim_lock, plot_waits)
for script in scripts:
    script.save = lambda figure, directory, name, **how: figures.update({name: figure})
# No two figures alike: whatever is drawn in another's place is found out.
values = itertools.count(3)


def row(**fields):
    return {"throughput_ops_s": next(values) * 1e6, "cache_misses_percent": next(values) % 97,
            **fields}


def drawn(data, stem, script=plot_sim_lock):
    """The figures that the script makes of a file, by name."""
    figures.clear()
    drawings[script, stem] = script, stem, data
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, stem + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(data, file)
        sys.argv = [script.__name__, path, folder]
        script.main()
    return dict(figures)


def expect(got, wanted, what):
    if got != wanted:
        sys.exit(f"FAILED: {what}: {got}\n     instead of {wanted}")


def expect_curves(axes, rows, label_of, value, scale, from_zero=True):
    """A curve for each label, through all its rows and no others; all of it to be seen."""
    wanted = {}
    for each in rows:
        wanted.setdefault(label_of(each), []).append((each["threads"], each[value] * scale))
    got = {line.get_label(): list(zip(line.get_xdata(), line.get_ydata())) for line in axes.lines}
    expect(got, {label: sorted(points) for label, points in wanted.items()}, value)
    expect(list(axes.get_xticks()), sorted({each["threads"] for each in rows}), "ticks")
    for at, limits in ((0, axes.get_xlim()), (1, axes.get_ylim())):
        seen = [point[at] for points in wanted.values() for point in points]
        if not limits[0] <= min(seen) <= max(seen) <= limits[1]:
            sys.exit(f"FAILED: the axis ends at {limits}, before {min(seen)} to {max(seen)}")
    if from_zero:
        expect(axes.get_ylim()[0], 0, "the axis begins")
    expect(axes.get_xlabel(), "threads", "label")


def expect_bars(axes, rows):
    """A bar for each placement, pattern and variant; the chosen placement is marked."""
    names = [label.get_text() for label in axes.get_yticklabels()]

    def kind(each):
        return f"{each['variant']}, {each['pattern']}" if "variant" in each else each["pattern"]

    wanted = {(each["placement"] + (" \u25c0" if each.get("hierarchical") else ""),
               kind(each)): each["throughput_ops_s"] / 1e6 for each in rows}
    got = {}
    for bars in axes.containers:
        for bar in bars:
            middle = bar.get_y() + bar.get_height() / 2
            got[names[round(middle)], bars.get_label()] = bar.get_width()
    expect(got, wanted, "bars")
    longest = max(wanted.values())
    if not axes.get_xlim()[0] <= 0 < longest <= axes.get_xlim()[1]:
        sys.exit(f"FAILED: the axis ends at {axes.get_xlim()}, before {longest}")
    sums = [sum(value for (of, _), value in wanted.items() if of == name) for name in names]
    expect(sums, sorted(sums), "the best placement comes last")


def reproduction():
    rows = []
    for figure, counts, variants in (
            ("P17 Fig. 5", [1, 2, 8], ["DefaultMalloc", "RCLAwareMalloc"]),
            ("PS18 Fig. 5a", [2, 3, 7], ["RCLLockInitDefault", "RCLLockInitNUMA"]),
            ("PS18 Fig. 5b", [2, 5, 7], ["RCLLockInitDefault", "RCLLockInitNUMA"]),
            ("PS18 Fig. 5c", [2, 20, 100], ["RCLLockInitDefault", "RCLLockInitNUMA"]),
            ("PS18 Fig. 5a, 122 ns", [2, 7], ["RCLLockInitDefault", "RCLLockInitNUMA"])):
        # Not in their order: a curve is.
        for threads, variant, pattern in itertools.product(counts[::-1], variants, PATTERNS):
            rows.append(row(figure=figure, variant=variant, pattern=pattern, threads=threads,
                            placement=""))
    for figure, names in (("6", ["Sww.m|....", "S...m|ww..", "Sw..|w...m"]),
                          ("7", ["Sw w.|.. ..", "S. ..|ww .."])):
        for threads, name, pattern in itertools.product([2, 3, 4, 5], names, PATTERNS):
            for variant in ("RCLLockInitDefault", "RCLLockInitNUMA"):
                rows.append(row(figure=f"PS18 Fig. {figure}{' abcd'[threads - 1]}", variant=variant,
                                pattern=pattern, threads=threads, placement=name,
                                hierarchical=name == names[0]))
    return rows


def check_reproduction():
    rows = reproduction()
    pictures = drawn({"claims": [], "results": rows}, "reproduce")
    expect(sorted(pictures), ["p17-fig5", "ps18-fig5", "ps18-fig6", "ps18-fig7"], "pictures")

    def of(figure):
        return [each for each in rows if each["figure"] == figure]

    def curve(each):
        return f"{each['variant']}, {each['pattern']}"

    throughput, misses = pictures["p17-fig5"].axes
    expect_curves(throughput, of("P17 Fig. 5"), curve, "throughput_ops_s", 1e-6)
    expect_curves(misses, of("P17 Fig. 5"), curve, "cache_misses_percent", 1)
    panels = pictures["ps18-fig5"].axes
    expect(len(panels), 3, "panels")
    for axes, letter in zip(panels, "abc"):
        expect_curves(axes, of(f"PS18 Fig. 5{letter}"), curve, "throughput_ops_s", 1e-6)
        expect(axes.get_title()[0], letter, "panel")
    expect([axes.get_xscale() for axes in panels], ["linear", "linear", "log"], "scales")
    for number in "67":
        panels = pictures[f"ps18-fig{number}"].axes
        expect(len(panels), 4, "panels")
        for axes, letter, threads in zip(panels, "abcd", (2, 3, 4, 5)):
            expect_bars(axes, of(f"PS18 Fig. {number}{letter}"))
            expect(axes.get_title(), f"{threads} threads", "panel")


def lock_rows(affinity, placements):
    return [row(lock=lock, pattern=pattern, threads=threads, placement=placement, init="default",
                affinity=affinity, memory="default")
            for lock, pattern, threads, placement in
            itertools.product(["rcl", "mcs"], PATTERNS, [4, 2], placements)]


def check_locks():
    rows = lock_rows("hierarchical", ["Sww.m|...."])
    picture = drawn({"machine": "oak", "results": rows}, "sim-lock")["sim-lock"]
    expect([axes.get_title() for axes in picture.axes], PATTERNS, "panels")
    for axes, pattern in zip(picture.axes, PATTERNS):
        expect_curves(axes, [each for each in rows if each["pattern"] == pattern],
                      lambda each: each["lock"], "throughput_ops_s", 1e-6, from_zero=False)
        last = {each["lock"]: each["throughput_ops_s"] for each in rows
                if each["pattern"] == pattern and each["threads"] == 4}
        expect([text.get_text().split("  ")[0] for text in axes.texts],
               sorted(last, key=last.get), "names at the ends, the slowest first")
        for low, high, wanted in ((4, 90, ["5", "10", "20", "50"]), (3.5, 5.5, ["4", "5"])):
            axes.set_ylim(low, high)
            texts = [label.get_text() for label in axes.get_yticklabels(which="both")
                     if low <= label.get_position()[1] <= high and label.get_text()]
            expect([text for text in texts if "." not in text], wanted, "numbers")

    rows = lock_rows("all", ["Sww.m|....", "S...m|ww.."])
    picture = drawn({"machine": "oak", "results": rows}, "sim-lock")["sim-lock"]
    shown = {}
    for axes in picture.axes:
        lock, threads = axes.get_title().replace(" threads", "").split(", ")
        expect_bars(axes, [each for each in rows
                           if each["lock"] == lock and each["threads"] == int(threads)])
        shown[lock, threads] = True
    expect(sorted(shown), [("mcs", "2"), ("mcs", "4"), ("rcl", "2"), ("rcl", "4")], "panels")


def check_waits():
    """Ranks 0 and 2 share a unit, and so do 1 and 3: these are side by side."""
    ranks = [{"unit": f"NUMA {rank % 2}", "arrives_ns": next(values), "leaves_ns": next(values)}
             for rank in range(4)]
    waits = [{"rank": by, "for": of, "told_ns": next(values), "heard_ns": next(values)}
             for by, of in ((0, 2), (1, 0), (3, 1), (2, 0))]
    figure, axes = plot_waits.plt.subplots()
    plot_waits.draw(axes, {"ranks": ranks, "waits": waits})
    height = {0: 0, 2: 1, 1: 2, 3: 3}
    wanted = {"inside": [[(each["arrives_ns"] / 1000, height[rank]),
                          (each["leaves_ns"] / 1000, height[rank])]
                         for rank, each in enumerate(ranks)]}
    for label, pairs in (("tells, same unit", ((0, 2), (3, 1), (2, 0))),
                         ("tells, another unit", ((1, 0),))):
        wanted[label] = [[(each["told_ns"] / 1000, height[each["for"]]),
                          (each["heard_ns"] / 1000, height[each["rank"]])]
                         for each in waits if (each["rank"], each["for"]) in pairs]
    got = {lines.get_label(): [[tuple(point) for point in line] for line in lines.get_segments()]
           for lines in axes.collections}
    expect(got, wanted, "lines")
    expect([text.get_text() for text in axes.texts], ["NUMA 0", "NUMA 1"], "units")
    takes = max(each["leaves_ns"] for each in ranks) - max(each["arrives_ns"] for each in ranks)
    data = {"machine": "oak", "algorithm": "mcs", "ranks": ranks, "waits": waits}
    expect(title_of(drawn({"waits": data}, "explain", plot_waits)["explain"]),
           f"mcs, 4 ranks on oak, predicted: all have left {takes} ns after the last arrival; of 4 "
           "waits 1 are for another unit", "title")
    expect([int(label.get_text()) for label in axes.get_yticklabels()], [0, 1, 2, 3], "ranks")
    expect(list(axes.get_yticks()), [height[rank] for rank in range(4)], "their heights")


def title_of(figure):
    return figure.texts[0].get_text().replace("\n", " ")


def check_barriers_of_the_model():
    """A curve for each barrier, named at its end; what is fastest is in the title."""
    def rows(counts):
        found = [{"algorithm": name, "ranks": ranks, "map_by": "core", "latency_us": us * ranks,
                  "latency_us_low": 0.8 * us * ranks, "latency_us_high": 1.3 * us * ranks}
                 for us, name in ((9, "mcs"), (2, "auto"), (5, "topo-NUMA"), (100, "base-linear"))
                 for ranks in counts]
        return found

    curves = rows([8, 2, 4])
    figure = drawn({"machine": "oak", "results": curves}, "sim", plot_sim)["sim"]
    (axes,) = figure.axes
    lines = [line for line in axes.lines if len(line.get_xdata()) > 0]
    got = sorted(list(zip(line.get_xdata(), line.get_ydata())) for line in lines)
    wanted = sorted(sorted((row["ranks"], row["latency_us"]) for row in curves
                           if row["algorithm"] == name) for name in ("mcs", "auto", "topo-NUMA",
                                                                     "base-linear"))
    expect(got, wanted, "curves")
    names = [text.get_text().split("  ")[0] for text in axes.texts]
    expect(names, ["auto", "topo-NUMA", "mcs", "base-linear"], "names, the fastest first")
    places = [text.xyann[1] for text in axes.texts]
    expect(places, sorted(places), "no name is above that of a slower one")
    expect(title_of(figure), "8 ranks on oak, predicted: auto takes 16 \u00b5s, 0.40 times "
           "topo-NUMA, the best other", "title")

    figure = drawn({"machine": "oak", "results": rows([4])}, "sim", plot_sim)["sim"]
    (axes,) = figure.axes
    expect([label.get_text() for label in axes.get_yticklabels()],
           ["base-linear", "mcs", "topo-NUMA", "auto"], "the fastest on top")
    expect(sorted(axes.lines[0].get_xdata()), [8, 20, 36, 400], "latencies")

    judged = [dict(row, measured_us=row["latency_us"] * off, error=1 / off - 1)
              for row, off in zip(rows([4]), (0.5, 1.1, 2, 1))]
    summary = {"median_error": 0.3, "within_interval": {"good": 2, "all": 4}}
    figure = drawn({"machine": "oak", "summary": summary, "results": judged}, "validate",
                   plot_sim)["validate"]
    (axes,) = figure.axes
    measured = next(line for line in axes.lines if line.get_label() == "measured")
    expect(list(measured.get_xdata()), sorted((row["measured_us"] for row in judged), reverse=True),
           "measured")
    expect(title_of(figure), "4 ranks on oak: predictions are off by 30 % in the median; 2 of 4 "
           "measured latencies lie in their interval", "title")
    places = common.spread_out([1, 1, 1.1, 5, 5.5], 1)
    expect([round(at, 6) for at in places], [0.033333, 1.033333, 2.033333, 4.75, 5.75], "places")


def check_titles():
    """What they say is the data's."""
    barriers = [{"implementation": who, "algorithm": name, "status": "ok", "mode": mode,
                 "participants": count, "latency_ns": {"mean": ns * count}}
                for who, name, ns in (("muster", "auto", 30), ("muster", "mcs", 10),
                                      ("pthread_barrier", None, 60), ("libgomp", None, 40),
                                      ("limit", None, 1))
                for mode in ("threads", "processes") for count in (2, 4)]
    expect(plot_barrier.found(barriers, ["threads", "processes"], 200),
           "Muster's auto takes 0.75, 0.75 (2, 4 threads); 0.75, 0.75 (2, 4 processes) times the "
           "best other's time", "title")
    expect(plot_barrier.found(barriers, ["threads", "processes"], 80),
           "Muster's auto takes 0.75 times the best other's time", "title")
    locks = [{"lock": name, "kind": kind, "threads": 2, "pattern": "random",
              "throughput_ops_s": {"mean": 1e6 * speed}}
             for name, kind, speed in (("rcl", "ours", 90), ("auto", "ours", 60),
                                       ("pthread_mutex", "peer", 20), ("ck-fas", "peer", 30))]
    expect(plot_lock.found(locks, ["random"], 2), "2 threads: random, Muster's auto does "
           "60 million increments a second, 2.00 times ck-fas, the best other", "title")


def check_titles_of_the_papers():
    def of(threads, pattern, variant, millions):
        return {"threads": threads, "pattern": pattern, "variant": variant,
                "throughput_ops_s": 1e6 * millions}

    rows = [of(*each) for each in ((2, "strided", "DefaultMalloc", 4),
                                   (2, "strided", "RCLAwareMalloc", 6),
                                   (8, "strided", "DefaultMalloc", 4),
                                   (8, "strided", "RCLAwareMalloc", 5))]
    expect(plot_sim_lock.gain(rows), "with 8 threads RCLAwareMalloc does 1.25 (strided) times as "
           "many sections as the default", "title")
    rows += [of(2, "strided", "DefaultMalloc", 12), of(8, "strided", "DefaultMalloc", 8)]
    expect(plot_sim_lock.matters(rows), "the best placement does up to 3 times as many sections as "
           "the worst (strided access, 2 threads)", "title")
    locks = [{**of(8, "random", "", millions), "lock": lock, "fairness": fairness}
             for lock, millions, fairness in (("robust", 9, None), ("mcs", 4, 1), ("rcl", 8, 1))]
    expect(plot_sim_lock.found({"machine": "oak"}, locks), "8 threads on oak, predicted: random, "
           "rcl does 8 million sections a second, 2 times mcs, the slowest", "title")
    expect([plot_sim_lock.mark([each]) for each in locks], [" !", "", ""], "marks")
    expect([common.times(ratio) for ratio in (0.031, 1.5, 99.4, 99.6, 1234)],
           ["0.031", "1.5", "99", "100", "1234"], "ratios")


def expect_inside(figure):
    for text in figure.texts:
        if text.get_window_extent().x1 > figure.bbox.x1:
            sys.exit(f"FAILED: cut off at the right: {text.get_text()}")


def check_barriers():
    """No curve crosses the name of a reference, however steep it is."""
    def points(name, means, counts, mode):
        return [{"implementation": name, "algorithm": "auto", "via": "c", "status": "ok",
                 "mode": mode, "participants": count, "regime": None, "map_by": "core",
                 "latency_ns": {"mean": mean, "mean_ci95": [mean / 2, mean * 2]}}
                for mean, count in zip(means, counts)]

    for modes, counts in ((["threads"], [2, 4]), (["threads", "processes"], [2, 4, 8, 64])):
        rows = []
        for mode in modes:
            rows += points("ping-pong", [400], [2], mode) + points("limit", [180], [2], mode)
            for start, growth in ((100, 4), (170, 1.4), (250, 1.5), (300, 1.2), (420, 1)):
                rows += points(f"peer {start}", [start * growth ** n for n in range(4)], counts,
                               mode)
        machine = {"model": "A processor", "cpus": 2, "ping_pong_ns": 400}
        data = {"machine": machine, "results": rows, "verdict": "quiet", "build": {"commit": ""}}
        pair = [row for row in rows if row["participants"] == 2] + points("muster", [90], [2], mode)
        expect_inside(drawn({**data, "results": pair}, "barrier", plot_barrier)["barrier"])
        figure = drawn(data, "barrier", plot_barrier)["barrier"]
        figure.canvas.draw()
        for axes in figure.axes:
            names = [text for text in axes.texts if "of two" in text.get_text()]
            expect(len(names), 2, "references named")
            boxes = [name.get_window_extent() for name in names]
            if boxes[0].overlaps(boxes[1]):
                sys.exit("FAILED: two names on one another")
            for box in boxes:
                if not axes.bbox.y0 <= box.y0 < box.y1 <= axes.bbox.y1:
                    sys.exit("FAILED: a name leaves its panel")
                for line in (line for line in axes.lines if line.get_marker() != "None"):
                    path = line.get_path().transformed(line.get_transform())
                    if path.intersects_bbox(box, filled=False):
                        sys.exit("FAILED: a curve crosses a name")


def check_mpis():
    """A panel for each number of ranks, a line for each barrier; of rounds that failed nothing."""
    rows = [{"mpi": mpi, "barrier": barrier, "ours": ours, "ranks": ranks,
             "latency_us": [us * ranks, None, 2 * us * ranks, 6 * us * ranks]}
            for mpi, barrier, ours, us in (("A", "default", False, 4), ("A", "muster", True, 1),
                                           ("B", "default", False, 8), ("B", "muster", True, 2))
            for ranks in (2, 4)]
    rows.append(dict(rows[0], barrier="failed", latency_us=[None]))
    machine = {"model": "A processor of a long name (R)", "cpus": 2}
    figure = drawn({"machine": machine, "results": rows}, "mpi", plot_mpi)["mpi"]
    expect_inside(figure)
    expect([axes.get_title(loc="left") for axes in figure.axes], ["2 ranks", "4 ranks"], "panels")
    expect([label.get_text() for label in figure.axes[0].get_yticklabels()][::-1],
           ["A, muster", "A, default", "B, muster", "B, default"], "lines from the top")
    for axes, ranks, leading, times in zip(figure.axes, (2, 4), ("median", "mean"), (2000, 3000)):
        points = {3 - line.get_ydata()[0]: line.get_xdata()[0] for line in axes.lines
                  if len(line.get_xdata()) == 1}
        expect([round(points[place]) for place in range(4)],
               [times * us * ranks for us in (1, 4, 2, 8)], f"{leading}s, ns")
        expect(axes.get_xlabel(), f"time of a barrier ({leading})", "axis")
    expect(title_of(figure), "Muster's MPI_Barrier as a multiple of the best MPI's own time: "
           "0.25 with 2 ranks; 0.25 with 4 ranks", "title")
    turns = [{"mpi": "A", "barrier": name, "ours": ours, "ranks": 2, "regime": regime,
              "round_means_ns": [ns, 2 * ns, 6 * ns], "latency_ns": {"mean": 4 * mean}}
             for name, ours, ns, mean in (("x", False, 10, 12), ("y", True, 5, 3))
             for regime in ("quiet", "hogs")]
    turns.append(dict(turns[0], barrier="failed", latency_ns={"mean": None}))
    figure = drawn({"machine": machine, "results": turns}, "mpi", plot_mpi)["mpi"]
    expect([axes.get_title(loc="left") for axes in figure.axes],
           ["2 ranks, quiet", "2 ranks, hogs"], "panels")
    expect(len(figure.axes[0].get_yticklabels()), 2, "who failed")
    expect(title_of(figure), "Muster's MPI_Barrier as a multiple of the best MPI's own time: "
           "0.25 with 2 ranks, quiet; 0.25 with 2 ranks, hogs", "title by the mean")


def without(data, name):
    """A copy in which nothing has such a field."""
    if isinstance(data, dict):
        return {key: without(value, name) for key, value in data.items() if key != name}
    return [without(each, name) for each in data] if isinstance(data, list) else data


def fields(data):
    if isinstance(data, dict):
        return set(data).union(*map(fields, data.values()))
    return set().union(*map(fields, data)) if isinstance(data, list) else set()


def check_spoilt():
    """Without any of its fields a file is drawn, or why it is not is told in a line."""
    refused = 0
    spoilt = [*drawings.values(), *((script, "results", {}) for script in scripts)]
    for script, stem, data in spoilt:
        texts = [json.dumps(without(data, name)) for name in sorted(fields(data))]
        for text in texts + ["", "nonsense", "{}", "[]", "3", "null", '{"results": [3]}', "\xff"]:
            with tempfile.TemporaryDirectory() as folder:
                sys.argv = [script.__name__, os.path.join(folder, stem + ".json"), folder]
                with open(sys.argv[1], "wb") as file:
                    file.write(text.encode("latin-1"))
                said = io.StringIO()
                try:
                    with contextlib.redirect_stderr(said):
                        common.run(script.main)
                except SystemExit as end:
                    refused += 1
                    why = said.getvalue().rstrip("\n") if end.code == 4 else end.code
                    if not isinstance(why, str) or not why or "\n" in why:
                        sys.exit(f"FAILED: {script.__name__}: exit {end.code} says {why}")
            common.plt.close("all")
    if refused < 8 * len(spoilt):
        sys.exit(f"FAILED: {refused} files were refused")


def check_failures():
    """What the system refuses is told in a line; of a font that is missing nothing is."""
    def run(folder, small=False, **environment):
        limit = (4096, 4096) if small else (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        found = subprocess.run(
            [sys.executable, plot_waits.__file__, path, folder], env={**os.environ, **environment},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
            capture_output=True, text=True)
        return found.returncode, found.stdout + found.stderr

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "explain.json")
        with open(path, "w", encoding="utf-8") as file:
            data = {**drawings[plot_waits, "explain"][2], "of": "\u03bc"}
            json.dump(data, file, ensure_ascii=False)
        before = os.listdir(folder)
        expect(run(folder, small=True), (1, f"plot_waits.py: {folder}: File too large\n"), "full")
        code, said = run("/proc/nowhere")
        expect((code, said.count("\n")), (1, 1), said)
        expect(os.listdir(folder), before, "left behind")
        with open(os.path.join(folder, "matplotlibrc"), "w", encoding="utf-8") as file:
            file.write("font.family: nonsense")
        ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
        expect(run(folder, MATPLOTLIBRC=folder, MPLCONFIGDIR="/proc/nowhere", **ascii_only),
               (0, ""), "no font, and a locale without letters")


check_reproduction()
check_barriers_of_the_model()
check_titles()
check_titles_of_the_papers()
check_locks()
check_barriers()
check_mpis()
check_waits()
check_spoilt()
check_failures()
