"""The tasks that files may be for, each with three examples as it reads their first lines."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from shutil import get_terminal_size
from tempfile import TemporaryDirectory
from typing import Any

from rich.cells import cell_len, chop_cells

from regard.errors import DataError, SettingError
from regard.tasks import TASKS
from regard.text.reading.folders import has_picture_classes
from regard.text.reading.forms import lines_of, text_suffix
from regard.text.reading.headers import FIRST_ROWS
from regard.text.reading.sources import shards
from regard.training.recipes import InferredTask, InferredTasks, Settings, inferring
from regard.training.recipes.beginning import begin_pretrained
from regard.training.recipes.resolving import PRETRAINED, resolve

# Lines that are read, and examples that are shown of them.
_LINES, _SHOWN = 2 * FIRST_ROWS, 3
_LEAST_WIDTH = 4  # columns of a terminal that a text is cut to


def infer_tasks(files: Sequence[str], settings: Settings) -> InferredTasks:
    """The tasks that files may be for, inferred from the first, each with its first examples.

    Values in ``settings`` are left out of theirs, and so is a task that can read no example.
    """
    tasks = inferring.infer_tasks(Path(files[0]), settings)
    if (pretrained := settings.get(PRETRAINED)) is not None:
        tasks = begin_pretrained(tasks, str(pretrained))
    readable = []
    with TemporaryDirectory() as folder, suppress(DataError, SettingError):
        heads = _heads([Path(name) for name in files], Path(folder))
        for task in tasks.candidates:
            with suppress(DataError, SettingError):
                examples = tuple(_first_examples(task, heads, settings))
                inferred = {name: v for name, v in task.settings.items() if name not in settings}
                readable.append(replace(task, examples=examples, settings=inferred))
    if not readable:  # whoever reads the files says why
        return tasks
    return InferredTasks(tuple(readable), is_sure=tasks.is_sure)


def infer_task(
    files: Sequence[str],
    settings: Settings,
    *,
    report: Callable[[str], None],
    ask: Callable[[InferredTasks], InferredTask] | None = None,
) -> InferredTask:
    """The task of files, reported in lines; where several are likely ``ask`` decides.

    Without ``ask`` a SettingError has a call and examples of each.
    """
    tasks = infer_tasks(files, settings)
    task = tasks.best if tasks.is_sure else (ask or partial(_refuse, files))(tasks)
    report(f"{files[0]} is taken for {task.description}: {task.reason}")
    for line in format_examples(task):
        report(line)
    return task


def _refuse(files: Sequence[str], tasks: InferredTasks) -> InferredTask:
    data = files[0] if len(files) == 1 else list(files)
    lines = [f"{files[0]} must be for one job; it may be for each of these. Make one of the calls:"]
    for task in tasks.candidates:
        settings = dict(task.settings)
        call = f"regard.train({task.recipe!r}, data={data!r}, settings={settings})"
        lines += [f"{task.description}: {call}", *format_examples(task)]
    raise SettingError("\n".join(lines))


def _first_examples(
    task: InferredTask, heads: Sequence[str], settings: Settings
) -> list[Mapping[str, str]]:
    """The first examples of files, of which these are the first lines, as a training reads them."""
    if not heads:
        return []
    columns = {
        name: value
        for name, value in {**task.settings, **settings}.items()
        if name.startswith("data.") and name not in ("data.train", "data.valid", "data.test")
    }
    recipe = resolve(task.recipe or {}, heads, columns)
    data: Any = recipe.data
    if hasattr(data, "on_bad_line"):
        recipe = replace(recipe, data=replace(data, on_bad_line="skip"))
    kind = TASKS[recipe.task].task
    return [kind.named_texts(example) for example in kind.read(recipe, "train")[:_SHOWN]]


def _heads(paths: Sequence[Path], folder: Path) -> list[str]:
    """Files of the first lines of others, in the same form; none of pictures."""
    if any(map(has_picture_classes, paths)):
        return []
    heads = []
    for number, path in enumerate(shards(pattern)[0] for pattern in paths):
        ending = text_suffix(path)
        copy = path if ending == ".json" else folder / f"{number}{ending}"  # one object, whole
        if copy != path:
            with copy.open("wb") as file:
                file.writelines(islice(lines_of(path), _LINES))
        heads.append(str(copy))
    return heads


def format_examples(task: InferredTask) -> list[str]:
    """The first examples of a task, each in a line of the terminal."""
    width = get_terminal_size().columns
    return [format_example(texts, width) for texts in task.examples]


def format_example(texts: Mapping[str, str], width: int) -> str:
    """An example in a line of a terminal, in which a Chinese character takes two columns.

    Example:
        >>> format_example({"text": "We stayed for a whole week.", "label": "good"}, 36)
        '  text: We stayed for …  label: good'
        >>> format_example({"文本": "我们住了整整一个星期。", "label": "好"}, 30)
        '  文本: 我们住了整…  label: 好'
    """
    plain = {name: " ".join(text.split()) for name, text in texts.items()}
    room = width - sum(cell_len(name) + 4 for name in plain)
    longest = max(map(cell_len, plain.values()), default=0)
    while longest > _LEAST_WIDTH and sum(min(cell_len(t), longest) for t in plain.values()) > room:
        longest -= 1
    line = "".join(f"  {name}: {_cut(text, longest)}" for name, text in plain.items())
    return _cut(line, width)


def _cut(text: str, width: int) -> str:
    """A text that takes at most so many columns."""
    if cell_len(text) <= width:
        return text
    return f"{chop_cells(text[:width], width - 1)[0]}…"
