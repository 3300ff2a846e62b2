"""Models as those of transformers: which layout holds one, and why none does."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from regard.config import JsonValue
from regard.export.form import search_differences, spelled, trained_with
from regard.inference import Predictor
from regard.inference.search.searcher import FORBIDDEN
from regard.interop.checkpoints.decoders import as_learned as decoder_as_learned
from regard.interop.checkpoints.encoders import as_learned as encoder_as_learned
from regard.interop.checkpoints.encoders import encoder_of
from regard.interop.checkpoints.models import LayoutName
from regard.interop.checkpoints.seq2seq import NORM_EPS, as_written
from regard.models import (
    Classifier,
    Decoder,
    DecoderConfig,
    MaskedLanguageModel,
    Tagger,
    Transformer,
)
from regard.tasks import DecodingConfig
from regard.tasks.labels.classification import Classification
from regard.tasks.labels.tagging import Tagging
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.tasks.running_text.masked_language_modelling import MaskedLanguageModelling
from regard.text import BOS_ID, EOS_ID, PAD_ID, TokenizerConfig

Table = dict[str, JsonValue]

# Values of an option that a layout can hold, and why it holds no other.
Options = Mapping[str, tuple[Sequence[object], str]]


@dataclass(frozen=True, slots=True)
class Held:
    """A model as a layout of transformers has it."""

    layout: LayoutName
    model: nn.Module
    settings: Table  # of its config, besides sizes
    generation: Table | None  # search settings; None of a model that writes nothing
    opens: str  # the class of transformers that opens it
    use: str  # lines of Python that use ``model`` and ``tokenizer``
    pipeline: str  # the task, as transformers names it
    tokenizers: Mapping[str, object]  # by folder; "" is the model's own
    before: tuple[int, ...]  # reserved ids before a text, and after it
    after: tuple[int, ...]
    longest: int  # most tokens that are read at once
    mask: str | None = None
    tells_segments: bool = False
    notes: tuple[str, ...] = ()  # in Markdown
    folder: str = "text"  # of the tokenizer in a run, where both sides share one


class Shape(ABC):
    """Models of one kind."""

    @abstractmethod
    def refuse(self, predictor: Predictor) -> str | None:
        """Why no layout holds the model, by the option of its recipe; None if one does."""

    @abstractmethod
    def hold(self, predictor: Predictor) -> Held:
        """The model in the layout that holds it."""


def refused(section: str, config: object, options: Options, holders: str) -> str | None:
    """The first option whose value no layout holds, and why; None if there is none."""
    for name, (values, reason) in options.items():
        if (got := getattr(config, name)) not in values:
            cure = trained_with(f"{section}.{name}", values[0])
            return f"{section}.{name} is {spelled(got)}, and {holders} {reason}; {cure}"
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
            "early_stopping": True,  # as ours: no later answer is better
        }
    elif decoding.method == "sample":
        table |= {"do_sample": True, "temperature": decoding.temperature}
        table |= {"top_k": decoding.top_k or 0, "top_p": decoding.top_p}
    return {name: value for name, value in table.items() if value is not None}


_LMS = "language models of transformers"
_LMS_POSITIONS = ("learned", "sinusoidal", "rotary")
_AS_MANY_HEADS = "have as many heads of keys as of queries"


class LanguageModels(Shape):
    """Decoders, as GPT-2, GPT-NeoX or Llama."""

    def refuse(self, predictor: Predictor) -> str | None:
        model = predictor.model
        assert isinstance(model, Decoder)
        config = model.config
        options: Options = {
            "norm": (("pre",), "have their norms before each layer"),
            "window": ((None,), "look at all that came before"),
            "positions": (_LMS_POSITIONS, "add positions, or turn queries and keys"),
        }
        refusal = refused("model", config, options, _LMS)
        if refusal is not None or _is_llama(config):
            return refusal
        holders = f"{_LMS} with {config.positions} positions"
        if config.positions == "rotary":
            holders += ", unless norm_kind is 'rms' and activation 'swiglu',"
        options = {
            "norm_kind": (("layer",), "have layer norms"),
            "activation": (("gelu", "gelu_tanh", "relu"), "have two matrices between"),
            "num_key_heads": ((None, config.num_heads), _AS_MANY_HEADS),
        }
        return refused("model", config, options, holders)

    def hold(self, predictor: Predictor) -> Held:
        model, task, decoding = predictor.model, predictor.task, predictor.decoding
        assert isinstance(model, Decoder)
        assert isinstance(task, LanguageModelling)
        config = model.config
        longest = model.max_length or max(config.max_length, task.data.context)
        layout: LayoutName = "gpt2"
        if config.positions == "rotary":
            layout = "llama" if _is_llama(config) else "gpt_neox"
        generation = {**searched(decoding), "max_new_tokens": decoding.max_tokens}
        if not decoding.one_line:
            del generation["eos_token_id"]  # a line's end is a token like others
        return Held(
            layout=layout,
            model=decoder_as_learned(model, max_length=longest),
            settings={"bos_token_id": EOS_ID, "eos_token_id": EOS_ID, "pad_token_id": PAD_ID},
            generation=generation,
            opens="AutoModelForCausalLM",
            use=_CONTINUE,
            pipeline="text-generation",
            tokenizers={"": task.tokenizer},
            before=(EOS_ID,),
            after=(),
            longest=longest,
            notes=(_LINES.format(context=task.data.context),),
        )


_LINES = (
    "`</s>` is a line's end, and stands before each text. The model was trained on windows of "
    "{context} tokens; beyond them it is on its own."
)
_CONTINUE = """\
batch = tokenizer(["A text."], return_tensors="pt")
for ids in model.generate(**batch):
    print(tokenizer.decode(ids).replace("</s>", "\\n"))
