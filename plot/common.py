# SPDX-License-Identifier: BSD-3-Clause
"""What all plots share. Exit codes: 1, it failed; 3, no matplotlib works; 4, nothing to draw."""
import logging
import math
import os
import sys
import textwrap
import warnings

# Of a font or a cache that it does without, it says a line for each text.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
warnings.simplefilter("ignore")
try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
except Exception as error:  # of an installation that is broken: any
    missing = isinstance(error, ModuleNotFoundError) and error.name == "matplotlib"
    why = f"matplotlib is broken: {type(error).__name__}: {' '.join(str(error).split())}"
    print(f"{os.path.basename(sys.argv[0])}: no plot:",
          "install python3-matplotlib" if missing else why, file=sys.stderr)
    sys.exit(3)

# Distinguishable with colour-blind eyes (Okabe and Ito first).
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a700", "#7f5fc7",
           "#3c8d8d", "#a0522d", "#4c9f38", "#c2185b", "#555555", "#8a8a8a", "#1a1a1a"]


def in_order(rows, key):
    """Each value of the column once, as they come."""
    return list(dict.fromkeys(row[key] for row in rows))


def format_ns(value, _=None):
    """For a ticker, too."""
    for unit in ("ns", "us", "ms", "s"):
        if value < 1000 or unit == "s":
            return f"{value:.3g} {unit}".replace("us", "\u00b5s")
        value /= 1000


def times(ratio):
    """Two digits, never as 1.2e+02."""
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:.0f}"


def interval(figure):
    """Of the mean. A bound is null where a turn had no episode: then it is out of the picture."""
    low, high = figure["mean_ci95"]
    return low or 0, 100 * figure["mean"] if high is None else high


def format_us(value):
    return format_ns(1000 * value)


def time_axis(axis, subs=(1, 2, 3, 5), **keywords):
    """Logarithmic, over nanoseconds."""
    axis.set_major_locator(LogLocator(subs=subs, **keywords))
    axis.set_major_formatter(FuncFormatter(format_ns))
    axis.set_minor_formatter(NullFormatter())


def number_axis(axis):
    """Logarithmic."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def spread_out(heights, least):
    """Heights of labels, no nearer than that, each as near to its own as that allows."""
    groups = []  # [sum of heights less their places in it, how many]
    for height in heights:
        groups.append([height, 1])
        while len(groups) > 1:
            (low, few), (high, many) = groups[-2:]
            if high / many - low / few >= least * few:
                break
            groups[-2:] = [[low + high - many * few * least, few + many]]
    return [total / count + n * least for total, count in groups for n in range(count)]


def name_ends(axes, ends, size=8):
    """(text, x, y, bold) of curves, over a logarithmic axis, right of it, without overlaps."""
    ends = sorted(ends, key=lambda end: end[2])
    low, high = (math.log(each) for each in axes.get_ylim())
    inches = axes.get_position().height * axes.figure.get_size_inches()[1]
    heights = spread_out([math.log(y) for _, _, y, _ in ends],
                         (high - low) * 1.2 * size / 72 / inches)
    for (text, x, y, bold), height in zip(ends, heights):
        axes.annotate(text, (x, y), xytext=(1.06, (height - low) / (high - low)),
                      textcoords="axes fraction", fontsize=size, va="center",
                      fontweight="bold" if bold else None,
                      arrowprops={"arrowstyle": "-", "color": "#bbbbbb", "lw": 0.5,
                                  "relpos": (0, 0.5), "shrinkA": 0, "shrinkB": 3})


def open_frame(axes):
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def title(figure, text, about=""):
    """What was found, in lines that fit the width, above all else; below it, smaller, of what.
    For figures with a constrained layout."""
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(text, int(10.5 * width), break_on_hyphens=False)
    smaller = textwrap.wrap(about, int(14.5 * width), break_on_hyphens=False)
    depth = 0.12 + 0.21 * len(lines) + 0.16 * len(smaller) + 0.04 * bool(smaller) + 0.06
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - depth / height))
    left = 0.1 / width
    figure.text(left, 1 - 0.1 / height, "\n".join(lines), fontsize=11.5, fontweight="bold",
                va="top")
    if smaller:
        figure.text(left, 1 - (depth - 0.06) / height, "\n".join(smaller), fontsize=8.5,
                    color="#555555", va="bottom")


def save(figure, directory, name, **keywords):
    """As PNG and SVG; never half a picture under its name. SVGs carry no date."""
    for suffix, metadata in (("png", {}), ("svg", {"Date": None})):
        path = os.path.join(directory, f"{name}.{suffix}")
        unfinished = f"{path}.{os.getpid()}"
        try:
            figure.savefig(unfinished, format=suffix, metadata=metadata, **keywords)
            os.replace(unfinished, path)
        finally:
            if os.path.exists(unfinished):
                os.unlink(unfinished)
    plt.close(figure)


def nothing_to_draw(why):
    print(f"{os.path.basename(sys.argv[0])}: {why}, so there is nothing to draw", file=sys.stderr)
    sys.exit(4)


def run(main):
    """What fails is told in a line."""
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        why = f"{error.filename or sys.argv[2]}: {error.strerror or error}"
    except KeyError as error:
        why = f"{sys.argv[1]} lacks {error}"
    except Exception as error:
        why = f"{sys.argv[1]} cannot be drawn: {type(error).__name__}: {error}"
    else:
        return
    sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(why.split())}")
