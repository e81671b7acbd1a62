"""Writes the golden files anew."""

import sys

from tests.support.golden import rewrite

if __name__ == "__main__":
    rewrite(anew="--anew" in sys.argv[1:])
