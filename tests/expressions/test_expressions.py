"""What expressions mean: against DuckDB and Python's own arithmetic; ``tests/spark`` has Spark."""

import decimal
import itertools
import math
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.errors import QueryError
from skyband.expressions import expression, scoring
from tests.support.expression_cases import BIG, Maker, same, stream


def score(text, **columns):
    return scoring.compile_order(text).evaluate(pa.table(columns)).tolist()


def holds(text, **columns):
    return scoring.compile_condition(text).evaluate(pa.table(columns)).tolist()


# ---- other engines


@pytest.mark.parametrize("seed", range(3))
def test_duckdb_agrees(seed):
    rng = np.random.default_rng(seed)
    table, maker = stream(rng), Maker(rng)
    numbers = [maker.number(depth) for depth in (1, 2, 3) for _ in range(40)]
    conditions = [maker.condition(depth) for depth in (1, 2, 3) for _ in range(20)]
    with duckdb.connect() as connection:
        connection.execute("SET error_on_division_by_zero = false; SET ieee_floating_point_ops = false")
        connection.register("stream", table)
        for kind, texts in (("DOUBLE", numbers), ("BOOLEAN", conditions)):
            columns = ", ".join(f"CAST({text} AS {kind}) AS c{n}" for n, text in enumerate(texts))
            answer = connection.sql(f"SELECT {columns} FROM stream").to_arrow_table()
            for n, text in enumerate(texts):
                theirs = answer.column(f"c{n}")
                if kind == "DOUBLE":
                    ours = scoring.compile_order(text).evaluate(table)
                    theirs = theirs.combine_chunks().to_numpy(zero_copy_only=False)
                    assert np.allclose(ours, theirs, rtol=1e-11, atol=1e-9, equal_nan=True), text
                else:
                    ours = scoring.compile_condition(text).evaluate(table)
                    assert ours.tolist() == [value is True for value in theirs.to_pylist()], text


@pytest.mark.parametrize(
    "text",
    [
        "x / y",
        "x / 0",
        "i / j",
        "0 / 0",
        "x % y",
        "x % 0",
        "i % j",
        "i % 0",
        "ln(i)",
        "ln(x)",
        "log10(i)",
        "log2(i)",
        "coalesce(x / 0, 7)",
        "coalesce(i % 0, 7)",
        "coalesce(ln(i), 7)",
        "greatest(x / 0, y)",
        "1 / ln(i)",
        "if(x / 0 > 1, 1, 2)",
    ],
)
def test_what_has_no_number_is_null_as_in_duckdb(text):
    table = stream(np.random.default_rng(5))
    asked = text
    for name in ("ln", "log10", "log2", "log"):  # DuckDB refuses their arguments, where we have NULL
        asked = asked.replace(f"{name}(i)", f"TRY({name}(i))").replace(f"{name}(x)", f"TRY({name}(x))")
    with duckdb.connect() as connection:
        connection.execute("SET error_on_division_by_zero = false; SET ieee_floating_point_ops = false")
        connection.register("stream", table)
        theirs = connection.sql(f"SELECT CAST({asked} AS DOUBLE) AS c FROM stream").to_arrow_table().column("c")
    theirs = theirs.combine_chunks().to_numpy(zero_copy_only=False)
    assert np.allclose(scoring.compile_order(text).evaluate(table), theirs, rtol=1e-11, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("i / j", [True, False, True, True]), ("x / j", [True, False, True, True]), ("x % j", [True, False, True, True]),
     ("i % j", [True, False, True, True]), ("ln(i)", [False, True, True, False]), ("sqrt(i)", [0, 0, 1, 0]),
     ("log10(x)", [False, True, True, True]), ("log(2, i)", [False, True, True, False]), ("x / 0", [True] * 4),
     ("i * j * 9223372036854775807", [False] * 4)],
)  # fmt: skip
def test_a_row_without_a_score_is_invalid_in_every_ranking(text, wrong):
    """The meaning of an expression is SQL's wherever it stands: NULL, or NaN, leaves the row out and counts it."""
    rows = {"i": [1, 0, -1, 2], "j": [0, 2, 0, 0], "x": [1.5, 0.0, -2.0, math.nan]}
    if "x" not in text:
        rows["x"][3] = 1.0
    window = sb.last(4, every=4)
    for query in (
        sb.TopK(k=4, order_by=text, window=window),
        sb.TopKDominating(k=4, dimensions={text: "min"}, window=window),
        sb.TopKGroups(k=4, id="i", value=text, window=window),
    ):
        monitor = sb.Monitor(query)
        monitor.push(rows)
        assert monitor.stats.invalid == sum(wrong), query


