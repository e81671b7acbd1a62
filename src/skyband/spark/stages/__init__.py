"""What Spark's tasks do: score, prune and pack, spread, gather."""
