"""Algorithms for top-k pairs, each in a file named as in its paper: Shen et al., TKDE 2014."""
