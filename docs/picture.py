"""Draws window.svg, the picture of what skyband keeps: ``python docs/picture.py`` (or ``make pictures``).

The background is clear and the colours are of middle lightness, so that it can be read on white and on black.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "skyband"  # the same identifiers, hence the same bytes, in every run
mpl.rcParams["font.size"] = 11

import matplotlib.pyplot as plt  # noqa: E402  (once the backend is chosen)
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

K, EXTENT, SLIDE, OBJECTS = 3, 40, 10, 62
SEED = 14621  # its slide shows all there is to see: two of the top leave, one that was kept and one that is new enter
CEILING, WORDS = 1.16, 1.08  # of the window, and where notes stand: scores are below 1
INK, BLUE, ORANGE = "#7a8491", "#3b82d6", "#e07b39"


def stream():
    """Times, about one a tick, and scores."""
    rng = np.random.default_rng(SEED)
    return np.arange(OBJECTS) + 0.5 + rng.uniform(-0.3, 0.3, OBJECTS), 0.06 + 0.9 * rng.random(OBJECTS)


def kept(time, score):
    """Which objects are beaten by fewer than K newer ones: the K-skyband, by its definition."""
    newer_and_better = (time[None, :] > time[:, None]) & (score[None, :] > score[:, None])
    return newer_and_better.sum(axis=1) < K


def staircase(time, score, start, end):
    """The K-th best score among the objects newer than t, for t over the window, as the corners of a step line."""
    newer = [score[time > t] for t in (start, *time)]
    heights = [np.sort(scores)[-K] if scores.size >= K else 0.0 for scores in newer]
    return [start, *time, end], [*heights, heights[-1]]


def draw(axes, time, score, end, before=()):
    """The window that ends at ``end``; returns which objects are in it, kept, and among the top K.

    Objects that have left it are faint, those among the top K ``before`` in the colour they had.
    """
    start = end - EXTENT
    inside = (time >= start) & (time < end)
    rows = np.flatnonzero(inside)
    rings = rows[kept(time[inside], score[inside])]
    top = rows[np.argsort(-score[inside])[:K]]
    rest = np.setdiff1d(rows, rings)
    former = np.setdiff1d(before, rows).astype(int)
    gone = np.setdiff1d(np.flatnonzero(time < start), former)

    axes.add_patch(Rectangle((start, 0), EXTENT, CEILING, color=BLUE, alpha=0.09, lw=0))
    axes.vlines([start, end], 0, CEILING, color=BLUE, lw=1.2, alpha=0.8)
    edges, heights = staircase(time[inside], score[inside], start, end)
    axes.fill_between(edges, heights, step="post", color=INK, alpha=0.17, lw=0)
    axes.step(edges, heights, where="post", color=INK, lw=1.1, solid_joinstyle="miter")

    axes.plot(time[gone], score[gone], "o", ms=3.6, color=INK, alpha=0.4, mew=0)
    axes.plot(time[former], score[former], "o", ms=8, color=ORANGE, alpha=0.4, mew=0)
    axes.plot(time[rest], score[rest], "o", ms=4, color=INK, alpha=0.9, mew=0)
    axes.plot(time[rings], score[rings], "o", ms=8, mfc="none", mec=ORANGE, mew=1.6)
    axes.plot(time[top], score[top], "o", ms=8, color=ORANGE, mec=ORANGE, mew=1.6)

    axes.set(xlim=(-0.5, OBJECTS + 0.5), ylim=(0, CEILING), xticks=[], yticks=[])
    axes.set_ylabel("score", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    return rows, rings, top


def note(axes, words, place, at=()):
    """Words at the ceiling, and a thin line to each of the objects ``at``."""
    axes.text(place, WORDS, words, color=INK, ha="center", va="center")
    line = {"arrowstyle": "-", "color": INK, "lw": 0.8, "shrinkA": 10, "shrinkB": 7}
    for point in at:
        axes.annotate("", point, (place, WORDS), arrowprops=line)


def explain(axes):
    """What the marks mean, in the empty space after the window."""
    dot = {"ls": "none", "marker": "o"}
    marks = [
        Line2D([], [], ms=8, color=ORANGE, mew=1.6, **dot),
        Line2D([], [], ms=8, mfc="none", mec=ORANGE, mew=1.6, **dot),
        Line2D([], [], ms=4, color=INK, mew=0, **dot),
    ]
    words = [f"the top {K}", "kept: may\nyet get there", f"forgotten:\n{K} newer ones\nare better"]
    axes.legend(marks, words, loc="center right", bbox_to_anchor=(1.0, 0.5), frameon=False, labelcolor=INK,
                labelspacing=1.1, handletextpad=0.5, borderpad=0, borderaxespad=0)  # fmt: skip


def picture():
    time, score = stream()
    figure, (now, later) = plt.subplots(2, 1, figsize=(9.4, 6.6), height_ratios=[3, 2.4], sharex=True)
    figure.subplots_adjust(left=0.03, right=0.995, top=0.96, bottom=0.045, hspace=0.17)
    title = {"loc": "left", "color": INK, "fontsize": 11.5, "fontweight": "bold"}

    rows, held, top = draw(now, time, score, OBJECTS - SLIDE)
    now.set_title(f"Now: {rows.size} objects in the window, {held.size} kept", **title)
    note(now, f"the last {EXTENT} objects", OBJECTS - SLIDE - EXTENT / 2)
    explain(now)

    rows, held_later, top_later = draw(later, time, score, OBJECTS, before=top)
    later.set_title(f"One slide later: {rows.size} objects in the window, {held_later.size} kept", **title)
    later.set_xlabel("time", color=INK, loc="right")
    risen = np.setdiff1d(np.intersect1d(top_later, held), top)
    new = np.setdiff1d(top_later, held)
    note(later, "left the window", time[np.setdiff1d(top, rows)].mean() - 1.7)
    note(later, f"was kept, is now in the top {K}", time[risen].mean() - 3, zip(time[risen], score[risen], strict=True))
    note(later, "new", time[new].mean() - 2, zip(time[new], score[new], strict=True))
    return figure


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("window.svg")
    picture().savefig(target, transparent=True, metadata={"Date": None, "Creator": None})
