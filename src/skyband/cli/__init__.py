"""The command line: ``skyband demo``, ``skyband run`` and ``skyband top``.

This module imports next to nothing, so that Ctrl-C works from the first moment. The commands are in ``app``.
"""

from skyband.cli import interrupt


def main() -> None:
    """The program ``skyband``."""
    interrupt.listen()
    from skyband.cli.app import app

    app(prog_name="skyband")
