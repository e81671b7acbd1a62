"""Algorithms for groups of rows, and for objects assembled from several streams (Haghani et al., CIKM 2009)."""
