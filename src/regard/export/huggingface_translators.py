"""Encoder-decoder Transformers as those of transformers."""

from collections.abc import Mapping

from regard.export.huggingface_shapes import Held, Options, Shape, refused, searched
from regard.inference import Predictor
from regard.interop.checkpoint_seq2seq import NORM_EPS, as_written
from regard.interop.checkpoints import LayoutName
from regard.models import Transformer
from regard.text import BOS_ID, EOS_ID

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
        """Why no layout holds the model."""
        model = predictor.model
        assert isinstance(model, Transformer)
        config = model.config
        options: Options = {
            "positions": (
                ("sinusoidal", "learned"),
                f"{_WHOSE} add sinusoids or learned positions to embeddings",
            ),
            "norm_kind": (("layer",), f"{_WHOSE} have layer norms"),
            "norm_eps": ((None, NORM_EPS), f"{_WHOSE} add {NORM_EPS} to a variance"),
            "num_key_heads": (
                (None, config.num_heads),
                f"{_WHOSE} have as many heads of keys as of queries",
            ),
            "activation": (
                ("relu", "gelu", "gelu_tanh", "silu"),
                f"{_WHOSE} have two matrices between",
            ),
            "score": (("scaled_dot",), f"{_WHOSE} match by scaled dot products"),
            "window": ((None,), f"{_WHOSE} look at the whole text"),
            "source_begin": ((False,), f"{_WHOSE} look at all that is read"),
            "values": (("states",), f"{_WHOSE} mix states"),
            "copy": ((False,), f"{_WHOSE} copy nothing"),
        }
        return refused("model", config, options) or self._refuse_tables(predictor, model)

    def _refuse_tables(self, predictor: Predictor, model: Transformer) -> str | None:
        """Why no layout holds its tables, and the norm of what comes out of them."""
        config = model.config
        layout = _TRANSLATORS.get((config.norm, config.positions, config.embedding_norm))
        beside = f"with norm {config.norm!r} and {config.positions} positions"
        if layout is None:
            normed = str(config.embedding_norm).lower()
            return f"model.embedding_norm is {normed}, which none of the {_WHOSE} is {beside}"
        if layout == "marian":
            return None
        if not predictor.tokenizer.is_shared:
            return f"tokenizer.shared is false, and {_WHOSE} have one vocabulary {beside}"
        if config.tie_embeddings != "all":
            tied = config.tie_embeddings
            return f"model.tie_embeddings is {tied!r}, and {_WHOSE} have one table {beside}"
        return None

    def hold(self, predictor: Predictor) -> Held:
        """The model in the layout that holds it."""
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
            use=_TRANSLATE if tokenizer.is_shared else _TRANSLATE_APART,
            pipeline="translation" if predictor.recipe.task == "translation" else "summarization",
            tokenizers=tokenizers,
            before=(),
            after=(EOS_ID,) if task.data.source_end else (),
            longest=longest,
            notes=(_SEARCH,) if decoding.method == "beam" else (),
            folder="shared",
        )


_SEARCH = (
    "A beam there divides log-probabilities by length^α, in regard by ((length + 5) / 6)^α; so of "
    "nearly equal outputs another may come first. With `length_penalty=0` both are the same."
)
_TRANSLATE = """\
batch = tokenizer(["A text."], padding=True, return_tensors="pt")
for ids in model.generate(**batch):
    print(tokenizer.decode(ids, skip_special_tokens=True))
"""
_TRANSLATE_APART = """\
target = AutoTokenizer.from_pretrained(folder, subfolder="target")
batch = tokenizer(["A text."], padding=True, return_tensors="pt")
for ids in model.generate(**batch):
    print(target.decode(ids, skip_special_tokens=True))
"""
