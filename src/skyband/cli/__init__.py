"""The command line: ``skyband demo``, ``skyband run`` and ``skyband top``.

This module imports next to nothing, so that Ctrl-C is heard from the first moment; ``app`` has the commands.
"""

from skyband.cli import interrupt


def main() -> None:
    """The program ``skyband``."""
    interrupt.listen()
    from skyband.cli.app import app

    app(prog_name="skyband")
