"""A checkpoint goes on with a lower k or a shorter window: the state of a query that wanted more holds what it needs.

MinTopk's lists serve as they are. An algorithm for windows that move with every arrival is given the objects that the
other one held: they are at least its k-skyband, and whatever is not in it can never be in the answer.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import Algorithm, Changes, Rankings, Rows
from skyband.algorithms.objects.arrival import EveryArrival
from skyband.algorithms.objects.scase import SCase
from skyband.errors import StateError
from skyband.spark.stages.job import Job, prepare


def former(saved: dict[str, Any], job: Job) -> Job:
    """The job that wrote a checkpoint: this one, or one with a larger k or a longer window. Raises for any other.

    Args:
        saved: what :meth:`Job.spec` gave.
        job: the one that is to go on.
    """
    old, new = _flat(saved), _flat(job.spec())
    changed = {name: (old.get(name), new.get(name)) for name in sorted(old | new) if old.get(name) != new.get(name)}
    changed.pop("name", None)
    if not changed:
        return job
    if not _serves(job) or not all(_fits(name, *values, job) for name, values in changed.items()):
        what = "; ".join(f"{name} was {a!r} and is {b!r}" for name, (a, b) in changed.items())
        raise StateError(f"the checkpoint belongs to another query: {what}. Top-k objects may go on with a lower k or "
                         "with a shorter window (by whole slides where it hops); for anything else take a new "
                         "checkpoint directory")  # fmt: skip
    window = replace(job.query.window, extent=old["window.extent"])
    return replace(job, query=job.query.but(k=old["k"], window=window))


def objects_of(algorithm: Algorithm) -> Rows:
    """All objects that an algorithm for windows that move with every arrival holds, in the order of their arrival."""
    rows = Rows(np.empty(0)).spelled_out()
    assert isinstance(algorithm, EveryArrival | SCase)
    for partition, state in algorithm.states.items():
        held = algorithm.objects(state) if isinstance(algorithm, EveryArrival) else state.live()
        rows = rows.join(held._replace(partition=np.full(held.score.size, partition)))
    return rows.take(np.argsort(rows.arrival))


def between(before: Rankings, after: Rankings) -> Changes:
    """What leads from one ranking to the other, as of the newest arrival of each partition."""
    parts = [_changes(before, -1, ~np.isin(before.arrival, after.arrival)),
             _changes(after, 1, ~np.isin(after.arrival, before.arrival))]  # fmt: skip
    changes = Changes._make(np.concatenate(column) for column in zip(*parts, strict=True))
    return changes.take(np.argsort(changes.partition, kind="stable"))


def _changes(event: Rankings, op: int, which: NDArray[np.bool_]) -> Changes:
    size = np.diff(event.offset)
    at, partition = np.repeat(event.end - 1, size)[which], np.repeat(event.partition, size)[which]
    arrival = event.arrival[which]
    return Changes(arrival, at, partition, np.full(arrival.size, op, np.int8), arrival, event.score[which])


def _serves(job: Job) -> bool:
    """Whether the state of a job tells all that a lower k or a shorter window asks for."""
    algorithm = prepare(job).plan.algorithm
    if job.query.window.hopping:
        return algorithm.name == "mintopk"
    return job.query.family == "objects" and algorithm.exact


def _fits(name: str, old: Any, new: Any, job: Job) -> bool:
    if name == "k":
        return bool(new <= old)
    window = job.query.window
    return name == "window.extent" and new <= old and not (window.hopping and (old - new) % window.slide)


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    query = spec["query"]
    window = {f"window.{name}": value for name, value in query["window"].items()}
    return {**query, **spec, **window, "query": None, "window": None}
