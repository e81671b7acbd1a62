"""Kernels of top-k pairs (*pairs*: Shen et al., TKDE 2014)."""
