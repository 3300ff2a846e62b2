"""Interface of export forms, and the README of each with its program, which runs without regard."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from regard.config import JsonValue
from regard.inference import Predictor
from regard.runs import Run
from regard.runs.packing import without_folders
from regard.text import PairTokenizer, Tokenizer
from regard.text.normalization import UNSPACED
from regard.text.tokenizers.sentencepieces import SentencePieceTokenizer
from regard.text.tokenizers.words import ListTokenizer
from regard.version import __version__

# Settings of [data] that a README names, and their titles.
_DATA = {
    "source_language": "source language",
    "target_language": "target language",
    "language": "language",
    "train": "trained on",
    "valid": "validated on",
}


# The program of an export that uses it.
PROGRAM = "program.py"


def spelled(value: object) -> str:
    """A value as a recipe spells it."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def trained_with(setting: str, value: object) -> str:
    """The cure of a refusal: the option of ``regard train`` that a form holds."""
    if value is None:
        return f"train without {setting}"
    text = spelled(value).strip("'")
    return f"train with --set {setting}={text}"


class ExportForm(ABC):
    """One way to write a run down for others.

    Attributes:
        purpose: Its purpose, in a line.
        precisions: Those the weights can be written in; empty where they stay as they are.
        precision: The one they are written in.

    Example:
        One that hands on the recipe alone:

        >>> import json, tempfile
        >>> class RecipeAlone(ExportForm):
        ...     purpose = "the settings, as JSON"
        ...     def usage(self, predictor, name):
        ...         return f"Read {name}."
        ...     def refuse(self, predictor):
        ...         return None
        ...     def write(self, run, predictor, out, *, readme):
        ...         out.write_text(json.dumps(run.recipe), "utf-8")
        >>> home = Path(tempfile.mkdtemp())
        >>> with Run.create(home / "run", {"task": "translation"}, "translation") as run:
        ...     RecipeAlone().write(run, None, home / "recipe.json", readme="")
        >>> (home / "recipe.json").read_text("utf-8")
        '{"task": "translation"}'
    """

    purpose: ClassVar[str]
    precisions: ClassVar[tuple[str, ...]] = ()
    precision: str = "float32"

    @abstractmethod
    def refuse(self, predictor: Predictor) -> str | None:
        """Why this form cannot hold the run, by the option of its recipe; None if it can."""

    @abstractmethod
    def usage(self, predictor: Predictor, name: str) -> str:
        """How the export is used, in Markdown; a program in it runs as it stands.

        Args:
            predictor: The run, loaded.
            name: Of the file or folder.
        """

    @abstractmethod
    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        """Write it, whole or not at all.

        Args:
            run: The run.
            predictor: The run, loaded.
            out: The file or folder, which does not exist.
            readme: The README, in Markdown.
        """


def readme_of(run: Run, predictor: Predictor, *, usage: str) -> str:
    """The README of an export in Markdown: the model, its data, its figures, its use."""
    summary = run.summary if isinstance(run.summary, Mapping) else {}
    data, figures = run.recipe.get("data", {}), summary.get("validation")
    training = {
        name.replace("_", " "): value
        for name, value in summary.items()
        if isinstance(value, int | float | str)
    }
    parts = {
        "What it is": _description(predictor),
        "Data": _items(
            {title: without_folders(data[name]) for name, title in _DATA.items() if data.get(name)}
        ),
        "Training": _items(training),
        "Figures on the validation set": _items(figures if isinstance(figures, Mapping) else {}),
        "How to use it": usage,
    }
    text = "\n\n".join(f"## {title}\n\n{part}" for title, part in parts.items() if part)
    return (
        f"# A run of regard: {predictor.recipe.task}\n\nMade by regard {__version__}.\n\n{text}\n"
    )


def _description(predictor: Predictor) -> str:
    recipe = predictor.recipe
    parameters = sum(p.numel() for p in predictor.model.parameters())
    items = _items(
        {"task": recipe.task, "model": f"{recipe.model_type}, {parameters:,} parameters"}
    )
    return "\n".join([items, *(f"- {fact}" for fact in predictor.task.describe())])


def _items(values: Mapping[str, JsonValue]) -> str:
    return "\n".join(f"- {title}: {_written(value)}" for title, value in values.items())


def _written(value: JsonValue) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


