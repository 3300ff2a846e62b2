"""Encoders with a head as those of transformers."""

from regard.export.huggingface_shapes import Held, Options, Shape, Table, refused
from regard.inference import Predictor
from regard.interop.checkpoint_encoders import as_learned, encoder_of
from regard.models import Classifier, MaskedLanguageModel, Tagger
from regard.tasks import Recipe
from regard.tasks.classification import Classification
from regard.tasks.masked_language_modelling import MaskedLanguageModelling
from regard.tasks.tagging import Tagging
from regard.text import BOS_ID, EOS_ID, TokenizerConfig

_BERT = "encoders of transformers' BERT"


class Encoders(Shape):
    """Encoders with a head, as BERT."""

    def refuse(self, predictor: Predictor) -> str | None:
        """Why BERT does not hold the model."""
        model = predictor.model
        guesses = isinstance(model, MaskedLanguageModel)
        added = ("learned",) if guesses else ("learned", "sinusoidal")
        options: Options = {
            "positions": (added, f"{_BERT} add learned positions to embeddings"),
            "norm": (("post",), f"{_BERT} have their norms after each layer"),
            "norm_kind": (("layer",), f"{_BERT} have layer norms"),
            "activation": (("gelu",), f"{_BERT} have it between two matrices"),
            "parts": (("none",), f"{_BERT} read words from no parts"),
        }
        refusal = refused("model", encoder_of(model).config, options)
        if refusal is None and isinstance(model, Tagger):
            crf: Options = {"crf": ((False,), f"{_BERT} tag each token by itself")}
            refusal = refused("head", model.config, crf)
        if refusal is None and isinstance(model, Classifier):
            first = f"{_BERT} classify by the first token, through a pooler"
            pooling: Options = {"pooling": (("first",), first), "pooler": ((True,), first)}
            refusal = refused("head", model.config, pooling)
        return refusal

    def hold(self, predictor: Predictor) -> Held:
        """The model as BERT."""
        task = predictor.task
        begins = isinstance(task, MaskedLanguageModelling) or _begins(predictor.recipe)
        mask: str | None = None
        names: list[str] = []
        tells_segments = False
        if isinstance(task, MaskedLanguageModelling):
            opens, pipeline, use = "AutoModelForMaskedLM", "fill-mask", _GUESS
            mask, longest, tells_segments = "[MASK]", task.data.context, task.data.next_sentence
        elif isinstance(task, Tagging):
            opens, pipeline, use = "AutoModelForTokenClassification", "token-classification", _TAG
            names, longest = task.tags, task.data.max_length + begins + 1
        else:
            assert isinstance(task, Classification)
            opens, pipeline, use = (
                "AutoModelForSequenceClassification",
                "text-classification",
                _CLASSIFY,
            )
            names, longest = task.labels, task.data.max_length + begins + 1
        settings: Table = {"bos_token_id": BOS_ID, "eos_token_id": EOS_ID}
        if names:
            settings["id2label"] = {str(number): name for number, name in enumerate(names)}
            settings["label2id"] = {name: number for number, name in enumerate(names)}
        most = encoder_of(predictor.model).max_length or longest
        return Held(
            layout="bert",
            model=as_learned(predictor.model, max_length=most),
            settings=settings,
            generation=None,
            opens=opens,
            use=use,
            pipeline=pipeline,
            tokenizers={"": task.tokenizer},
            before=(BOS_ID,) if begins else (),
            after=() if task.tokenizer is None else (EOS_ID,),
            longest=most,
            mask=mask,
            tells_segments=tells_segments,
        )


def _begins(recipe: Recipe) -> bool:
    """Whether a text that is read by itself has the begin before it."""
    return isinstance(recipe.tokenizer, TokenizerConfig) and recipe.tokenizer.begins


_GUESS = """\
tokenizer.mask_token = "[MASK]"
batch = tokenizer(["A text. [MASK]"], return_tensors="pt")
is_masked = batch["input_ids"] == tokenizer.mask_token_id
print(tokenizer.decode(model(**batch).logits[is_masked].argmax(-1)))
"""
_TAG = """\
batch = tokenizer(["A text."], return_tensors="pt")
for token, logits in zip(batch.tokens(), model(**batch).logits[0]):  # a word's first tells its tag
    print(token, model.config.id2label[int(logits.argmax())])
"""
_CLASSIFY = """\
batch = tokenizer(["A text."], return_tensors="pt")
(logits,) = model(**batch).logits
print(model.config.id2label[int(logits.argmax())])
"""
