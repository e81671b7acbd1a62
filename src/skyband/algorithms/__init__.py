"""The algorithms: one contract, one file each, named as in their papers."""
