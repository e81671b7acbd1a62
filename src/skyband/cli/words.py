"""Turns error messages into the words of the command line: ``--order-by`` rather than ``order_by=``."""

import re

_OPTIONS = {
    "k": "-k", "order_by": "--order-by", "to": "--nearest-to", "metric": "--metric", "weights": "--weights",
    "last": "--last", "extent": "--last", "every": "--every", "on": "--on", "late": "--late",
    "partition_by": "--partition-by", "where": "--where", "select": "--select", "ties": "--ties", "error": "--error",
    "algorithm": "--algorithm", "name": "--name", "trigger": "--trigger", "emit": "--emit",
}  # fmt: skip
_NAMES = "|".join(_OPTIONS)
# Quoted text is the user's, and stays. A word without a = after it is an argument only if it is no English word, or if
# it begins the sentence.
_ARGUMENT = re.compile(
    rf"""(?P<quoted>(?<!\w)(?P<quote>['"]).*?(?<!\\)(?P=quote)(?!\w))
    |(?P<window>\b(?:window=)?(?:sb\.)?last\((?P<inner>\.\.\.|[^()]*)\))
    |(?<![\w.-])(?P<given>{_NAMES})(?:=|\[(?P<item>[^\]]*)\]=)(?P<nothing>(?=[\s,;.)]|$))?
    |(?<![\w.-])(?P<bare>order_by|partition_by|^(?:weights|to)(?=:))(?![\w=])""",
    re.VERBOSE | re.DOTALL,
)

# What a monitor tells of its arguments and counts; on the command line the last line has the counts.
_OF_MONITORS = re.compile(r"(?<=\blate=) of the window\b|\. This is said once; stats\.\w+ goes on counting$")
_AFTER_COMMA = re.compile(rf",\s*({_NAMES})=")


def in_options(sentence: str) -> str:
    """The same sentence, with the options of the command line in place of Python's arguments.

    >>> in_options("k=0 must be a whole number, at least 1")
    '-k 0 must be a whole number, at least 1'
    >>> in_options("order_by='on=1': there is no column 'on'; name the column with on=")
    "--order-by 'on=1': there is no column 'on'; name the column with --on"
    >>> in_options("window=3 is not a window; build one with sb.last(...)")
    'window=3 is not a window; build one with --last'
    >>> in_options("weights['x']=-1.0 must not be negative")
    '--weights x=-1.0 must not be negative'
    >>> in_options("name it with on=, for instance sb.last('10 minutes', on='time')")
    "name it with --on, for instance --last '10 minutes' --on 'time'"
    >>> in_options("allow for their delay with late= of the window. This is said once; stats.late goes on counting")
    'allow for their delay with --late'
    >>> in_options("every=20 exceeds the extent 10")
    '--every 20 exceeds the extent 10'
    """
    return _ARGUMENT.sub(_option, _OF_MONITORS.sub("", sentence))


def _following(found: re.Match[str]) -> str:
    return f" {_OPTIONS[found[1]]} "


def _option(found: re.Match[str]) -> str:
    if found["quoted"]:
        return found[0]
    if found["window"]:
        return "--last" if found["inner"] in ("...", "") else f"--last {_AFTER_COMMA.sub(_following, found['inner'])}"
    if found["bare"]:
        return _OPTIONS[found["bare"]]
    option = _OPTIONS[found["given"]]
    if found["item"]:
        return f"{option} {found['item'].strip(chr(39))}="
    return option if found["nothing"] is not None else f"{option} "
