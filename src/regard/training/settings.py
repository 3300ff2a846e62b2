"""The ``[training]`` settings of a recipe."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from regard.config import JsonValue, newer
from regard.devices.kinds import AUTO, DeviceName
from regard.errors import SettingError
from regard.fields import Count, Natural, Positive, Share, Weight, check_fields

Precision = Literal["auto", "float32", "tf32", "bfloat16", "float16"]


def epoch_defaults(names: Collection[str]) -> dict[str, int]:
    """Settings that go with named ones: epochs that are set end the training."""
    has_epochs = "training.epochs" in names and "training.least_updates" not in names
    return {"training.least_updates": 0} if has_epochs else {}


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """Settings of a training.

    Training ends at the first of ``updates``, ``epochs`` and ``minutes`` that is set, or when
    validation has not improved for ``patience`` validations.

    Attributes:
        updates: Optimizer steps in all.
        epochs: Times every pair is seen.
        least_updates: Where all epochs have fewer updates, as of a small text, they go on until so
            many are made.
        minutes: Time spent in training, pauses between resumed runs not counted.
        batch_tokens: Tokens of a batch on its longer side, padding included; ``auto`` finds by
            trial how many fit into the memory of a GPU, and is 4096 on a CPU. A run keeps the
            number.
        accumulate: Batches whose gradients are summed into one update.
        learning_rate: The peak; None is the paper's, (model_dim * warmup) ** -0.5.
        encoder_rate: The peak of an encoder beside a decoder or a head that begins anew, its
            embeddings included; None is that of all. It rises and falls with the learning rate:
            Liu & Lapata (2019), section 3.2.
        warmup: Updates over which the learning rate rises to its peak.
        warmup_share: The most of training that the rise may take: a training that is too short for
            ``warmup`` updates rises faster. With ``minutes`` its length is judged by the speed so
            far. None lets the rise take all of it, and more.
        schedule: After the peak: ``inverse_sqrt`` as in Vaswani et al. (2017, 5.3), ``linear`` to
            zero at the end of training, ``cosine`` to a tenth of the peak, or ``constant``.
        optimizer: ``adamw``; ``muon`` for weight matrices with AdamW for the rest; or ``sgd``.
        momentum: Of Muon and SGD.
        newton_schulz: How often Muon takes the step of Newton and Schulz. Fewer than its author's 5
            begin nearer to where they lead, and cost less.
        betas: Adam's decay rates.
        eps: Adam's epsilon.
        weight_decay: Decoupled from the gradient (AdamW).
        label_smoothing: Share of the probability spread over the vocabulary.
        r_drop: Weight of how far two readings of a batch with different dropout differ: Liang et
            al. (2021), https://arxiv.org/abs/2106.14448, whose α it is. Less is learned by heart,
            so that small texts give better outputs, for twice the work. Of tasks that write a text
            for a text.
        clip_norm: Largest norm of the gradient per token; None does not clip.
        validate_every: Updates between validations, each of which saves a checkpoint; ``auto`` is
            after every epoch, and at each fifth of training at the latest, on a tenth as many
            examples as there are to train on, or 200; the best are saved, and some. Epochs of less
            than a hundredth of training share one.
        save_every_minutes: Minutes after which a checkpoint is saved in any case. It is there to go
            on from, is not averaged, and gives way to the next one.
        validation_pairs: Most pairs translated at a validation for BLEU and samples; 0 measures the
            loss only.
        valid_share: How much of the training text is validated on where ``data.valid`` is empty: so
            much up to 500 examples, and 2 % up to 1,000. Running text has ``data.valid_share``.
        metric: The criterion of early stopping and of the final weights, the loss among
            equals: ``loss``; a figure of the task such as ``bleu``, ``accuracy`` or ``f1``; or
            ``auto``, the task's main one.
        patience: Validations without improvement before training stops; None goes to the end.
        keep: Checkpoints kept, which are averaged at the end; the best is always kept.
        ema: Decay per update of an exponential moving average of the weights; None keeps none.
        precision: Of matrix products; all else is float32. ``float32``; ``tf32``, the same with
            products in TF32 on GPUs that have it; ``bfloat16``; ``float16`` with a scaled loss, on
            GPUs; or ``auto``: bfloat16 where the processor multiplies it natively and products are
            not too small for it, on older GPUs float16, else float32.
        compile: Whether torch.compile makes one program of the model, for batches of all sizes: on
            a GPU faster, after a minute or more at the beginning.
        shard: Whether several processes have a part each of weights, gradients and optimizer
            (FSDP2), for models that do not fit into the memory of one; by one process it is the
            same as without.
        device: Where it is trained: ``auto`` takes a GPU if there is one, else the CPU; ``cpu``;
            ``cuda``, ``cuda:1``; or ``mps``. A run is tied to none: begun on one, it goes on on
            another.
        seed: Of everything random.
        corpus: Where encoded text is while it is learned from: in ``memory``; on ``disk``, in files
            of a cache, so that it may be larger than memory, and its batches are drawn from blocks
            of neighbours; or ``auto``: on disk from a gigabyte of text on, where the task can.
        cache: The folder of that cache; None takes the user's own (``~/.cache/regard/corpora``).
        encoding: Encoding of text that is not UTF-8, such as gbk or cp1252; None recognises UTF-16,
            GB18030 and Windows-1252.
        pretrained: The folder of a run to begin with, or of a checkpoint of BERT, RoBERTa or GPT-2
            in Hugging Face's layout: its tokenizer, and its weights without the head, which
            starts anew. Settings of tokenizer and model that the recipe leaves open are as there;
            rate, warm-up, decay, smoothing and dropout that it leaves open fit its width.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range;
            nothing ends the training; or the metric is not measured.

    Example:
        >>> from regard.config import build
        >>> build(TrainingConfig, {"updates": 500}, where="training").batch_tokens
        4096
        >>> build(TrainingConfig, {"patience": 5}, where="training")
        Traceback (most recent call last):
        regard.errors.SettingError: [training] one of updates, epochs, minutes must be set; got
        none. Training would never end.
    """

    updates: Count | None = None
    epochs: Count | None = None
    least_updates: Natural = 0
    minutes: Positive | None = None
    batch_tokens: Count | Literal["auto"] = 4096
    accumulate: Count = 1
    learning_rate: Positive | None = None
    encoder_rate: Positive | None = None
    warmup: Count = 4000
    warmup_share: Share | None = newer(0.2, before=None)  # noqa: RUF009
    schedule: Literal["inverse_sqrt", "linear", "cosine", "constant"] = "inverse_sqrt"
    optimizer: Literal["adamw", "muon", "sgd"] = "adamw"
    momentum: Share = 0.95
    newton_schulz: Count = newer(3, before=5)  # noqa: RUF009
    betas: tuple[float, ...] = (0.9, 0.98)
    eps: Positive = 1e-9
    weight_decay: Weight = 0.0
    label_smoothing: Share = 0.1
    r_drop: Weight = 0.0
    clip_norm: Positive | None = None
    validate_every: Count | Literal["auto"] = newer("auto", before=1000)  # noqa: RUF009
    save_every_minutes: Positive = 10.0
    validation_pairs: Natural = 200
    valid_share: Share = newer(0.1, before=0.02)  # noqa: RUF009
    metric: str = newer("auto", before="loss")
    patience: Count | None = None
    keep: Count = 5
    ema: Share | None = None
    precision: Precision = "auto"
    compile: bool = False
    shard: bool = False
    device: DeviceName = AUTO
    seed: Natural = 1
    corpus: Literal["auto", "memory", "disk"] = newer("auto", before="memory")
    cache: str | None = None
    encoding: str | None = None
    pretrained: str | None = None
    retired: ClassVar[Mapping[str, JsonValue]] = {"distill": None}

    def __post_init__(self) -> None:
        check_fields(self)
        if self.updates is None and self.epochs is None and self.minutes is None:
            raise SettingError(
                "one of updates, epochs, minutes must be set; got none. Training would never end."
            )
        if self.metric == "bleu" and self.validation_pairs == 0:
            raise SettingError(
                "validation_pairs must be above 0 where metric is bleu; got 0. "
                "BLEU is measured on translations of them."
            )
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise SettingError(
                f"betas must be two numbers, each at least 0 and below 1; got {list(self.betas)}."
            )
