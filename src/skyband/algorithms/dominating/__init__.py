"""Algorithms for top-k dominating points, each in a file named as in its paper: Kontaki et al., TKDE 2012."""
