"""The text of a run as ids, kept in its folder so that going on need not encode it again.

::

    run/encoded.safetensors  the ids of all sentences, and where each one ends
    run/encoded.json         what they were encoded from and by, and the checksum of the former

They are never needed: where they are missing, damaged or of another text, tokenizer or setting, the
text is encoded anew. They may be deleted at any time.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypedDict

import torch
from jaxtyping import Shaped
from torch import Tensor

from regard.config import JsonValue
from regard.errors import RunError
from regard.runs import Run, RunWarning
from regard.runs.files import checksum, read_checked, read_sealed, seal, write_file
from regard.runs.state import pack_tensors, unpack_tensors
from regard.text import BadLines, Corpus
from regard.text.corpus import Sequences
from regard.version import __version__

_IDS, _ABOUT = "encoded.safetensors", "encoded.json"
# To be raised whenever the same text is encoded or kept otherwise than before.
_FORMAT = 1

# By their names, as ``train`` and ``valid``.
Corpora = Mapping[str, Corpus]


class RunCorpora:
    """The corpora of a training: those that its run keeps, if they fit, or else new ones.

    Args:
        run: Whose they are, if its tokenizer is the one in use; None encodes anew.
    """

    def __init__(self, run: Run | None = None) -> None:
        self._run = run
        self._new: tuple[Mapping[str, JsonValue], Corpora, BadLines] | None = None

    def corpora(
        self,
        made_of: Mapping[str, JsonValue],
        encode: Callable[[BadLines], Corpora],
        too_long: BadLines | None = None,
    ) -> Corpora:
        """The corpora, and what was too long for them is counted, as if they were encoded now.

        Args:
            made_of: What tells them from others besides the tokenizer: texts and settings, as JSON
                can hold it.
            encode: Makes them; called only where none are kept.
            too_long: Where what is too long is counted.
        """
        found = self._read(made_of)
        if found is None:
            counted = BadLines()
            found = encode(counted), counted
            self._new = (made_of, *found)
        corpora, counted = found
        if too_long is not None:
            too_long.merge(counted)
        return corpora

    def save(self, run: Run) -> None:
        """Keep new corpora in a run that is open for training and has its tokenizer.

        A disk that has no room for them or refuses is a RunWarning.
        """
        if self._new is None:
            return
        made_of, corpora, too_long = self._new
        content = pack_tensors(
            {
                f"{name}.{side}.{part}": torch.from_numpy(getattr(getattr(corpus, side), part))
                for name, corpus in corpora.items()
                for side in ("source", "target")
                for part in ("ids", "offsets")
            }
        )
        about: _About = {
            "made_of": _complete(made_of, run),
            "ids": checksum(content),
            "too_long": {"counts": too_long.counts, "examples": too_long.examples},
        }
        try:
            write_file(run.path / _IDS, content)
            write_file(run.path / _ABOUT, seal(about))
        except RunError as error:
            for name in (_IDS, _ABOUT):  # half of it is of no use, and checkpoints need the room
                with suppress(OSError):
                    (run.path / name).unlink()
            warnings.warn(
                f"The encoded text is not kept: {error} Training goes on; resumed, it encodes the "
                "text again.",
                RunWarning,
                stacklevel=2,
            )

    def _read(self, made_of: Mapping[str, JsonValue]) -> tuple[Corpora, BadLines] | None:
        """Cached text of the run, if it is whole and its fingerprint matches."""
        if self._run is None:
            return None
        where = self._run.path / _ABOUT
        try:
            about = read_sealed(where, _About)
            if about["made_of"] != _complete(made_of, self._run):
                return None
            ids = self._run.path / _IDS
            tensors = unpack_tensors(read_checked(ids, about["ids"]), where=ids)
        except RunError:
            return None
        names = sorted({name.partition(".")[0] for name in tensors})
        return {name: _corpus(tensors, name) for name in names}, _counted(**about["too_long"])


class _TooLong(TypedDict):
    counts: dict[str, int]
    examples: dict[str, list[str]]


class _About(TypedDict):
    """Contents of ``encoded.json``."""

    made_of: dict[str, JsonValue]
    ids: str
    too_long: _TooLong


def _complete(made_of: Mapping[str, JsonValue], run: Run) -> dict[str, JsonValue]:
    versions: dict[str, JsonValue] = {"format": _FORMAT, "regard": __version__}
    return {**made_of, **versions, "tokenizer": run.tokenizer_checksum}


def _counted(counts: dict[str, int], examples: dict[str, list[str]]) -> BadLines:
    return BadLines(Counter(counts), examples)


def _corpus(tensors: Mapping[str, Shaped[Tensor, "..."]], name: str) -> Corpus:
    source, target = (
        Sequences(*(tensors[f"{name}.{side}.{part}"].numpy() for part in ("ids", "offsets")))
        for side in ("source", "target")
    )
    return Corpus(source, target)
