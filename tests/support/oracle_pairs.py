"""Brute force for top-k pairs: every pair of every window, in plain Python.

Windows, late and invalid rows are those of :mod:`oracle`; only what is ranked differs. ``score`` and ``where`` are
functions of two rows (dicts); a score of None or NaN means that there is no such pair. ``required`` are the columns
without which a row is invalid. ``select`` holds such as ``a.id``, and pairs of a name and a function of two rows.
"""

from tests.support import oracle


class TopKPairs(oracle.TopK):
    def __init__(self, k, score, extent, every=None, time=False, on=None, late=None, desc=False, partition=(),
                 where=None, same=(), different=(), required=(), select=None, ties="newest"):  # fmt: skip
        def valid(row):
            return None if any(oracle.bad(row[name]) for name in required) else 0.0

        super().__init__(k, valid, extent, every, time, on, late, True, partition, None, select, ties)
        self.pair_score, self.pair_where, self.smaller = score, where, not desc
        self.same, self.different = same, different

    def columns(self, names):
        if self.select is not None:
            return [item.replace(".", "_") if isinstance(item, str) else item[0] for item in self.select]
        return [f"{side}_{name}" for side in "ab" for name in names if name not in self.partition]

    def values(self, pair):
        rows = {"a": pair["a"]["row"], "b": pair["b"]["row"]}
        names = self.select or [f"{s}.{name}" for s in "ab" for name in rows["a"] if name not in self.partition]
        return tuple(rows[item[0]][item[2:]] if isinstance(item, str) else item[1](rows["a"], rows["b"])
                     for item in names)  # fmt: skip

    def best(self, key, low, high, k=None):
        k = k or self.k
        inside = sorted((o for o in self.objects[key] if low <= o["position"] < high), key=self.age)
        pairs = [self.pair(old, new) for i, new in enumerate(inside) for old in inside[:i]]
        pairs = sorted((p for p in pairs if p is not None), key=lambda p: p["order"])
        if self.ties == "all" and len(pairs) > k:
            return [p for p in pairs if p["goodness"] >= pairs[k - 1]["goodness"]]
        return pairs[:k]

    def pair(self, old, new):
        """The pair of an older and a newer object, or None."""
        if any(old["row"][name] != new["row"][name] for name in self.same):
            return None
        if any(old["row"][name] == new["row"][name] for name in self.different):
            return None
        a, b = old, new
        if self.pair_where is not None and self.pair_where(a["row"], b["row"]) is not True:
            a, b = new, old
            if self.pair_where(a["row"], b["row"]) is not True:
                return None
        score = self.pair_score(a["row"], b["row"])
        if score is None or score != score:
            return None
        goodness = -score if self.smaller else score
        age = tuple(-x for x in (*self.age(old), *self.age(new)))
        return dict(a=a, b=b, score=score, goodness=goodness, order=(-goodness, *age),
                    number=(a["number"], b["number"]))  # fmt: skip

    @staticmethod
    def age(obj):
        return obj["position"], obj["number"]
