#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPI_Barrier under each MPI, its own barriers and Muster's, from what `muster bench mpi` wrote.

    plot_mpi.py mpi.json DIRECTORY      writes DIRECTORY/mpi.png and mpi.svg

A panel for each number of ranks, and regime; a line for each barrier of each MPI: the mean where
others want the CPUs, or ranks each other's, else the median of the rounds; and from the fastest of
them to the slowest. Exit codes: see common.py.
"""
import json
import statistics
import sys

sys.dont_write_bytecode = True  # this may be the source tree, or an installed one
from common import (COLOURS, format_ns, in_order, nothing_to_draw, open_frame, plt, run, save,
                    time_axis, times, title)
from matplotlib.ticker import MaxNLocator

OURS = dict(color=COLOURS[0], marker="D", markersize=6, zorder=3)
THEIRS = dict(color="#777777", marker="o", markersize=5, zorder=2)


def finished(data):
    """Of each row the rounds that came to an end, in ns; rows that have none are left out, and who
    failed in a later turn."""
    rows = []
    for row in data["results"]:
        turns = "round_means_ns" in row
        rounds = [value if turns else 1000 * value
                  for value in row["round_means_ns" if turns else "latency_us"]
                  if value is not None]
        if not rounds or turns and row["latency_ns"]["mean"] is None:
            continue
        leading = "mean" if turns or row["ranks"] > data["machine"]["cpus"] else "median"
        time = row["latency_ns"]["mean"] if turns else getattr(statistics, leading)(rounds)
        rows.append({"mpi": row["mpi"], "barrier": row["barrier"], "ours": row["ours"],
                     "ranks": row["ranks"], "regime": row.get("regime"), "rounds": rounds,
                     "leading": leading, "time": time})
    return rows


def counted(ranks):
    return f"{ranks} rank{'' if ranks == 1 else 's'}"


def found(rows):
    """In a sentence: the fastest of Muster's beside the fastest of the others, by ranks."""
    ratios = {}
    for regime in in_order(rows, "regime"):
        for ranks in in_order(rows, "ranks"):
            best = {}
            for row in rows:
                if (row["regime"], row["ranks"]) == (regime, ranks):
                    best[row["ours"]] = min(row["time"], best.get(row["ours"], row["time"]))
            if len(best) == 2:
                ratios.setdefault(regime, []).append((ranks, best[True] / best[False]))
    if not ratios:
        return "MPI_Barrier: nobody to compare with"
    parts = [f"{times(ratio)} with {counted(ranks)}{f', {regime}' if regime else ''}"
             for regime, pairs in ratios.items() for ranks, ratio in pairs]
    return f"Muster's MPI_Barrier as a multiple of the best MPI's own time: {'; '.join(parts)}"


def draw(axes, rows, lines):
    for row in rows:
        y = lines.index((row["mpi"], row["barrier"]))
        look = OURS if row["ours"] else THEIRS
        axes.plot([min(row["rounds"]), max(row["rounds"])], [y, y], color=look["color"], lw=4,
                  alpha=0.3, solid_capstyle="round")
        axes.plot([row["time"]], [y], **look)
        axes.annotate(format_ns(row["time"]), (max(row["rounds"]), y), xytext=(7, 0),
                      textcoords="offset points", va="center", fontsize=8,
                      fontweight="bold" if row["ours"] else None)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.35)  # room for what is written there
    time_axis(axes.xaxis, (1,) if high > 30 * low else (1, 2, 5), numticks=5)
    if high < 10 * low:  # then that locator has no limit
        axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.tick_params(labelsize=8)
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    open_frame(axes)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    rows = finished(data)
    if not rows:
        nothing_to_draw("no barrier came to an end")
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "muster"})
    ours = {(row["mpi"], row["barrier"]): row["ours"] for row in rows}
    mpis = in_order(rows, "mpi")
    # Of each MPI ours first; from the top down.
    lines = sorted(ours, key=lambda line: (mpis.index(line[0]), not ours[line]), reverse=True)
    regimes, counts = in_order(rows, "regime"), in_order(rows, "ranks")
    figure, panels = plt.subplots(len(regimes), len(counts), squeeze=False, sharey=True,
                                  figsize=(max(8, 2.6 + 2.3 * len(counts)),
                                           1.2 + len(regimes) * (0.9 + 0.24 * len(lines))),
                                  layout="constrained")
    for regime, across in zip(regimes, panels):
        for count, axes in zip(counts, across):
            for number, mpi in enumerate(mpis):
                own = [y for y, line in enumerate(lines) if line[0] == mpi]
                if number % 2 == 0:
                    axes.axhspan(min(own) - 0.5, max(own) + 0.5, color="#f2f2f2", lw=0, zorder=0)
            draw(axes, [row for row in rows if (row["regime"], row["ranks"]) == (regime, count)],
                 lines)
            axes.set_title(counted(count) + (f", {regime}" if regime else ""), fontsize=10,
                           loc="left", fontweight="bold")
        across[0].set_ylim(-0.5, len(lines) - 0.5)
        across[0].set_yticks(range(len(lines)), [f"{mpi}, {name}" for mpi, name in lines],
                             fontsize=8)
        for label, line in zip(across[0].get_yticklabels(), lines):
            label.set_fontweight("bold" if ours[line] else "normal")
    for count, axes in zip(counts, panels[-1]):
        leading = next(row["leading"] for row in rows if row["ranks"] == count)
        axes.set_xlabel(f"time of a barrier ({leading})", fontsize=9)
    machine = data["machine"]
    leading = " or ".join(in_order(rows, "leading")).capitalize()
    title(figure, found(rows), f"{machine['model']}, {machine['cpus']} CPUs. Diamonds, bold: "
          f"Muster's. {leading} of the rounds, and from the fastest to the slowest; "
          "less is better.")
    save(figure, sys.argv[2], "mpi", dpi=130)


if __name__ == "__main__":
    run(main)
