"""What Spark's tasks do with rows: read and prune them, pack them for the shards, and gather the shards' answers."""
