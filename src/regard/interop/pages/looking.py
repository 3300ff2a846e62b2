"""From a Hugging Face model and a text to the page of its attention, in one call."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.checks import check_count
from regard.errors import DataError, SettingError
from regard.fields import described
from regard.interop.modules.hugging_face import is_hugging_face
from regard.interop.pages.explaining import reading_of_checkpoint
from regard.interop.pages.neurons import fitting
from regard.interop.pages.pictures import look_at_picture, reads_pictures
from regard.interop.record import KINDS
from regard.interop.watch import watch
from regard.viewer import (
    Document,
    Example,
    NotebookPage,
    Text,
    example_of,
    in_one_line,
    show,
    watched_rows,
)
from regard.viewer.example import Head, Layer
from regard.viewer.options import LookKeywords, LookOptions
from regard.viewer.parts import RowSource
from regard.viewer.summaries import LONGEST_WITH_ROWS, KnownFields

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_LONGEST = 1_000_000_000  # tokenizers without a limit of their own name a larger one


@described(LookKeywords, defaults=dict.fromkeys(LookKeywords.__annotations__))
def look(
    model: "PreTrainedModel",
    tokenizer: Any,
    text: str | Path | Sequence[str | Path],
    *,
    truncate: bool = False,
    max_new_tokens: int = 128,
    title: str | None = None,
    live: bool = False,
    pair: bool = False,
    explain: bool = True,
    **options: Unpack[LookKeywords],
) -> NotebookPage:
    """Attention of a Hugging Face model: the page, for a notebook's cell or a file.

    One pass over each text, watched at any length. A model that reads one text and writes another
    is looked at while it writes: its own output, as ``generate`` finds it, or a target. Where a
    model has a head, the page also shows each token's contribution to the output (``attribute``),
    each layer's prediction, and how unexpected each token was. Of a vision model, which reads a
    picture in patches, it has these over the picture, and the likeliest classes.

    Args:
        model: An encoder, a decoder or an encoder-decoder of transformers, for text, or a vision
            model such as ViT.
        tokenizer: Its tokenizer, or the image processor of a vision model.
        text: One text, or several, each an example of the page; of a vision model picture files.
        truncate: Whether a text longer than the model's positions is cut there.
        max_new_tokens: Of an output that the model generates.
        title: Heading of the page; None is the beginning of the first text.
        live: Whether queries and keys of long texts are kept, so that this process answers the
            page with exact weights; of a short text the page has them all.
        pair: Whether two texts are read as one, as BERT reads a pair of sentences: the page can
            then show the attention of one to the other.
        explain: Whether the page says more than attention: contributions, predictions by layer,
            losses, queries and keys.
        options: Options of the page, as ``regard.viewer.LookOptions`` describes them, without
            ``beam_size``. A target of a model that reads one text and writes another is an output
            of the one text.

    Returns:
        A page that a notebook displays; ``.save(path)`` writes it, ``.document`` is the data.

    Raises:
        DataError: A text is empty or too long, a file is no picture, or there is a target that
            cannot be.
        SettingError: The model's attention cannot be seen, it has no such layer or head, or the
            queries and keys of ``neurons`` are too many for a page.

    Example:
        >>> from regard.interop.checkpoints.folder import load_folder
        >>> look(*load_folder(path), "我爱中国。").save("page.html")  # doctest: +SKIP
    """
    chosen = LookOptions(**options)
    check_count("max_new_tokens", max_new_tokens)
    given = [text] if isinstance(text, str | Path) else list(text)
    is_vision, is_writer = reads_pictures(model), _is_writer(model)
    if chosen.beam_size is not None:
        raise SettingError(
            f"beam_size must be left out for a Hugging Face model; got {chosen.beam_size!r}."
        )
    of_texts = replace(chosen, layers=None, heads=None).given()
    if is_vision and any((*of_texts.values(), pair, truncate)):
        raise SettingError(
            "target, against, attribute, neurons, scores, circuits, pair and truncate are for "
            f"texts; got one for {type(model).__name__}, which reads pictures."
        )
    has_target = (chosen.target, chosen.against) != (None, None)
    _check(model, given, has_target=has_target, pair=pair)
    texts = list(map(str, given))
    why = replace(chosen, target=None) if is_writer else chosen  # the output is the target
    fields: KnownFields = {"started": True} if is_writer else {}
    with _in_evaluation(model):
        examples, answers = list[Example](), list[RowSource | None]()
        for picture in given if is_vision else []:
            example, seen = look_at_picture(model, tokenizer, picture, chosen.layers, chosen.heads)
            examples.append(example)
            is_long = len(example.source_tokens) > LONGEST_WITH_ROWS
            answers.append(watched_rows(seen, example) if live and is_long else None)
        for one in [] if is_vision else texts[:1] if pair else texts:
            written, written_ids, segments = None, None, tuple[int, ...]()
            if pair:
                inputs, source, segments = _read_pair(model, tokenizer, *texts, truncate=truncate)
            else:
                ids, source = read(model, tokenizer, one, truncate=truncate)
                inputs = {"input_ids": ids}
            tokens = dict.fromkeys(KINDS, _pieces(tokenizer, inputs["input_ids"]))
            if is_writer:
                outputs, written = _output(
                    model, tokenizer, ids, chosen.target, max_new_tokens, truncate
                )
                inputs["decoder_input_ids"] = outputs[:, :-1]
                tokens["decoder"] = _pieces(tokenizer, outputs[:, :-1])
                written_ids = outputs[0, 1:].tolist()
            inputs = {name: tensor.to(model.device) for name, tensor in inputs.items()}
            is_long = max(tensor.shape[1] for tensor in inputs.values()) > LONGEST_WITH_ROWS
            body = getattr(model, "base_model", model)  # without the head after the last layer
            keep = live or not is_long
            with watch(body, chosen.layers, chosen.heads, keep=keep, tokens=tokens) as seen:
                body(**inputs)
            example = example_of(seen, source, output=written, **fields)
            if explain:
                reading = reading_of_checkpoint(model, tokenizer, inputs, example, written_ids)
                example = reading.explain(model, example, why)
            examples.append(replace(example, segments=segments))
            answers.append(watched_rows(seen, example) if live and is_long else None)

    def rows(
        example: int, kind: str, layer: Layer, head: Head, queries: Sequence[int]
    ) -> NDArray[np.floating] | None:
        answer = answers[example]
        return None if answer is None else answer(example, kind, layer, head, queries)

    return show(
        Document(
            title=in_one_line(" / ".join(texts) if pair else texts[0]) if title is None else title,
            task="",
            model=f"{type(model).__name__}, {sum(p.numel() for p in model.parameters()):,} "
            "parameters",
            examples=fitting(examples, chosen.neurons),
        ),
        rows=rows if any(answers) else None,
    )


def _check(model: nn.Module, texts: Sequence[str | Path], *, has_target: bool, pair: bool) -> None:
    """Raise SettingError or DataError unless these texts can be looked at."""
    if not is_hugging_face(model):
        raise SettingError(
            f"model must be one of transformers; got {type(model).__name__}. For others, watch "
            "them: with regard.watch(model) as seen, then regard.viewer.show(seen, tokens)."
        )
    reads = getattr(model, "main_input_name", "input_ids")
    if reads != "input_ids" and not reads_pictures(model):
        raise SettingError(
            f"model must read text or pictures to be looked at here; got "
            f"{type(model).__name__}, which reads {reads}. Watch it: with regard.watch(model) as "
            "seen."
        )
    if not texts:
        raise DataError("text must hold something to look at; got no text.")
    if files := [str(one) for one in texts if isinstance(one, Path) and reads == "input_ids"]:
        raise DataError(
            f"text must be a text for {type(model).__name__}; got the file {files[0]}. Pictures "
            "are for vision models, such as ViT."
        )
    is_writer = _is_writer(model)
    if is_writer and len(texts) > 1 and has_target:
        raise DataError(f"target must be of one text; got {len(texts)} texts.")
    if pair and (len(texts) != 2 or is_writer):
        raise DataError(
            f"pair must be two texts for a model that reads only; got {len(texts)} for "
            f"{type(model).__name__}."
        )


def _is_writer(model: nn.Module) -> bool:
    """Whether a model reads one text and writes another."""
    return bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))


def _output(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    ids: Int[Tensor, "1 N"],
    target: str | None,
    max_new_tokens: int,
    truncate: bool,
) -> tuple[Int[Tensor, "1 T"], Text]:
    """Return the ids of an output after its start id, and its tokens without the start."""
    if target is None:
        generate = getattr(model, "generate", None)
        if generate is None:
            raise SettingError(
                f"target must be given for a model that cannot generate; got "
                f"{type(model).__name__}. Load it with the head that writes, or give --target."
            )
        outputs: Tensor = generate(
            input_ids=ids.to(model.device),
            attention_mask=torch.ones_like(ids).to(model.device),
            max_new_tokens=max_new_tokens,
        ).cpu()
        if outputs.shape[1] < 2:
            raise DataError("output must hold tokens to look at; got none from the model.")
        return outputs, written(tokenizer, outputs[0, 1:].tolist())
    found, text = read(model, tokenizer, target, truncate=truncate, is_target=True)
    return torch.cat([torch.tensor([[_start_of(model)]]), found], dim=1), text


def _start_of(model: "PreTrainedModel") -> int:
    for config in (getattr(model, "generation_config", None), model.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            start = getattr(config, name, None)
            if isinstance(start, int):
                return start
    raise SettingError(
        f"model must say what its output starts with; got {type(model).__name__} without "
        "decoder_start_token_id."
    )


@contextmanager
def _in_evaluation(model: nn.Module) -> Iterator[None]:
    """The model without its dropout and without gradients."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def read(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    text: str,
    *,
    truncate: bool = False,
    is_target: bool = False,
) -> tuple[Int[Tensor, "1 N"], Text]:
    """Return the ids of a text with special tokens, and its tokens; a target is written."""
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
    if is_cut and spans is not None:  # characters that were cut off are not shown either
        text = text[: max(last for _, last in spans)]
    return torch.tensor([ids]), Text.of(pieces, text, spans)


