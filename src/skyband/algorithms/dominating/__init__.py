"""Algorithms for top-k dominating points, one file each, named as in their paper."""
