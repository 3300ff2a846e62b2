"""The command ``regard``: its subcommands, and what becomes of errors."""

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, Parameter

from regard import __version__
from regard.cli.compare import compare
from regard.cli.data import data
from regard.cli.demo import demo
from regard.cli.evaluate import evaluate
from regard.cli.look import look
from regard.cli.output import note
from regard.cli.predict import predict
from regard.cli.serve import serve
from regard.cli.settings import settings
from regard.cli.train import train
from regard.errors import Interrupted, RegardError

BAD_INPUT = 2

app = App(
    name="regard",
    help=(
        "Attention on PyTorch: use it, train it, look inside it.\n\n"
        "Begin with `regard demo`. Then, with sentence pairs of your own, one a line and a tab "
        "between the two: `regard train pairs.tsv --minutes 30`. Each command's `--help` has an "
        "example."
    ),
    help_format="markdown",
    version=__version__,
    default_parameter=Parameter(negative=()),
)
for _command in (demo, train, predict, evaluate, look, serve, settings):
    app.command(_command)
app.command(data)
app.command(compare)


def main() -> None:
    """Run the command line of this process, and end it."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8")
    code = run_command(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or _refused(error)
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        _let_go(2)
    sys.exit(code)


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line; the exit status.

    What a user can mend is one line on stderr and status 2; a stop asked for is 128 and the
    signal's number; everything else keeps its traceback, since it is a mistake of ours.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            command, bound, _ = app.parse_args(
                list(arguments), exit_on_error=False, print_error=False
            )
            return int(command(*bound.args, **bound.kwargs) or 0)
        except CycloptsError as error:
            note(f"error: {_one_line(str(error))} See regard --help.")
        except Interrupted as stop:
            return 128 + stop.signal_number
        except RegardError as error:
            note(f"error: {_one_line(str(error))}")
        except KeyboardInterrupt:
            return 130
        except OSError as error:
            return _refused(error)
    return BAD_INPUT


def _refused(error: OSError) -> int:
    """The status of what the system refuses to write; other refusals are raised again."""
    if isinstance(error, BrokenPipeError):
        _let_go(1)
        return 141
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        raise error
    where = error.filename or "the output"
    note(f"error: {where} must have room on its disk; got: {error.strerror}. Free some space.")
    return BAD_INPUT


def _let_go(descriptor: int) -> None:
    """Whoever read this stream has gone; let the last flush of this process go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _show_warning(message: Warning | str, category: type[Warning], *place: Any) -> None:
    note(f"warning: {_one_line(str(message))}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
