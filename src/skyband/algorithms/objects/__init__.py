"""Algorithms for top-k objects, one file each, named as in their paper."""
