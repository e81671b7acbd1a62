"""A monitor under random queries and random actions, always beside the oracle. Hypothesis shrinks what goes wrong."""

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import skyband as sb
from tests.support.cases import ALGORITHMS, CONDITIONS, EXACT, ORDERS, agree, compare_stats, finish, pair

SCORES = st.one_of(
    st.integers(-3, 3).map(float), st.sampled_from([None, float("nan"), float("inf"), -float("inf"), -0.0])
)
ROWS = st.lists(st.fixed_dictionaries({
    "step": st.integers(0, 3),
    "behind": st.sampled_from([0, 0, 0, 1, 2, 5, 40]),
    "no_time": st.integers(0, 15).map(lambda draw: draw == 0),
    "seq": st.one_of(st.none(), st.integers(0, 25)),
    "x": SCORES,
    "y": st.one_of(st.none(), st.integers(-1, 2)),
    "g": st.sampled_from(["a", "b", None]),
    "h": st.sampled_from([1, None]),
}), max_size=12)  # fmt: skip
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us")), ("seq", pa.int64()), ("x", pa.float64()),
                    ("y", pa.int64()), ("g", pa.string()), ("h", pa.int32())])  # fmt: skip


class Follow(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.monitor = self.model = None
        self.clock = self.count = 0
        self.ended = False

    @initialize(draw=st.data())
    def put_a_query(self, draw):
        choose = lambda *values: draw.draw(st.sampled_from(values))  # noqa: E731
        time, hopping, extent = choose(True, False), choose(True, False), draw.draw(st.integers(1, 12))
        window = {"extent": extent, **({"time": True} if time else {})}
        if hopping:
            window["every"] = draw.draw(st.integers(1, extent))
        on = None if time else choose(None, "seq")
        late = draw.draw(st.integers(0, 6)) if time else choose(None, 3) if on else None
        # More than one partition and a bound on waiting: the order of what the bound sets free is left open.
        partition_by = () if on and late is not None else choose((), ("g",), ("h", "g"))
        fitting = [name for name in EXACT if ("hopping" if hopping else "arrival") in ALGORITHMS[name].serves]
        query, self.model = pair(draw.draw(st.integers(1, 5)), window, choose(*ORDERS), choose(*CONDITIONS),
                                 partition_by, choose(None, ("id",)), choose("newest", "all"), on, late,
                                 choose(*fitting))  # fmt: skip
        self.window, self.algorithm, self.monitor = query.window, query.algorithm, sb.Monitor(query)

    @precondition(lambda self: not self.ended)
    @rule(rows=ROWS)
    def push(self, rows):
        for row in rows:
            self.clock += row.pop("step")
            behind, no_time = row.pop("behind"), row.pop("no_time")
            row["ts"], row["id"] = None if no_time else self.clock - behind, self.count
            self.count += 1
        batch = pa.Table.from_pylist(rows, SCHEMA)
        agree(self.monitor.push(batch), self.model.push(batch), self.model.header(SCHEMA.names))

    @precondition(lambda self: not self.ended and self.count)
    @rule()
    def snapshot(self):
        agree(self.monitor.top(), self.model.top(), self.model.top_header(SCHEMA.names))

    @precondition(lambda self: not self.ended and self.count)
    @rule(draw=st.data())
    def snapshot_of_less(self, draw):
        window = self.window
        step = window.slide if window.hopping and not ALGORITHMS[self.algorithm].any_last else 1
        k, last = draw.draw(st.integers(1, self.model.k)), draw.draw(st.sampled_from(range(window.extent, 0, -step)))
        table = self.monitor.top(k=k, last=f"{last} microseconds" if window.time else last)
        agree(table, self.model.top(k, last), self.model.top_header(SCHEMA.names))

    @rule()
    def save_and_load(self):
        blob = self.monitor.dumps()
        self.monitor = sb.Monitor.loads(blob)
        assert self.monitor.dumps() == blob

    @precondition(lambda self: not self.ended and self.count)
    @rule()
    def flush(self):
        finish(self.monitor, self.model, SCHEMA.names)
        self.ended = True

    @precondition(lambda self: self.ended)
    @rule()
    def flush_again(self):
        assert self.monitor.flush().num_rows == 0

    @invariant()
    def holds(self):
        if self.monitor is not None:
            self.monitor.check()
            compare_stats(self.monitor.stats, self.model)


TestFollow = pytest.mark.filterwarnings("ignore::skyband.DataWarning")(Follow.TestCase)
TestFollow.settings = settings(max_examples=300, stateful_step_count=10)
