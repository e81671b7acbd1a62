"""The engine: a monitor and its pipelines, each of which reads batches, runs an algorithm and writes answers."""
