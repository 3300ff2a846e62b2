"""The command ``regard``: its subcommands, its streams, and its errors."""

import atexit
import errno
import gc
import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from dataclasses import fields
from types import FrameType
from typing import NoReturn, TextIO, cast

from cyclopts import App, CycloptsError, UnknownOptionError

from regard.cli.audit import audit
from regard.cli.data import data
from regard.cli.demo import demo
from regard.cli.evaluate import evaluate
from regard.cli.look import look
from regard.cli.options import OPTIONS, option_here
from regard.cli.output import as_typed_paths, bars, end_interrupted_line, note
from regard.cli.predict import predict
from regard.cli.recipes import recipes, settings
from regard.cli.runs import export, info, runs
from regard.cli.serve import serve
from regard.cli.train import train
from regard.errors import Interrupted, RegardError, ReportedElsewhere, SettingError
from regard.inference.options import AnswerOptions
from regard.progress import Lossy
from regard.version import __version__

BAD_INPUT = 2
# Commands whose options are settings of a search.
_SEARCHING = ("predict", "evaluate", "look")
# Arguments of the functions that commands call, where the command line has another name.
_OTHER_NAMES = {"export": {"form": "--to", "out": "OUTPUT"}}
# The rule that a file breaks which the system refuses, by error number; and the cure.
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
for _command in (demo, train, predict, evaluate, info, runs, look, audit, serve, export, settings):
    app.command(_command)
for _commands in (data, recipes):
    app.command(_commands)
app.register_install_completion_command(
    help="Let the shell (bash, zsh, fish) complete commands, options and their values."
)


def main() -> NoReturn:
    """Run the command line of this process, and end it."""
    hold_streams()
    _put_off_garbage()
    _spin_less()
    _end_in_order()
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


def _put_off_garbage() -> None:
    """Let the first garbage collection wait: imports make 350,000 objects, all of which stay."""
    usual = gc.get_threshold()

    def resume(phase: str, info: dict[str, int]) -> None:
        gc.set_threshold(*usual)
        gc.callbacks.remove(resume)  # an exception that a signal raises in it would be lost

    gc.callbacks.append(resume)
    gc.set_threshold(500_000, *usual[1:])


def _spin_less() -> None:
    """Let OpenMP's waiting threads sleep early, where they would spin for long."""
    # Beside a program that keeps a core busy they would spin on the core that the work needs.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "5000")


def _end_in_order() -> None:
    """Let SIGTERM and a terminal that is closed stop a command as Ctrl-C does: no half file stays.

    A second one kills, and one that the shell has the command ignore stays ignored.
    """

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(number, signal.SIG_DFL)
        raise Interrupted(number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, stop)


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status.

    An error that a user can mend is one line on stderr and status 2; a stop asked for is 128 and
    the signal's number; every other error is a bug of ours and keeps its traceback.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            for argument in arguments:
                if "\0" in argument:
                    raise SettingError(f"an argument must hold no NUL character; got {argument!r}.")
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
            message = as_typed_paths(_as_typed(str(error), arguments), arguments)
            note(f"error: {_one_line(message)}")
        except KeyboardInterrupt:
            end_interrupted_line()
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
        options += [f"--{field.name.replace('_', '-')}" for field in fields(AnswerOptions)]
    for option in options:
        name = option.removeprefix("--").replace("-", "_")
        # A name of one word may be a word of the sentence elsewhere.
        start = r"(?<![\w.-])" if "_" in name else "^"
        if option.startswith("--") and name.isidentifier():
            message = re.sub(rf"{start}{name}(?=[ ;,=.])", option, message)
    for name, shown in _OTHER_NAMES.get(arguments[0], {}).items() if arguments else ():
        message = re.sub(rf"^{name}(?= must )", shown, message)
    return message


def _value_of(option: str, arguments: Sequence[str]) -> str | None:
    """The argument that follows an option, or stands behind its sign of equality."""
    for argument, following in zip(arguments, [*arguments[1:], "-"], strict=True):
        name, is_joined, value = argument.partition("=")
        if name == option:
            return value if is_joined else None if following.startswith("-") else following
    return None


def _refused(error: OSError) -> int:
    """The exit status of a refusal by the system; an error without its reason is no refusal."""
    if isinstance(error, BrokenPipeError):
        return 141  # whoever read our output has gone, and misses nothing
    if error.errno is None:
        raise error
    rule, cure = _RULES.get(error.errno, ("be usable", ""))
    note(f"error: {error.filename or 'the output'} must {rule}; got: {error.strerror}.{cure}")
    return BAD_INPUT


def _show_warning(message: Warning | str, category: type[Warning], *where: object) -> None:
    note(f"warning: {_one_line(str(message))}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def hold_streams() -> None:
    """Make each standard stream one to read from or write to, whatever the shell did to it.

    A closed one would lend its number to the next file that is opened, and get that written into.
    It is held by one that refuses to be used, as results must not get lost; reports may, so that
    those that stderr cannot take are dropped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            wrong = os.O_WRONLY if mode == "r" else os.O_RDONLY
            descriptor = os.open(os.devnull, wrong)  # the lowest that is free: the stream's own
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files are written back as they were read.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.stderr = cast(TextIO, Lossy(sys.stderr))


def drop_output() -> None:
    """Send the rest of stdout nowhere: the end of the process would try to write it once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
