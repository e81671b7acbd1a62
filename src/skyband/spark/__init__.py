"""skyband on Spark: ``run`` answers a query over a DataFrame, ``session`` makes a Spark session that suits it.

No other package of skyband imports pyspark.
"""

from importlib.util import find_spec

if find_spec("pyspark") is None:
    raise ModuleNotFoundError(
        "skyband.spark needs PySpark, which is not installed: pip install 'skyband[spark]'; "
        "skyband.Monitor answers the same queries without it",
        name="pyspark",
    )

from skyband.spark.run import run
from skyband.spark.session import configure, session

__all__ = ["configure", "run", "session"]
