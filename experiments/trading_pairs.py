"""Pairs of trades close in time and far in price: the same symbol on two exchanges, on Spark.

    python experiments/trading_pairs.py [--data trades.parquet] [--rows N]

Every five seconds of event time the ten pairs of the last ten seconds that differ most in price for their distance in
time. Without ``--data`` (columns ts, symbol, exchange, price) the trades are generated.
"""

import pyarrow as pa
import pyarrow.parquet as pq
from _watch import in_microseconds, options, watch

import skyband as sb
from skyband.datasets import trades

QUERY = sb.TopKPairs(
    k=10,
    order_by="abs(a.price - b.price) / (a.price * (0.1 + abs(a.ts - b.ts))) DESC",
    same="symbol",
    different="exchange",
    window=sb.last("10 seconds", every="5 seconds"),
    select=("a.symbol AS symbol", "a.exchange", "a.price", "b.exchange", "b.price",
            "b.seconds - a.seconds AS seconds_apart"),
)  # fmt: skip


def main() -> None:
    given = options(__doc__, rows=50_000)
    if given.data is None:
        table = trades(given.rows, seed=1)
    else:
        table = pq.read_table(given.data, columns=["ts", "symbol", "exchange", "price"]).slice(0, given.rows)
    table = in_microseconds(table)
    moment = table["ts"].cast(pa.int64()).to_numpy()
    watch(table.append_column("seconds", pa.array((moment - moment[0]) / 1e6)), QUERY, given.batches)


if __name__ == "__main__":
    main()
