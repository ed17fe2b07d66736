#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Who waits for whom in an episode, from what `muster explain --output` wrote.

    plot_waits.py explain.json DIRECTORY

A line for each rank, from its arrival to its leaving; a line from who tells something to a dot,
where who waited for it goes on. Writes DIRECTORY/<name>.png and .svg. Exit codes: see common.py.
"""
import json
import os
import sys

sys.dont_write_bytecode = True  # this may be the source tree, or an installed one
from common import COLOURS, format_ns, in_order, nothing_to_draw, plt, run, save, title
from matplotlib.collections import LineCollection

INSIDE, ACROSS = "#004b79", COLOURS[5]  # one dark, one light, in grey, too
RANKS_NAMED = 40


def places(ranks):
    """Each rank's height: those of a unit are side by side."""
    units = in_order(ranks, "unit")
    order = sorted(range(len(ranks)), key=lambda rank: (units.index(ranks[rank]["unit"]), rank))
    return {rank: height for height, rank in enumerate(order)}


def draw(axes, data):
    ranks = data["ranks"]
    height = places(ranks)
    units = in_order(ranks, "unit")
    for number, unit in enumerate(units):
        own = [height[rank] for rank, each in enumerate(ranks) if each["unit"] == unit]
        if number % 2 == 0:
            axes.axhspan(min(own) - 0.5, max(own) + 0.5, color="#f2f2f2", linewidth=0)
        if len(units) > 1:
            axes.text(1.01, (min(own) + max(own)) / 2, unit, transform=axes.get_yaxis_transform(),
                      fontsize=8, va="center")
    axes.add_collection(LineCollection(
        [[(each["arrives_ns"] / 1000, height[rank]), (each["leaves_ns"] / 1000, height[rank])]
         for rank, each in enumerate(ranks)], colors="#bbbbbb", linewidths=0.8, label="inside"))
    few = len(ranks) <= RANKS_NAMED
    for colour, line, across, label in ((INSIDE, "solid", False, "tells, same unit"),
                                        (ACROSS, "dashed", True, "tells, another unit")):
        waits = [wait for wait in data["waits"]
                 if (ranks[wait["rank"]]["unit"] != ranks[wait["for"]]["unit"]) == across]
        lines = [[(wait["told_ns"] / 1000, height[wait["for"]]),
                  (wait["heard_ns"] / 1000, height[wait["rank"]])] for wait in waits]
        if not lines:
            continue
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=0.9 if few else 0.5,
                                           linestyles=line, alpha=0.9 if few else 0.6,
                                           label=label))
        axes.plot([line[1][0] for line in lines], [line[1][1] for line in lines], "o",
                  color=colour, markersize=3 if few else 1.2)
    axes.set_ylim(len(ranks) - 0.5, -0.5)
    axes.autoscale(axis="x")
    if few:
        axes.set_yticks([height[rank] for rank in range(len(ranks))], range(len(ranks)), fontsize=7)
    else:
        axes.set_yticks([])
    axes.set_ylabel("rank")
    axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncol=3, frameon=False)
    axes.set_xlabel("\u00b5s in the model; a dot: who waited goes on")


def found(data):
    """In a sentence: how long it takes, and how much of that goes between units."""
    ranks, waits = data["ranks"], data["waits"]
    takes = max(each["leaves_ns"] for each in ranks) - max(each["arrives_ns"] for each in ranks)
    text = (f"{data['algorithm']}, {len(ranks)} ranks on {data['machine']}, predicted: all have "
            f"left {format_ns(takes)} after the last arrival")
    if len(in_order(ranks, "unit")) == 1:
        return text
    across = sum(ranks[wait["rank"]]["unit"] != ranks[wait["for"]]["unit"] for wait in waits)
    return f"{text}; of {len(waits)} waits {across} are for another unit"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)["waits"]
    if not data["waits"]:
        nothing_to_draw("nobody waits for another one")
    figure, axes = plt.subplots(figsize=(9, min(24, 2.5 + 0.12 * len(data["ranks"]))),
                                layout="constrained")
    draw(axes, data)
    title(figure, found(data))
    save(figure, sys.argv[2], os.path.splitext(os.path.basename(sys.argv[1]))[0], dpi=150)


if __name__ == "__main__":
    run(main)