@pytest.mark.parametrize(
    "text",
    [
        "{a}.x / {b}.y",
        "{a}.x % {b}.y",
        "{a}.i / {b}.j",
        "{a}.i % {b}.j",
        "ln({a}.i)",
        "abs({a}.x - {b}.y)",
        "sqrt({a}.x - {b}.y)",
        "{a}.x / {b}.y + 1",
        "{a}.i + {b}.j",
        "greatest({a}.x, {b}.y)",
        "1 / ({a}.x - {b}.y)",
        "{a}.i * {b}.j",
    ],
)
def test_a_pair_without_a_score_is_none(text):
    """Pairs are scored by programs of their own."""
    numbers = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, 1e308]
    whole = [0, 1, -1, 2, -3, 1 << 52, -(1 << 52)]  # larger ones are rounded in scores of pairs
    for (x, i), (y, j) in itertools.product(zip(numbers, whole), repeat=2):
        older, newer = {"x": x, "y": y, "i": i, "j": j}, {"x": 0.5, "y": y, "i": 3, "j": j}
        columns = {
            f"{side}_{name}": [value] for side, row in (("a", older), ("b", newer)) for name, value in row.items()
        }
        [expected] = score(text.format(a="a", b="b").replace("a.", "a_").replace("b.", "b_"), **columns)
        monitor = sb.Monitor(sb.TopKPairs(k=1, order_by=text.format(a="a", b="b"), window=sb.last(2)))
        monitor.push({name: [older[name], newer[name]] for name in older})
        assert same(monitor.top()["score"].to_numpy(), [] if math.isnan(expected) else [expected]), (older, newer)


# ---- what expressions mean


def test_division_and_remainder_by_zero_are_null():
    assert same(score("a / b", a=[1, 0, 6], b=[0, 0, 4]), [math.nan, math.nan, 1.5])
    assert same(score("a % b", a=[7.5, -7.5, 1.0], b=[2.0, 2.0, 0.0]), [1.5, -1.5, math.nan])
    assert same(score("a % b", a=[-BIG, 7], b=[-1, -4]), [0, 3])


def test_bad_arguments_give_null_or_nan():
    for text in ("sqrt(x)", "ln(x)", "log(x)", "log10(x)", "log2(x)", "log(3, x)", "log(x, 3)", "acos(x - 1)"):
        assert math.isnan(score(text, x=[-1.0])[0]), text
    assert math.isnan(score("ln(x)", x=[0])[0])


def test_logarithms():
    assert score("log(x)", x=[math.e]) == [1.0] and score("log(2, x)", x=[8]) == [3.0]
    assert score("log10(x)", x=[1000]) == [3.0] and score("log(5, x)", x=[25.0]) == pytest.approx([2.0])


def test_rounding_is_half_away_from_zero_as_written():
    assert score("round(x)", x=[0.5, 1.5, -0.5, 2.5, 0.49999999999999994]) == [1, 2, -1, 3, 0]
    assert score("round(x, 2)", x=[1.005, 2.675, -1.005, 0.285]) == [1.01, 2.68, -1.01, 0.29]
    rng = np.random.default_rng(0)
    for digits in range(6):
        values = np.concatenate([rng.normal(size=500) * 100, np.round(rng.normal(size=500), digits + 1)])
        step = Decimal(1).scaleb(-digits)
        expected = [float(Decimal(repr(v)).quantize(step, decimal.ROUND_HALF_UP)) for v in values.tolist()]
        assert score(f"round(x, {digits})", x=values) == expected
    assert same(score("round(x, 3)", x=[1e300, math.inf, -math.inf, math.nan]), [1e300, math.inf, -math.inf, math.nan])


