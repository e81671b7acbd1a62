"""A million rankings at once: ``partition_by`` with 10⁶ keys, k = 5, hopping windows.

    python benchmarks/objects_keys.py [--full]

Prints rows/s in the steady state, the objects held and the bytes they take, for integer and for string keys.
``--full`` keeps the results.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from _measure import keep, show

import skyband as sb

FULL = "--full" in sys.argv
KEYS = 1_000_000
BATCHES = 8


def batches(strings: bool, keys: int) -> Iterator[pa.Table]:
    rng = np.random.default_rng(1)
    for i in range(BATCHES):
        key = rng.integers(0, keys, keys)
        ts = np.sort(rng.integers(i * 60_000_000, (i + 1) * 60_000_000, keys)).view("datetime64[us]")
        column = pc.binary_join_element_wise("key", pa.array(key).cast(pa.string()), "-") if strings else pa.array(key)
        yield pa.table({"ts": ts, "key": column, "value": rng.random(keys)})


def measure(strings: bool, keys: int = KEYS) -> dict[str, Any]:
    window = sb.last("4 minutes", every="1 minute")
    monitor = sb.Monitor(sb.TopK(k=5, order_by="value DESC", window=window, partition_by=("key",)))
    seconds, emitted = [], 0
    for batch in batches(strings, keys):
        start = time.perf_counter()
        emitted += monitor.push(batch).num_rows
        seconds.append(time.perf_counter() - start)
    stats = monitor.stats
    steady = seconds[BATCHES // 2 :]
    return {"keys": "strings" if strings else "integers", "rows/s": int(keys * len(steady) / sum(steady)),
            "rows emitted/s": int(emitted / sum(seconds)), "objects held": stats.candidates, "bytes": stats.bytes,
            "bytes a key": stats.bytes / keys}  # fmt: skip


def main() -> None:
    measure(False, 1000)  # compiles
    rows = [measure(False), measure(True)]
    show(f"{KEYS:,} keys, k = 5, the last 4 minutes every minute, {KEYS:,} rows a minute", rows)
    if FULL:
        keep("objects_keys", rows=rows)


if __name__ == "__main__":
    main()
