"""Expressions mean the same to Spark."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from skyband.expressions import scoring
from tests.support.expression_cases import EDGES, ROUNDED_EDGES, Maker, same, stream


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_agrees(spark: SparkSession, ansi: str) -> None:
    rng = np.random.default_rng(7 if ansi == "true" else 8)
    table, maker = stream(rng), Maker(rng, for_spark=True)
    rounded = ["exp(y)", "ln(x)", "log(3, z)", "log10(z)", "log2(z)", "sin(x)", "cos(x)", "tan(x)", "asin(y)",
               "acos(y)", "atan(z)", "atan2(y, z)", "atan2(y * 0, x * 0)", "power(z, 1.5)", "power(x, y)",
               scoring.distance({"x": 0.2, "y": -0.7}, 3, {}), *ROUNDED_EDGES]  # fmt: skip
    numbers = [maker.number(depth) for depth in (1, 2, 3) for _ in range(40)]
    numbers += [*EDGES, "large * large", "coalesce(large * large, 0)", "large - 1 + 1", "small * small * small",
                scoring.distance({"x": 0.2, "y": -0.7}, "euclidean", {}),
                scoring.distance({"i": 2, "j": -1}, "chebyshev", {"i": 2})]  # fmt: skip
    conditions = [maker.condition(depth) for depth in (1, 2, 3) for _ in range(20)]
    conditions += [r"s LIKE 'a\_\%'", "large * large > 0", "x = x", "x > 5", "s = 'it''s'"]
    rows = table.append_column("row", pa.array(range(table.num_rows)))
    frame = spark.createDataFrame(
        [tuple(row.values()) for row in rows.to_pylist()],
        "i long, j long, x double, y double, z double, s string, b boolean, large long, small int, single float, "
        "cents decimal(10, 2), row long",
    ).cache()
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        compiled = [scoring.compile_order(text) for text in (*rounded, *numbers)]
        compiled += [scoring.compile_condition(text) for text in conditions]
        texts = [one.spark_sql(table.schema) for one in compiled]
        for start in range(0, len(texts), 20):
            part = range(start, min(start + 20, len(texts)))
            answer = frame.selectExpr("row", *(f"{texts[n]} AS c{n}" for n in part)).orderBy("row").toArrow()
            for n in part:
                ours, theirs = compiled[n].evaluate(table), answer.column(f"c{n}")
                if isinstance(compiled[n], scoring.Score):
                    theirs = theirs.combine_chunks().to_numpy(zero_copy_only=False)
                    close = np.allclose(ours, theirs, rtol=1e-14, atol=0, equal_nan=True)
                    assert close if n < len(rounded) else same(ours, theirs), compiled[n].sql
                else:
                    assert ours.tolist() == [value is True for value in theirs.to_pylist()], compiled[n].sql
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
