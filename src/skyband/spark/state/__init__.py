"""What Spark's stateful operator does: it restores pieces of the engine's state, has them updated, and saves them."""
