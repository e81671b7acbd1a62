"""Makes Spark's Python workers faster: they are used for one task after the other, and clean up after each."""

import gc
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_tasks = 0


def settling(function: Batches) -> Batches:
    """Wraps a function for ``mapInArrow`` so that it calls :func:`settle` at its end."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from function(batches)
        settle()

    return run


def settle() -> None:
    """Hides what the worker keeps for good from the garbage collector; to be called at the end of a task.

    Spark's workers collect garbage after every task. With all that numba, pandas and pyarrow hold, that takes 50 ms or
    more of a core, which is more than the task itself. Since modules and kernels are loaded when they are first needed,
    hiding is repeated after the first, second, fourth, eighth … task. Garbage is collected each time before.
    """
    global _tasks
    _tasks += 1
    if _tasks & (_tasks - 1) == 0:
        gc.collect()
        gc.freeze()
