"""Every option of every query on Spark gives the rows of the engine; every option of ``run`` does what it says."""

import inspect
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import skyband as sb
from skyband.spark import run
from skyband.spark.testing import frame, stream
from skyband.testing import answer, assert_same_rows
from tests.support.option_cases import FAMILIES, ROWS, SECOND, named

HOPS = sb.last("4 seconds", every="2 seconds")
BEST = sb.TopK(k=2, order_by="x DESC", window=HOPS, select=("id",))
EACH = BEST.but(partition_by=("g",))
OPTIONS = {"emit", "arrival", "shards", "chunks", "metrics"}


def rows():
    """In the order of event time, whole seconds, so that many tie; and then of the column that ranks those."""
    seconds = pa.array([t // SECOND * SECOND for t in ROWS["ts"].cast(pa.int64()).to_pylist()], pa.timestamp("us"))
    table = ROWS.set_column(1, "ts", seconds).append_column("back", pc.negate(ROWS["id"]))
    return table.sort_by([("ts", "ascending"), ("id", "ascending")])


TABLE = rows()


def varied(family, **others):
    """The query with all defaults, and one for each other value of each option that can be had alone."""
    base = family.defaults(**others)
    chosen = [base, *({**base, **family.beside.get(option, {}), **others, option: value}
                      for option, values in family.options.items() if option not in others
                      for value in values[1:])]  # fmt: skip
    queries = []
    for i, values in enumerate(chosen):
        with suppress(sb.QueryError):
            queries.append(family.ask({**values, "name": f"query {i}"}))
    return queries, len(chosen) - len(queries)


def as_the_engine(spark, queries, **options):
    got = run(frame(spark, TABLE).coalesce(1), queries, **options).toArrow()
    for query in queries:
        expected = answer(query, [TABLE])
        assert expected.num_rows
        assert_same_rows(got.filter(pc.equal(got["query"], query.name)).select(expected.column_names), expected)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_value_of_every_option(spark, name, record_property):
    queries, declined = varied(FAMILIES[name], window="time hopping")
    as_the_engine(spark, queries, shards=2, chunks=2)
    record_property("options", [f"{name} on Spark", len(queries), declined, len(queries)])


@pytest.mark.slow
@pytest.mark.parametrize("windows", [("count hopping", "sequence hopping"), ("count", "sequence", "sequence, late"),
                                     ("time", "time, late")], ids="+".join)  # fmt: skip
@pytest.mark.parametrize("name", FAMILIES)
def test_every_kind_of_window(spark, name, windows):
    family = FAMILIES[name]
    queries = [family.ask(family.defaults(window=window, name=f"{window} {by}", partition_by=by))
               for window in windows for by in [(), ("g",)]]  # fmt: skip
    as_the_engine(spark, queries)


def test_all_options_of_run_are_here():
    assert set(inspect.signature(run).parameters) - {"df", "query"} == OPTIONS
    assert {option for option, _, _ in REFUSED} == OPTIONS


def test_arrival_ranks_those_that_tie(spark):
    """As if the rows had come in the order of the column; without it, of the first integer column."""
    differs = set()
    for arrival in (None, "id", "back"):
        in_order = TABLE.sort_by([("ts", "ascending"), (arrival or "id", "ascending")])
        got = run(frame(spark, TABLE), BEST, arrival=arrival).toArrow()
        assert_same_rows(got, answer(BEST, [in_order]))
        differs.add(str(sorted(map(str, got.to_pylist()))))
    assert len(differs) == 2


@pytest.mark.parametrize("options", [dict(shards=1), dict(shards=3), dict(chunks=1), dict(chunks=5, shards=2)], ids=str)
def test_shards_and_chunks_share_the_work_and_change_nothing(spark, options):
    got = run(frame(spark, TABLE), EACH, **options)
    assert_same_rows(got.toArrow(), answer(EACH, [TABLE]))


@pytest.mark.parametrize("window", ["time hopping", "time", "count hopping", "sequence"])
def test_emit_latest_is_the_ranking_as_it_stands(spark, window):
    """At once: that of the newest window, as of a monitor that has seen all; by partition, k rows of each."""
    family = FAMILIES["TopK"]
    for by in ((), ("g",)):
        query = family.ask(family.defaults(window=window, partition_by=by))
        monitor = sb.Monitor(query)
        monitor.push(TABLE)
        got = run(frame(spark, TABLE).coalesce(1), query, emit="latest").toArrow()
        assert_same_rows(got.filter(pc.is_valid(got["score"])), monitor.top())
        assert got.num_rows >= query.k


def test_emit_changes_is_final_for_windows_that_move(spark):
    query = sb.TopK(k=2, order_by="x DESC", window=sb.last("4 seconds"), select=("id",))
    for emit in ("final", "changes"):
        assert_same_rows(run(frame(spark, TABLE), query, emit=emit).toArrow(), answer(query, [TABLE]))


def test_metrics_have_the_name_that_is_given(spark):
    ranking = run(stream(spark, [TABLE]), EACH, metrics="mine")
    seen = []
    query = ranking.writeStream.foreachBatch(lambda frame, number: seen.append(frame.count())).trigger(
        availableNow=True
    ).start()  # fmt: skip
    query.awaitTermination()
    assert {name for progress in query.recentProgress for name in progress["observedMetrics"]} == {"mine"}


REFUSED = [
    ("emit", BEST, dict(emit="all")),
    ("emit", BEST, dict(emit="changes")),
    ("emit", BEST.but(ties="all"), dict(emit="latest")),
    ("arrival", BEST, dict(arrival="nowhere")),
    ("arrival", BEST, dict(arrival="x")),
    ("arrival", BEST.but(window=sb.last(5)), dict(arrival="id")),
    ("arrival", BEST.but(window=sb.last(5, every=2, on="seq")), dict(arrival="id")),
    ("shards", EACH, dict(shards=0)),
    ("shards", EACH, dict(shards=True)),
    ("shards", BEST, dict(shards=2)),
    ("chunks", EACH, dict(chunks=0)),
    ("chunks", EACH, dict(chunks=2.0)),
    ("chunks", BEST, dict(chunks=2)),
    ("metrics", EACH, dict(metrics="")),
    ("metrics", EACH, dict(metrics=5)),
    ("metrics", EACH, dict(metrics="mine")),
]


@pytest.mark.parametrize(("option", "query", "options"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_makes_no_difference_is_refused(spark, option, query, options):
    with pytest.raises(sb.QueryError) as caught:
        run(frame(spark, TABLE), query, **options)
    assert named(option, options[option], str(caught.value))
