"""Checks that all layouts of transformers share: which runs they hold, and why not."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from regard.config import JsonValue
from regard.export.form import trained_with
from regard.inference import Predictor
from regard.inference.searcher import FORBIDDEN
from regard.interop.checkpoints import LayoutName
from regard.tasks import DecodingConfig
from regard.text import BOS_ID, EOS_ID, PAD_ID

Table = dict[str, JsonValue]

# Values of an option that a layout can hold, and why it holds no other.
Options = Mapping[str, tuple[Sequence[object], str]]


@dataclass(frozen=True, slots=True)
class Held:
    """A model as a layout of transformers has it.

    Attributes:
        layout: Which.
        model: Its weights.
        settings: What its config says besides sizes.
        generation: How outputs are searched for; None of a model that writes nothing.
        opens: The class of transformers that opens it.
        use: Lines of Python that use ``model`` and ``tokenizer``.
        pipeline: What transformers calls its task.
        tokenizers: Ours of any kind, by the folder that each goes into; "" is the model's own.
        before: The reserved ids before a text that is read.
        after: Those after it.
        longest: Most tokens that are read at once.
        mask: What masks a word, where the model knows it.
        tells_segments: Whether the model is told which of two texts a token is of.
        notes: What else people should know, in Markdown.
        folder: Where a run keeps the tokenizer, where both sides have one.
    """

    layout: LayoutName
    model: nn.Module
    settings: Table
    generation: Table | None
    opens: str
    use: str
    pipeline: str
    tokenizers: Mapping[str, object]
    before: tuple[int, ...]
    after: tuple[int, ...]
    longest: int
    mask: str | None = None
    tells_segments: bool = False
    notes: tuple[str, ...] = ()
    folder: str = "text"


class Shape(ABC):
    """Models of one kind."""

    @abstractmethod
    def refuse(self, predictor: Predictor) -> str | None:
        """Why no layout holds the model, by the option of its recipe; None if one does."""

    @abstractmethod
    def hold(self, predictor: Predictor) -> Held:
        """The model in the layout that holds it."""


def refused(section: str, config: object, options: Options) -> str | None:
    """The first option whose value no layout holds, and why; None if there is none."""
    for name, (values, reason) in options.items():
        if (got := getattr(config, name)) not in values:
            shown = str(got).lower() if isinstance(got, bool) else repr(got)
            cure = trained_with(f"{section}.{name}", values[0])
            return f"{section}.{name} is {shown}, and {reason}; {cure}"
    return None


def searched(decoding: DecodingConfig) -> Table:
    """The settings of a search, in the words of transformers as far as it has them."""
    table: Table = {
        "pad_token_id": PAD_ID,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "suppress_tokens": list(FORBIDDEN),
        "min_new_tokens": decoding.min_length or None,
        "no_repeat_ngram_size": decoding.no_repeat_ngram or 0,
        "num_beams": 1,
        "do_sample": False,
    }
    if decoding.method == "beam" and decoding.beam_size > 1:
        table |= {
            "num_beams": decoding.beam_size,
            "length_penalty": decoding.length_penalty,
            # It stops as ours: nothing is better than what it has by then.
            "early_stopping": True,
        }
    elif decoding.method == "sample":
        table |= {
            "do_sample": True,
            "temperature": decoding.temperature,
            "top_k": decoding.top_k or 0,
            "top_p": decoding.top_p,
        }
    return {name: value for name, value in table.items() if value is not None}
