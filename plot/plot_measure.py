#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How far each two CPUs are apart, from what `muster measure --json` wrote.

    plot_measure.py measure.json DIRECTORY

A heat map, groups that were found side by side and framed, hwloc's levels as bars to its left;
below it how many pairs are how far apart. Writes DIRECTORY/measure.png and .svg. Exit codes: see
common.py.
"""
import json
import sys

sys.dont_write_bytecode = True  # this may be the source tree, or an installed one
from common import format_ns, nothing_to_draw, open_frame, plt, run, save, time_axis, title
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle

FRAMES = ["white", "#111111", "#d55e00"]  # of the found levels, the innermost first
TICKS_MAX = 40


def matrix_of(data):
    """Rows and columns in the order of the groups found; NaN where there is no time."""
    size, rows = len(data["cpus"]), data["ns"]
    def at(a, b):
        value = None if a == b else rows[max(a, b)][min(a, b)]
        return float("nan") if value is None else value
    return [[at(data["order"][i], data["order"][j]) for j in range(size)] for i in range(size)]


def sizes(groups):
    several = sorted({len(group) for group in groups})
    return f"{len(groups)} groups of {'-'.join(map(str, several[::max(1, len(several) - 1)]))}"


def found(data):
    """The title: what the times show."""
    levels = data["levels"]
    median = [format_ns(level["median_ns"]) for level in levels]
    if len(levels) == 1:
        return f"All {len(data['cpus'])} CPUs are about {median[0]} apart: no groups"
    parts = [f"{near} in {sizes(level['groups'])}" for near, level in zip(median, levels[:-1])]
    return f"{', '.join(parts)}; {median[-1]} beyond"


def spans(groups, place):
    """(first, last) position of each run of neighbours of one group."""
    number = {cpu: n for n, group in enumerate(groups) for cpu in group}
    row = [number[cpu] for cpu in sorted(place, key=place.get)]
    begin = 0
    for end in range(1, len(row) + 1):
        if end == len(row) or row[end] != row[begin]:
            yield begin, end
            begin = end


def draw_map(figure, axes, bars, data, norm):
    size = len(data["cpus"])
    cpus = [data["cpus"][row] for row in data["order"]]
    place = {cpu: at for at, cpu in enumerate(cpus)}
    image = axes.imshow(matrix_of(data), cmap="cividis", norm=norm, interpolation="nearest",
                        aspect="auto")
    for number, level in enumerate(data["levels"][:-1]):
        for begin, end in spans(level["groups"], place):
            if end - begin > 1:
                axes.add_patch(Rectangle((begin - 0.5, begin - 0.5), end - begin, end - begin,
                                         fill=False, lw=1.1, edgecolor=FRAMES[number % 3]))
    step = -(-size // TICKS_MAX)
    ticks = range(0, size, step)
    axes.set_xticks(ticks, [cpus[at] for at in ticks], fontsize=7, rotation=90)
    axes.set_yticks([])
    axes.set_xlabel("CPU")
    names = [level["name"] for level in data["hwloc"][:-1]]
    for column, level in enumerate(data["hwloc"][:-1]):
        for number, (begin, end) in enumerate(spans(level["groups"], place)):
            bars.add_patch(Rectangle((column + 0.1, begin - 0.5), 0.8, end - begin, lw=0,
                                     facecolor=("#777777", "#c4c4c4")[number % 2]))
    bars.set_xlim(0, max(1, len(names)))
    bars.set_xticks([column + 0.5 for column in range(len(names))], names, fontsize=7, rotation=90)
    bars.set_ylim(size - 0.5, -0.5)
    bars.set_yticks(ticks, [cpus[at] for at in ticks], fontsize=7)
    bars.set_ylabel("CPU" + (", and hwloc's groups" if names else ""))
    for side in bars.spines.values():
        side.set_visible(False)
    colours = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02)
    time_axis(colours.ax.yaxis)
    colours.set_label("one way")


def draw_counts(axes, data, values, norm):
    low, high = values[0] / 1.05, values[-1] * 1.05
    edges = [low * (high / low) ** (n / 60) for n in range(61)]
    _, _, bars = axes.hist(values, edges)
    for bar in bars:
        bar.set_facecolor(plt.get_cmap("cividis")(norm(bar.get_x() + bar.get_width() / 2)))
        bar.set_edgecolor("#555555")
        bar.set_linewidth(0.3)
    for number, level in enumerate(data["levels"]):
        name = level["hwloc"] if level["agreement"] == 1 else f"level {number + 1}"
        name = "all" if number + 1 == len(data["levels"]) else name
        axes.axvline(level["median_ns"], color="#111111", lw=0.8, ls=":")
        axes.annotate(f"{name}: {format_ns(level['median_ns'])}", (level["median_ns"], 1),
                      xycoords=("data", "axes fraction"), xytext=(0, 2),
                      textcoords="offset points", fontsize=7, ha="center", va="bottom")
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    time_axis(axes.xaxis)
    axes.set_xlabel("one way between two CPUs; dotted: medians of the levels")
    axes.set_ylabel("pairs of CPUs")
    open_frame(axes)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    values = sorted(value for row in data["ns"] for value in row if value)
    if len(values) < 2:
        nothing_to_draw("one pair of CPUs has a time, or none")
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "muster"})
    levels = max(1, len(data["hwloc"]) - 1)
    figure = plt.figure(figsize=(8.4, 10), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(4, 1), width_ratios=(0.035 * levels, 1))
    norm = LogNorm(values[0], max(values[-1], values[0] * 1.01))
    bars = figure.add_subplot(grid[0, 0])
    draw_map(figure, figure.add_subplot(grid[0, 1]), bars, data, norm)
    draw_counts(figure.add_subplot(grid[1, :]), data, values, norm)
    about = data["title"].rsplit("/", 1)[-1]
    if data["rounds"]:
        about += f", median of {data['rounds']} rounds, {data['noise']['verdict']}"
    title(figure, found(data), about)
    save(figure, sys.argv[2], "measure", dpi=130)


if __name__ == "__main__":
    run(main)
