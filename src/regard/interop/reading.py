"""Texts as a Hugging Face tokenizer reads and writes them, with the place of every token."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.errors import DataError
from regard.viewer import Text

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_LONGEST = 1_000_000_000  # tokenizers without a limit of their own name a larger one


def read(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    text: str,
    *,
    truncate: bool = False,
    is_target: bool = False,
) -> tuple[Int[Tensor, "1 N"], Text]:
    """The ids of a text, with the tokenizer's signs around it, and its tokens.

    Args:
        model: Whose positions bound the length.
        tokenizer: A Hugging Face tokenizer; places are exact where it is a fast one.
        text: What is read.
        truncate: Whether a text that is too long is cut at the longest the model reads.
        is_target: Whether it is what the model is to write, for which some have a vocabulary of
            its own.

    Raises:
        DataError: The text is empty, cannot be encoded, or is too long.
    """
    if not text.strip():
        raise DataError("text must hold something to look at; got an empty one.")
    name = "text_target" if is_target else "text"
    ids, spans = _encoded(tokenizer, {name: text})
    longest = longest_input(model, tokenizer)
    is_cut = longest is not None and len(ids) > longest
    if is_cut:
        if not truncate:
            raise DataError(
                f"text must be at most {longest:,} tokens long, which is as far as the positions "
                f"of {type(model).__name__} go; got {len(ids):,}. Cut it there with --truncate, or "
                "truncate=True."
            )
        ids, spans = _encoded(tokenizer, {name: text}, truncation=True, max_length=longest)
    if not ids:
        raise DataError(f"text must have tokens to look at; got none of {text[:20]!r}.")
    pieces = tokenizer.convert_ids_to_tokens(ids)
    if is_cut and spans is not None:  # what was cut off is not shown either
        text = text[: max(last for _, last in spans)]
    return torch.tensor([ids]), Text.of(pieces, text, spans)


def written(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> Text:
    """The text of ids that a model wrote, and where each id stands in it.

    Signs such as the end are no text. A character of several ids stands at the last of them.
    """
    ids = list(ids)

    def text_of(ids: list[int]) -> str:
        return str(
            tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    text = text_of(ids)
    spans, end = [], 0
    for count in range(1, len(ids) + 1):
        last = max(end, _shared(text_of(ids[:count]), text))
        start = end
        while start < last and text[start].isspace():
            start += 1
        spans.append((start if start < last else end, last))
        end = last
    return Text.of(tokenizer.convert_ids_to_tokens(ids), text, spans)


def longest_input(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase") -> int | None:
    """How many tokens a model reads at most, as far as its config and tokenizer say; None: any."""
    text = model.config.get_text_config()
    limits = []
    if not hasattr(text, "relative_attention_num_buckets"):
        limits.append(getattr(text, "max_position_embeddings", None))
    # Where places are counted from after the padding's id, as in RoBERTa, the first are unused.
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith("position_embeddings"):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - unused)
    limits.append(getattr(tokenizer, "model_max_length", None))
    known = [int(limit) for limit in limits if limit is not None and 0 < limit < _LONGEST]
    return min(known, default=None)


def _encoded(
    tokenizer: "PreTrainedTokenizerBase", text: dict[str, str], **options: object
) -> tuple[list[int], list[tuple[int, int]] | None]:
    is_fast = bool(getattr(tokenizer, "is_fast", False))
    try:
        found = tokenizer(**text, return_offsets_mapping=is_fast, verbose=False, **options)
    except (TypeError, ValueError) as error:  # of surrogates: no tokenizer can have them
        raise DataError(f"text must be one that its tokenizer can encode; got: {error}.") from error
    spans = [(first, last) for first, last in found["offset_mapping"]] if is_fast else None
    return list(found["input_ids"]), spans


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    if other.startswith(one):
        return len(one)
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