def _read_pair(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    first: str,
    second: str,
    *,
    truncate: bool,
) -> tuple[dict[str, Tensor], Text, tuple[int, ...]]:
    """Return inputs of two texts that are read as one, their tokens, and the text of each."""
    if not getattr(tokenizer, "is_fast", False):
        raise SettingError(
            f"tokenizer must be a fast one to read a pair of texts; got {type(tokenizer).__name__}."
        )
    if not first.strip() or not second.strip():
        raise DataError("text must hold something to look at; got an empty one of the pair.")
    longest = longest_input(model, tokenizer)
    cut = {"truncation": True, "max_length": longest} if truncate and longest else {}
    encoded = tokenizer(first, second, return_offsets_mapping=True, verbose=False, **cut)
    ids = encoded["input_ids"]
    if longest is not None and len(ids) > longest:
        raise DataError(
            f"text must be at most {longest:,} tokens long, both texts of a pair together; got "
            f"{len(ids):,}. Cut them there with --truncate, or truncate=True."
        )
    segments: list[int] = []
    spans = []
    for owner, span in zip(encoded.sequence_ids(), encoded["offset_mapping"], strict=True):
        shift = len(first) + 1 if owner else 0
        spans.append((span[0] + shift, span[1] + shift) if owner is not None else (0, 0))
        # A sign between the texts ends the one before it.
        segments.append(owner if owner is not None else segments[-1] if segments else 0)
    text = Text.of(tokenizer.convert_ids_to_tokens(ids), f"{first}\n{second}", spans)
    inputs = {"input_ids": torch.tensor([ids])}
    body = getattr(model, "base_model", model)
    if "token_type_ids" in encoded and "token_type_ids" in signature(body.forward).parameters:
        inputs["token_type_ids"] = torch.tensor([encoded["token_type_ids"]])
    return inputs, text, tuple(segments)


