#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Latency against participants, from what `muster bench barrier --json` wrote.

    plot_barrier.py barrier.json DIRECTORY      writes DIRECTORY/barrier.png and barrier.svg

Bands are the 95 % intervals of the means, of auto and the fastest other. Exit codes: see common.py.
"""
import json
import math
import sys

sys.dont_write_bytecode = True  # this may be the source tree, or an installed one
from common import (COLOURS, format_ns, in_order, interval, nothing_to_draw, open_frame, plt, run,
                    save, times)
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

# Ours are strong, peers are muted; auto stands out in grey, too.
AUTO = "#000000"
OURS = COLOURS[:13]
OUR_MARKERS = "osD^vP<>ph"
# Peers are grey or brown and dashed; a family has one colour and a marker each.
PEERS = {"std::barrier": ("#333333", "X"), "pthread_barrier": ("#7a4a12", "s"),
         "libgomp": ("#5a5a5a", "^"), "libomp": ("#9b6f9b", "v")}
FAMILY, FAMILY_MARKERS = "#94a3b3", "oD<>P*"
REFERENCES = ("limit", "ping-pong")
TITLES = ("Muster", "what people use", "did not finish, or declined")


def name_of(row):
    if row["implementation"] != "muster":
        return row["implementation"]
    name = row["algorithm"]
    return name + " (template)" if row["via"] == "template" else name


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
    ours, family, result = 0, 0, {}
    for row in rows:
        name = name_of(row)
        if name in result or row["implementation"] in REFERENCES:
            continue
        if row["implementation"] == "muster" and row["algorithm"] == "auto":
            result[name] = dict(color=AUTO, marker="o", lw=2.8, ms=8, zorder=5)
        elif row["implementation"] == "muster":
            result[name] = dict(color=OURS[ours % len(OURS)], lw=1.5, ms=6, zorder=4,
                                marker=OUR_MARKERS[ours % len(OUR_MARKERS)])
            ours += 1
        elif name in PEERS:
            colour, marker = PEERS[name]
            result[name] = dict(color=colour, marker=marker, lw=1.3, ms=6, ls="--", zorder=3)
        else:
            result[name] = dict(color=FAMILY, lw=1.1, ms=5, ls="--", zorder=3,
                                marker=FAMILY_MARKERS[family % len(FAMILY_MARKERS)])
            family += 1
        result[name].update(mec="white", mew=0.7)
    return result


def scale(rows):
    """Limits of the latency axis. What is over 50 times slower than the fastest of its group would
    press everything else together: it leaves through the top, and is named there."""
    fastest = {}
    for row in rows:
        group = (row["mode"], row["participants"])
        mean = row["latency_ns"]["mean"]
        fastest[group] = min(mean, fastest.get(group, mean))
    kept = [row for row in rows
            if row["latency_ns"]["mean"] <= 50 * fastest[row["mode"], row["participants"]]
            or row["implementation"] == "muster"]
    low = min(interval(row["latency_ns"])[0] for row in kept)
    high = max(min(interval(row["latency_ns"])[1], 2 * row["latency_ns"]["mean"])
               for row in kept)  # a wide band says that nothing is known, not how slow it is
    return low / 2.2, high * (3 if len(kept) == len(rows) else 10)  # room for their names


def draw_panel(axes, rows, style, cpus):
    counts = sorted({row["participants"] for row in rows
                     if row["implementation"] not in REFERENCES}) or [2]
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    high = counts[-1] * 1.25
    # The references are named left of all curves, on a quarter of the width.
    low = counts[0] / max(1.25, (high / counts[0]) ** 0.4)
    top = axes.get_ylim()[1]
    axes.set_xlim(low, high)
    above = [count for count in counts if count > cpus]
    if above:
        edge = math.sqrt(cpus * above[0]) if counts[0] <= cpus else low
        axes.axvspan(edge, high, color="#f5f1e8", zorder=0, lw=0)
        axes.text(high, 1.012, "more participants than CPUs", fontsize=8.5, color="#8a7a55",
                  ha="right", va="bottom", transform=axes.get_xaxis_transform())
    off_scale = []
    others = [row for row in rows if row["status"] == "ok" and row["participants"] == counts[-1]
              and row["implementation"] not in REFERENCES and row["algorithm"] != "auto"]
    best = name_of(min(others, key=lambda row: row["latency_ns"]["mean"])) if others else None
    lowest = min((row["latency_ns"]["mean"] for row in rows if row["status"] == "ok"
                  and row["implementation"] in REFERENCES), default=0)
    for name, points in curves(rows).items():
        if points[0]["implementation"] in REFERENCES:
            mean = points[0]["latency_ns"]["mean"]
            below = mean == lowest
            axes.axhline(mean, color="#8c8c8c", lw=0.9, ls=":", zorder=1)
            axes.annotate(f"{name}\nof two: {format_ns(mean)}", xy=(low, mean),
                          xytext=(4, -3 if below else 2), textcoords="offset points",
                          va="top" if below else "bottom", fontsize=8, color="#666666")
            continue
        count = [row["participants"] for row in points]
        mean = [row["latency_ns"]["mean"] for row in points]
        lo = [interval(row["latency_ns"])[0] for row in points]
        hi = [interval(row["latency_ns"])[1] for row in points]
        if max(mean) > top:
            off_scale.append(f"{name} {format_ns(max(mean))}")
        axes.plot(count, mean, **style[name])
        if len(count) > 1 and name not in ("auto", best):
            continue
        if len(count) > 1:
            axes.fill_between(count, lo, hi, color=style[name]["color"], alpha=0.15, lw=0,
                              zorder=2)
        else:
            axes.errorbar(count, mean, yerr=[[mean[0] - lo[0]], [hi[0] - mean[0]]],
                          color=style[name]["color"], capsize=3, lw=1, zorder=2)
    if off_scale:
        axes.text(0.985, 0.98, "above: " + ",\n".join(sorted(off_scale)), fontsize=8.5, va="top",
                  ha="right", color="#5b6875", transform=axes.transAxes, linespacing=1.35,
                  bbox=dict(facecolor="white", edgecolor="none", alpha=0.75, pad=2.5), zorder=6)
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(format_ns))
    axes.grid(True, which="major", color="#e0e0e0", lw=0.8)
    axes.grid(True, which="minor", axis="y", color="#efefef", lw=0.5)
    axes.set_axisbelow(True)
    open_frame(axes)
    axes.set_xlabel("participants")


def draw_dots(axes, rows, style):
    """One number of participants: a line a name, the fastest on top."""
    rows = sorted((row for row in rows if row["status"] == "ok"),
                  key=lambda row: row["latency_ns"]["mean"], reverse=True)
    axes.set_xscale("log")
    for y, row in enumerate(rows):
        mean, (lo, hi) = row["latency_ns"]["mean"], interval(row["latency_ns"])
        look = style.get(name_of(row), dict(color="#8c8c8c", marker="|", ms=9))
        axes.plot([lo, hi], [y, y], color=look["color"], lw=5, alpha=0.3, solid_capstyle="round",
                  zorder=2)
        axes.plot([mean], [y], **{**look, "ls": "none"})
        axes.annotate(format_ns(mean), xy=(max(hi, mean), y), xytext=(8, 0),
                      textcoords="offset points", va="center", fontsize=8.5, color="#555555")
    axes.set_yticks(range(len(rows)), [name_of(row) for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows):
        label.set_color("#111111" if row["implementation"] == "muster" else "#6b6b6b")
        if row["implementation"] == "muster" and row["algorithm"] == "auto":
            label.set_fontweight("bold")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.12)
    axes.xaxis.set_major_formatter(FuncFormatter(format_ns))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color="#e0e0e0", lw=0.8)
    axes.set_axisbelow(True)
    open_frame(axes)
    axes.set_xlabel("latency of an episode (mean)")


def legend_entries(rows, style):
    """Ours, then the peers, each the fastest first where most participants are."""
    best = {}
    for row in rows:
        if row["status"] == "ok":
            best[name_of(row)] = (-row["participants"], row["latency_ns"]["mean"])
    missing = sorted({name_of(row) for row in rows if row["status"] != "ok"} - set(best))
    for group, title in ((True, TITLES[0]), (False, TITLES[1])):
        names = [name for name in style if name in best and
                 any((row["implementation"] == "muster") == group for row in rows
                     if name_of(row) == name)]
        if not names:
            continue
        yield Line2D([], [], ls="none"), title
        for name in sorted(names, key=lambda name: best[name]):
            yield Line2D([], [], **style[name]), name
    if missing:
        yield Line2D([], [], ls="none"), TITLES[2]
        for name in missing:
            yield Line2D([], [], ls="none"), name


def draw_curves(rows, modes, style, cpus):
    figure, panels = plt.subplots(1, len(modes), sharey=True, squeeze=False,
                                  figsize=(4.2 + 3.9 * len(modes), 6.4))
    panels[0][0].set_yscale("log")
    panels[0][0].set_ylim(scale([row for row in rows if row["status"] == "ok"]))
    for axes, mode in zip(panels[0], modes):
        draw_panel(axes, [row for row in rows if row["mode"] == mode], style, cpus)
        axes.set_title(mode, fontsize=11.5, loc="left", fontweight="bold", color="#333333")
    panels[0][0].set_ylabel("latency of an episode (mean)")

    width, height = figure.get_size_inches()
    left, right, top, bottom = 0.85 / width, 1 - 2.5 / width, 1 - 1.1 / height, 0.85 / height
    figure.subplots_adjust(left=left, right=right, top=top, bottom=bottom, wspace=0.05)
    entries = list(legend_entries(rows, style))
    legend = figure.legend([handle for handle, _ in entries], [label for _, label in entries],
                           loc="upper left",
                           bbox_to_anchor=(right + 0.1 / width, top + 0.1 / height),
                           frameon=False, fontsize=9.5, handlelength=2.8, labelspacing=0.45)
    for text in legend.get_texts():
        if text.get_text() in TITLES:
            text.set_fontweight("bold")
            text.set_position((-37, 0))
    return figure, left


def draw_lists(rows, modes, style):
    lines = max(sum(row["mode"] == mode and row["status"] == "ok" for row in rows)
                for mode in modes)
    figure, panels = plt.subplots(1, len(modes), squeeze=False,
                                  figsize=(1 + 6 * len(modes), 2.3 + 0.27 * lines))
    for axes, mode in zip(panels[0], modes):
        draw_dots(axes, [row for row in rows if row["mode"] == mode], style)
        count = rows[0]["participants"]
        axes.set_title(f"{count} {mode}", fontsize=11.5, loc="left", fontweight="bold",
                       color="#333333")
    width, height = figure.get_size_inches()
    left = 2.1 / width
    figure.subplots_adjust(left=left, right=1 - 0.3 / width, top=1 - 1.1 / height,
                           bottom=0.85 / height, wspace=2.1 / (width / len(modes) - 1.5))
    return figure, left


def found(rows, modes, letters):
    """In a line of so many letters: `auto`, or the best of ours, beside the best other of each
    group."""
    ratios = {}
    for mode in modes:
        for count in in_order([row for row in rows if row["implementation"] == "muster"],
                              "participants"):
            best = {}
            for row in rows:
                if (row["status"] != "ok" or row["mode"] != mode or row["participants"] != count
                        or row["implementation"] in REFERENCES):
                    continue
                kind = row["algorithm"] == "auto" if row["implementation"] == "muster" else "peer"
                best[kind] = min(best.get(kind, math.inf), row["latency_ns"]["mean"])
            ours = best.get(True, best.get(False))
            if ours and "peer" in best:
                ratios.setdefault(mode, []).append((count, ours / best["peer"]))
    if not ratios:
        return "Barrier latency: nobody to compare with"
    name = "Muster's auto" if any(row["algorithm"] == "auto" for row in rows) else "Muster's best"
    parts = [f"{', '.join(times(ratio) for _, ratio in pairs)} "
             f"({', '.join(str(count) for count, _ in pairs)} {mode})"
             for mode, pairs in ratios.items()]
    text = f"{name} takes {'; '.join(parts)} times the best other's time"
    if len(text) <= letters:
        return text
    each = [ratio for pairs in ratios.values() for _, ratio in pairs]
    least, most = times(min(each)), times(max(each))
    span = least if least == most else f"{least} to {most}"
    return f"{name} takes {span} times the best other's time"


def draw(data):
    rows = data["results"]
    modes = in_order([row for row in rows if row["status"] == "ok"
                      and row["implementation"] not in REFERENCES], "mode")
    modes = modes or [next(row["mode"] for row in rows if row["status"] == "ok")]
    machine = data["machine"]
    style = styles(rows)
    plt.rcParams.update({"font.size": 10, "svg.fonttype": "none", "svg.hashsalt": "muster"})
    counts = {row["participants"] for row in rows if row["implementation"] not in REFERENCES}
    if len(counts) <= 1:
        rows = [row for row in rows if not counts or row["participants"] in counts]
        figure, left = draw_lists(rows, modes, style)
    else:
        figure, left = draw_curves(rows, modes, style, machine["cpus"])

    width, height = figure.get_size_inches()
    narrow = width < 8
    left = 0.2 / width if narrow else left
    letters = int(9.8 * width * (1 - left))
    figure.text(left, 1 - 0.36 / height, found(rows, modes, letters), fontsize=12.5,
                fontweight="bold", va="center")
    mapping = rows[0]["map_by"]
    parts = ["Barriers back to back", machine["model"], f"{machine['cpus']} usable CPUs",
             "unbound" if mapping == "none" else f"mapped by {mapping}"]
    figure.text(left, 1 - 0.62 / height, ", ".join(parts), fontsize=9, color="#555555",
                va="center")
    of = ", of auto and the fastest other" if len(counts) > 1 else ""
    foot = [f"lower is better; bands: 95 % interval of the mean{of}", f"verdict: {data['verdict']}"]
    if machine["ping_pong_ns"]:
        foot.append(f"ping-pong {format_ns(machine['ping_pong_ns'])}")
    if data["build"]["commit"]:
        foot.append("commit " + data["build"]["commit"])
    figure.text(left, 0.2 / height, ("  |  " if narrow else "   |   ").join(foot),
                fontsize=7.5 if narrow else 8, color="#777777")
    return figure


def in_panels(rows):
    """A panel for each regime and mode; ours that wait as one policy does go by its name."""
    for row in rows:
        if row["regime"] is None:
            continue
        row["mode"] = f"{row['mode']}, {row['regime']}"
        if row["wait_asked"] not in (None, "auto"):
            row["algorithm"] = row["wait_asked"] if row["algorithm"] == "auto" else \
                f"{row['algorithm']}, {row['wait_asked']}"


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} barrier.json DIRECTORY")
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    if not any(row["status"] == "ok" for row in data["results"]):
        nothing_to_draw("nothing finished")
    in_panels(data["results"])
    figure = draw(data)
    save(figure, sys.argv[2], "barrier", dpi=150)


if __name__ == "__main__":
    run(main)