"""


def _is_llama(config: DecoderConfig) -> bool:
    """Whether a decoder has the norms and gates of Llama."""
    return (config.positions, config.norm_kind, config.activation) == ("rotary", "rms", "swiglu")


_BERT = "encoders of transformers' BERT"


class Encoders(Shape):
    """Encoders with a head, as BERT."""

    def refuse(self, predictor: Predictor) -> str | None:
        model = predictor.model
        guesses = isinstance(model, MaskedLanguageModel)
        added = ("learned",) if guesses else ("learned", "sinusoidal")
        options: Options = {
            "positions": (added, "add learned positions to embeddings"),
            "norm": (("post",), "have their norms after each layer"),
            "norm_kind": (("layer",), "have layer norms"),
            "activation": (("gelu",), "have it between two matrices"),
            "parts": (("none",), "read words from no parts"),
            "embedding_dim": ((None,), "have embeddings as wide as states"),
        }
        head: Options = {}
        if isinstance(model, Tagger):
            head = {"crf": ((False,), "tag each token by itself")}
        elif isinstance(model, Classifier):
            first = "classify by the first token, through a pooler"
            head = {"pooling": (("first",), first), "pooler": ((True,), first)}
            head = {**head, "ngram_scores": ((False,), "have no scores of n-grams")}
        refusal = refused("model", encoder_of(model).config, options, _BERT)
        return refusal or refused("head", getattr(model, "config", None), head, _BERT)

    def hold(self, predictor: Predictor) -> Held:
        task = predictor.task
        tokenizer = predictor.recipe.tokenizer
        begins = isinstance(task, MaskedLanguageModelling) or (
            isinstance(tokenizer, TokenizerConfig) and tokenizer.begins
        )
        mask, names, tells_segments = None, list[str](), False
        if isinstance(task, MaskedLanguageModelling):
            opens, pipeline, use = "AutoModelForMaskedLM", "fill-mask", _GUESS
            mask, longest, tells_segments = "[MASK]", task.data.context, task.data.next_sentence
        elif isinstance(task, Tagging):
            opens, pipeline, use = "AutoModelForTokenClassification", "token-classification", _TAG
            names, longest = task.tags, task.data.max_length + begins + 1
        else:
            assert isinstance(task, Classification)
            opens, pipeline = "AutoModelForSequenceClassification", "text-classification"
            use = _CLASSIFY
            names, longest = task.labels, task.data.max_length + begins + 1
        settings: Table = {"bos_token_id": BOS_ID, "eos_token_id": EOS_ID}
        if names:
            settings["id2label"] = {str(number): name for number, name in enumerate(names)}
            settings["label2id"] = {name: number for number, name in enumerate(names)}
        most = encoder_of(predictor.model).max_length or longest
        return Held(
            layout="bert",
            model=encoder_as_learned(predictor.model, max_length=most),
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


_WHOSE = "translators of transformers"
# By where the norms are, positions, and whether embeddings are normed.
_TRANSLATORS: Mapping[tuple[str, str, bool], LayoutName] = {
    ("post", "sinusoidal", False): "marian",
    ("pre", "sinusoidal", False): "pegasus",
    ("post", "learned", True): "bart",
    ("pre", "learned", False): "blenderbot",
}


class Translators(Shape):
    """Encoder-decoder Transformers, as Marian, Pegasus, BART or Blenderbot."""

    def refuse(self, predictor: Predictor) -> str | None:
        model = predictor.model
        assert isinstance(model, Transformer)
        config = model.config
        options: Options = {
            "positions": (
                ("sinusoidal", "learned"),
                "add sinusoids or learned positions to embeddings",
            ),
            "norm_kind": (("layer",), "have layer norms"),
            "norm_eps": ((None, NORM_EPS), f"add {NORM_EPS} to a variance"),
            "num_key_heads": ((None, config.num_heads), _AS_MANY_HEADS),
            "activation": (("relu", "gelu", "gelu_tanh", "silu"), "have two matrices between"),
            "score": (("scaled_dot",), "match by scaled dot products"),
            "window": ((None,), "look at the whole text"),
            "source_begin": ((False,), "look at all that is read"),
            "values": (("states",), "mix states"),
            "copy": ((False,), "copy nothing"),
        }
        return refused("model", config, options, _WHOSE) or self._refuse_tables(predictor, model)

    def _refuse_tables(self, predictor: Predictor, model: Transformer) -> str | None:
        """Why no layout holds its tables, and the norm of their embeddings."""
        config = model.config
        layout = _TRANSLATORS.get((config.norm, config.positions, config.embedding_norm))
        settings = f"with norm {config.norm!r} and {config.positions} positions"
        if layout is None:
            normed = str(config.embedding_norm).lower()
            return f"model.embedding_norm is {normed}, which none of the {_WHOSE} is {settings}"
        if layout == "marian":
            return None
        if not predictor.tokenizer.is_shared:
            cure = trained_with("model.norm", "post")
            return (
                "source and target have a vocabulary each (tokenizer.shared = false), which "
                f"{_WHOSE} have only with the norms after each layer; {cure}"
            )
        if config.tie_embeddings != "all":
            tied, cure = config.tie_embeddings, trained_with("model.tie_embeddings", "all")
            return (
                f"model.tie_embeddings is {tied!r}, and {_WHOSE} have one table {settings}; {cure}"
            )
        return None

    def hold(self, predictor: Predictor) -> Held:
        model, task = predictor.model, predictor.sequence_task
        assert isinstance(model, Transformer)
        config, decoding = model.config, predictor.decoding
        longest = model.max_length or max(config.max_length, task.data.max_length + 1)
        written = int(task.data.max_length * decoding.max_ratio) + 10
        tokenizer = task.tokenizer
        tokenizers: dict[str, object] = {"": tokenizer.source}
        if not tokenizer.is_shared:
            tokenizers["target"] = tokenizer.target
        return Held(
            layout=_TRANSLATORS[config.norm, config.positions, config.embedding_norm],
            model=as_written(model, max_length=longest),
            settings={
                "is_encoder_decoder": True,
                "bos_token_id": BOS_ID,
                "eos_token_id": EOS_ID,
                "forced_eos_token_id": None,
                "decoder_start_token_id": BOS_ID,
                "attention_dropout": config.attention_dropout,
                "activation_dropout": 0.0,
                "encoder_layerdrop": 0.0,
                "decoder_layerdrop": 0.0,
            },
            generation={
                **searched(decoding),
                "decoder_start_token_id": BOS_ID,
                "max_new_tokens": max(1, min(written, longest - 1)),
            },
            opens="AutoModelForSeq2SeqLM",
            use=_TRANSLATE if tokenizer.is_shared else _TRANSLATE_TWO,
            pipeline="translation" if predictor.recipe.task == "translation" else "summarization",
            tokenizers=tokenizers,
            before=(),
            after=(EOS_ID,) if task.data.source_end else (),
            longest=longest,
            notes=(*([_SEARCH] if decoding.method == "beam" else []), _differences(predictor)),
            folder="shared",
        )


def _differences(predictor: Predictor) -> str:
    """How ``generate`` differs from ``regard predict``, in Markdown."""
    empty = "an empty text has an empty answer in regard, and `generate` writes one;"
    sentences = [empty, *search_differences(predictor, draws=True)]
    return "Otherwise than by `regard predict`:\n\n" + "\n".join(f"- {line}" for line in sentences)


_SEARCH = (
    "A beam there divides log-probabilities by length^α, in regard by ((length + 5) / 6)^α; so of "
    "nearly equal outputs another may come first. With `length_penalty=0` both are the same."
)
_TRANSLATE = """\
batch = tokenizer(["A text."], padding=True, return_tensors="pt")
for ids in model.generate(**batch):
    print(tokenizer.decode(ids, skip_special_tokens=True))
"""
_TRANSLATE_TWO = """\
target = AutoTokenizer.from_pretrained(folder, subfolder="target")
batch = tokenizer(["A text."], padding=True, return_tensors="pt")
for ids in model.generate(**batch):
    print(target.decode(ids, skip_special_tokens=True))
"""
