"""Brute force for objects assembled from several streams: every score anew from all the rows of the window."""

import math

import oracle


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


class TopKIncomplete(oracle.TopK):
    """As :class:`oracle.TopK`; ``score`` is the amount of a row (None or "nan": invalid), its weight in it.

    ``how`` is the name of an aggregate, or a function of {stream: value} and the value of absent streams.
    """

    def __init__(self, k, id, stream, amount, how, many, width=1, low=0.0, **rest):
        super().__init__(k, amount, select=[id], **rest)
        self.id, self.stream, self.how, self.many, self.width, self.low = id, stream, how, many, width, low

    def best(self, key, low, high, k=None):
        k = k or self.k
        rows = [o for o in self.objects[key] if low <= o["position"] < high]
        rows.sort(key=lambda o: (o["position"], o["number"]))
        parts, newest = {}, {}
        for o in rows:
            name = o["row"][self.id]
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
        return [(obj["position"], op, *key, o["entered"], o["id"])
                for op, side in (("-", before), ("+", after)) for o in side if o["id"] not in stays]  # fmt: skip
