"""Translation: what sentence pairs mean to a sequence-to-sequence model."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import DataError, SettingError
from regard.layers import Packing
from regard.models import MODELS, Seq2Seq
from regard.tasks.generation import DocumentData
from regard.tasks.generation.documents import hold_out, pairs_of, read_documents, train_and_test
from regard.tasks.held_out import evenly, hold_out_by_hash
from regard.tasks.recipe import Recipe
from regard.text import (
    BadLines,
    Batch,
    Pair,
    PairLayout,
    PairTokenizer,
    read_pairs,
    train_pair_tokenizer,
)


def read_split(
    recipe: Recipe, split: str, *, bad_lines: BadLines | None = None, merge: bool = False
) -> list[Pair]:
    """The sentence pairs of ``train``, ``valid`` or ``test``; none if the recipe names no file.

    Args:
        recipe: Whose ``[data]`` is read.
        split: Which part.
        bad_lines: Where lines left out are counted.
        merge: Whether pairs with one source become one with several references.

    Raises:
        DataError: A file or line cannot be used.
        SettingError: Three or more files are named.
    """
    if isinstance(recipe.data, DocumentData):
        documents = read_documents(recipe.files(split), recipe.data, bad_lines=bad_lines)
        return pairs_of(documents, recipe.data, merge=merge)
    if recipe.uses_phrasebook:
        from regard.text.phrasebook import phrases  # thousands of entries, only for who asks

        return [
            Pair(phrase.source, phrase.target, phrase.references, f"phrasebook:{number}")
            for number, phrase in enumerate(phrases(split), 1)  # type: ignore[arg-type]
        ]
    files = recipe.files(split)
    if not files:
        return []
    if len(files) > 2:
        raise SettingError(
            f"data.{split} must be one file of pairs, or a source and a target file; "
            f"got {len(files)} files."
        )
    layout = PairLayout(columns=recipe.data.columns, merge_references=merge)
    source, target = files[0], files[1] if len(files) == 2 else None
    return list(
        read_pairs(
            source,
            target,
            layout=layout,
            on_bad_line=recipe.data.on_bad_line,
            bad_lines=bad_lines,
        )
    )


def read_training(
    recipe: Recipe, *, bad_lines: BadLines | None = None
) -> tuple[list[Pair], list[Pair]]:
    """The pairs to train on, and those to validate on, which may be held out from the first.

    Held-out pairs are spread evenly over the text, and no training pair shares a side with them.
    """
    train, _ = _train_and_test(recipe, bad_lines)
    if not train:
        raise DataError("data.train must name the training text; got nothing.")
    valid = read_split(recipe, "valid", bad_lines=bad_lines, merge=True)
    if valid:
        return train, valid
    if isinstance(recipe.data, DocumentData):
        kept, held = hold_out(train_and_test(recipe)[0])
        return pairs_of(kept, recipe.data), pairs_of(held, recipe.data, merge=True)
    held_out = list(evenly(train, unit="pairs"))
    rest = _apart(train, held_out)
    if not rest:
        raise DataError("data.train must hold different sentences; got the same ones throughout.")
    return rest, held_out


def read_held_out(recipe: Recipe) -> list[Pair]:
    """The pairs of the training text to test on; those with one source are one."""
    if isinstance(recipe.data, DocumentData):
        return pairs_of(train_and_test(recipe)[1], recipe.data, merge=True)
    test: dict[str, Pair] = {}
    for pair in _train_and_test(recipe)[1]:
        known = test.get(pair.source, pair)
        targets = dict.fromkeys([*known.references, *pair.references])
        test[pair.source] = replace(known, references=tuple(targets))
    return list(test.values())


def _train_and_test(
    recipe: Recipe, bad_lines: BadLines | None = None
) -> tuple[list[Pair], list[Pair]]:
    """The pairs of the training text, and those of them that the test holds out."""
    if isinstance(recipe.data, DocumentData):
        found = train_and_test(recipe, bad_lines=bad_lines)
        train, test = (pairs_of(documents, recipe.data) for documents in found)
        return train, test
    pairs = read_split(recipe, "train", bad_lines=bad_lines)
    if not recipe.holds_out_test:
        return pairs, []
    rest, held = hold_out_by_hash(pairs, attrgetter("source"))
    return _apart(rest, held), held


def _apart(pairs: Sequence[Pair], held: Sequence[Pair]) -> list[Pair]:
    """The pairs that share no side with those held out."""
    sources = {pair.source for pair in held}
    targets = {pair.target for pair in held}
    return [pair for pair in pairs if pair.source not in sources and pair.target not in targets]


def learn_tokenizer(recipe: Recipe, pairs: Iterable[Pair]) -> PairTokenizer:
    """The tokenizer of the recipe, learned from the training pairs."""
    pairs = list(pairs)
    return train_pair_tokenizer(
        (pair.source for pair in pairs), (pair.target for pair in pairs), recipe.tokenizer
    )


def build_model(recipe: Recipe, tokenizer: PairTokenizer) -> Seq2Seq:
    """The recipe's model with new weights, sized for the tokenizer.

    Raises:
        SettingError: The model cannot take the longest sentences that the recipe lets in.
    """
    architecture = MODELS[recipe.model_type].load()
    model = architecture(
        recipe.model,
        source_vocab=tokenizer.source.vocab_size,
        target_vocab=tokenizer.target.vocab_size,
        shared_vocab=tokenizer.is_shared,
    )
    limit, longest = model.max_length, recipe.data.max_length + 1  # the end is a token too
    if limit is not None and limit < longest:
        raise SettingError(
            f"model.max_length must be above data.max_length = {longest - 1}; got {limit}."
        )
    return model


def states_and_labels(
    model: nn.Module, batch: Batch
) -> tuple[Float[Tensor, "R C"], Int[Tensor, " R"], Float[Tensor, ""] | None]:
    """What the model says of every real target token, and what it should say.

    Returns:
        One state and one label per token that is no padding, and the model's auxiliary loss.
    """
    states, auxiliary = model(
        batch.source, batch.source_lengths, batch.target_in, batch.target_lengths
    )
    packing = Packing(batch.target_lengths, batch.labels.shape[1])
    return packing.pack(states), packing.pack(batch.labels), auxiliary


def longest_output(source_lengths: Int[Tensor, " B"], max_ratio: float) -> Int[Tensor, " B"]:
    """The most tokens an output may have: a multiple of its source's, and ten more."""
    return (source_lengths * max_ratio).long() + 10


def batched(lengths: list[int], max_tokens: int) -> Iterator[list[int]]:
    """Places of sentences, shortest first, in groups of at most ``max_tokens`` padded tokens.

    Example:
        >>> list(batched([5, 2, 3], max_tokens=6))
        [[1, 2], [0]]
    """
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) + 1) * lengths[place] > max_tokens:
            yield group
            group = []
        group.append(place)
    if group:
        yield group
