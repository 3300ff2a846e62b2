"""What a Hugging Face model's page says besides attention: why, by layer, and how unexpected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.errors import DataError, SettingError
from regard.interop.attribute import ExplainedText
from regard.interop.explaining import (
    Layout,
    Target,
    are_explained,
    first_difference,
    importances,
)
from regard.interop.faithfulness import logits_of
from regard.interop.lens import BlockOutputs, Readout, rounded
from regard.interop.watch import Watch
from regard.viewer import Example, Importance

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPass:
    """A Hugging Face model and one pass of it over a text."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"
    inputs: Mapping[str, Tensor]
    output: Sequence[int] | None  # ids that were written, of a model that reads and writes
    seen: Watch  # of the body
    outputs: BlockOutputs  # of the body

    def explain(
        self,
        example: Example,
        *,
        target: str | None,
        against: str | Sequence[int] | None,
        methods: Sequence[str] | None,
    ) -> Example:
        """Add attributions, predictions by layer and the loss of each token to an example.

        Raises:
            SettingError: An attribution is asked for that the model cannot have.
            DataError: There is no such token or class.
        """
        is_decoder = bool(example.output_tokens)
        name = "decoder_input_ids" if self.output is not None else "input_ids"
        body = getattr(self.model, "base_model", self.model)
        readout = Readout(
            *(self.model, self.inputs, name), body=body, outputs=self.outputs, seen=self.seen
        )
        is_next = is_decoder and self.output is None
        surprise: tuple[float | None, ...] = ()
        try:
            lens = readout.lens(self._name, ahead=int(is_next))
            if is_decoder:
                ids = self.inputs["input_ids"][0, 1:] if is_next else torch.tensor(self.output)
                surprise = rounded([*[None] * is_next, *readout.surprise(ids)])
        except SettingError:  # it has no logits of tokens
            lens = None
        return replace(
            example,
            lens=lens,
            surprise=surprise if len(surprise) == len(example.output_tokens) else (),
            importances=self._importances(example, target, against, methods),
        )

    def _importances(
        self,
        example: Example,
        target: str | None,
        against: str | Sequence[int] | None,
        methods: Sequence[str] | None,
    ) -> tuple[Importance, ...]:
        is_asked = methods is not None or target is not None or against is not None
        size = len(example.source_tokens or example.output_tokens)
        if not are_explained(methods, size, is_asked=is_asked):
            return ()
        text = ExplainedText(self.model, self.inputs)
        try:
            logits = logits_of(self.model, text.answer)[0]
        except SettingError:
            if is_asked:
                raise
            return ()
        name = self._name if logits.dim() == 2 else self._label
        return importances(
            *(text, self._targets(logits, target, against), Layout(size)),
            methods=methods,
            name=name,
        )

    def _targets(
        self, logits: Tensor, target: str | None, against: str | Sequence[int] | None
    ) -> list[Target]:
        """Outputs to explain: a class, a masked token, the next one, or each that was written."""
        if self.output is not None:
            places = list(range(len(self.output)))
            if against is None:
                return [Target(n, self.output[n], None, n) for n in places]
            assert not isinstance(against, str)
            n = first_difference(self.output, against)
            return [Target(n, self.output[n], against[n], n)]
        assert against is None or isinstance(against, str)
        if logits.dim() == 1:
            numbers = [self._class(word) for word in (target, against)]
            return [Target(None, *numbers)]
        ids = self.inputs["input_ids"][0].tolist()
        is_causal = all(each.kind == "decoder" for each in self.seen)
        masks = [n for n, each in enumerate(ids) if each == self.tokenizer.mask_token_id]
        if not (is_causal or masks) and (target or against):
            mask = self.tokenizer.mask_token or "a mask"
            raise DataError(f"text must have {mask} where --target is to stand; got none.")
        return [
            Target(n, *self._tokens(logits[n], target, against))
            for n in ([len(ids) - 1] if is_causal else masks)
        ]

    def _tokens(self, logits: Tensor, *words: str | None) -> tuple[int | None, int | None]:
        """The first token of each word, after a space or not: as the model has it likelier."""
        numbers: list[int | None] = []
        for word in words:
            forms = [] if word is None else [word] if word[:1].isspace() else [f" {word}", word]
            first = set[int]()
            for form in forms:
                ids = self.tokenizer(form, add_special_tokens=False)["input_ids"]
                first |= set([n for n in ids if self._text(n).strip()][:1])
            first -= {self.tokenizer.unk_token_id}
            if word is not None and not first:
                raise DataError(f"target must have tokens that the model knows; got {word!r}.")
            numbers.append(max(first, key=lambda n: float(logits[n]), default=None))
        if numbers[0] is not None and numbers[0] == numbers[1]:
            raise DataError(
                f"--not must differ from --target in its first token, {self._name(numbers[0])!r}; "
                f"got {words[1]!r}."
            )
        return numbers[0], numbers[1]

    def _class(self, word: str | None) -> int | None:
        names = {int(number): name for number, name in self.model.config.id2label.items()}
        if word is None:
            return None
        found = [n for n, name in names.items() if word in (name, str(n))]
        if not found:
            raise DataError(f"target must be one of {', '.join(names.values())}; got {word!r}.")
        return found[0]

    def _label(self, number: int) -> str:
        return str(self.model.config.id2label.get(number, number))

    def _text(self, number: int) -> str:
        return str(self.tokenizer.decode([number], clean_up_tokenization_spaces=False))

    def _name(self, number: int) -> str:
        """The text of a token; its piece, where it is no text by itself."""
        text = self._text(number)
        if text and "\ufffd" not in text:
            return text
        piece = self.tokenizer.convert_ids_to_tokens([number])[0]
        return f"#{number}" if piece is None else str(piece)
