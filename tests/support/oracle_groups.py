"""Brute force for groups and for objects assembled from streams: every score anew from all the rows of the window."""

import math
from fractions import Fraction

from tests.support import oracle


def combine(how, values, width, low):
    """The score: ``values`` are the exact values of the streams that say something, by stream (lists of amounts)."""
    if how in ("sum", "count"):
        return math.fsum(amount for amounts in values.values() for amount in amounts)
    if how == "mean":
        return math.fsum(amount for amounts in values.values() for amount in amounts) / width
    totals = [math.fsum(amounts) for amounts in values.values()]
    if how == "max":
        return max(totals)
    totals += [low] * max(0, width - len(totals))
    if how == "min":
        return min(totals)
    if how == "product":
        return math.prod(sorted(totals))
    return how(dict(zip(values, totals)), low)


class TopKGroups(oracle.TopK):
    """As :class:`oracle.TopK`; ``score`` is the amount of a row (None or "nan": invalid), its weight in it.

    ``how`` is the name of an aggregate, or a function of {stream: value} and the value of absent streams.
    """

    def __init__(self, k, id, stream, amount, how, many, width=1, low=0.0, select=None, **rest):
        self.ids = (id,) if isinstance(id, str) else tuple(id)
        super().__init__(k, amount, select=select or self.ids, **rest)
        self.stream, self.how, self.many, self.width, self.low = stream, how, many, width, low

    def best(self, key, low, high, k=None):
        k = k or self.k
        rows = [o for o in self.objects[key] if low <= o["position"] < high]
        rows.sort(key=lambda o: (o["position"], o["number"]))
        parts, newest = {}, {}
        for o in rows:
            name = tuple(o["row"][column] for column in self.ids)
            stream = o["row"][self.stream] if self.stream else None
            amounts = parts.setdefault(name, {}).setdefault(stream, [])
            if not self.many:
                amounts.clear()
            amounts.append(o["score"])
            newest[name] = o
        found = []
        for name, values in parts.items():
            score = combine(self.how, values, self.width, self.low)
            found.append({"id": name, "score": score, "goodness": score, "position": newest[name]["position"],
                          "number": newest[name]["number"], "row": newest[name]["row"]})  # fmt: skip
        found.sort(key=oracle.order)
        if self.ties == "all" and len(found) > k:
            return [o for o in found if o["score"] >= found[k - 1]["score"]]
        return found[:k]

    def changes(self, obj):
        """Membership only: a ``+`` carries the score at entry, and a ``-`` repeats its ``+``."""
        key, now = obj["key"], self.now[obj["key"]]
        before, after = self.current[key], self.best(key, now - self.extent + 1, math.inf)
        entered = {o["id"]: o["entered"] for o in before}
        for o in after:
            o["entered"] = entered.get(o["id"], o["score"])
        self.current[key] = after
        stays = {o["id"] for o in before} & {o["id"] for o in after}
        return [(obj["position"], op, *key, o["entered"], *self.values(o))
                for op, side in (("-", before), ("+", after)) for o in side if o["id"] not in stays]  # fmt: skip


def nothing(value):
    """Whether an aggregate leaves a value out."""
    return oracle.bad(value) or (isinstance(value, float) and abs(value) > 1e300)


def aggregate(how, values):
    """SQL's aggregate of the values that there are; None where SQL has NULL."""
    values = [value for value in values if not nothing(value)]
    if how == "count":
        return len(values)
    if how == "count_distinct":
        return len(set(values))
    if not values:
        return None
    if how in ("sum", "mean"):
        total = math.fsum(values)
        return total if how == "sum" else total / len(values)
    if how in ("min", "max"):
        return float(min(values) if how == "min" else max(values))
    product = math.prod(map(Fraction, values))
    try:
        return float(product)  # correctly rounded
    except OverflowError:
        return math.inf if product > 0 else -math.inf


class Groups(oracle.TopK):
    """As :class:`oracle.TopK`, for groups ranked by an aggregate of all their rows.

    A call is a pair: the name of an aggregate, and a function of a row (``count(*)``: of anything but None). ``having``
    is a function of the score, the outputs by name, and the rows of a group; None stands for NULL.
    """

    def __init__(self, k, ids, ranked, outputs, valid, having=None, select=None, **rest):
        super().__init__(k, lambda row: 0.0 if valid(row) else None, select=select or ids, **rest)
        self.ids, self.ranked, self.outputs, self.having = ids, ranked, outputs, having

    def columns(self, names):
        return [*super().columns(names), *self.outputs]

    def best(self, key, low, high, k=None):
        k = k or self.k
        rows = [o for o in self.objects[key] if low <= o["position"] < high]
        rows.sort(key=lambda o: (o["position"], o["number"]))
        groups, found = {}, []
        for o in rows:
            groups.setdefault(tuple(o["row"][name] for name in self.ids), []).append(o)
        for ids, members in groups.items():
            plain = [o["row"] for o in members]
            score = aggregate(self.ranked[0], map(self.ranked[1], plain))
            shown = {name: aggregate(how, map(of, plain)) for name, (how, of) in self.outputs.items()}
            if score is None or (self.having and self.having(score, shown, plain) is not True):
                continue
            newest = members[-1]
            found.append({"id": ids, "score": float(score), "goodness": score if self.desc else -score,
                          "position": newest["position"], "number": newest["number"],
                          "shown": tuple(shown.values())})  # fmt: skip
        found.sort(key=oracle.order)
        if self.ties == "all" and len(found) > k:
            return [o for o in found if o["goodness"] >= found[k - 1]["goodness"]]
        return found[:k]

    def values(self, obj):
        return (*super().values({"row": dict(zip(self.ids, obj["id"]))}), *obj["shown"])

    def changes(self, obj):
        """Membership only: a ``+`` carries score and outputs at entry, and a ``-`` repeats its ``+``."""
        key, now = obj["key"], self.now[obj["key"]]
        before, after = self.current[key], self.best(key, now - self.extent + 1, math.inf)
        entered = {o["id"]: o for o in before}
        after = [dict(o, **{n: entered[o["id"]][n] for n in ("score", "shown")}) if o["id"] in entered else o
                 for o in after]  # fmt: skip
        self.current[key] = after
        stays = {o["id"] for o in before} & {o["id"] for o in after}
        return [(obj["position"], op, *key, o["score"], *self.values(o))
                for op, side in (("-", before), ("+", after)) for o in side if o["id"] not in stays]  # fmt: skip
