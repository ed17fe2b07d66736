#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Latency against participants, from what `muster bench barrier --json` wrote.

    plot_barrier.py barrier.json DIRECTORY      writes DIRECTORY/barrier.png and barrier.svg

Bands are the 95 % intervals of the medians. Exit code 3: matplotlib is missing.
"""
import json
import math
import os
import sys

try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
except ImportError:
    sys.exit(3)

# Distinguishable with colour-blind eyes (Okabe and Ito); ours are strong, peers are muted.
OURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a700", "#7f5fc7",
        "#3c8d8d", "#a0522d", "#4c9f38", "#c2185b"]
PEERS = ["#1a1a1a", "#555555", "#8a8a8a", "#6f4e37", "#708090", "#9c8f80", "#a9a9a9", "#4d5d53",
         "#7d7098"]
OUR_MARKERS = "osD^vP<>ph"
PEER_MARKERS = ["x", "+", "1", "2", "3", "4", "|", "_", "*"]
REFERENCES = ("limit", "ping-pong")


def name_of(row):
    if row["implementation"] != "muster":
        return row["implementation"]
    name = row["algorithm"]
    return name + " (template)" if row["via"] == "template" else name


def format_ns(value, _=None):
    for unit in ("ns", "us", "ms", "s"):
        if value < 1000 or unit == "s":
            return f"{value:.3g} {unit}".replace("us", "\u00b5s")
        value /= 1000


def curves(rows):
    """Name -> rows by participants, in the order of first appearance."""
    found = {}
    for row in rows:
        if row["status"] == "ok":
            found.setdefault(name_of(row), []).append(row)
    for points in found.values():
        points.sort(key=lambda row: row["participants"])
    return found


def styles(rows):
    """Name -> keywords of its curve: the same in every panel."""
    ours, peers, result = 0, 0, {}
    for row in rows:
        name = name_of(row)
        if name in result or row["implementation"] in REFERENCES:
            continue
        if row["implementation"] == "muster":
            if row["algorithm"] == "auto":
                result[name] = dict(color="#d00000", marker="o", lw=2.6, ms=7, zorder=5)
            else:
                result[name] = dict(color=OURS[ours % len(OURS)], lw=1.4, ms=5, zorder=4,
                                    marker=OUR_MARKERS[ours % len(OUR_MARKERS)])
                ours += 1
        else:
            result[name] = dict(color=PEERS[peers % len(PEERS)], lw=1.1, ms=6, ls="--", zorder=3,
                                marker=PEER_MARKERS[peers % len(PEER_MARKERS)])
            peers += 1
    return result


def draw_panel(axes, rows, style, cpus):
    drawn = curves(rows)
    counts = sorted({row["participants"] for row in rows
                     if row["implementation"] not in REFERENCES})
    if not counts:
        counts = [2]
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    lo, hi = counts[0] / 1.3, counts[-1] * 1.3
    axes.set_xlim(lo, hi)
    if lo < cpus < hi and counts[-1] > cpus:
        edge = math.sqrt(cpus * min(c for c in counts if c > cpus))
        axes.axvspan(edge, hi, color="#f3efe6", zorder=0, lw=0)
        axes.text(edge * 1.03, 0.985, "more participants than CPUs", fontsize=8, color="#8a7a55",
                  va="top", transform=axes.get_xaxis_transform())
    for name, points in drawn.items():
        if points[0]["implementation"] in REFERENCES:
            median = points[0]["latency_ns"]["median"]
            axes.axhline(median, color="#999999", lw=0.9, ls=":", zorder=1)
            side = dict(x=hi, ha="right") if name == "limit" else dict(x=lo, ha="left")
            axes.annotate(f" {name} at 2: {format_ns(median)} ", xy=(side["x"], median),
                          xytext=(0, 2), textcoords="offset points", ha=side["ha"], fontsize=8,
                          color="#666666")
            continue
        x = [row["participants"] for row in points]
        axes.plot(x, [row["latency_ns"]["median"] for row in points], mec="white"
                  if style[name]["marker"] in OUR_MARKERS else None, mew=0.6
                  if style[name]["marker"] in OUR_MARKERS else 1.3, **style[name])
        low = [row["latency_ns"]["ci95"][0] for row in points]
        high = [row["latency_ns"]["ci95"][1] for row in points]
        if len(x) > 1:
            axes.fill_between(x, low, high, color=style[name]["color"], alpha=0.18, lw=0,
                              zorder=2)
        else:
            axes.errorbar(x, [points[0]["latency_ns"]["median"]],
                          yerr=[[points[0]["latency_ns"]["median"] - low[0]],
                                [high[0] - points[0]["latency_ns"]["median"]]],
                          color=style[name]["color"], capsize=3, lw=1, zorder=2)
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(format_ns))
    axes.grid(True, which="major", color="#e3e3e3", lw=0.8)
    axes.grid(True, which="minor", axis="y", color="#f1f1f1", lw=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel("participants")


def legend_entries(rows, style):
    """Ours, then the peers, each the fastest first where most participants are."""
    best = {}
    for row in rows:
        if row["status"] == "ok":
            best[name_of(row)] = (-row["participants"], row["latency_ns"]["median"])
    missing = sorted({name_of(row) for row in rows if row["status"] != "ok"} - set(best))
    for group, title in ((True, "Muster"), (False, "peers")):
        names = [name for name in style if name in best and
                 any((row["implementation"] == "muster") == group for row in rows
                     if name_of(row) == name)]
        if not names:
            continue
        yield Line2D([], [], ls="none"), title
        for name in sorted(names, key=lambda name: best[name]):
            yield Line2D([], [], **style[name]), name
    if missing:
        yield Line2D([], [], ls="none"), "nowhere finished or served:"
        for name in missing:
            yield Line2D([], [], ls="none"), "   " + name


def draw(data):
    rows = data["results"]
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    machine = data["machine"]
    style = styles(rows)
    plt.rcParams.update({"font.size": 10, "svg.fonttype": "none", "svg.hashsalt": "muster"})
    figure, panels = plt.subplots(1, len(modes), sharey=True, squeeze=False,
                                  figsize=(4.2 + 4.6 * len(modes), 6.4))
    for axes, mode in zip(panels[0], modes):
        draw_panel(axes, [row for row in rows if row["mode"] == mode], style, machine["cpus"])
        axes.set_title(mode, fontsize=11, loc="left", color="#333333")
    panels[0][0].set_ylabel("latency of an episode (median)")

    entries = list(legend_entries(rows, style))
    legend = figure.legend([handle for handle, _ in entries], [label for _, label in entries],
                           loc="upper left", bbox_to_anchor=(0, 1), frameon=False, fontsize=9,
                           handlelength=2.6, labelspacing=0.45)
    for text in legend.get_texts():
        if text.get_text() in ("Muster", "peers") or text.get_text().startswith("nowhere"):
            text.set_fontweight("bold")
            text.set_position((-34, 0))
    width, height = figure.get_size_inches()
    left, right, top, bottom = 0.85 / width, 1 - 2.6 / width, 1 - 0.95 / height, 0.85 / height
    figure.subplots_adjust(left=left, right=right, top=top, bottom=bottom, wspace=0.06)
    legend.set_bbox_to_anchor((right + 0.12 / width, top + 0.1 / height))

    figure.text(left, 1 - 0.36 / height, "Barrier latency, back to back", fontsize=14,
                fontweight="bold", va="center")
    mapping = rows[0]["map_by"] if rows else "core"
    parts = [machine["model"], f"{machine['cpus']} usable CPUs",
             "unbound" if mapping == "none" else f"mapped by {mapping}"]
    figure.text(left, 1 - 0.62 / height, ", ".join(parts), fontsize=9, color="#555555",
                va="center")
    foot = ["lower is better; bands: 95 % interval of the median", f"verdict: {data['verdict']}"]
    if machine["ping_pong_ns"]:
        foot.append(f"ping-pong {format_ns(machine['ping_pong_ns'])}")
    if data["build"]["commit"]:
        foot.append("commit " + data["build"]["commit"])
    figure.text(left, 0.2 / height, "   |   ".join(foot), fontsize=8, color="#777777")
    return figure


def save(figure, path, **keywords):
    """Never half a picture under its name."""
    unfinished = f"{path}.{os.getpid()}"
    try:
        figure.savefig(unfinished, **keywords)
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)


def main(arguments):
    if len(arguments) != 3:
        sys.exit(f"usage: {arguments[0]} barrier.json DIRECTORY")
    with open(arguments[1], encoding="utf-8") as file:
        data = json.load(file)
    if not any(row["status"] == "ok" for row in data["results"]):
        sys.exit("plot_barrier.py: nothing finished, so there is nothing to draw")
    figure = draw(data)
    base = os.path.join(arguments[2], "barrier")
    save(figure, base + ".png", format="png", dpi=150)
    save(figure, base + ".svg", format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv)
