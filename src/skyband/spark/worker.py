"""A Python worker of Spark, which is used for one task after the other."""

import gc
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_tasks = 0


def settling(function: Batches) -> Batches:
    """The same function for ``mapInArrow``, which lets the worker settle at its end."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from function(batches)
        settle()

    return run


def settle() -> None:
    """Called at the end of a task: takes what the worker keeps for good out of the garbage collector's sight.

    Spark's workers collect garbage after every task. With all that numba, pandas and pyarrow hold that takes 50 ms or
    more of a core, more than the task itself. Modules and kernels are loaded when they are first needed, so it is done
    after the first, second, fourth, eighth … task; cycles that are garbage by then are collected before.
    """
    global _tasks
    _tasks += 1
    if _tasks & (_tasks - 1) == 0:
        gc.collect()
        gc.freeze()
