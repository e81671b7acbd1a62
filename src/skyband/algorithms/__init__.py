"""The algorithms: one class and one file each, named as in its paper; all of them keep one contract."""
