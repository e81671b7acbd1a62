"""The program ``skyband``: its commands, and how it reports errors.

Modules that take long to import are imported where they are used, so that ``--help`` answers at once and ``skyband
top`` needs no Spark.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from skyband import __version__
from skyband.cli import demo, interrupt, run, top
from skyband.cli.terminal import err, out
from skyband.cli.words import in_options
from skyband.errors import SkybandError


class Commands(TyperGroup):
    """Reports errors that a user can correct in one red line, with exit code 2; ``--debug`` shows the traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with _warnings_in_a_line():
                result = super().invoke(ctx)
        except Exception as error:
            if interrupt.heard():  # the error is a consequence of Ctrl-C
                interrupt.leave()
            sentence = _sentence(error)
            if sentence is None or ctx.params["debug"]:
                raise
            err.print(f"[red]skyband: {escape(sentence)}[/]", soft_wrap=True)
            raise typer.Exit(2) from None
        if interrupt.heard():
            raise typer.Exit(interrupt.CODE)
        return result


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Within this context, skyband's own warnings are one line, without their place in the source."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if category.__module__.startswith("skyband."):
                err.print(f"[yellow]skyband: {escape(in_options(str(message)))}[/]", soft_wrap=True)
            else:
                others(message, category, *place, **more)

        warnings.showwarning = show
        yield


def _sentence(error: Exception) -> str | None:
    """The sentence that tells the user about an error; None for an error that is a fault of the program."""
    if isinstance(error, SkybandError):
        return in_options(str(error))
    if isinstance(error, ModuleNotFoundError) and error.name in ("pyspark", "pandas"):
        return f"this command needs Spark, and {error.name} is not installed: run pip install 'skyband[spark]'"
    if type(error).__module__.startswith(("pyspark.", "py4j.")):
        from skyband.spark.watch import reason

        return f"Spark: {in_options(reason(error))}"
    return str(error) if isinstance(error, OSError) and not isinstance(error, BrokenPipeError) else None


app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_show_locals=False,
                  add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})  # fmt: skip
app.command(epilog=demo.EXAMPLES)(demo.demo)
app.command(epilog=run.EXAMPLES + run.CSV)(run.run)
app.command(epilog=top.EXAMPLES + top.CSV)(top.top)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"skyband {__version__}")
        raise typer.Exit


@app.callback(epilog="Start with [bold]skyband demo[/]; [bold]skyband COMMAND --help[/] has examples.")
def skyband(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show Spark's own messages, and where an error came from.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Keeps the k best rows of a sliding window over a stream up to date."""