def _pieces(tokenizer: "PreTrainedTokenizerBase", ids: Int[Tensor, "1 N"]) -> list[str]:
    return [str(piece) for piece in tokenizer.convert_ids_to_tokens(ids[0].tolist())]


def written(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> Text:
    """Return the text of ids that a model wrote; a character of several ids is at the last one."""
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
    """Most tokens that a model reads, as far as its config and tokenizer say; None: any number."""
    text = model.config.get_text_config()
    limits = []
    if not hasattr(text, "relative_attention_num_buckets"):
        limits.append(getattr(text, "max_position_embeddings", None))
    # Where positions are counted from after the padding's id, as in RoBERTa, the first are unused.
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith("position_embeddings"):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - unused)
    limits.append(getattr(tokenizer, "model_max_length", None))
    lengths = [int(limit) for limit in limits if limit is not None and 0 < limit < _LONGEST]
    return min(lengths, default=None)


def _encoded(
    tokenizer: "PreTrainedTokenizerBase", text: dict[str, str], **options: object
) -> tuple[list[int], list[tuple[int, int]] | None]:
    is_fast = bool(getattr(tokenizer, "is_fast", False))
    try:
        encoded = tokenizer(**text, return_offsets_mapping=is_fast, verbose=False, **options)
    except (TypeError, ValueError) as error:  # of surrogates: no tokenizer can have them
        raise DataError(f"text must be one that its tokenizer can encode; got: {error}.") from error
    spans = [(first, last) for first, last in encoded["offset_mapping"]] if is_fast else None
    return list(encoded["input_ids"]), spans


def _shared(first: str, second: str) -> int:
    """Length of the common prefix of two texts."""
    if second.startswith(first):
        return len(first)
    return next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
