"""Kernels of the algorithms for top-k dominating points."""
