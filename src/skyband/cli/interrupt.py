"""Makes Ctrl-C end the program in the same way at any moment: one line on standard error, and exit code 130.

Python handles a signal between two steps of its main thread. While a kernel compiles, that is too late. While modules
are being imported, or Java is being talked to, it is a bad moment: what is under way fails with a traceback, or waits
for ever. So the signal is blocked, here and in the processes that Spark starts, and a thread waits for it. This thread
ends the process; if a stream is running, it first asks the stream to end by itself.

A request to terminate is heard as Python hears it, so that nothing is left behind then either.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

CODE, TERMINATED = 130, 143  # what shells expect
PATIENCE = 15.0  # seconds for a stream to end by itself

_stream: threading.Event | None = None  # set to ask the stream that is running to end
_heard = threading.Event()
_errors = (
    2  # where the last line goes: standard error, even while it is redirected to a log for processes that are started
)
_undone: list[Callable[[], object]] = []


def listen() -> None:
    """From now on Ctrl-C and requests to terminate are heard; where Ctrl-C is ignored (``nohup``) it stays so."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: leave("terminated", TERMINATED))
    if not hasattr(signal, "pthread_sigmask") or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return  # without masks (Windows) it is heard as Python hears it
    global _errors
    _errors = os.dup(2)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threading.Thread(target=_listen, name="Ctrl-C", daemon=True).start()


@contextmanager
def undoing(action: Callable[[], object]) -> Iterator[None]:
    """Calls a function that cleans up at the end of this context, and also if a signal ends the program."""
    _undone.append(action)
    try:
        yield
    finally:
        _undone.remove(action)
        action()


@contextmanager
def asking(stop: threading.Event) -> Iterator[None]:
    """Within this context the first Ctrl-C sets an event; a second one, or a long wait after it, ends the program."""
    global _stream
    _stream = stop
    try:
        yield
    finally:
        _stream = None


def heard() -> bool:
    """Whether a stream has been asked to end."""
    return _heard.is_set()


def leave(sentence: str = "interrupted", code: int = CODE) -> None:
    """End the process, with this as its last line."""
    for action in reversed(_undone):
        with suppress(OSError):
            action()
    clear = (
        "\r\x1b[2K\x1b[?25h" if os.isatty(_errors) else ""
    )  # the line that says how things are; and the cursor comes back
    with suppress(OSError):
        os.write(_errors, f"{clear}skyband: {sentence}\n".encode())
    os._exit(code)


def _listen() -> None:
    while True:
        signal.sigwait({signal.SIGINT})
        stream = _stream
        if stream is None or _heard.is_set():
            leave()
            return
        _heard.set()
        stream.set()
        waiting = threading.Timer(PATIENCE, leave, ["interrupted; the stream did not end by itself"])
        waiting.daemon = True
        waiting.start()