def test_nan_is_the_largest_number():
    x = [math.nan, 1.0, math.inf, None]
    assert holds("x > 5", x=x) == [True, False, True, False]
    assert holds("x = x", x=x) == [True, True, True, False]
    assert holds("x < y", x=x, y=[math.nan, math.nan, math.nan, 1.0]) == [False, True, True, False]
    assert holds("x <= y", x=x, y=[math.nan, 0.0, math.nan, 1.0]) == [True, False, True, False]
    assert same(score("greatest(x, 1)", x=x), [math.nan, 1, math.inf, 1])
    assert same(score("least(x, 1)", x=x), [1, 1, 1, 1])


def test_minus_zero_is_zero():
    assert holds("x IN (0, 5)", x=[-0.0, 0.0]) == [True, True] and holds("x = 0", x=[-0.0]) == [True]


def test_three_valued_logic():
    both = {"a": [True, True, True, False, False, False, None, None, None], "b": [True, False, None] * 3}
    kinds = {name: pa.array(values, pa.bool_()) for name, values in both.items()}
    as_number = "CASE WHEN {0} THEN 1 WHEN NOT ({0}) THEN 0 END"
    nan = math.nan
    assert same(score(as_number.format("a AND b"), **kinds), [1, 0, nan, 0, 0, 0, nan, 0, nan])
    assert same(score(as_number.format("a OR b"), **kinds), [1, 1, 1, 1, 0, nan, 1, nan, nan])
    assert same(score(as_number.format("a IN (TRUE, NULL)"), **kinds), [1, 1, 1] + [nan] * 6)
    assert holds("NULL", a=[1]) == [False] and holds("a IS NOT TRUE", a=pa.array([None, True])) == [True, False]


def test_like():
    words = ["a%b", "axb", "a\nb", "ab", "é", None, "a\\b"]
    assert holds("s LIKE 'a_b'", s=words) == [True, True, True, False, False, False, True]
    assert holds(r"s LIKE 'a\%b'", s=words) == [True] + [False] * 6
    assert holds(r"s LIKE '%\\%'", s=words) == [False] * 6 + [True]
    assert holds("s NOT LIKE '_'", s=words) == [True, True, True, True, False, False, True]


def test_casts():
    words = ["12", " -7 ", "1.5", "1e3", "", "x", None, str(BIG - 1), str(BIG), str(-BIG), "9" * 40]
    nan = math.nan
    whole = [12, -7, nan, nan, nan, nan, nan, float(BIG - 1), nan, float(-BIG), nan]
    assert same(score("CAST(s AS BIGINT)", s=words), whole)
    assert same(score("CAST(s AS DOUBLE)", s=words[:7]), [12, -7, 1.5, 1000, nan, nan, nan])
    numbers = [2.9, -2.9, 2.0**31, nan, math.inf, None]
    assert same(score("CAST(x AS INT)", x=numbers), [2, -2, nan, nan, nan, nan])
    assert same(score("TRY_CAST(x AS BIGINT)", x=numbers), [2, -2, 2.0**31, nan, nan, nan])
    assert same(score("x::bigint", x=[2.0**63, -(2.0**63)]), [nan, -(2.0**63)])
    assert score("CAST(b AS INT) + CAST(b AS DOUBLE)", b=[True, False]) == [2, 0]
    assert holds("CAST(i AS VARCHAR) = '5'", i=[5, 6]) == [True, False]


def test_decimals_become_the_nearest_doubles():
    rng = np.random.default_rng(1)
    for precision, scale in ((15, 2), (15, 9), (38, 4), (30, 25), (12, 0)):
        digits = [int(v) for v in rng.integers(-(10**12) + 1, 10**12, 500)]
        values = [Decimal(v).scaleb(-scale) for v in digits]
        assert score("d", d=pa.array(values, pa.decimal128(precision, scale))) == [float(v) for v in values]
    assert score("d * 2", d=pa.array([Decimal("1.1")], pa.decimal256(50, 1))) == [2.2]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.float16(), pa.float32()])
def test_every_type_of_number(kind):
    assert score("n * 2 + 1", n=pa.array([1, 2, None], kind))[:2] == [3, 5]
    assert same(score("n", n=pa.array([1, 2, None], kind)), [1, 2, math.nan])


def test_types_of_text():
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert (
            holds("s = 'a' AND s LIKE 'a' AND length(s) = 1", s=pa.array(["a", "b", None], kind))
            == [True] + [False] * 2
        )
    assert holds("s IN ('a')", s=pa.array(["a", "b", None]).dictionary_encode()) == [True, False, False]


