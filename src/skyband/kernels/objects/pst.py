"""A priority search tree: heap by position, search tree by rank (pairs, Algorithms 1 and 2).

The tree needs no pointers. Its nodes lie in preorder: the subtree over ``[low, high)`` has its root, the newest
object, at ``low``, the better half of the others in ``[low + 1, middle)`` and the worse half in ``[middle, high)``.
"""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import outer
from skyband.kernels.common.rows import Objects
from skyband.kernels.common.staircase import EARLIEST, sift
from skyband.storage.blocks import ARRIVAL, Floats, Ints, Record, block, column, scalars

HEIGHT = 64  # of the highest tree that an array can hold


class TreeMeta(NamedTuple):
    """How much of a tree is in use."""

    nodes: int = 0  # 0: there is no tree
    held: int = 0  # the nodes, and behind them the objects that came after the tree was built


@block(version=1)
class Tree(NamedTuple):
    """The nodes; what lies behind them is no part of the tree."""

    score: Annotated[Floats, column("objects", used="held")]
    position: Annotated[Ints, column("objects", used="held")]
    arrival: Annotated[Ints, column("objects", used="held", holds=ARRIVAL)]
    split: Annotated[Floats, column("objects", used="held")]  # the best score in the right subtree, if there is one
    meta: Annotated[Record, scalars(TreeMeta)]


@outer
def middle(low: int, high: int) -> int:
    """Where the right subtree of the subtree over ``[low, high)`` begins."""
    return low + 1 + (high - low) // 2


@outer
def build(tree: Tree, objects: Objects, size: int) -> None:
    """PrioritySearchTree (Algorithm 1) over the first ``size`` objects, which are in rank order.

    Deviation: the median is that of the objects without the root, so that the shape depends on the size only.
    """
    score, position, arrival, split, meta = tree
    meta[0].nodes = meta[0].held = size
    sift(objects, size, EARLIEST, Objects(score, position, arrival))
    end = np.full(size, size)  # where the subtree rooted at each position ends
    for low in range(size):
        high, root = end[low], low
        for i in range(low + 1, high):
            if position[i] > position[root]:
                root = i
        top = score[root], position[root], arrival[root]
        for i in range(root, low, -1):
            score[i], position[i], arrival[i] = score[i - 1], position[i - 1], arrival[i - 1]
        score[low], position[low], arrival[low] = top
        right = middle(low, high)
        if low + 1 < right:
            end[low + 1] = right
        if right < high:
            end[right] = high
            split[low] = score[right]


@outer
def candidates(tree: Tree, k: int, start: int) -> Ints:
    """Algorithm 2, lines 1–11: positions of nodes among which are the k best with ``position >= start``.

    At most k + log(nodes) of them, nearly in rank order: a node comes after its subtrees.
    """
    nodes = tree.meta[0].nodes
    found = np.empty(min(k, nodes) + HEIGHT, np.int64)
    low, high = np.empty(2 * HEIGHT, np.int64), np.empty(2 * HEIGHT, np.int64)
    marked = np.zeros(2 * HEIGHT, np.bool_)
    count = depth = 0
    if nodes > 0 and tree.position[0] >= start:
        low[0], high[0], depth = 0, nodes, 1
    while count < k and depth > 0:
        at, end = low[depth - 1], high[depth - 1]
        if marked[depth - 1] or end - at == 1:
            found[count] = at
            count += 1
            depth -= 1
            continue
        marked[depth - 1] = True
        right = middle(at, end)
        if right < end and tree.position[right] >= start:
            low[depth], high[depth], marked[depth] = right, end, False
            depth += 1
        if tree.position[at + 1] >= start:
            low[depth], high[depth], marked[depth] = at + 1, right, False
            depth += 1
    for i in range(depth - 1, -1, -1):
        if marked[i]:
            found[count] = low[i]
            count += 1
    return found[:count]


@outer
def reaching(tree: Tree, least: float, start: int) -> Ints:
    """Positions of all nodes with ``score >= least`` and ``position >= start``: those that tie with a k-th included."""
    nodes = tree.meta[0].nodes
    found = np.empty(nodes, np.int64)
    low, high = np.empty(2 * HEIGHT, np.int64), np.empty(2 * HEIGHT, np.int64)
    count = depth = 0
    if nodes > 0:
        low[0], high[0], depth = 0, nodes, 1
    while depth > 0:
        depth -= 1
        at, end = low[depth], high[depth]
        if tree.position[at] < start:
            continue
        if tree.score[at] >= least:
            found[count] = at
            count += 1
        right = middle(at, end)
        if right < end and tree.split[at] >= least:
            low[depth], high[depth] = right, end
            depth += 1
        if at + 1 < right:
            low[depth], high[depth] = at + 1, right
            depth += 1
    return found[:count]
