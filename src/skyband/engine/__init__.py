"""The engine: one monitor over pipelines, which read batches, run an algorithm and write what it found."""