def test_times_can_be_compared_only():
    times = pa.array([1, 2, None], pa.timestamp("us"))
    assert holds("t < u", t=times, u=pa.array([2, 2, 2], pa.timestamp("us"))) == [True, False, False]
    for text, kind in (("t", "timestamp[us]"), ("t - t", "timestamp[us]"), ("s", "string"), ("b", "bool")):
        with pytest.raises(QueryError, match=f"order_by='{text}'.*{kind.replace('[', '.').replace(']', '.')}"):
            score(text, t=times, s=["a"] * 3, b=[True] * 3)


# ---- integers


def test_integers_are_exact():
    start = 1_700_000_000_000_000_000
    assert score("t + 5 - s", t=[start + 3, start + 4], s=[start] * 2) == [8, 9]
    assert holds("a <> b AND a % 2 = 1", a=[(1 << 53) + 1], b=[1 << 53]) == [True]
    assert score("x * a", x=[0.5], a=[(1 << 60) + 1]) == [2.0**59]


def test_overflow_is_decided_row_by_row():
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 62, (3, 400))
    columns = {name: (rng.integers(-4, 5, 400) << size).tolist() for name, size in zip("abc", sizes)}
    columns["a"][0] = -BIG

    def expected(a, b, c):
        product = a * b
        total = product + c
        if -BIG <= product < BIG and -BIG <= total < BIG:
            return float(total)
        return float(a) * float(b) + float(c)

    whole = score("a * b + c", **columns)
    assert whole == [expected(*row) for row in zip(*columns.values())]
    rows = [score("a * b + c", **{name: [values[n]] for name, values in columns.items()})[0] for n in range(0, 400, 7)]
    assert rows == whole[::7]


def test_overflow_elsewhere():
    assert score("-a", a=[-BIG, 5]) == [2.0**63, -5] and score("abs(a)", a=[-BIG]) == [2.0**63]
    assert score("9223372036854775807 + 1", a=[0]) == [2.0**63]
    assert score("coalesce(a * a, 0)", a=[1 << 40, 2]) == [2.0**80, 4]
    assert holds("a * a > 5", a=[1 << 40, 2, 3]) == [True, False, True]
    assert holds("CAST(a * 2 AS VARCHAR) LIKE '4%'", a=[2, 1 << 62]) == [True, False]
    assert score("u", u=pa.array([(1 << 64) - 1, 5], pa.uint64())) == [2.0**64, 5]
    assert score("u + 1", u=pa.array([(1 << 64) - 1, 5], pa.uint64())) == [2.0**64, 6]
    item = scoring.compile_item("a * a AS square").evaluate(pa.table({"a": [1 << 40, 2]}))
    assert item.type == pa.int64() and item.to_pylist() == [None, 4]


# ---- the shape of texts and tables


def test_blocks_and_chunks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(3)
    table, maker = stream(rng), Maker(rng, for_spark=True)
    pieces = pa.concat_tables([table.slice(0, 7), table.slice(7, 0), table.slice(7, 100), table.slice(107)])
    texts = [maker.number(2) for _ in range(60)]
    whole = [scoring.compile_order(text).evaluate(table) for text in texts]
    monkeypatch.setattr(expression, "BLOCK", 13)
    for text, expected in zip(texts, whole):
        assert same(scoring.compile_order(text).evaluate(pieces), expected), text
        assert same(scoring.compile_order(text).evaluate(table.combine_chunks().to_batches()[0]), expected), text


def test_nothing_and_constants():
    empty = pa.table({"x": pa.array([], pa.float64())})
    assert scoring.compile_order("x * 2").evaluate(empty).shape == (0,)
    assert scoring.compile_condition("x > 2").evaluate(empty).shape == (0,)
    assert scoring.compile_item("x * 2 AS y").evaluate(empty).type == pa.float64()
    assert score("2 + 3", x=[0, 0]) == [5, 5] and holds("1 < 2", x=[0, 0]) == [True, True]
    assert scoring.compile_item("1 AS one").evaluate(pa.table({"x": [0, 0]})).to_pylist() == [1, 1]


