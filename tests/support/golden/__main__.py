"""Writes the golden files anew."""

import sys

from tests.support.golden import rewrite

rewrite(anew="--anew" in sys.argv[1:])
