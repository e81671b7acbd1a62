"""How the kernels of this family are compiled: only what Python calls gets the code that unpacks Python's objects."""

from numba import njit

inner = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
outer = njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
