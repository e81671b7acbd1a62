"""What a file sink of Spark has written."""

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds


def written(here: Path) -> pa.Table:
    """What the file sink has committed: files of batches that were cut off are not in its log."""
    names = set()
    for log in sorted((here / "out" / "_spark_metadata").glob("[0-9]*")):
        for line in log.read_text().splitlines()[1:]:
            names.add(Path(line.split('"path":"')[1].split('"')[0].removeprefix("file://")).name)
    return ds.dataset([str(here / "out" / name) for name in sorted(names)]).to_table()
