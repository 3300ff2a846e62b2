"""Settings of the models that translate or continue a text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from regard.checks import check_divides, choose
from regard.config import JsonValue, newer
from regard.errors import SettingError
from regard.fields import Count, Positive, Share, Weight, check_fields
from regard.layers import NormKind
from regard.models.configs import LayersConfig, ModelConfig


def _check_registered(name: str, score: str) -> None:
    """Raise SettingError unless a score is in the table of ``register_score``."""
    # Only now: settings are read without torch, unless a score is none of those below.
    from regard.attention.scores.content import SCORES

    choose(name, score, SCORES)


ScoreName = Literal["scaled_dot", "dot", "additive"] | Annotated[str, _check_registered]


@dataclass(frozen=True, kw_only=True, slots=True)
class TransformerConfig(ModelConfig):
    """Sizes and options of an encoder-decoder Transformer; the defaults are the paper's base model.

    Raises:
        SettingError: num_heads does not divide model_dim or num_key_heads not num_heads, or
            embeddings are to be normed by batches.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> config = recipe_from_table({"model": {"norm": "pre", "model_dim": 256}}).model
        >>> config.norm, config.model_dim, config.num_heads
        ('pre', 256, 8)
        >>> recipe_from_table({"model": {"num_head": 4}})
        Traceback (most recent call last):
        regard.errors.SettingError: model.num_head is not a setting of transformer. Did you mean
        model.num_heads?

    Attributes:
        model_dim: Width of every state, C.
        num_heads: Attention heads per layer, H; divides model_dim.
        num_key_heads: Heads of keys and values, which divide num_heads and are shared by groups of
            queries' heads; None is num_heads, 1 is multi-query.
        num_encoder_layers: Layers that read the source.
        num_decoder_layers: Layers that write the target.
        ffn_dim: Width inside the feed-forward sublayer, F.
        dropout: Share dropped of embeddings and of each sublayer's output while training.
        attention_dropout: Share of the attention weights dropped while training, as in the paper's
            code and in later models.
        head_dropout: Share of the heads of cross-attention left out for a query while training, so
            that each head finds the right word by itself.
        norm: ``post`` as in the paper, ``pre`` for deep stacks without warm-up.
        norm_kind: ``layer`` as in the paper, ``rms``, or ``batch``, whose mean and variance are
            those of the batch's real positions while training, and running averages in use.
        activation: ``relu`` as in the paper, ``gelu``, ``gelu_tanh`` (an approximation of it),
            ``silu``, or ``swiglu``, which has a third matrix.
        positions: Added to the embeddings: ``sinusoidal`` as in the paper, or ``learned``. Known to
            self-attention alone: ``rotary`` (Su et al.), ``relative`` (Shaw et al.), ``t5`` (Raffel
            et al.), ``alibi`` (Press et al.). Or ``none``.
        score: How a query and a key match: ``scaled_dot`` as in the paper; ``dot``, which grows
            with the width of a head; or ``additive``, Bahdanau's ``w · tanh(q + k)``, w a head's.
        window: Restricted self-attention: tokens on each side, in the decoder before, that one
            sees besides itself; None is all. States reach further, a window a layer.
        max_length: Longest sequence, in tokens, that learned positions can take.
        tie_embeddings: Which tables are one: ``all`` (source, target and last layer, which needs a
            shared vocabulary), ``target`` (target and last layer) or ``none``.
        scale_embeddings: Whether embeddings are multiplied by √C as in the paper; BART's are not.
        embedding_norm: Whether the sum of embeddings and positions is normed, as BART's is.
        own_positions: Whether learned positions are two tables, one a side, as BART's are.
        norm_eps: Added to variances by the norms; None is each kind's own.
        source_begin: Whether the encoder reads the begin before each source, as BERT its
            ``[CLS]``; the decoder does not look at it.
        output_bias: Whether the logits have a bias, as Marian's have.
        values: Values of cross-attention: the encoder's ``states`` as in the paper, or the source
            ``embeddings``. With embeddings, a word's meaning reaches the output only through the
            attention paid to that very word, so the weights can be read as an alignment.
        copy: Whether words may be copied from the source, by one more head over it; needs a shared
            vocabulary.
    """

    model_dim: Count = 512
    num_heads: Count = 8
    num_key_heads: Count | None = None
    num_encoder_layers: Count = 6
    num_decoder_layers: Count = 6
    ffn_dim: Count = 2048
    dropout: Share = 0.1
    attention_dropout: Share = 0.0
    head_dropout: Share = 0.0
    norm: Literal["post", "pre"] = "post"
    norm_kind: NormKind = "layer"
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"] = "relu"
    positions: Literal["sinusoidal", "learned", "rotary", "relative", "t5", "alibi", "none"] = (
        "sinusoidal"
    )
    score: ScoreName = "scaled_dot"
    window: Count | None = None
    max_length: Count = 1024
    tie_embeddings: Literal["all", "target", "none"] = "all"
    scale_embeddings: bool = True
    embedding_norm: bool = False
    own_positions: bool = False
    norm_eps: Positive | None = None
    source_begin: bool = False
    output_bias: bool = False
    values: Literal["states", "embeddings"] = "states"
    copy: bool = False
    retired: ClassVar[Mapping[str, JsonValue]] = {"decoder": "self_attention"}

    def __post_init__(self) -> None:
        check_fields(self)
        check_divides("num_heads", self.num_heads, "model_dim", self.model_dim)
        if self.num_key_heads is not None:
            check_divides("num_key_heads", self.num_key_heads, "num_heads", self.num_heads)
        if self.embedding_norm and self.norm_kind == "batch":
            raise SettingError(
                "embedding_norm must be off where norm_kind is batch, since padding is among the "
                "embeddings; got both. Set norm_kind = 'layer'."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvSeq2SeqConfig(ModelConfig):
    """Sizes and options of a convolutional encoder-decoder.

    The defaults are the sizes that Gehring et al.'s code has for some 100,000 pairs; the paper's
    own, for millions, are 512 wide and 15 or 20 layers deep.

    Example:
        >>> from regard.models import ConvSeq2Seq
        >>> ConvSeq2Seq(ConvSeq2SeqConfig(kernel_size=5), source_vocab=9, target_vocab=9).max_length
        1024
        >>> ConvSeq2Seq(ConvSeq2SeqConfig(kernel_size=4), source_vocab=9, target_vocab=9)
        Traceback (most recent call last):
        regard.errors.SettingError: kernel_size must be odd, to have a middle, unless is_causal;
        got 4.

    Attributes:
        embed_dim: Width of the embeddings of both sides, and of attention's queries and keys.
        hidden_dim: Width of the convolutions' states.
        num_encoder_layers: Convolutions that read the source.
        num_decoder_layers: Convolutions that write the target, each with attention.
        kernel_size: Positions that a convolution sees, k; odd.
        dropout: Share dropped of embeddings, of each convolution's inputs and before the last
            layer.
        weight_norm: Whether lengths and directions of the weights are learned apart.
        max_length: Longest sequence, in tokens.
        tie_embeddings: Whether the last layer is the target embeddings' table.
        output_bias: Whether the logits have a bias, as in the authors' code.
    """

    embed_dim: Count = 256
    hidden_dim: Count = 256
    num_encoder_layers: Count = 4
    num_decoder_layers: Count = 3
    kernel_size: Count = 3
    dropout: Share = 0.2
    weight_norm: bool = True
    max_length: Count = 1024
    tie_embeddings: bool = True
    output_bias: bool = newer(True, before=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class RnnSeq2SeqConfig(ModelConfig):
    """Sizes and options of a recurrent encoder-decoder.

    Raises:
        SettingError: Two ways of looking are set together, or one without a score; or embeddings
            are to be mixed without attention.

    Example:
        >>> RnnSeq2SeqConfig(attention="dot", decoder="luong", local="predictive").reach
        10
        >>> RnnSeq2SeqConfig(hard=True, local="monotonic")
        Traceback (most recent call last):
        regard.errors.SettingError: local, hard, and coverage or copy must not be set together; got
        ["local='monotonic'", 'hard=True'].

    Attributes:
        cell: ``rnn``, ``gru`` or ``lstm``, in the encoder and the decoder.
        attention: How a query and a source state match: ``additive`` (Bahdanau), ``dot`` (with the
            sum of the two directions), ``general`` or ``location`` (Luong); ``mixture`` for Graves'
            bumps, which match nothing and move onwards; ``none`` for one fixed context vector.
        decoder: ``bahdanau`` asks with the state before the last token is read; ``luong`` with the
            state after it, and the answer is an input of the next step.
        local: Whether attention is near one position: ``monotonic`` (local-m) or ``predictive``
            (local-p).
        reach: Positions to each side of a local window, D.
        hard: Whether attention takes one position, drawn while training (REINFORCE).
        mean_share: The share of sentences that get all positions' mean instead, while training.
        reward_weight: The weight of the draws in the loss, λ_r: far below one, since the
            gradient of a draw is mostly noise, which would drown that of the words.
        entropy_weight: The weight in the loss of a nat of entropy at each step, λ_e.
        coverage: Whether attention reads the sum of its earlier weights, and repeats cost.
        coverage_weight: The weight of that loss.
        copy: Whether words may be copied from the source; needs a shared vocabulary.
        num_gaussians: Bumps of the mixture, K.
        max_length: Longest source, in tokens, that ``location`` can take.
        values: Values of attention: the encoder's ``states`` as in the paper, or the source
            ``embeddings``. With embeddings, a word's meaning reaches the output only through the
            attention paid to that very word, so the weights can be read as an alignment.
        embed_dim: Width of the embeddings of both sides.
        hidden_dim: Width of the decoder's state, and of each direction of the encoder.
        attention_dim: Width inside the additive score, h.
        num_layers: Stacked layers, in the encoder and the decoder.
        dropout: Share dropped of embeddings, between layers and before the last layer.
        tie_embeddings: Whether the last layer is the target embeddings' table.
        output_bias: Whether the logits have a bias, b_q.
        beginning: Source of the decoder's first state: the ``backward`` encoder's last, which
            is that of the first word, as in Bahdanau et al. (2015), A.2.2; or those of ``both``
            directions.
    """

    cell: Literal["rnn", "gru", "lstm"] = "gru"
    attention: Literal["additive", "dot", "general", "location", "mixture", "none"] = "additive"
    decoder: Literal["bahdanau", "luong"] = "bahdanau"
    local: Literal["none", "monotonic", "predictive"] = "none"
    reach: Count = 10
    hard: bool = False
    mean_share: Share = 0.5
    reward_weight: Weight = 0.03
    entropy_weight: Weight = 0.01
    coverage: bool = False
    coverage_weight: Weight = 1.0
    copy: bool = False
    num_gaussians: Count = 10
    max_length: Count = 1024
    values: Literal["states", "embeddings"] = "states"
    embed_dim: Count = 256
    hidden_dim: Count = 256
    attention_dim: Count = 256
    num_layers: Count = 1
    dropout: Share = 0.2
    tie_embeddings: bool = True
    output_bias: bool = newer(True, before=False)
    beginning: Literal["backward", "both"] = newer("backward", before="both")

    def __post_init__(self) -> None:
        check_fields(self)
        if self.attention == "none" and self.values == "embeddings":
            raise SettingError(
                "values must be states where attention is none; got 'embeddings'. "
                "Set attention = 'additive' to mix embeddings."
            )
        self._check_ways()

    def _check_ways(self) -> None:
        """Check that one kind of attention is set; only coverage and copying go together."""
        covers = self.coverage or self.copy
        chosen = {
            f"local={self.local!r}": self.local != "none",
            "hard=True": self.hard,
            "coverage=True or copy=True": covers,
        }
        ways = [name for name, is_chosen in chosen.items() if is_chosen]
        if len(ways) > 1:
            raise SettingError(
                f"local, hard, and coverage or copy must not be set together; got {ways}."
            )
        if ways and self.attention in ("none", "mixture"):
            raise SettingError(
                f"attention must be a score for {ways[0]}; got {self.attention!r}. "
                "Set attention = 'additive'."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class DecoderConfig(LayersConfig):
    """Sizes and options of a decoder-only language model.

    Raises:
        SettingError: num_key_heads does not divide num_heads.

    Example:
        >>> from regard.models import Decoder
        >>> sizes = {"model_dim": 8, "num_heads": 2, "num_layers": 1, "ffn_dim": 16}
        >>> configs = [DecoderConfig(**sizes, positions=each) for each in ("learned", "rotary")]
        >>> [Decoder(config, vocab_size=11).max_length for config in configs]
        [1024, None]
        >>> DecoderConfig(num_heads=4, num_key_heads=3)
        Traceback (most recent call last):
        regard.errors.SettingError: num_heads must be divisible by num_key_heads; got num_heads=4,
        num_key_heads=3.

    Attributes:
        num_key_heads: Heads of keys and values; divides num_heads. None is num_heads.
        norm: ``pre`` as in GPT-2, or ``post``.
        norm_kind: ``layer`` as in the paper, or ``rms``.
        norm_eps: Added to variances by the norms.
        activation: ``gelu``, ``gelu_tanh`` (as GPT-2 approximates it), ``relu`` or ``swiglu``.
        positions: ``learned``; or ``sinusoidal``, added to embeddings times √C as in Vaswani et al.
            (2017), ``rotary`` or ``alibi``, which have no limit.
        rotary_base: The 10000 of the angles of rotary positions; larger turns more slowly.
        max_length: Longest text, in tokens, that learned positions can take.
        window: How many tokens back a layer sees; None is all of them. The states still reach
            further, a window a layer.
        tie_embeddings: Whether the last layer is the embeddings' table.
    """

    num_key_heads: Count | None = None
    norm: Literal["pre", "post"] = "pre"
    norm_kind: Literal["layer", "rms"] = "layer"
    norm_eps: Positive = 1e-5
    activation: Literal["gelu", "gelu_tanh", "relu", "swiglu"] = "gelu"
    positions: Literal["learned", "sinusoidal", "rotary", "alibi"] = "learned"
    rotary_base: Positive = 10_000.0
    max_length: Count = 1024
    window: Count | None = None
    tie_embeddings: bool = True

    def __post_init__(self) -> None:
        LayersConfig.__post_init__(self)
        if self.num_key_heads is not None:
            check_divides("num_key_heads", self.num_key_heads, "num_heads", self.num_heads)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentLmConfig(ModelConfig):
    """Sizes and options of a recurrent language model.

    Raises:
        SettingError: φ is chosen of a cell that has its own.

    Example:
        >>> RecurrentLmConfig(cell="rnn", activation="relu").hidden_dim
        256
        >>> RecurrentLmConfig(cell="gru", activation="relu")
        Traceback (most recent call last):
        regard.errors.SettingError: activation must be tanh where cell is gru; got 'relu'.
        Set cell = 'rnn' to choose.

    Attributes:
        cell: ``rnn``, ``gru`` or ``lstm``.
        activation: φ of an ``rnn``: ``tanh``, or ``relu``.
        embed_dim: Width of the embeddings.
        hidden_dim: Width of a layer's state.
        num_layers: Stacked layers.
        dropout: Share dropped of embeddings, between layers and before the last layer.
        tie_embeddings: Whether the last layer is the embeddings' table, behind a linear map where
            the two widths differ.
        output_bias: Whether the logits have a bias, b_q.
    """

    cell: Literal["rnn", "gru", "lstm"] = "lstm"
    activation: Literal["tanh", "relu"] = "tanh"
    embed_dim: Count = 256
    hidden_dim: Count = 256
    num_layers: Count = 1
    dropout: Share = 0.2
    tie_embeddings: bool = True
    output_bias: bool = newer(True, before=False)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.activation != "tanh" and self.cell != "rnn":
            raise SettingError(
                f"activation must be tanh where cell is {self.cell}; got {self.activation!r}. "
                "Set cell = 'rnn' to choose."
            )
