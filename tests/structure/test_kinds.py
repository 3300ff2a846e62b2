"""Nobody above the models in use asks of what kind one is."""

import ast
from pathlib import Path

import regard
from regard.inference import Predictor
from regard.inference.checkpoint import Checkpoint
from regard.inference.loading import kind_of
from regard.tasks import TASKS

ROOMS = ("cli", "server", "inference")
FLAGS = {"is_seq2seq", "is_written", "writes"}
MOST = 6


def kinds():
    """Names of the classes of tasks and of models in use."""
    classes = [Predictor, Checkpoint, *Checkpoint.__mro__]
    for entry in TASKS.values():
        classes += [*entry.task.__mro__, *kind_of(entry.task).__mro__]
    return {each.__name__ for each in classes if each.__module__.startswith("regard.")}


def kind_tests(text, names):
    """Lines that ask of what kind a task or a model in use is; one for each such question."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in FLAGS:
            yield node.lineno
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
            if asked & names:
                yield node.lineno


def found(names):
    """Places in the package where a kind is asked for."""
    package = Path(regard.__file__).parent
    return [
        f"{file.relative_to(package)}:{line}"
        for room in ROOMS
        for file in sorted((package / room).rglob("*.py"))
        for line in kind_tests(file.read_text("utf-8"), names)
    ]


def test_a_kind_test_would_be_found():
    text = (
        "if isinstance(task, SequenceTask | int) or predictor.is_seq2seq or isinstance(x, int): ..."
    )
    assert list(kind_tests(text, kinds())) == [1, 1]


def test_hardly_anybody_asks_of_what_kind_a_model_is():
    assert len(found(kinds())) <= MOST, found(kinds())
