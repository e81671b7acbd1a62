"""A checkpoint goes on with a lower k or a shorter window: the state of a query that asked more holds what it needs."""

from dataclasses import replace
from typing import Any

from skyband.errors import StateError
from skyband.spark.stages.job import Job, prepare


def former(saved: dict[str, Any], job: Job) -> Job:
    """The job that wrote a checkpoint: this one, or one with a larger k or a longer window. Any other is refused.

    Args:
        saved: the result of :meth:`Job.spec` that the checkpoint has.
        job: the job that is to go on.
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


def _serves(job: Job) -> bool:
    """Whether the state of a job has all that the same query with a lower k or a shorter window needs."""
    algorithm = prepare(job).plan.algorithm
    return algorithm.exact and job.query.window.kind in algorithm.takes_over


def _fits(name: str, old: Any, new: Any, job: Job) -> bool:
    if name == "k":
        return bool(new <= old)
    window = job.query.window
    return name == "window.extent" and new <= old and not (window.hopping and (old - new) % window.slide)


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    query = spec["query"]
    window = {f"window.{name}": value for name, value in query["window"].items()}
    return {**query, **spec, **window, "query": None, "window": None}
