"""Masked language modelling: words left out of a text, predicted from those on both sides."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.models import EncoderConfig, MaskedLanguageModel
from regard.tasks.batches import Batch
from regard.tasks.drawing import Drawing, check_drawn_length, words_text
from regard.tasks.one_pass_task import Loss
from regard.tasks.running_text.masked_windows import FIRST_ID, mask_windows, windows_of
from regard.tasks.running_text.running_text import Passage, RunningTextTask, Stretch, perplexity
from regard.tasks.settings.data import MaskedTextData
from regard.tasks.settings.recipe import Recipe, check_positions
from regard.tasks.tables import Table
from regard.text import (
    BOS_ID,
    EOS_ID,
    Tokenizer,
    TokenizerConfig,
    normalize,
    train_tokenizer,
    words_of_spans,
)
from regard.text.batches import padded
from regard.text.masking import NO_WORD, WholeWords
from regard.text.tokenizers.pieces import BEGIN, END
from regard.viewer import Prediction

__all__ = ["MaskedLanguageModelling", "MaskedTextData"]

# A blank in a line, and how many predictions it gets.
_BLANK = re.compile(r"\[MASK\]|<mask>")
_TOP = 5


@dataclass(frozen=True, slots=True)
class MaskedAnswer:
    """Predictions for the masked tokens of one passage, of which blanks are the mask itself."""

    nats: float  # −log p of all of them
    right: int
    count: int
    pairs: tuple[int, int]  # right next-sentence predictions, and all
    likeliest: tuple[tuple[tuple[str, float], ...], ...]  # with their probabilities
    answers: tuple[str, ...]

    def text(self) -> str:
        """The likeliest token for each blank, with its probability."""
        return "\t".join(
            " ".join(f"{piece}/{share:.3f}" for piece, share in pieces) for pieces in self.likeliest
        )

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {
            "blanks": [
                [{"piece": piece, "probability": round(share, 6)} for piece, share in pieces]
                for pieces in self.likeliest
            ]
        }


class MaskedLanguageModelling(RunningTextTask[MaskedAnswer]):
    """Running text to predictions of its masked words.

    ``[begin] text [end] …``: BERT's ``[CLS]`` and ``[SEP]`` are the tokenizer's begin and end; the
    mask is one id more than the tokenizer has, so that a reader without it has the same ids.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table = {"task": "masked_language_modelling", "tokenizer": {"type": "words"}}
        >>> text = Passage(("I love China.",), "a.txt:1")
        >>> task = MaskedLanguageModelling.learn(recipe_from_table(table), [text])
        >>> batch = task.collate(task.encode([task.request("I [MASK] China.", "a.txt:2")]))
        >>> batch["ids"].shape, batch["chosen"][0].tolist()
        (torch.Size([1, 6]), [False, False, True, False, False, False])
    """

    loss_unit = "masked tokens"
    metrics: ClassVar[Mapping[str, int]] = {"masked accuracy": 1, "perplexity": -1}
    stored_as: ClassVar[tuple[str, ...]] = ("text", "words")
    numbered: ClassVar[tuple[str, ...]] = ("words",)
    data: MaskedTextData
    tokenizer: Tokenizer

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, words: WholeWords) -> None:
        super().__init__(recipe, tokenizer)
        self.words, self.mask_id = words, tokenizer.vocab_size

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Passage]) -> "MaskedLanguageModelling":
        lines = [line for passage in examples for line in passage.lines]
        is_whole = recipe.settings(MaskedTextData).masking == "words"
        words = WholeWords.learn(lines) if is_whole else WholeWords(None)
        return cls(recipe, train_tokenizer(lines, recipe.settings(TokenizerConfig)), words)

    @classmethod
    def load_learned(cls, folder: Path) -> dict[str, WholeWords]:
        return {"words": WholeWords.load(folder / "words")}

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.words.save(folder / "words")

    def build_model(self) -> nn.Module:
        """The recipe's model; SettingError if it cannot take a window, or tell halves apart."""
        data, config = self.data, self.recipe.settings(EncoderConfig)
        model = MaskedLanguageModel(config, vocab_size=self.mask_id + 1)
        check_positions(model.max_length, "data.context", data.context)
        if data.next_sentence and config.num_segments < 2:
            raise SettingError(
                "model.num_segments must be at least 2 with data.next_sentence; "
                f"got {config.num_segments}."
            )
        return model

    def describe(self) -> list[str]:
        data, (pieces,) = self.data, super().describe()
        windows = f"windows of {data.context} tokens, {data.rate:.0%} of {data.masking} masked"
        return [f"{pieces}; {windows}"]

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> Passage:
        """The text of a line or a JSON record; DataError if it has no blank."""
        text = record if isinstance(record, str) else record.get("text")
        if not isinstance(text, str) or not _BLANK.search(text):
            raise DataError(f"{where}: text must have a blank to fill in, [MASK]; got {text!r}.")
        return Passage((normalize(text),), where)

    def collate(self, encoded: Sequence[Stretch], *, generator: Generator | None = None) -> Batch:
        """Windows of ``data.context`` tokens, some of their words masked.

        ``tokens`` are the text, to be predicted where ``chosen``; ``owners`` the stretches of the
        rows; ``follows``, of two halves, whether the second follows the first. A generator shifts
        and masks windows anew each time; without one each is always masked alike.
        """
        data, halves = self.data, self.data.next_sentence
        owners, windows = zip(
            *(
                (owner, window)
                for owner, stretch in enumerate(encoded)
                for window in windows_of(
                    stretch, length=self.window, halves=halves, generator=generator
                )
            ),
            strict=True,
        )
        masked = mask_windows(windows, mask_id=self.mask_id, rate=data.rate, generator=generator)
        follows = [window.follows for window in windows if window.follows is not None]
        return {
            "ids": masked.ids,
            "lengths": torch.tensor([len(window.ids) for window in windows]),
            "segments": padded([window.segments for window in windows]),
            "chosen": masked.chosen,
            "tokens": padded([window.ids for window in windows]),
            "follows": torch.tensor(follows, dtype=torch.int64),
            "owners": torch.tensor(owners),
            "count": len(encoded),
        }

    def batch_loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        """The summed cross-entropy of the masked tokens, and their number.

        The question whether a half follows weighs as much as all masked words, as in the paper.
        """
        states, logits, tokens = self._logits(model, batch)
        loss = F.cross_entropy(logits, tokens, reduction="sum", label_smoothing=smoothing)
        if len(batch["follows"]):
            follows = model.follows(states).float()  # type: ignore[operator]
            loss = loss + len(tokens) * F.cross_entropy(follows, 1 - batch["follows"])
        return loss, len(tokens)

    def predict(self, model: nn.Module, batch: Batch) -> list[MaskedAnswer]:
        states, logits, tokens = self._logits(model, batch)
        nats = F.cross_entropy(logits, tokens, reduction="none").tolist()
        shares, ids = logits.softmax(-1).topk(min(_TOP, self.mask_id), dim=-1)
        is_right = (ids[:, 0] == tokens).tolist()
        likeliest = [
            tuple((self.token_name(token), share) for token, share in zip(*row, strict=True))
            for row in zip(ids.tolist(), shares.tolist(), strict=True)
        ]
        answers = [self.token_name(token) for token in tokens.tolist()]
        indices: list[list[int]] = [[] for _ in range(batch["count"])]
        for index, owner in enumerate(batch["owners"][batch["chosen"].nonzero()[:, 0]].tolist()):
            indices[owner].append(index)
        return [
            MaskedAnswer(
                nats=math.fsum(nats[index] for index in rows),
                right=sum(is_right[index] for index in rows),
                count=len(rows),
                pairs=pairs,
                likeliest=tuple(likeliest[index] for index in rows),
                answers=tuple(answers[index] for index in rows),
            )
            for rows, pairs in zip(indices, self._next_sentences(model, states, batch), strict=True)
        ]

    def score(
        self, answers: Sequence[MaskedAnswer], examples: Sequence[Passage]
    ) -> dict[str, float]:
        count = max(1, sum(answer.count for answer in answers))
        figures = {
            "masked accuracy": 100 * sum(answer.right for answer in answers) / count,
            "perplexity": perplexity(sum(answer.nats for answer in answers), count),
        }
        if pairs := sum(answer.pairs[1] for answer in answers):
            right = sum(answer.pairs[0] for answer in answers)
            figures["next sentence accuracy"] = 100 * right / pairs
        return figures

    def example_score(self, answer: MaskedAnswer, example: Passage) -> float:
        """The accuracy."""
        return answer.right / max(1, answer.count)

    def baselines(
        self, train: Sequence[Passage], examples: Sequence[Passage]
    ) -> dict[str, list[MaskedAnswer]]:
        """Every token by its frequency in training, one count added; always the same token."""
        training_ids = np.concatenate([self.stretch(passage).ids for passage in train])
        counts = 1 + np.bincount(training_ids[training_ids >= FIRST_ID], minlength=self.mask_id)
        cost = -np.log(counts / counts.sum())
        most = int(counts.argmax())
        predictions = []
        for encoded in self.encode(examples):
            batch = self.collate([encoded])
            targets = batch["tokens"][batch["chosen"]].numpy()
            nats, right = float(cost[targets].sum()), int((targets == most).sum())
            predictions.append(MaskedAnswer(nats, right, len(targets), (0, 0), (), ()))
        return {f"always {self.token_name(most)}, by frequency": predictions}

    def tables(self, answers: Sequence[MaskedAnswer], examples: Sequence[Passage]) -> list[Table]:
        """Most frequent confusions (true word, predicted word)."""
        mistakes = Counter(
            (target, guesses[0][0])
            for answer in answers
            for target, guesses in zip(answer.answers, answer.likeliest, strict=True)
            if guesses[0][0] != target
        )
        most = sorted(mistakes.items(), key=lambda item: (-item[1], item[0]))[:10]
        rows = tuple((target, guess, count) for (target, guess), count in most)
        return [Table("mistaken most often", ("true token", "predicted token", "times"), rows)]

    def show(self, example: Passage, answer: MaskedAnswer) -> str:
        pairs = zip(answer.answers, answer.likeliest, strict=True)
        predictions = ", ".join(f"{target}→{guesses[0][0]}" for target, guesses in list(pairs)[:8])
        return f"{example.beginning} ({answer.right} of {answer.count} right: {predictions})"

    @property
    def window(self) -> int:
        return self.data.context - 2 - self.data.next_sentence

    def _logits(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The states; of masked tokens, the logits and the ids. The mask is no answer."""
        segments = batch["segments"] if self.data.next_sentence else None
        states: Tensor = model(batch["ids"], batch["lengths"], segments=segments)
        logits = model.project(states[batch["chosen"]]).float()  # type: ignore[operator]
        mask = torch.tensor([self.mask_id], device=logits.device)
        return states, logits.index_fill(-1, mask, -1e4), batch["tokens"][batch["chosen"]]

    def _next_sentences(
        self, model: nn.Module, states: Tensor, batch: Batch
    ) -> list[tuple[int, int]]:
        """The right next-sentence predictions of each stretch, and the number of all."""
        pairs = [(0, 0)] * batch["count"]
        if len(batch["follows"]):
            right = model.follows(states).argmax(-1) == 1 - batch["follows"]  # type: ignore[operator]
            for owner, is_right in zip(batch["owners"].tolist(), right.tolist(), strict=True):
                pairs[owner] = (pairs[owner][0] + is_right, pairs[owner][1] + 1)
        return pairs

    def draw(
        self, model: nn.Module, example: Passage, encoded: Stretch, answer: MaskedAnswer
    ) -> Drawing:
        """The tokens that are read, the likeliest at each blank; of the first, the others too.

        DataError if the text is too long for one window.
        """
        check_drawn_length(encoded.length, self.window, "tokens")
        read = self.collate([encoded])
        row = slice(int(read["lengths"][0]))
        ids, chosen = read["ids"][0, row].tolist(), read["chosen"][0, row].tolist()
        likeliest = [candidates[0][0] for candidates in answer.likeliest]
        words, names = iter(likeliest), {BOS_ID: BEGIN, EOS_ID: END}
        return Drawing(
            text=words_text([names.get(token) or self.token_name(token) for token in ids]),
            output=words_text(likeliest),
            prediction=Prediction(
                labels=answer.likeliest[0] if answer.likeliest else (),
                tags=tuple(next(words) if is_chosen else "" for is_chosen in chosen),
            ),
        )

    def stretch(self, passage: Passage) -> Stretch:
        """The tokens and line ends of a passage, with the number of each one's word."""
        ids: list[int] = []
        words: list[int] = []
        first, blanks = 0, any(_BLANK.search(line) for line in passage.lines)
        for line in passage.lines:
            if blanks:
                parts = map(self.tokenizer.encode, _BLANK.split(line))
                tokens = [token for part in parts for token in (self.mask_id, *part)][1:]
                numbers = [NO_WORD] * len(tokens)
            else:
                tokens, numbers = self._with_words(line)
            ids += [*tokens, EOS_ID]
            words += [NO_WORD if n == NO_WORD else n + first for n in numbers] + [NO_WORD]
            first += max(numbers, default=-1) + 1
        text, word_numbers = (np.array(values, dtype=np.int64) for values in (ids, words))
        return Stretch(text, 0, len(ids), word_numbers, blanks)

    def _with_words(self, line: str) -> tuple[list[int], list[int]]:
        pieces = self.tokenizer.pieces(line)
        numbers = list(range(len(pieces)))
        if self.data.masking == "words":
            spans = [(piece.start, piece.end) for piece in pieces]
            numbers = words_of_spans(spans, self.words.spans(line))
        return [piece.id for piece in pieces], numbers

    def token_name(self, token: int) -> str:
        """The text of a token, or a sign for the mask and tokens without text."""
        if token == self.mask_id:
            return "[MASK]"
        return self.tokenizer.decode([token]).strip() or f"<{token}>"
