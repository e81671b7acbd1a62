"""SQL expressions over the columns of a stream: parsed, checked, and evaluated with Arrow or translated for Spark.

They mean what they mean in Spark SQL, so that the engine and Spark rank alike:

- a number is a BIGINT (every integer type) or a DOUBLE (every other; decimals are rounded correctly);
- ``/`` always gives a DOUBLE; division and ``%`` by zero, the logarithm of a number that is not positive, and a CAST
  that fails give NULL, never an error;
- NaN equals itself and is larger than every other number; NULL follows SQL's three-valued logic, and GREATEST and
  LEAST skip it;
- integers are exact. If one does not fit into 64 bits, its row is evaluated again in doubles, so that it neither stops
  the stream nor is lost. Each row is decided by itself, so how the stream is cut into batches changes nothing.

Spark gives the same result for the translated text. Only functions that Spark computes with a library of its own may
differ in the last digit: logarithms, EXP, sines and the like, and powers other than 2, 3 and 4.
"""

from skyband.expressions.aggregates import Call, read_call, read_condition
from skyband.expressions.distance import distance
from skyband.expressions.expression import RESERVED, Expression, close_to, find_column
from skyband.expressions.function import Function, call, columns_read, scores_of

__all__ = ["RESERVED", "Call", "Expression", "Function", "call", "close_to", "columns_read", "distance", "find_column",
           "read_call", "read_condition", "scores_of"]  # fmt: skip
