"""Algorithms for objects assembled from several streams, one file each, named as in their paper."""
