"""Compiled loops over blocks and arrays: the only room that imports numba."""
