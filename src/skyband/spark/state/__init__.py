"""What Spark's stateful operator holds: pieces of the engine's state."""
