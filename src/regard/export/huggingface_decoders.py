"""Language models as those of transformers."""

from regard.export.huggingface_shapes import Held, Options, Shape, refused, searched
from regard.inference import Predictor
from regard.interop.checkpoint_decoders import as_learned
from regard.interop.checkpoints import LayoutName
from regard.models import Decoder, DecoderConfig
from regard.tasks.language_modelling import LanguageModelling
from regard.text import EOS_ID, PAD_ID

_LMS = "language models of transformers"


class LanguageModels(Shape):
    """Decoders, as GPT-2, GPT-NeoX or Llama."""

    def refuse(self, predictor: Predictor) -> str | None:
        """Why no layout holds the model."""
        model = predictor.model
        assert isinstance(model, Decoder)
        config = model.config
        added = (
            ("learned", "sinusoidal", "rotary"),
            f"{_LMS} add positions, or turn queries and keys",
        )
        options: Options = {
            "norm": (("pre",), f"{_LMS} have their norms before each layer"),
            "window": ((None,), f"{_LMS} look at all that came before"),
            "positions": added,
        }
        if _is_llama(config):
            return refused("model", config, options)
        positions = f"{_LMS} with {config.positions} positions"
        if config.positions == "rotary":
            positions += ", unless norm_kind is 'rms' and activation 'swiglu',"
        options = {
            **options,
            "norm_kind": (("layer",), f"{positions} have layer norms"),
            "activation": (("gelu", "gelu_tanh", "relu"), f"{positions} have two matrices between"),
            "num_key_heads": (
                (None, config.num_heads),
                f"{positions} have as many heads of keys as of queries",
            ),
        }
        return refused("model", config, options)

    def hold(self, predictor: Predictor) -> Held:
        """The model in the layout that holds it."""
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
            model=as_learned(model, max_length=longest),
            settings={
                "bos_token_id": EOS_ID,
                "eos_token_id": EOS_ID,
                "pad_token_id": PAD_ID,
            },
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
