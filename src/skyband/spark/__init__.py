"""skyband on Spark: the only package that imports pyspark."""

from skyband.spark.run import run
from skyband.spark.session import configure, session

__all__ = ["configure", "run", "session"]
