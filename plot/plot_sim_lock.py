#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Locks on a modelled machine, from what `muster sim lock` or `muster sim reproduce` wrote.

    plot_sim_lock.py sim-lock.json DIRECTORY     throughput against threads, or by placement
    plot_sim_lock.py reproduce.json DIRECTORY    the papers' figures, one picture each

Writes DIRECTORY/<name>.png and .svg. Exit codes: see common.py.
"""
import json
import os
import sys

sys.dont_write_bytecode = True  # this may be the source tree, or an installed one
from common import (COLOURS, in_order, name_ends, nothing_to_draw, number_axis, open_frame, plt,
                    run, save, times, title)
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

PATTERNS = {"sequential": "#e69f00", "strided": "#0072b2", "random": "#1a1a1a"}
MARKERS = "os"
# Families of locks: colour and line. `auto` stands out.
FAMILIES = (("rcl", COLOURS[0], "-", "a server executes"),
            ("mutex-", "#8a8a8a", ":", "mutexes"),
            ("oyama flat-combining cc-synch dsm-synch h-synch", COLOURS[2], "-.",
             "who has the lock executes others' sections"),
            ("", COLOURS[1], "--", "locks"))
DEFAULTS = {"DefaultMalloc", "RCLLockInitDefault"}
KEYWORDS = {"dpi": 130, "bbox_inches": "tight"}


def count_axis(axes, rows):
    """Numbers of threads: each a tick; far apart, on a logarithmic axis."""
    counts = sorted({row["threads"] for row in rows})
    if counts[-1] > 4 * len(counts):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.set_xlabel("threads")
    axes.grid(alpha=0.3)


def bars_by_placement(axes, rows):
    """A row for each placement, a bar for each pattern and variant; RCLHierarchicalAffinity's is
    marked."""
    best = {}
    for row in rows:
        name = row["placement"] + (" \u25c0" if row.get("hierarchical") else "") + \
            mark(each for each in rows if each["placement"] == row["placement"])
        kind = row["pattern"], row.get("variant")
        best.setdefault(name, {})[kind] = row["throughput_ops_s"] / 1e6
    names = sorted(best, key=lambda name: sum(best[name].values()))
    kinds = list(dict.fromkeys((row["pattern"], row.get("variant")) for row in rows))
    kinds.sort(key=lambda kind: list(PATTERNS).index(kind[0]))
    height = 0.8 / len(kinds)
    for n, (pattern, variant) in enumerate(kinds):
        at = [y + (n - (len(kinds) - 1) / 2) * height for y in range(len(names))]
        axes.barh(at, [best[name].get((pattern, variant), 0) for name in names], height,
                  color=PATTERNS[pattern], hatch=None if variant in DEFAULTS | {None} else "////",
                  edgecolor="white", linewidth=0,
                  label=pattern if variant is None else f"{variant}, {pattern}")
    axes.set_yticks(range(len(names)), names, family="monospace", fontsize=7)
    axes.set_xlabel("critical sections, millions a second")
    axes.grid(axis="x", alpha=0.3)


def mark(rows):
    """Behind the name of what starves a thread: its `fairness` is infinite."""
    return " !" if any(row.get("fairness", 1) is None for row in rows) else ""


def notes(data, rows):
    """What is to be known of a picture besides its curves or bars."""
    settings = data.get("settings", {})
    changed = settings.get("set", []) + ["no " + each for each in settings.get("without", [])]
    return "".join(f"; {each}" for each in changed) + \
        "; !: a thread never gets the lock" * bool(mark(rows))


def family(lock):
    return next(each for each in FAMILIES
                if any(lock.startswith(name) for name in each[0].split()) or not each[0])


def variants(axes, rows, value, scale):
    """A curve for each pattern and variant; the default's is dashed. Later ones are thinner: some
    lie on one another."""
    for m, pattern in enumerate(in_order(rows, "pattern")):
        for n, variant in enumerate(in_order(rows, "variant")):
            points = sorted((row for row in rows
                             if row["pattern"] == pattern and row["variant"] == variant),
                            key=lambda row: row["threads"])
            axes.plot([row["threads"] for row in points], [row[value] * scale for row in points],
                      "--" if variant in DEFAULTS else "-", color=PATTERNS[pattern],
                      marker=MARKERS[n], markersize=8 - 2 * m, linewidth=3.2 - m,
                      label=f"{variant}, {pattern}")
    count_axis(axes, rows)
    axes.set_ylim(bottom=0)


def figure_of_panels(count, width=5.5, height=4.6, across=2):
    down = (count + across - 1) // across
    figure, axes = plt.subplots(down, min(count, across), squeeze=False,
                                figsize=(width * min(count, across), height * down),
                                layout="constrained")
    return figure, [ax for row in axes for ax in row]


def gain(rows):
    """In a sentence, of the most threads: by pattern, what the variant that is no default does."""
    threads = max(row["threads"] for row in rows)
    variant = next(name for name in in_order(rows, "variant") if name not in DEFAULTS)
    parts = []
    for pattern in in_order(rows, "pattern"):
        speed = {row["variant"] in DEFAULTS: row["throughput_ops_s"] for row in rows
                 if row["threads"] == threads and row["pattern"] == pattern}
        parts.append(f"{speed[False] / speed[True]:.2f} ({pattern})")
    return (f"with {threads} threads {variant} does {', '.join(parts)} times as many sections as "
            "the default")


def matters(rows):
    """In a sentence: how much the placement makes, at most."""
    groups = {}
    for row in rows:
        kind = row["threads"], row["pattern"], row.get("variant"), row.get("lock")
        groups.setdefault(kind, []).append(row["throughput_ops_s"])
    kind, most = max(((kind, max(each) / max(1, min(each))) for kind, each in groups.items()),
                     key=lambda pair: pair[1])
    return (f"the best placement does up to {times(most)} times as many sections as the worst "
            f"({kind[1]} access, {kind[0]} threads)")


def reproduce(data, directory):
    rows = data["results"]

    def of(*figures):
        return [[row for row in rows if row["figure"] == name] for name in figures]

    (points,) = of("P17 Fig. 5")
    if points:
        figure, panels = figure_of_panels(2)
        variants(panels[0], points, "throughput_ops_s", 1e-6)
        panels[0].set_ylabel("critical sections, millions a second")
        variants(panels[1], points, "cache_misses_percent", 1)
        panels[1].set_ylabel("cache misses, %")
        panels[0].legend(fontsize=7)
        title(figure, f"[P17, Fig. 5] on the modelled Oak: {gain(points)}")
        save(figure, directory, "p17-fig5", **KEYWORDS)

    if not of("PS18 Fig. 5a")[0]:
        return
    figure, panels = figure_of_panels(3, across=3)
    names = ["a: threads bound", "b: threads wander", "c: more threads than cores"]
    for axes, name, points in zip(panels, names, of(*(f"PS18 Fig. 5{x}" for x in "abc"))):
        variants(axes, points, "throughput_ops_s", 1e-6)
        axes.set_title(name, fontsize=10)
    panels[0].set_ylabel("critical sections, millions a second")
    panels[0].legend(fontsize=7)
    title(figure, f"[PS18, Fig. 5] on the modelled Oak: bound, {gain(of('PS18 Fig. 5a')[0])}")
    save(figure, directory, "ps18-fig5", **KEYWORDS)

    for number, machine in ((6, "Oak"), (7, "Jet")):
        groups = of(*(f"PS18 Fig. {number}{x}" for x in "abcd"))
        tallest = max(len(in_order(group, "placement")) for group in groups)
        figure, panels = figure_of_panels(4, width=6, height=1 + 0.5 * tallest)
        for axes, group in zip(panels, groups):
            bars_by_placement(axes, group)
            axes.set_title(f"{group[0]['threads']} threads", fontsize=10)
        panels[0].legend(fontsize=7, loc="lower right")
        title(figure, f"[PS18, Fig. {number}] on the modelled {machine}: "
              f"{matters([row for group in groups for row in group])}",
              "every placement: S the server, w threads, m the array, \u25c0 "
              "RCLHierarchicalAffinity's")
        save(figure, directory, f"ps18-fig{number}", **KEYWORDS)


def found(data, rows):
    """In a sentence, of the most threads: the fastest lock that starves nobody, if there is one,
    and the slowest of these beside it."""
    threads = max(row["threads"] for row in rows)
    sentences = []
    for pattern in in_order(rows, "pattern"):
        last = sorted((row for row in rows
                       if row["threads"] == threads and row["pattern"] == pattern),
                      key=lambda row: -row["throughput_ops_s"])
        last = [row for row in last if not mark([row])] or last
        if not last:
            continue  # Ctrl-C came before
        sentences.append(f"{pattern}, {last[0]['lock']} does "
                         f"{last[0]['throughput_ops_s'] / 1e6:.3g} million sections a second")
        if len(last) > 1:
            ratio = last[0]["throughput_ops_s"] / max(1, last[-1]["throughput_ops_s"])
            sentences[-1] += f", {times(ratio)} times {last[-1]['lock']}, the slowest"
    return f"{threads} threads on {data['machine']}, predicted: {'; '.join(sentences)}"


def interval(row):
    """Of what is not known about the machine; the throughput alone, if that was not asked."""
    return [row.get("throughput_ops_s_" + end, row["throughput_ops_s"]) / 1e6
            for end in ("low", "high")]


def bars_by_lock(axes, rows):
    """One number of threads: a bar for each lock, the fastest on top."""
    rows = sorted(rows, key=lambda row: row["throughput_ops_s"])
    values = [row["throughput_ops_s"] / 1e6 for row in rows]
    ends = [interval(row)[1] for row in rows]
    axes.barh([row["lock"] + mark([row]) for row in rows], values, color=COLOURS[0])
    axes.hlines(range(len(rows)), [interval(row)[0] for row in rows], ends, color="#1a1a1a")
    for at, (value, end) in enumerate(zip(values, ends)):
        axes.annotate(f"{value:.3g}", (end, at), xytext=(4, 0), textcoords="offset points",
                      fontsize=8, va="center")
    axes.set_xlim(0, 1.15 * max(ends))
    axes.set_xlabel("critical sections, millions a second")


def curves(axes, rows):
    """A curve for each lock, named at its end."""
    ends = []
    for lock in in_order(rows, "lock"):
        points = sorted((row for row in rows if row["lock"] == lock),
                        key=lambda row: row["threads"])
        threads = [row["threads"] for row in points]
        values = [row["throughput_ops_s"] / 1e6 for row in points]
        _, colour, line, _ = family(lock)
        chosen = lock == "auto"
        axes.plot(threads, values, "-" if chosen else line, color="#000000" if chosen else colour,
                  marker="o", markersize=3, linewidth=2.6 if chosen else 1.1,
                  zorder=3 if chosen else 2, label=lock)
        lows, highs = zip(*(interval(row) for row in points))
        if lows != highs:
            axes.fill_between(threads, lows, highs, color="#000000" if chosen else colour,
                              alpha=0.12, linewidth=0)
        ends.append((f"{lock}  {values[-1]:.3g}{mark(points)}", threads[-1], values[-1], chosen))
    count_axis(axes, rows)
    axes.set_yscale("log")
    number_axis(axes.yaxis)
    name_ends(axes, ends)
    open_frame(axes)


def legend_of_families(axes, rows):
    locks = in_order(rows, "lock")
    lines = [Line2D([], [], color=colour, linestyle=line, label=about)
             for name, colour, line, about in FAMILIES
             if any(family(lock)[0] == name for lock in locks if lock != "auto")]
    if "auto" in locks:
        lines.append(Line2D([], [], color="#000000", linewidth=2.6, label="auto"))
    axes.legend(handles=lines, fontsize=8, frameon=False, loc="upper left",
                bbox_to_anchor=(0, -0.2), ncol=3)


def by_threads(data, rows, directory, name):
    patterns = in_order(rows, "pattern")
    several = len(in_order(rows, "threads")) > 1
    figure, panels = figure_of_panels(len(patterns), width=8, height=3.8 if several else 4.6,
                                      across=1)
    for axes, pattern in zip(panels, patterns):
        own = [row for row in rows if row["pattern"] == pattern]
        axes.set_title(pattern, fontsize=10)
        if not several:
            bars_by_lock(axes, own)
            continue
        curves(axes, own)
    if several:
        panels[len(panels) // 2].set_ylabel("critical sections, millions a second")
        legend_of_families(panels[-1], rows)
    first = rows[0]
    spans = any(low < high for low, high in map(interval, rows))
    title(figure, found(data, rows), f"critical sections; init {first['init']}, affinity "
          f"{first['affinity']}, memory {first['memory']}" + notes(data, rows) +
          "; intervals: what is not known about the machine" * spans)
    save(figure, directory, name, dpi=130)


def by_placement(data, rows, directory, name):
    groups = {}
    for row in rows:
        groups.setdefault((row["lock"], row["threads"]), []).append(row)
    tallest = max(len(in_order(group, "placement")) for group in groups.values())
    figure, panels = figure_of_panels(len(groups), width=6, height=1 + 0.32 * tallest)
    for axes, ((lock, threads), group) in zip(panels, groups.items()):
        bars_by_placement(axes, group)
        axes.set_title(f"{lock}, {threads} threads", fontsize=10)
    panels[0].legend(fontsize=7, loc="lower right")
    title(figure, f"{data['machine']}, predicted: {matters(rows)}",
          "every placement: S the server, w threads, m the array" + notes(data, rows))
    save(figure, directory, name, **KEYWORDS)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    rows = data["results"]
    if not rows:
        nothing_to_draw("no rows in " + sys.argv[1])
    name = os.path.splitext(os.path.basename(sys.argv[1]))[0]
    if "claims" in data:
        reproduce(data, sys.argv[2])
    elif rows[0]["affinity"] == "all":
        by_placement(data, rows, sys.argv[2], name)
    else:
        by_threads(data, rows, sys.argv[2], name)


if __name__ == "__main__":
    run(main)
