"""Writes the golden files that are missing or not read any more; with ``--anew``, all of them."""

import sys

from tests.support.golden import rewrite

if __name__ == "__main__":
    rewrite(anew="--anew" in sys.argv[1:])
