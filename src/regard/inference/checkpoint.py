"""A Hugging Face model in use: its reply to a text, as a run has one, and its attention."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.config import JsonValue
from regard.devices import find_device
from regard.devices.kinds import AUTO
from regard.errors import SettingError
from regard.inference.text import MOST_LIKELY, MOST_WRITTEN
from regard.inference.use import InUse, Reply
from regard.interop.checkpoints.folder import load_folder
from regard.interop.pages.explaining import likeliest_classes, named_shares
from regard.interop.pages.looking import longest_input, look, read
from regard.interop.pages.pictures import reads_pictures
from regard.viewer import Example, NotebookPage, Prediction
from regard.viewer.example import Share
from regard.viewer.options import EVERYTHING, LookOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Tasks by the endings of the names of models; any other is looked at and says nothing.
_TASKS = {
    "ForCausalLM": "language_modelling",
    "LMHeadModel": "language_modelling",
    "ForMaskedLM": "masked_language_modelling",
    "ForSequenceClassification": "classification",
}


class Checkpoint(InUse):
    """A Hugging Face model behind the page, looked at, and answering a text as it can."""

    def __init__(self, model: "PreTrainedModel", tokenizer: Any, **reading: Any) -> None:
        self.model: PreTrainedModel = model
        self.tokenizer: PreTrainedTokenizerBase = tokenizer
        nn.Module.eval(model)
        self.reading = reading
        self.is_writer = bool(getattr(model.config, "is_encoder_decoder", False))
        tasks = (task for ending, task in _TASKS.items() if type(model).__name__.endswith(ending))
        self._job = "generation" if self.is_writer else next(tasks, "attention")

    @classmethod
    def load(
        cls, folder: str | Path, *, device: str = AUTO, allow_download: bool = False, **reading: Any
    ) -> "Checkpoint":
        """The model of a folder with its head."""
        torch_device = find_device(device)
        model, tokenizer = load_folder(folder, allow_download=allow_download)
        nn.Module.to(model, torch_device)  # of whose own ``to`` mypy knows nothing
        return cls(model, tokenizer, **reading)

    @property
    def job(self) -> str:
        return self._job

    @property
    def explains(self) -> bool:
        return self._job != "attention"

    @property
    def longest(self) -> int | None:
        """Tokens of the longest text that it reads; None without a limit."""
        return longest_input(self.model, self.tokenizer)

    def unused(self, *, explain: bool) -> set[str]:
        return super().unused(explain=explain) - ({"target"} if self.is_writer else set())

    def check_served(self, folder: Path) -> None:
        """Raise SettingError unless it reads text."""
        if reads_pictures(self.model):
            raise SettingError(
                f"model must read text to be served; got {type(self.model).__name__}, which reads "
                f"pictures. Look at one: regard look --model {folder} cat.png"
            )

    def look(
        self, texts: Any, options: LookOptions = EVERYTHING, *, explain: bool = True
    ) -> NotebookPage:
        """A page of its attention in each text, with the labels of a classifier."""
        given = {name: value for name, value in options.given().items() if name != "beam_size"}
        page = look(self.model, self.tokenizer, texts, explain=explain, **{**self.reading, **given})
        if self._job == "attention" or self.reading.get("pair"):
            return page
        examples = [self._labelled(example) for example in page.document.examples]
        title = page.document.title
        if len(examples) == 1 and (answer := examples[0].answer) and answer.labels:
            title = f"{title} → {answer.labels[0][0]}"
        page.document = replace(
            page.document, title=title, task=self._job.replace("_", " "), examples=tuple(examples)
        )
        return page

    def reply(self, text: str, example: Example) -> Reply:
        if self._job == "language_modelling":
            return self._continued(text)
        if self._job == "masked_language_modelling":
            ids = self._ids(text)
            masks = (ids[0] == self.tokenizer.mask_token_id).nonzero().flatten().tolist()
            shares = self._likeliest(self._logits(ids)[masks[0]]) if masks else ()
            return Reply(next_tokens=shares)  # at the first mask
        if example.answer is not None and example.answer.labels:
            return Reply(text=example.answer.labels[0][0], labels=example.answer.labels)
        return Reply(text=example.output if self.is_writer else "")

    def about(self) -> dict[str, JsonValue]:
        return {**super().about(), "max_tokens": self.longest}

    def _labelled(self, example: Example) -> Example:
        """The example with the labels of a classifier, and their probabilities."""
        if self._job != "classification" or example.image is not None:
            return example
        labels = likeliest_classes(self.model, self._logits(self._ids(example.source)))
        return replace(example, answer=replace(example.answer or Prediction(), labels=labels))

    @torch.no_grad()
    def _continued(self, text: str) -> Reply:
        """The likeliest next tokens, and the greedy continuation."""
        ids = self._ids(text)
        next_tokens = self._likeliest(self._logits(ids)[-1])
        room = MOST_WRITTEN if self.longest is None else self.longest - ids.shape[1]
        if room < 1:
            return Reply(next_tokens=next_tokens)
        padding = self.tokenizer.pad_token_id
        made: Tensor = self.model.generate(  # type: ignore[operator]
            input_ids=ids.to(self.model.device),
            attention_mask=torch.ones_like(ids).to(self.model.device),
            max_new_tokens=min(room, MOST_WRITTEN),
            do_sample=False,
            num_beams=1,
            pad_token_id=0 if padding is None else padding,
        )
        # Tokens alone may be decoded without the space before them.
        before, whole = (
            self._decoded(batch[0].tolist(), skip_special_tokens=True) for batch in (ids, made)
        )
        return Reply(text=whole.removeprefix(before), next_tokens=next_tokens)

    def _ids(self, text: str) -> Int[Tensor, "1 N"]:
        return read(self.model, self.tokenizer, text)[0]

    @torch.no_grad()
    def _logits(self, ids: Int[Tensor, "1 N"]) -> Float[Tensor, "..."]:
        """Logits of each token, (N, V), or of each label, (V,)."""
        logits: Tensor = self.model(input_ids=ids.to(self.model.device)).logits[0]
        return logits.float().cpu()

    def _likeliest(self, logits: Float[Tensor, " V"]) -> tuple[Share, ...]:
        shares = logits.softmax(-1)
        top = shares.topk(min(MOST_LIKELY, len(shares)))
        return named_shares(top.values, [self._decoded([token]) for token in top.indices.tolist()])

    def _decoded(self, ids: list[int], **options: bool) -> str:
        return str(self.tokenizer.decode(ids, clean_up_tokenization_spaces=False, **options))
