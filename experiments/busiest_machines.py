"""The machines that dominate most others in CPU, network and disk use, live on Spark.

    python experiments/busiest_machines.py [--data vms.parquet] [--rows N]

A machine tells its use every five minutes, so a window of five minutes has one reading of each: the sixteen machines
that are now at least as busy as most others in all three respects. Without ``--data`` (columns ts, vm, cpu_pct,
net_rx, net_tx, disk_r, disk_w) the readings are generated.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _watch import in_microseconds, options, watch

import skyband as sb

QUERY = sb.TopKDominating(
    k=16,
    dimensions={"cpu_pct": "max", "net_rx + net_tx": "max", "disk_r + disk_w": "max"},
    window=sb.last("5 minutes", every="5 minutes"),
    select=("vm", "cpu_pct", "net_rx + net_tx AS net", "disk_r + disk_w AS disk"),
)
MACHINES, PAUSE = 100, 300  # seconds between two readings of a machine


def readings(rows: int) -> pa.Table:
    """Machines that are busy or idle for hours, in CPU, network and disk alike."""
    rng = np.random.default_rng(1)
    number = np.arange(rows)
    vm, turn = number % MACHINES, number // MACHINES
    load = np.abs(np.sin(vm * 1.7 + turn / 40)) ** 3
    columns = {name: load * scale * rng.lognormal(0, 0.7, rows) for name, scale in
               (("cpu_pct", 30), ("net_rx", 200), ("net_tx", 150), ("disk_r", 500), ("disk_w", 400))}  # fmt: skip
    time = 1_372_636_800_000_000 + (turn * PAUSE + vm * 2) * 1_000_000
    return pa.table({"ts": pa.array(time, pa.timestamp("us", "UTC")), "vm": vm, **columns})


def main() -> None:
    given = options(__doc__, rows=20_000)
    names = ["ts", "vm", "cpu_pct", "net_rx", "net_tx", "disk_r", "disk_w"]
    table = (
        readings(given.rows) if given.data is None else pq.read_table(given.data, columns=names).slice(0, given.rows)
    )
    watch(in_microseconds(table), QUERY, given.batches)


if __name__ == "__main__":
    main()
