"""Algorithms for top-k pairs, one file each, named as in their paper."""
