"""Brute force for top-k dominating points: every score anew at every window, in plain Python."""

import math

from tests.support import oracle


def dominates(a, b):
    """Points are turned so that smaller is better."""
    return all(x <= y for x, y in zip(a, b)) and a != b


class TopKDominating(oracle.TopK):
    """``dimensions`` are pairs: a function of a row (a dict), and "min" or "max"."""

    def __init__(self, k, dimensions, extent, **rest):
        super().__init__(k, self.validity, extent, **rest)
        self.dimensions = dimensions

    def validity(self, row):
        return None if any(oracle.bad(value(row)) for value, _ in self.dimensions) else 0.0

    def point(self, obj):
        return tuple(float(value(obj["row"])) * (1 if sense == "min" else -1) for value, sense in self.dimensions)

    def best(self, key, low, high, k=None):
        inside = [o for o in self.objects[key] if low <= o["position"] < high]
        points = [self.point(o) for o in inside]
        for o, p in zip(inside, points):
            o["score"] = o["goodness"] = float(sum(dominates(p, q) for q in points))
        k = k or self.k
        ranked = sorted(inside, key=oracle.order)
        if self.ties == "all" and len(ranked) > k:
            return [dict(o) for o in ranked if o["score"] >= ranked[k - 1]["score"]]
        return [dict(o) for o in ranked[:k]]

    def changes(self, obj):
        """Who entered, with the score of that moment, and who left, as it entered; leaves by what was shown of them."""
        key, now = obj["key"], self.now[obj["key"]]
        before = {o["number"]: o for o in self.current[key]}
        after = self.best(key, now - self.extent + 1, math.inf)
        staying = {o["number"] for o in after} & before.keys()
        left = sorted((o for number, o in before.items() if number not in staying), key=oracle.order)
        entered = [o for o in after if o["number"] not in staying]
        self.current[key] = [before[number] for number in staying] + entered
        return [(obj["position"], op, *key, o["score"], *self.values(o))
                for op, side in (("-", left), ("+", entered)) for o in side]  # fmt: skip
