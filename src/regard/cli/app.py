"""The command ``regard``: its subcommands, and what becomes of errors."""

import atexit
import errno
import os
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import fields
from typing import NoReturn

from cyclopts import App, CycloptsError, UnknownOptionError

from regard.cli.data import data
from regard.cli.decoding_options import DecodingOptions
from regard.cli.demo import demo
from regard.cli.evaluate import evaluate
from regard.cli.export import export
from regard.cli.info import info
from regard.cli.look import look
from regard.cli.options import OPTIONS, option_here
from regard.cli.output import bars, note
from regard.cli.predict import predict
from regard.cli.recipes import recipes
from regard.cli.runs import runs
from regard.cli.serve import serve
from regard.cli.settings import settings
from regard.cli.streams import drop_output, hold_streams
from regard.cli.train import train
from regard.errors import Interrupted, RegardError, ReportedElsewhere, SettingError
from regard.version import __version__

BAD_INPUT = 2
# Commands whose options are settings of a search.
_SEARCHING = ("predict", "evaluate", "look")
# What a file must be that the system refuses, by the number of its reason; and how to mend it.
_NO_ROOM = ("have room on its disk", " Free some space.")
_RULES = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EFBIG: _NO_ROOM,
    errno.EBADF: ("be open", ""),
    errno.ENAMETOOLONG: ("have a shorter name", ""),
    errno.EACCES: ("be one that you may use", ""),
    errno.EPERM: ("be one that you may use", ""),
}

app = App(
    name="regard",
    help=(
        "Attention on PyTorch: use it, train it, look inside it.\n\n"
        "Begin with `regard demo`. Then, with text of your own, sentence pairs, labels, tags or "
        "questions: `regard train FILE` says what it takes it for. Each command's `--help` has an "
        "example."
    ),
    help_format="markdown",
    version=__version__,
    default_parameter=OPTIONS,
)
for _command in (demo, train, predict, evaluate, info, runs, look, serve, export):
    app.command(_command)
app.command(settings)
for _commands in (data, recipes):
    app.command(_commands)
app.register_install_completion_command(
    help="Let the shell (bash, zsh, fish) complete commands, options and their values."
)


def main() -> NoReturn:
    """Run the command line of this process, and end it."""
    hold_streams()
    code = run_command(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        drop_output()
        code = code if code >= BAD_INPUT else _refused(error)
    # An ordinary end takes torch apart, object by object: half a second.
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(code)


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line; the exit status.

    What a user can mend is one line on stderr and status 2; a stop asked for is 128 and the
    signal's number; everything else keeps its traceback, since it is a mistake of ours.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            _check_arguments(arguments)
            command, bound, _ = app.parse_args(
                list(arguments), exit_on_error=False, print_error=False
            )
            with bars():
                return int(command(*bound.args, **bound.kwargs) or 0)
        except CycloptsError as error:
            note(f"error: {_one_line(_message(error, arguments))}")
        except Interrupted as stop:
            return 128 + stop.signal_number
        except ReportedElsewhere:
            return BAD_INPUT
        except RegardError as error:
            note(f"error: {_one_line(_as_typed(str(error), arguments))}")
        except KeyboardInterrupt:
            return 130
        except OSError as error:
            return _refused(error)
    return BAD_INPUT


def _message(error: CycloptsError, arguments: Sequence[str]) -> str:
    """The message of a command line that cannot be read."""
    command = arguments[0] if arguments and not arguments[0].startswith("-") else ""
    cause = error.__cause__
    message = str(cause if isinstance(cause, SettingError) else error)
    if isinstance(error, UnknownOptionError):
        option = (error.token.keyword or error.token.value).partition("=")[0]
        message = option_here(option, _value_of(option, arguments), command) or message
    return f"{message} See regard {f'{command} --help' if command in app else '--help'}."


def _as_typed(message: str, arguments: Sequence[str]) -> str:
    """Name settings in a message as the options of the command line: --beam-size, not beam_size."""
    options = [argument.partition("=")[0] for argument in arguments]
    if arguments and arguments[0] in _SEARCHING:
        options += [f"--{each.name.replace('_', '-')}" for each in fields(DecodingOptions)]
    for option in options:
        name = option.removeprefix("--").replace("-", "_")
        # A name of one word may be a word of the sentence elsewhere.
        place = r"(?<![\w.-])" if "_" in name else "^"
        if option.startswith("--") and name.isidentifier():
            message = re.sub(rf"{place}{name}(?=[ ;,=.])", option, message)
    return message


def _value_of(option: str, arguments: Sequence[str]) -> str | None:
    """The argument that follows an option, or stands behind its sign of equality."""
    for argument, following in zip(arguments, [*arguments[1:], "-"], strict=True):
        name, is_joined, value = argument.partition("=")
        if name == option:
            return value if is_joined else None if following.startswith("-") else following
    return None


def _check_arguments(arguments: Sequence[str]) -> None:
    for argument in arguments:
        if "\0" in argument:
            raise SettingError(f"an argument must hold no NUL character; got {argument!r}.")


def _refused(error: OSError) -> int:
    """The status of what the system refuses; an error without its reason is no refusal."""
    if isinstance(error, BrokenPipeError):
        return 141  # whoever read our output has gone, and misses nothing
    if error.errno is None:
        raise error
    rule, cure = _RULES.get(error.errno, ("be usable", ""))
    note(f"error: {error.filename or 'the output'} must {rule}; got: {error.strerror}.{cure}")
    return BAD_INPUT


def _show_warning(message: Warning | str, category: type[Warning], *place: object) -> None:
    note(f"warning: {_one_line(str(message))}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
