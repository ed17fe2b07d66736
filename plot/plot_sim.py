#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the model says, from what `muster sim barrier` or `muster sim validate` wrote.

    plot_sim.py sim.json DIRECTORY         latency against ranks, or a line for each barrier
    plot_sim.py validate.json DIRECTORY    measured latencies beside the predicted intervals

Writes DIRECTORY/<name>.png and .svg. Exit codes: see common.py.
"""
import json
import math
import os
import sys

sys.dont_write_bytecode = True  # this may be the source tree, or an installed one
from common import (COLOURS, format_us, in_order, name_ends, nothing_to_draw, number_axis,
                    open_frame, plt, run, save, times, title)
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

# Families of barriers: colour and line. `auto` and the best other stand out.
FAMILIES = (("base-", "#8a8a8a", ":", "an MPI's, over messages"),
            ("topo-", COLOURS[0], "-", "by groups of cores"),
            ("sense-reversing", COLOURS[1], "--", "a counter or flags of all"),
            ("", COLOURS[2], "-.", "trees and rounds of all"))
CHOSEN = "#000000"
MAPPINGS = {"core": ("o", "#000000"), "numa": ("s", COLOURS[0]), "socket": ("^", COLOURS[1])}


def family(name):
    return next(each for each in FAMILIES if name.startswith(each[0]))


def found(data, rows):
    """In a sentence, of the most ranks: what `auto` takes beside the best other, or the fastest."""
    ranks = max(row["ranks"] for row in rows)
    sentences = []
    for mapping in in_order(rows, "map_by"):
        last = sorted((row for row in rows if row["ranks"] == ranks and row["map_by"] == mapping),
                      key=lambda row: row["latency_us"])
        if not last:
            continue  # Ctrl-C came before
        others = [row for row in last if row["algorithm"] != "auto"]
        auto = next((row for row in last if row["algorithm"] == "auto"), None)
        by = f", by {mapping}" if len(in_order(rows, "map_by")) > 1 else ""
        if auto and others:
            sentences.append(f"auto takes {format_us(auto['latency_us'])}{by}, "
                             f"{auto['latency_us'] / others[0]['latency_us']:.2f} times "
                             f"{others[0]['algorithm']}, the best other")
        else:
            sentences.append(f"{last[0]['algorithm']} is the fastest{by}, "
                             f"{format_us(last[0]['latency_us'])}")
            if len(last) > 1:
                ratio = last[-1]["latency_us"] / last[0]["latency_us"]
                sentences[-1] += f"; {last[-1]['algorithm']} takes {times(ratio)} times that"
    return f"{ranks} ranks on {data['machine']}, predicted: " + "; ".join(sentences)


def by_ranks(axes, rows):
    """A curve for each barrier and mapping, named at its end; intervals of those that stand out."""
    mappings = in_order(rows, "map_by")
    curves = {}
    for row in rows:
        curves.setdefault((row["algorithm"], row["map_by"]), []).append(row)
    for points in curves.values():
        points.sort(key=lambda row: row["ranks"])
    ends = sorted(curves.items(), key=lambda curve: curve[1][-1]["latency_us"])
    best = next((name for (name, _), _ in ends if name != "auto"), None)
    for (name, _), points in ends:
        _, colour, line, _ = family(name)
        stands_out = name in ("auto", best)
        ranks = [row["ranks"] for row in points]
        axes.plot(ranks, [row["latency_us"] for row in points], "-" if name == "auto" else line,
                  color=CHOSEN if name == "auto" else colour, marker="o", markersize=3,
                  linewidth=2.6 if stands_out else 1.1, zorder=3 if stands_out else 2)
        if stands_out:
            axes.fill_between(ranks, [row["latency_us_low"] for row in points],
                              [row["latency_us_high"] for row in points],
                              color=CHOSEN if name == "auto" else colour, alpha=0.15, linewidth=0)
    ticks = sorted(set(row["ranks"] for row in rows))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.set_yscale("log")
    number_axis(axes.yaxis)
    axes.set_xlabel("ranks")
    axes.set_ylabel("predicted latency of an episode, \u00b5s")
    name_ends(axes, [(f"{name if len(mappings) == 1 else f'{name}, by {mapping}'}  "
                      f"{format_us(points[-1]['latency_us'])}",
                      points[-1]["ranks"], points[-1]["latency_us"], name == "auto")
                     for (name, mapping), points in ends])
    for prefix, colour, line, about in FAMILIES:
        if any(family(name)[0] == prefix for name, _ in curves if name != "auto"):
            axes.plot([], [], line, color=colour, label=about)
    if any(name == "auto" for name, _ in curves):
        axes.plot([], [], color=CHOSEN, linewidth=2.6, label="auto")
    axes.legend(fontsize=8, frameon=False, loc="upper left",
                title="bands: of auto and the best other, where 80 % should lie", title_fontsize=8,
                alignment="left")


def by_algorithm(axes, rows):
    """A line for each barrier, the fastest on top: a mark for each mapping, and its interval."""
    mappings = in_order(rows, "map_by")
    best = {}
    for row in rows:
        best[row["algorithm"]] = min(row["latency_us"], best.get(row["algorithm"], math.inf))
    names = sorted(best, key=lambda name: -best[name])
    apart = 0.5 / len(mappings)
    for m, mapping in enumerate(mappings):
        marker, colour = MAPPINGS[mapping]
        points = [row for row in rows if row["map_by"] == mapping]
        heights = [names.index(row["algorithm"]) - (m - (len(mappings) - 1) / 2) * apart
                   for row in points]
        values = [row["latency_us"] for row in points]
        axes.hlines(heights, [row["latency_us_low"] for row in points],
                    [row["latency_us_high"] for row in points], color=colour, alpha=0.35,
                    linewidth=4 if len(mappings) == 1 else 2.5)
        axes.plot(values, heights, marker, color=colour, markersize=5, label=f"by {mapping}")
        if len(mappings) > 1:
            continue
        for value, height, row in zip(values, heights, points):
            axes.annotate(format_us(value), (max(value, row["latency_us_high"]), height),
                          xytext=(6, 0), textcoords="offset points", fontsize=8, va="center")
    axes.set_yticks(range(len(names)), names, fontsize=9)
    for label in axes.get_yticklabels():
        label.set_fontweight("bold" if label.get_text() == "auto" else "normal")
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * 1.35)
    number_axis(axes.xaxis)
    axes.set_xlabel("predicted latency of an episode, \u00b5s; lines: where 80 % should lie")
    if len(mappings) > 1:
        axes.legend(fontsize=8, frameon=False, loc="upper right")


def against_measured(axes, rows):
    """A line for each barrier and setting: the predicted interval, and what was measured."""
    rows = sorted(rows, key=lambda row: row["measured_us"], reverse=True)
    several = {key: len(in_order(rows, key)) > 1 for key in ("ranks", "map_by")}
    names = [row["algorithm"] + (f", {row['ranks']}" if several["ranks"] else "") +
             (f", by {row['map_by']}" if several["map_by"] else "") for row in rows]
    heights = range(len(rows))
    axes.hlines(heights, [row["latency_us_low"] for row in rows],
                [row["latency_us_high"] for row in rows], color=COLOURS[4], linewidth=6,
                label="predicted: where 80 % should lie")
    axes.plot([row["latency_us"] for row in rows], heights, "|", color=COLOURS[0], markersize=9,
              markeredgewidth=2, label="predicted")
    axes.plot([row["measured_us"] for row in rows], heights, "D", color="#000000", markersize=4.5,
              label="measured")
    for row, height in zip(rows, heights):
        right = max(row["latency_us_high"], row["measured_us"])
        axes.annotate(f"{100 * row['error']:+.0f} %", (right, height), xytext=(7, 0),
                      textcoords="offset points", fontsize=8, va="center", color="#444444")
    axes.set_yticks(heights, names, fontsize=8)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * 1.25)
    number_axis(axes.xaxis)
    axes.set_xlabel("latency of an episode, \u00b5s; beside it, by how much the prediction is off")
    axes.legend(fontsize=8, frameon=False, loc="upper right")


def judged(data, rows):
    summary = data["summary"]
    inside = summary["within_interval"]
    ranks = "-".join(str(each) for each in sorted({row["ranks"] for row in rows})[::
                     max(1, len(in_order(rows, "ranks")) - 1)])
    return (f"{ranks} ranks on {data['machine']}: predictions are off by "
            f"{100 * summary['median_error']:.0f} % in the median; {inside['good']} of "
            f"{inside['all']} measured latencies lie in their interval")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    rows = data["results"]
    if not rows:
        nothing_to_draw("no rows in " + sys.argv[1])
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "muster"})
    measured = "measured_us" in rows[0]
    curves = not measured and len(in_order(rows, "ranks")) > 1
    lines = len(rows) if measured else len(in_order(rows, "algorithm"))
    figure, axes = plt.subplots(figsize=(9, 6.5 if curves else 1.9 + 0.24 * lines),
                                layout="constrained")
    (against_measured if measured else by_ranks if curves else by_algorithm)(axes, rows)
    open_frame(axes)
    axes.grid(True, axis="y" if curves else "x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    title(figure, judged(data, rows) if measured else found(data, rows))
    name = os.path.splitext(os.path.basename(sys.argv[1]))[0]
    save(figure, sys.argv[2], name, dpi=150)


if __name__ == "__main__":
    run(main)
