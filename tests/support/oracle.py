"""Brute force: what a query means, in plain Python. Slow, obviously right, and sharing no code with the package.

Positions are whole microseconds since the epoch (time windows) or object numbers (count windows). Every answer is a
list of tuples whose columns :meth:`TopK.header` and :meth:`TopK.top_header` name; :func:`rows` brings a table of the
package into the same shape.
"""

import math
from collections import defaultdict

import pyarrow as pa


def plain(column):
    """The values of a column with times as whole microseconds; NaN as text, so that it equals itself."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    return ["nan" if isinstance(value, float) and math.isnan(value) else value for value in column.to_pylist()]


def rows(table):
    """A table as a list of tuples of plain values."""
    return list(zip(*(plain(column) for column in table.columns), strict=True))


def bad(value):
    return value is None or value == "nan"


def order(obj):
    """Sort key that puts the better object first: higher goodness, then newer by position, then by arrival."""
    return (-obj["goodness"], -obj["position"], -obj["number"])


def ascending(key):
    """Sort key for partition values: ascending, NULL last."""
    return tuple((value is None, value) for value in key)


class TopK:
    """The k best objects of a sliding window, recomputed from all the rows ever pushed.

    ``score`` and ``where`` are functions of a row (a dict); ``select`` holds names of columns, and pairs of a name and
    a function of a row. ``hide_score`` says that ``order_by`` is the column ``score`` itself, which is then not
    repeated among the columns.
    """

    def __init__(self, k, score, extent, every=None, time=False, on=None, late=None, desc=True, partition=(),
                 where=None, select=None, ties="newest", hide_score=False):  # fmt: skip
        self.k, self.score, self.desc, self.ties = k, score, desc, ties
        self.time, self.extent, self.every, self.on, self.late_by = time, extent, every, on, late
        self.partition, self.where, self.select, self.hide_score = tuple(partition), where, select, hide_score
        self.objects = defaultdict(list)  # partition -> all that ever passed, in the order of processing
        self.seen = self.late = self.invalid = self.number = 0
        self.newest = None  # time windows: the newest event time of all
        self.now = {}  # partition -> newest position
        self.next = defaultdict(int)  # count windows: partition -> the number that comes next
        self.held = defaultdict(dict)  # sequence column: partition -> number -> object that waits (None: a hole)
        self.highest = {}  # sequence column: partition -> newest number
        self.current = defaultdict(list)  # every arrival: partition -> its top k
        self.closed = set()  # hopping time windows: (end, partition) already emitted

    # What comes out

    def columns(self, names):
        if self.select is not None:
            return [name for name, _ in self.items()]
        return [n for n in names if n not in self.partition and not (self.hide_score and n == "score")]

    def items(self):
        """What is selected, as pairs; columns of the partition are shown anyway."""
        both = [(item, lambda row, item=item: row[item]) if isinstance(item, str) else item for item in self.select]
        return [(name, value) for name, value in both if name not in self.partition]

    def header(self, names):
        bounds = ["at", "op"] if self.every is None else ["window_start", "window_end"]
        rank = [] if self.every is None else ["rank"]
        return [*bounds, *self.partition, *rank, "score", *self.columns(names)]

    def top_header(self, names):
        return [*self.partition, "rank", "score", *self.columns(names)]

    # What goes in

    def push(self, table):
        names = table.column_names
        behind = self.newest - self.late_by if self.time and self.newest is not None else None
        out = []
        if not self.time and self.late_by is not None:
            for key in list(self.highest):
                out += self.skip(key, self.highest[key] - self.late_by) + self.catch_up(key)
        for values in rows(table):
            out += self.row(dict(zip(names, values, strict=True)), behind)
        if self.time and self.every and self.newest is not None:
            out += self.close(self.newest - self.late_by)
        return out

    def flush(self):
        if self.time:
            return self.close(math.inf) if self.every else []
        return [row for key in list(self.highest) for row in self.skip(key, self.highest[key] + 1)]

    def row(self, row, behind):
        self.seen += 1
        key = tuple(row[name] for name in self.partition)
        passes = self.where is None or self.where(row) is True
        score = self.score(row) if passes else None
        position = row[self.on] if self.on else 0
        valid = passes and not bad(score) and not bad(position)
        self.invalid += passes and not valid
        obj = None
        if valid:
            obj = dict(key=key, position=position, row=row, score=float(score))
            obj["goodness"] = obj["score"] if self.desc else -obj["score"]
        if self.time:
            if obj is None:
                return []
            if behind is not None and position < behind:
                self.late += 1
                return []
            self.newest = position if self.newest is None else max(self.newest, position)
            return self.arrive(obj)
        if self.on is None:
            if obj is None:
                return []
            obj["position"] = self.next[key]
            self.next[key] += 1
            return self.arrive(obj)
        if bad(position):
            return []
        if position < self.next[key] or position in self.held[key]:
            self.late += valid
            return []
        self.held[key][position] = obj
        self.highest[key] = max(self.highest.get(key, position), position)
        return self.catch_up(key)

    def skip(self, key, floor):
        """Sequence column: process every number below ``floor``, come or not."""
        out = []
        while self.next[key] < floor:
            number = self.next[key]
            obj = self.held[key].pop(number, None)
            self.next[key] += 1
            if obj is not None:
                out += self.arrive(obj)
        return out

    def catch_up(self, key):
        """Sequence column: process what has come, up to the first number that has not."""
        out = []
        while self.next[key] in self.held[key]:
            out += self.skip(key, self.next[key] + 1)
        return out

    def arrive(self, obj):
        """One object takes its place: what this brings about at once."""
        key, position = obj["key"], obj["position"]
        obj["number"] = self.number
        self.number += 1
        self.objects[key].append(obj)
        before = self.now.get(key, -1) + 1
        self.now[key] = max(self.now.get(key, position), position)
        if self.every is None:
            return self.changes(obj)
        if self.time:
            return []
        ends = range((before // self.every + 1) * self.every, position + 2, self.every)
        return [row for end in ends for row in self.window(end, key)]

    # Rankings

    def best(self, key, low, high, k=None):
        """The top k among the objects of a partition with low <= position < high."""
        k = k or self.k
        inside = sorted((o for o in self.objects[key] if low <= o["position"] < high), key=order)
        if self.ties == "all" and len(inside) > k:
            return [o for o in inside if o["goodness"] >= inside[k - 1]["goodness"]]
        return inside[:k]

    def values(self, obj):
        row = obj["row"]
        if self.select is not None:
            return tuple(value(row) for _, value in self.items())
        return tuple(row[name] for name in self.columns(row))

    def window(self, end, key):
        start = end - self.extent if self.time else max(0, end - self.extent)
        return [(start, end, *key, rank, o["score"], *self.values(o))
                for rank, o in enumerate(self.best(key, start, end), 1)]  # fmt: skip

    def close(self, watermark):
        """Hopping time windows: each that holds an object and whose end is reached, once."""
        due = set()
        for key, objects in self.objects.items():
            for o in objects:
                end = (o["position"] // self.every + 1) * self.every
                while end - self.extent <= o["position"] and end <= watermark:
                    due.add((end, key))
                    end += self.every
        due -= self.closed
        self.closed |= due
        return [row for end, key in sorted(due, key=lambda d: (d[0], ascending(d[1]))) for row in self.window(end, key)]

    def changes(self, obj):
        """Every arrival: the difference between the top k before and after."""
        key, now = obj["key"], self.now[obj["key"]]
        before, after = self.current[key], self.best(key, now - self.extent + 1, math.inf)
        self.current[key] = after
        stays = {o["number"] for o in before} & {o["number"] for o in after}
        return [(obj["position"], op, *key, o["score"], *self.values(o))
                for op, side in (("-", before), ("+", after)) for o in side if o["number"] not in stays]  # fmt: skip

    def top(self, k=None, last=None):
        out = []
        for key in sorted(self.now, key=ascending):
            low, high = self.present(key, last or self.extent)
            out += [(*key, rank, o["score"], *self.values(o))
                    for rank, o in enumerate(self.best(key, low, high, k), 1)]  # fmt: skip
        return out

    def present(self, key, last):
        """The bounds of the window that is filling."""
        if self.every is None:
            return self.now[key] - last + 1, math.inf
        if self.time:
            end = (self.newest // self.every + 1) * self.every
        else:
            end = (self.now[key] // self.every + 1) * self.every
        return end - last, end

    # What an engine may at most need to hold

    def live(self):
        """Objects that an open window, or a later one, can still contain; and those that wait for their number."""
        waiting = sum(obj is not None for held in self.held.values() for obj in held.values())
        return waiting + sum(self.reach(o) for objects in self.objects.values() for o in objects)

    def reach(self, obj):
        if self.every is None:
            return obj["position"] > self.now[obj["key"]] - self.extent
        last_end = (obj["position"] + self.extent) // self.every * self.every
        return last_end > (self.newest - self.late_by if self.time else self.now[obj["key"]])
