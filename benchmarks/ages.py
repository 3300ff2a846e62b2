"""Whether the code of a record has changed since it was measured: what marks a figure as old.

A record's code is its script and what it measures of the package, which ``CODE`` names. Changed is
what Python reads otherwise: comments, docstrings, names of local variables and of files do not
count. ``records/old.txt`` keeps the
names of old records for clones without the history, in which nobody can tell.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from types import CodeType
from typing import Any

from benchmarks.measuring import script_of
from benchmarks.occasion import ROOT, git

MARK = "†"
NAMES = "benchmarks/records/old.txt"
_PACKAGE = "src/regard"
_KERNELS = ("attention", "kernels/attention")
_TRAINING_LOOPS = ("kernels/training.py", "kernels/bfloat16.py")
_DECODING_LOOPS = (
    *("kernels/attention", "kernels/products", "kernels/transformer", "kernels/compiling.py"),
    *("kernels/elementary.py", "kernels/machine_code.py", "kernels/recurrent.py"),
    *("kernels/search.py", "kernels/team.py", "kernels/threads.py"),
)
_DECODING = ("decoding", "runtime", *_DECODING_LOOPS)
_TRAINED = ("models", "layers", "training/optimization.py", "training/trainer.py")
# Rooms, files and recipes of the package that a script measures.
CODE: Mapping[str, Sequence[str]] = {
    "additive_attention": _KERNELS,
    "attention": (*_KERNELS, "layers/multihead.py"),
    "attention_mechanisms": (*_TRAINED, "recipes/rnn-*", "recipes/transformer-*"),
    "backend_choice": _KERNELS,
    "classification": (*_TRAINED, "tasks/labels/classification.py", "recipes/classification-*"),
    "decoding_speed": _DECODING,
    "demo": (
        *_TRAINED,
        *("cli/demo*", "text/phrasebook*", "text/handwritten.tsv", "recipes/demo.toml"),
    ),
    "documents": (*_TRAINED, "tasks/sequences/generation.py", "recipes/generation-*"),
    "generation_speed": _DECODING,
    "gpu_attention": ("attention",),
    "gpu_training": ("attention", "layers", "models", "training"),
    "inspection": (*_KERNELS, "interop/watch.py"),
    "language_modelling": (
        *_TRAINED,
        "tasks/running_text/language_modelling.py",
        "recipes/language-model-*",
    ),
    "phrases": (*_TRAINED, "tasks/labels/classification.py", "recipes/classification-phrases.toml"),
    "pretraining": (
        *_TRAINED,
        "tasks/running_text/masked_language_modelling.py",
        "tasks/labels/classification.py",
    ),
    "question_answering": (
        *_TRAINED,
        *(
            "tasks/questions/question_*",
            "tasks/questions/multiple_choice.py",
            "tasks/questions/pair_matching.py",
        ),
        *("tasks/questions/sentence_selection.py", "recipes/question-answering*", "recipes/pair-*"),
        *("recipes/multiple-choice*", "recipes/sentence-selection*"),
    ),
    "start_up": ("__init__.py", "cli", "inference", "runs", "runtime"),
    "summarisation": (
        *_TRAINED,
        "tasks/sequences/generation.py",
        "tasks/labels/sentence_extraction.py",
    ),
    "tagging": (*_TRAINED, "tasks/labels/tag*", "recipes/tagging-*"),
    "translation": (
        *_TRAINED,
        "tasks/sequences/translation.py",
        *("recipes/transformer-muon.toml", "recipes/transformer-small.toml"),
        "recipes/transformer-tiny.toml",
        *("recipes/rnn-attention.toml", "recipes/conv-seq2seq.toml"),
    ),
    "training_speed": (
        *("attention", "kernels/attention", *_TRAINING_LOOPS, "layers", "models"),
        *("training/trainer.py", "training/optimization.py", "training/precision.py"),
        *("training/distributed/synchronizing.py", "tasks/sequences/chunked_loss.py"),
    ),
}


def old_records(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of the old ones; where there is no history, those that are old in ``NAMES``."""
    path = ROOT / NAMES
    before = path.read_text("utf-8").split() if path.exists() else []
    names = []
    for record in records:
        age = is_old(record)
        if record["name"] in before if age is None else age:
            names.append(record["name"])
    return names


def is_old(record: Mapping[str, Any]) -> bool | None:
    """Whether its code has changed since a part of it was measured; None if nobody can tell."""
    named = {record.get("commit"), *_parts(record.get("details"))}
    commits = sorted(commit for commit in named if isinstance(commit, str))
    if len(commits) < len(named) or any(commit.endswith("+") for commit in commits):
        return True  # of code that is in no commit
    name = script_of(record["name"])
    paths = (f"benchmarks/{name}.py", *(f"{_PACKAGE}/{path}" for path in CODE.get(name, ())))
    ages = [has_changed(commit, paths) for commit in commits]
    return None if None in ages else any(ages)


def has_changed(commit: str, paths: Sequence[str], *, root: Path = ROOT) -> bool | None:
    """Whether files differ from those of a commit in what Python reads; None without the commit."""
    changes = git("diff", "--name-status", "--find-renames", commit, root=root)
    if changes is None:
        return None
    names = [change.split("\t")[1:] for change in changes.splitlines()]
    return any(
        _differs(commit, before[0], before[-1], root)
        for before in names
        if any(
            fnmatch(name, path) or name.startswith(f"{path}/") for name in before for path in paths
        )
    )


def _differs(commit: str, before: str, after: str, root: Path) -> bool:
    text, path = git("show", f"{commit}:{before}", root=root), root / after
    if text is None or not path.exists() or path.suffix != ".py":
        return True
    return _content(_compiled(text)) != _content(_compiled(path.read_text("utf-8")))


def _compiled(text: str) -> CodeType:
    """A module without docstrings, and without the names of the modules it imports from."""
    return compile(_WithoutImports().visit(ast.parse(text)), "", "exec", optimize=2)


class _WithoutImports(ast.NodeTransformer):
    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)


def _content(code: CodeType) -> tuple[object, ...]:
    """Instructions, constants and global names; what a local variable is called does not count."""
    values = (_content(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts)
    return code.co_code, code.co_names, *values


def _parts(details: object) -> Iterator[str | None]:
    """The commits of parts that were measured at times of their own."""
    if not isinstance(details, Mapping):
        return
    for name, each in details.items():
        if name == "measured" and isinstance(each, Mapping) and "commit" in each:
            yield each["commit"]
        else:
            yield from _parts(each)
