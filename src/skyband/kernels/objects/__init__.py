"""Kernels of the algorithms for top-k objects."""
