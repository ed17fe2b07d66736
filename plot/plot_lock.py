#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Throughput against threads, from what `muster bench lock --json` wrote.

    plot_lock.py lock.json DIRECTORY      writes DIRECTORY/lock.png and lock.svg

Bands are the 95 % intervals of the medians. Exit code 3: matplotlib is missing.
"""
import json
import sys

sys.dont_write_bytecode = True  # this may be the source tree, or an installed one
from common import COLOURS, in_order, plt, save

OURS = COLOURS[:13]
PEERS = ["#000000", "#7a4a12", "#94a3b3", "#5a5a5a", "#9b6f9b", "#6b7f5a", "#b0a090"]
MARKERS = "osD^vP<>phX*d"


def draw(axes, pattern, rows):
    counts = {"ours": 0, "peer": 0}
    for lock in in_order(rows, "lock"):
        points = [row for row in rows if row["lock"] == lock and row["pattern"] == pattern
                  and row["status"] == "ok" and row["kind"] != "reference"]
        if not points:
            continue
        kind = points[0]["kind"]
        number = counts[kind]
        counts[kind] += 1
        colours = OURS if kind == "ours" else PEERS
        x = [row["threads"] for row in points]
        figures = [row["throughput_ops_s"] for row in points]
        y = [figure["median"] / 1e6 for figure in figures]
        colour = colours[number % len(colours)]
        axes.plot(x, y, label=lock, color=colour, marker=MARKERS[number % len(MARKERS)],
                  markersize=4, linewidth=2 if lock == "auto" else 1,
                  linestyle="-" if kind == "ours" else "--")
        axes.fill_between(x, [figure["ci95"][0] / 1e6 for figure in figures],
                          [figure["ci95"][1] / 1e6 for figure in figures], color=colour, alpha=0.15)
    threads = sorted({row["threads"] for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(threads, [str(count) for count in threads])
    axes.minorticks_off()
    axes.set_title(pattern)
    axes.set_xlabel("threads")
    axes.grid(alpha=0.3)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    rows = data["results"]
    patterns = in_order(rows, "pattern")
    figure, all_axes = plt.subplots(1, len(patterns), figsize=(5.5 * len(patterns) + 2, 5.5),
                                    squeeze=False, sharey=True)
    for axes, pattern in zip(all_axes[0], patterns):
        draw(axes, pattern, rows)
    all_axes[0][0].set_ylabel("increments, millions a second")
    all_axes[0][-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=8)
    figure.suptitle("Critical sections: {}, {} CPUs, array of {:g} words{}".format(
        data["machine"]["model"], data["machine"]["cpus"], data["array"],
        "" if data["verdict"] == "quiet" else " (noisy)"))
    save(figure, sys.argv[2], "lock", dpi=120, bbox_inches="tight")


main()
