#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the model says, from what `muster sim barrier` or `muster sim validate` wrote.

    plot_sim.py sim.json DIRECTORY         latency against ranks, or bars by mapping
    plot_sim.py validate.json DIRECTORY    predicted against measured

Writes DIRECTORY/<name>.png and .svg. Exit codes: see common.py.
"""
import json
import os
import sys

sys.dont_write_bytecode = True  # this may be the source tree, or an installed one
from common import COLOURS, in_order, nothing_to_draw, plt, run, save
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

MARKERS = "osD^vP<>pXh*dH8"
LINES = {"core": "-", "numa": "--", "socket": ":"}


def style(algorithms, name):
    at = algorithms.index(name)
    return COLOURS[at % len(COLOURS)], MARKERS[at % len(MARKERS)]


def by_ranks(axes, rows):
    """A curve for each algorithm and mapping."""
    algorithms, mappings = in_order(rows, "algorithm"), in_order(rows, "map_by")
    for name in algorithms:
        colour, marker = style(algorithms, name)
        for mapping in mappings:
            points = sorted((row for row in rows
                             if row["algorithm"] == name and row["map_by"] == mapping),
                            key=lambda row: row["ranks"])
            ranks = [row["ranks"] for row in points]
            label = name if len(mappings) == 1 else f"{name}, by {mapping}"
            axes.plot(ranks, [row["latency_us"] for row in points], LINES[mapping], color=colour,
                      marker=marker, markersize=5, label=label)
            axes.fill_between(ranks, [row["latency_us_low"] for row in points],
                              [row["latency_us_high"] for row in points], color=colour, alpha=0.12,
                              linewidth=0)
    ticks = sorted(set(row["ranks"] for row in rows))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.set_yscale("log")
    axes.set_xlabel("ranks")


def by_algorithm(axes, rows):
    """A bar for each algorithm and mapping."""
    algorithms, mappings = in_order(rows, "algorithm"), in_order(rows, "map_by")
    width = 0.8 / len(mappings)
    for m, mapping in enumerate(mappings):
        found = {row["algorithm"]: row for row in rows if row["map_by"] == mapping}
        for a, name in enumerate(algorithms):
            row = found.get(name)
            if row is None:
                continue
            value = row["latency_us"]
            axes.bar(a + (m - (len(mappings) - 1) / 2) * width, value, width * 0.92,
                     color=COLOURS[m], label=f"by {mapping}" if a == 0 else None,
                     yerr=[[max(0, value - row["latency_us_low"])],
                           [max(0, row["latency_us_high"] - value)]],
                     ecolor="#444444", error_kw={"linewidth": 0.8})
    axes.set_xticks(range(len(algorithms)))
    axes.set_xticklabels(algorithms, rotation=40, ha="right", fontsize=8)
    axes.set_yscale("log")


def against_measured(axes, rows):
    """Predicted over measured; on the diagonal the model is right, in the band within 20 %."""
    algorithms, mappings = in_order(rows, "algorithm"), in_order(rows, "map_by")
    shapes = {mapping: "os^"[n % 3] for n, mapping in enumerate(mappings)}
    for row in rows:
        colour, _ = style(algorithms, row["algorithm"])
        value = row["latency_us"]
        axes.errorbar([row["measured_us"]], [value],
                      yerr=[[max(0, value - row["latency_us_low"])],
                            [max(0, row["latency_us_high"] - value)]],
                      color=colour, marker=shapes[row["map_by"]], markersize=6, linewidth=0.8)
    values = [row["measured_us"] for row in rows] + [row["latency_us"] for row in rows]
    ends = [min(values) * 0.8, max(values) * 1.25]
    axes.plot(ends, ends, color="#444444", linewidth=1)
    for factor in (0.8, 1.25):
        axes.plot(ends, [end * factor for end in ends], color="#aaaaaa", linewidth=0.8)
    for name in algorithms:
        axes.plot([], [], "o", color=style(algorithms, name)[0], label=name)
    for mapping in mappings:
        axes.plot([], [], shapes[mapping], color="#444444", label=f"by {mapping}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(ends)
    axes.set_ylim(ends)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("measured, \u00b5s")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    rows = data["results"]
    if not rows:
        nothing_to_draw("no rows in " + sys.argv[1])
    figure, axes = plt.subplots(figsize=(9, 5.5), layout="constrained")
    if "measured_us" in rows[0]:
        against_measured(axes, rows)
        title = f"{data['machine']}: predicted against measured"
    elif len(in_order(rows, "ranks")) > 1:
        by_ranks(axes, rows)
        title = f"{data['machine']}: predicted latency"
    else:
        by_algorithm(axes, rows)
        title = f"{data['machine']}: predicted latency, {rows[0]['ranks']} ranks"
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylabel("predicted, \u00b5s")
    axes.set_title(title, fontsize=11)
    axes.grid(True, which="both", axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    name = os.path.splitext(os.path.basename(sys.argv[1]))[0]
    save(figure, sys.argv[2], name, dpi=150)


if __name__ == "__main__":
    run(main)
