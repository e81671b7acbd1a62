"""Kernels of the algorithms for groups, and for objects assembled from several streams."""
