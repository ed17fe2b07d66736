#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Throughput against threads, and how latency is distributed with one number of them, from what
`muster bench lock --json` wrote.

    plot_lock.py lock.json DIRECTORY      writes DIRECTORY/lock.png and lock.svg

Bands are the 95 % intervals of the means. Exit codes: see common.py.
"""
import json
import sys

sys.dont_write_bytecode = True  # this may be the source tree, or an installed one
from common import (COLOURS, format_ns, in_order, interval, name_ends, nothing_to_draw, plt, run,
                    save, title)
from matplotlib.ticker import FuncFormatter

AUTO = "#000000"
OURS = COLOURS[:13]
PEERS = ["#333333", "#7a4a12", "#94a3b3", "#5a5a5a", "#9b6f9b", "#6b7f5a", "#b0a090"]
MARKERS = "osD^vP<>phX*d"
SHARE_MIN = 1e-5  # of operations; fewer are not drawn


def styles(rows):
    """Lock -> keywords of its curve: the same in every panel."""
    found = {}
    for kind, colours, line in (("ours", OURS, "-"), ("peer", PEERS, "--")):
        locks = in_order([row for row in rows if row["kind"] == kind], "lock")
        for number, lock in enumerate(locks):
            colour = AUTO if lock == "auto" else colours[number % len(colours)]
            found[lock] = dict(color=colour, linestyle=line, label=lock,
                               marker=MARKERS[number % len(MARKERS)], markersize=4,
                               linewidth=2 if lock == "auto" else 1)
    return found


def draw_throughput(axes, rows, style):
    """A curve for each lock, and its end, to be named; bands of `auto` and the fastest other."""
    threads = sorted({row["threads"] for row in rows})
    last = [row for row in rows if row["threads"] == threads[-1] and row["lock"] != "auto"]
    best = max(last, key=lambda row: row["throughput_ops_s"]["mean"])["lock"] if last else None
    ends = []
    for lock in in_order(rows, "lock"):
        points = [row for row in rows if row["lock"] == lock]
        x = [row["threads"] for row in points]
        figures = [row["throughput_ops_s"] for row in points]
        mean = [figure["mean"] / 1e6 for figure in figures]
        axes.plot(x, mean, **style[lock])
        ends.append((f"{lock}  {mean[-1]:.3g}", x[-1], mean[-1], lock == "auto"))
        if lock in ("auto", best):
            axes.fill_between(x, [interval(figure)[0] / 1e6 for figure in figures],
                              [interval(figure)[1] / 1e6 for figure in figures],
                              color=style[lock]["color"], alpha=0.15, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(threads, [str(count) for count in threads])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("threads")
    axes.grid(alpha=0.3)
    return ends


def contended(rows, cpus):
    """The number of threads whose latencies are shown: as many as have a CPU each, where that is
    more than one; else the least that contend."""
    threads = {row["threads"] for row in rows}
    fitting = [count for count in threads if 1 < count <= cpus]
    more = [count for count in threads if count > max(1, cpus)]
    return max(fitting) if fitting else min(more) if more else max(threads)


def outstanding(rows):
    """`auto`, the fastest other of ours, and the two fastest peers."""
    fastest = sorted((row for row in rows if row["lock"] != "auto"),
                     key=lambda row: -row["throughput_ops_s"]["mean"])
    return {"auto", *[row["lock"] for row in fastest if row["kind"] == "ours"][:1],
            *[row["lock"] for row in fastest if row["kind"] == "peer"][:2]}


def draw_latency(axes, rows, style):
    """The share of operations that take so long or longer. It is known at each bucket's bounds, and
    interpolated inside. Many curves lie on one another: all but a few are grey."""
    named = outstanding(rows)
    grey = dict(color="#c4c4c4", linewidth=0.7, zorder=1)
    for row in rows:
        histogram = row["latency_ns"]["histogram"]
        left = total = sum(histogram["operations"])
        x, y = [], []
        for from_ns, operations in zip(histogram["from_ns"], histogram["operations"]):
            width = 1 << max(0, from_ns.bit_length() - 3)
            x += [max(from_ns, 1), from_ns + width]
            y += [left / total, (left - operations) / total]
            left -= operations
        x[-1], y[-1] = max(row["latency_ns"]["max"], x[-2]), y[-2]
        axes.plot(x, y, **(style[row["lock"]] if row["lock"] in named else grey),
                  markevery=(0.02, 0.18))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(SHARE_MIN, 1.3)
    axes.xaxis.set_major_formatter(FuncFormatter(format_ns))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes.minorticks_off()
    axes.set_xlabel("latency of an increment")
    if len(rows) > len(named):
        axes.plot([], [], **grey, label="others")
    if rows:
        axes.legend(loc="upper right", fontsize=8)
    axes.grid(alpha=0.3)


def found(rows, patterns, threads):
    """In a sentence: `auto`, or the fastest of ours, beside the best other with so many threads."""
    sentences = []
    for pattern in patterns:
        best = {}
        for row in rows:
            if row["threads"] != threads or row["pattern"] != pattern:
                continue
            speed = row["throughput_ops_s"]["mean"] / 1e6
            kind = "auto" if row["lock"] == "auto" else row["kind"]
            best[kind] = max(best.get(kind, (0, "")), (speed, row["lock"]))
        ours = best.get("auto", best.get("ours"))
        sentence = f"{pattern}, " + (
            f"Muster's {ours[1]} does {ours[0]:.3g} million increments a second" if ours else
            "none of ours was measured")
        if ours and "peer" in best:
            sentence += f", {ours[0] / best['peer'][0]:.2f} times {best['peer'][1]}, the best other"
        sentences.append(sentence)
    return f"{threads} thread{'s' if threads > 1 else ''}: " + "; ".join(sentences)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    rows = [row for row in data["results"] if row["status"] == "ok" and row["kind"] != "reference"]
    if not rows:
        nothing_to_draw("no lock came to an end")
    for row in rows:  # a panel for each
        if row["regime"] is not None:
            row["pattern"] = f"{row['regime']}: {row['pattern']}"
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "muster"})
    patterns = in_order(rows, "pattern")
    style = styles(data["results"])
    figure, all_axes = plt.subplots(2, len(patterns), figsize=(4.4 * len(patterns) + 2, 10.5),
                                    squeeze=False, sharey="row", sharex="row",
                                    layout="constrained")
    threads = contended(rows, data["machine"]["cpus"])
    ends = []
    for (above, below), pattern in zip(zip(*all_axes), patterns):
        above.set_title(pattern)
        ends.append(draw_throughput(above, [row for row in rows if row["pattern"] == pattern],
                                    style))
        below.set_title("{}, {} thread{}".format(pattern, threads, "" if threads == 1 else "s"))
        draw_latency(below, [row for row in rows if row["pattern"] == pattern
                             and row["threads"] == threads and row["latency_ns"]["samples"] > 0],
                     style)
    for axes, its in zip(all_axes[0], ends):  # when all curves are there: they share heights
        axes.set_ylim(axes.get_ylim())
        name_ends(axes, its)
    all_axes[0][0].set_ylabel("increments, millions a second")
    all_axes[1][0].set_ylabel("share of increments that take as long or longer")
    machine = data["machine"]
    title(figure, found(rows, patterns, threads),
          f"Critical sections on {machine['model']}, {machine['cpus']} CPUs, array of "
          f"{data['array']:,} words, {data['verdict']}. Above: higher is better; bands: 95 % "
          "interval of the mean, of auto and the fastest other. Below: lower is better.")
    save(figure, sys.argv[2], "lock", dpi=120)


if __name__ == "__main__":
    run(main)
