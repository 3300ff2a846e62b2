"""``regard audit``."""

import importlib.util
import json
import shutil
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from cyclopts import Parameter

from regard.checks import check_path
from regard.cli.output import note, say
from regard.errors import DataError, SettingError

_WIDTH = 88  # of a report that is not on a terminal, and the most on one
_EXAMPLES = "example_inputs"


def audit(
    target: str,
    /,
    *,
    inputs: str | None = None,
    causal: bool = False,
    padding: str | None = None,
    batch_axis: int = 0,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Find silent faults in code that attends.

    Example: `regard audit model.py:MultiHeadAttention`

    Example: `regard audit model.py:Decoder --inputs decoder_call --causal`

    Python runs FILE.py, so audit only code that you would run. NAME is a module, a class
    that is made without arguments, or a function of tensors. Each fault comes with its number, the
    lines that show it and a line that is right: weights that do not sum to one, tokens, rows or
    padding that change unrelated outputs, masks, scales, positions and heads gone astray. The
    exit status is 1 if there is one.

    Args:
        target: FILE.py:NAME.
        inputs: The name in FILE.py of the arguments of NAME: a tensor, a tuple of tensors, a
            dictionary of keywords, or a function that returns such; by default NAME_inputs, then
            example_inputs, and else inputs are made by shapes that fit.
        causal: No output may depend on later tokens; unless given, that is found out.
        padding: The argument, by position or name, of lengths or of a mask of padding.
        batch_axis: The axis of the rows of the batch.
        as_json: Print one JSON object instead.
    """
    file, name = _parts_of(target)
    # Output of the file is no part of the report.
    with redirect_stdout(sys.stderr):
        home = _run(file)
        module = _callable_in(home, file, name)
        arguments, keywords = _inputs_in(home, file, name, inputs)
        if arguments is None:
            from regard.attention.testing.examples import infer_inputs

            arguments, text = infer_inputs(module)
            note(f"inputs: {text}; for others, {name}_inputs = (…) in {file}")
        promised: dict[str, Any] = {"batch_axis": batch_axis, **keywords}
        promised |= {"causal": True} if causal else {}
        if padding is not None:
            promised["padding"] = int(padding) if padding.isdecimal() else padding
        from regard.attention.testing import audit as look

        report = look(module, *arguments, **promised)
    if as_json:
        say(json.dumps(report.as_data(), ensure_ascii=False))
    else:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
        say(report.draw(min(columns, _WIDTH)))
    return 1 if report.faults else 0


def _parts_of(target: str) -> tuple[Path, str]:
    file, _, name = target.rpartition(":")
    if target.endswith(".py") or not file:
        file, name = target, ""
    check_path("FILE.py:NAME", file)
    if not Path(file).is_file():
        raise SettingError(f"FILE.py:NAME must name a file that is there; got {target!r}.")
    return Path(file), name


def _run(file: Path) -> ModuleType:
    """Run a file of the user's as a module of its name, its own folder first on the path."""
    spec = importlib.util.spec_from_file_location(file.stem, file.resolve())
    if spec is None or spec.loader is None:
        raise SettingError(f"FILE.py:NAME must name a file of Python; got {file}.")
    import torch

    torch.manual_seed(0)  # random inputs of the file are the same in every run
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))
    sys.modules[file.stem] = module  # dataclasses of the file look for it there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        lines = list(traceback.extract_tb(error.__traceback__))
        frames = [frame for frame in lines if Path(frame.filename) == file.resolve()]
        where = frames[-1].lineno if frames else getattr(error, "lineno", None)
        location = f"{file}:{where}" if where else str(file)
        raise DataError(f"{location}: must run; got {type(error).__name__}: {error}.") from error
    return module


def _callable_in(home: ModuleType, file: Path, name: str) -> Callable[..., Any]:
    """The object that a file has under a name: made, if it is a class."""
    names = [
        key
        for key, value in vars(home).items()
        if callable(value) and getattr(value, "__module__", home.__name__) == home.__name__
    ]
    some = f"It has {', '.join(names[:12])}." if names else ""
    if not name:
        raise SettingError(f"FILE.py:NAME must name what to audit in {file}; got no name. {some}")
    value = vars(home).get(name)
    if not callable(value):
        raise SettingError(f"NAME must be a module or a function in {file}; got {name!r}. {some}")
    if not isinstance(value, type):
        function: Callable[..., Any] = value
        return function
    try:
        made: Callable[..., Any] = value()
    except TypeError as error:
        raise SettingError(
            f"NAME must be a class that is made without arguments; got {name}: {error}. "
            f"Write model = {name}(…) in {file}, and audit that."
        ) from error
    if not callable(made):
        raise SettingError(f"NAME must be something that is called with tensors; got {name}().")
    return made


def _inputs_in(
    home: ModuleType, file: Path, name: str, inputs: str | None
) -> tuple[tuple[Any, ...] | None, dict[str, Any]]:
    """The arguments and keywords of a call that a file has; None where it has none."""
    if inputs is not None and inputs not in vars(home):
        raise SettingError(f"--inputs must name something in {file}; got {inputs!r}.")
    wanted = [inputs] if inputs is not None else [f"{name}_inputs", _EXAMPLES]
    value = next((vars(home)[candidate] for candidate in wanted if candidate in vars(home)), None)
    if value is None:
        return None, {}
    value = value() if callable(value) and not hasattr(value, "shape") else value
    if isinstance(value, Mapping):
        return (), dict(value)
    if not isinstance(value, tuple | list):
        return (value,), {}
    if value and isinstance(value[-1], Mapping):
        return tuple(value[:-1]), dict(value[-1])
    return tuple(value), {}