def test_normalised_text_means_the_same():
    rng = np.random.default_rng(4)
    table, maker = stream(rng), Maker(rng, for_spark=True)
    for _ in range(100):
        one = scoring.compile_order(maker.number(3))
        again = scoring.compile_order(one.sql)
        assert again.sql == one.sql and same(again.evaluate(table), one.evaluate(table))
    assert scoring.compile_order("a /* why */ + b -- so\n DESC").sql == "a + b"


def test_long_sums_and_deep_nests():
    table = pa.table({"x": [1.0]})
    assert scoring.compile_order(" + ".join(["x"] * 2000)).evaluate(table) == [2000.0]
    assert scoring.compile_order("(" * 20 + "x" + ")" * 20).evaluate(table) == [1.0]
    for text in ("(" * 3000 + "x" + ")" * 3000, "abs(" * 500 + "x" + ")" * 500, "NOT " * 5000 + "x"):
        with pytest.raises(QueryError):
            scoring.compile_condition(text)


# ---- what is refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os').system('true')", "__import__"),
        (
            "__import__('os')",
            "the function __IMPORT__ is not allowed; allowed are columns, constants, .* ABS, .* UPPER",
        ),
        ("foo(x)", "the function FOO is not allowed"),
        ("read_csv('/etc/passwd')", "the function READ_CSV.* is not allowed"),
        ("getenv('HOME')", "the function GETENV is not allowed"),
        ("(SELECT 1)", "a subquery, .SELECT 1., is not allowed"),
        ("x IN (SELECT 1)", "is not allowed in this form"),
        ("EXISTS (SELECT 1)", "is not allowed"),
        ("sum(x)", "the aggregate SUM.x. is not allowed"),
        ("count(*)", "the aggregate COUNT.* is not allowed"),
        ("max(x) OVER ()", "a window function, .* is not allowed"),
        ("*", "\\* is not allowed"),
        ("?", "the parameter \\? is not allowed"),
        (":p", "the parameter :p is not allowed"),
        ("@p", "the parameter @p is not allowed"),
        ("$1", "in double quotes"),
        ("a.x", "a name with a dot is not allowed"),
        ("x; DROP TABLE t", "order_by="),
        ("x[0]", "BRACKET, as in x.0., is not allowed"),
        ("x -> 'a'", "is not allowed"),
        ("rand()", "the function RAND.* is not allowed"),
        ("current_date", "is not allowed"),
        ("interval '1' day", "INTERVAL.* is not allowed"),
        ("floor(x, 2)", "FLOOR.x, 2. is not allowed in this form"),
        ("round(x, y)", "the digits must be a whole number from 0 to 15"),
        ("greatest(x)", "takes two arguments or more"),
        ("x IN (y)", "IN takes a list of constants"),
        ("x LIKE y", "LIKE takes a string"),
        ("x LIKE 'a' ESCAPE 'b'", "is not allowed"),
        (r"x LIKE 'a\b'", r"stands only before %, _ and \\ itself"),
        ("CAST(x AS DATE)", "a CAST is to BIGINT, DOUBLE, INT, TEXT, VARCHAR"),
        ("1e999", "this number is too large"),
        ("1e3+2", "this is no number; write a blank before the sign"),
        ("x IS y", "IS takes NULL, TRUE or FALSE"),
        ("lambda x: x", "is not an SQL expression"),
    ],
)
def test_what_is_not_allowed(text, message):
    with pytest.raises(QueryError, match=message):
        scoring.compile_order(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abs(s)", "order_by='abs\\(s\\)': ABS\\(s\\) takes numbers, not string"),
        ("x + b", "x \\+ b takes numbers, not bool"),
        ("x = s", "takes values of one kind, not double and string; a CAST may help"),
        ("if(x, 1, 2)", "takes conditions, not double"),
        ("coalesce(s, x)", "takes values of one kind, not string and double"),
        ("length(x)", "takes text, not double"),
        ("CAST(x AS VARCHAR)", "takes integers, conditions or text, not double"),
        ("s", "order_by='s' is of type string; a score must be a number"),
        ("x > 1", "is of type bool; a score must be a number"),
    ],
)
def test_types_that_do_not_fit(text, message):
    schema = pa.schema({"x": pa.float64(), "s": pa.string(), "b": pa.bool_()})
    one = scoring.compile_order(text)
    with pytest.raises(QueryError, match=message):
        one.evaluate(schema.empty_table())
    with pytest.raises(QueryError, match=message):
        one.spark_sql(schema)