_IMPORTS = "import json\nimport re\nimport sys\nimport unicodedata\nfrom pathlib import Path\n"
_SUBWORDS = '''
from sentencepiece import SentencePieceProcessor


def reader(side):
    """Two functions: from text to ids, and back."""
    pieces = SentencePieceProcessor(model_file=f"tokenizer/{side}/tokenizer.model")
    return lambda text: pieces.encode(prepared(text)), lambda ids: pieces.decode(ids).strip()
'''
_LISTED = '''

def reader(side):
    """Two functions: from text to ids, and back; 0 to 3 are reserved, 1 is unknown."""
    pieces = json.loads(Path(f"tokenizer/{side}/tokenizer.json").read_text("utf-8"))["pieces"]
    ids = {piece: number for number, piece in enumerate(pieces, 4)}

    def encode(text):
        return [ids.get(piece, 1) for piece in cut(prepared(text), ids)]

    return encode, lambda written: "".join(pieces[id_ - 4] for id_ in written if id_ > 3).strip()
'''
_CHARACTERS = """

def prepared(text):
    return " ".join(text.split())


def cut(text, known):
    return list(text)
"""
_MARKED = '''
# Scripts that are written without spaces between words.
UNSPACED = {unspaced}


def prepared(text):
    """A first word has a space before it, as others have."""
    text = " ".join(text.split())
    opens = text[:1].isalnum() and not re.search(UNSPACED, text)
    return f" {{text}}" if opens else text
'''
_WORDS = '''

WORD = re.compile(r"s?(?:a[am]*(?:qa[am]*)*|d[dm]*|[oq]m*)|cm*|m+|s")


def kind(char):
    """One letter: unspaced character, letter, digit, mark, space, apostrophe or other."""
    group = unicodedata.category(char)[0]
    if group in "LN":
        return "c" if re.match(UNSPACED, char) else "a" if group == "L" else "d"
    return "m" if group == "M" else {" ": "s", "'": "q", "’": "q"}.get(char, "o")


def cut(text, known):
    """Words with the space before them; one that is not known is cut into characters."""
    for found in WORD.finditer("".join(map(kind, text))):
        word = text[found.start() : found.end()]
        if word not in known and word[:1] == " " and word[1:] in known:
            yield from (" ", word[1:])
        else:
            yield from [word] if word in known else word
'''
_BY_REGARD = '''
from regard.text import load_tokenizer


def reader(side):
    """Two functions: from text to ids, and back."""
    tokenizer = load_tokenizer(Path("tokenizer") / side)
    return tokenizer.encode, tokenizer.decode
'''


def reading(tokenizer: Tokenizer) -> str:
    """Code of ``reader(side)`` for the folders in ``tokenizer``; regard reads checkpoints' own."""
    marked = _MARKED.format(unspaced=ascii(UNSPACED))
    if isinstance(tokenizer, SentencePieceTokenizer):
        return _IMPORTS + _SUBWORDS + (marked if tokenizer.marks_words else _CHARACTERS)
    if isinstance(tokenizer, ListTokenizer):
        cut = _CHARACTERS if tokenizer.kind == "characters" else f"{marked}{_WORDS}"
        return f"{_IMPORTS}{cut}{_LISTED}"
    return _IMPORTS + _BY_REGARD


def sides(tokenizer: PairTokenizer) -> tuple[str, str]:
    """The folders of a pair's tokenizers below ``tokenizer``."""
    return ("shared", "shared") if tokenizer.is_shared else ("source", "target")


def run_program(*, needs: str, reads: bool = True, differences: Sequence[str] = ()) -> str:
    """How ``PROGRAM`` of an export is run, in Markdown, and how its answers differ from the run's.

    Args:
        needs: The packages that it needs.
        reads: Whether it answers lines from stdin.
        differences: Sentences.
    """
    line = f"    python {PROGRAM}{' < FILE' * reads}"
    answers = "It answers each line of FILE as `regard predict` does" if reads else ""
    notes = "\n".join(f"- {sentence}" for sentence in differences)
    how = f"\n\n{answers}{', but:' if notes else '.'}" if answers else ""
    return f"In this folder:\n\n    pip install {needs}\n{line}{how}" + f"\n\n{notes}" * bool(notes)


# Settings of a search that no program has, and their values when they are off.
_UNSEARCHED = {
    "coverage_penalty": 0.0,
    "repetition_penalty": 1.0,
    "no_repeat_ngram": None,
    "prefix": "",
    "avoid": (),
}


def search_differences(predictor: Predictor, *, draws: bool = False) -> list[str]:
    """How the search of a program differs from that of ``regard predict``, in sentences.

    Args:
        predictor: A run that writes.
        draws: Whether the program draws answers, and repeats no n-gram, where the run does.
    """
    decoding, data = predictor.decoding, predictor.recipe.data
    differences = []
    if decoding.method == "sample" and not draws:
        differences.append(
            'the run draws its answers at random (`decoding.method = "sample"`), and the program '
            "writes the likeliest token at each step;"
        )
    differences += [
        f"the run searches with `decoding.{name} = {spelled(value)}`, and the program without it;"
        for name, off in _UNSEARCHED.items()
        if (value := getattr(decoding, name)) != off and not (draws and name == "no_repeat_ngram")
    ]
    if predictor.recipe.task == "translation":
        longest = getattr(data, "max_length", None)
        differences.append(
            f"a text of more than {longest} tokens is translated in parts by regard, and whole by "
            "the program;"
        )
    if predictor.recipe.task == "generation":
        differences.append(
            "of a document regard reads what `[data]` says, and the program the whole line;"
        )
    differences.append("of answers that are nearly equal, rounding may choose another.")
    return differences
