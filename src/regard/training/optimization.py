"""Optimizers by name, the learning rate over a training, and an average of weights."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import unwrap
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from regard.errors import RunError, SettingError
from regard.layers import TokenEmbedding
from regard.lazy import put_off_compiler
from regard.models import Encoder, Transformer
from regard.training.settings import TrainingConfig

# Keller Jordan's quintic: steepest at zero, https://kellerjordan.github.io/posts/muon/; and how
# often he takes it, after a division by Frobenius' norm.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_STEPS = 5
_EPS = 1e-7
# The end of the cosine, as a share of the peak: Hoffmann et al. (2022), section 3.
_COSINE_END = 0.1
# Attributes of a Transformer that make up its encoder; a table that both sides share is none.
_ENCODER_PARTS = {
    *("source_embedding", "source_norm", "positions", "encoder", "encoder_norm", "encoder_bias")
}


class Optimizers:
    """One optimizer or several, each with its own parameters, stepped and saved as one."""

    def __init__(self, parts: Sequence[Optimizer]) -> None:
        self.parts = list(parts)

    @property
    def param_groups(self) -> list[dict[str, object]]:
        """The groups of all."""
        return [group for part in self.parts for group in part.param_groups]

    def step(self) -> None:
        """One step of each."""
        for part in self.parts:
            part.step()

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for part in self.parts:
            part.zero_grad()

    def state_dict(self) -> dict[str, object]:
        """State to resume from; of a single optimizer, its own."""
        if len(self.parts) == 1:
            return self.parts[0].state_dict()
        return {str(number): part.state_dict() for number, part in enumerate(self.parts)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Load a state, but for its settings; ValueError if it is of other parameters."""
        settings = [
            {k: v for k, v in param_group.items() if k != "params"}
            for param_group in self.param_groups
        ]
        if len(self.parts) == 1:
            self.parts[0].load_state_dict(dict(state))
        else:
            saved = [
                cast(dict[str, dict[object, object]], state[str(n)]) for n in range(len(self.parts))
            ]
            stepped = sum(len(group["params"]) for group in self.parts[0].param_groups)
            if len(saved[0]["state"]) > stepped:
                raise RunError(
                    "training.optimizer must be that of the checkpoint; got muon, which leaves "
                    "tables of embeddings to AdamW, where the checkpoint's Muon stepped them too. "
                    "Begin another run from its weights: --pretrained RUN."
                )
            for part, part_state in zip(self.parts, saved, strict=True):
                part.load_state_dict(part_state)
        for group, current in zip(self.param_groups, settings, strict=True):
            group.update(current)  # decays and momentum are those of now
        for part in self.parts:
            for parameter, values in part.state.items():
                _check_state(part, parameter, values)


def _check_state(part: Optimizer, parameter: Tensor, values: Mapping[str, object]) -> None:
    """Raise ValueError unless a step can be taken: the fused kernel of AdamW looks at no sizes."""
    if isinstance(part, AdamW) and values.keys() != {"step", "exp_avg", "exp_avg_sq"}:
        raise ValueError(f"the state of AdamW cannot be {', '.join(map(str, values))}")
    for name, value in values.items():
        if value is None and not isinstance(part, AdamW):
            continue
        shape = torch.Size() if name == "step" else parameter.shape
        if not isinstance(value, Tensor) or value.shape != shape or not value.is_floating_point():
            raise ValueError(f"{name} must be a float tensor of {list(shape)}")


def make_optimizer(
    model: nn.Module, config: TrainingConfig, rate: float, *, dtype: torch.dtype
) -> Optimizers:
    """The optimizer of the settings; ``muon`` leaves embeddings, biases and gains to AdamW."""
    put_off_compiler()
    optimizers = _optimizers(model, config, rate, dtype)
    if config.encoder_rate is not None:
        encoder, share = {id(p) for p in encoder_parameters(model)}, config.encoder_rate / rate
        for part in optimizers:  # they get a group of their own at a fraction of the rate
            [group] = part.param_groups
            chosen = [p for p in group["params"] if id(p) in encoder]
            group["params"] = [p for p in group["params"] if id(p) not in encoder]
            part.add_param_group({"params": chosen, "share": share})
    return Optimizers(optimizers)


def encoder_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Parameters of the encoder of a Transformer, or of the reader below a head; and embeddings.

    Example:
        >>> from regard.models import TransformerConfig
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16)
        >>> model = Transformer(config, source_vocab=11, target_vocab=7)
        >>> names = {id(p): name for name, p in model.named_parameters()}
        >>> sorted({names[id(p)].split(".")[0] for p in encoder_parameters(model)})
        ['encoder', 'source_embedding']
    """
    for module in model.modules():
        if isinstance(module, Encoder):
            return list(module.parameters())
        if isinstance(module, Transformer):
            named = module.named_parameters()
            return [p for name, p in named if name.split(".")[0] in _ENCODER_PARTS]
    raise SettingError(
        "training.encoder_rate must be left out for a model without a Transformer's encoder; got "
        f"{type(model).__name__}."
    )


def _optimizers(
    model: nn.Module, config: TrainingConfig, rate: float, dtype: torch.dtype
) -> list[Optimizer]:
    learning = [p for p in model.parameters() if p.requires_grad]
    if config.optimizer == "sgd":
        sgd = SGD(learning, lr=rate, momentum=config.momentum, weight_decay=config.weight_decay)
        return [sgd]
    if config.optimizer == "adamw":
        return [_adamw(learning, config, rate)]
    tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding | TokenEmbedding)}
    matrices = [p for p in learning if p.dim() == 2 and id(p) not in tables]
    chosen = {id(p) for p in matrices}
    muon = Muon(
        matrices,
        lr=rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        steps=config.newton_schulz,
        dtype=dtype,
    )
    return [muon, _adamw([p for p in learning if id(p) not in chosen], config, rate)]


class _AdamW(AdamW):
    """Torch's AdamW, whose steps do not import torch's compiler."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        unwrap(AdamW.step)(self, closure)


def _adamw(parameters: list[nn.Parameter], config: TrainingConfig, rate: float) -> AdamW:
    return _AdamW(
        parameters,
        lr=rate,
        betas=(config.betas[0], config.betas[1]),
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=True,
    )


class Muon(Optimizer):
    """Muon with Nesterov's momentum (Jordan, 2024) and steps of Adam's size (Liu, 2025)."""

    # The rule of ``torch.optim.Muon``, with its names of state and settings; see
    # https://kellerjordan.github.io/posts/muon/ and https://arxiv.org/abs/2502.16982. Torch's
    # multiplies in bfloat16 always, in which processors without AVX-512 BF16 or AMX are many times
    # slower than in float32; here ``dtype`` is that of the products, and ``steps`` may be fewer.

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float,
        momentum: float,
        weight_decay: float,
        dtype: torch.dtype,
        steps: int = _STEPS,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(parameters, defaults)
        self.dtype, self.steps = dtype, steps

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step down the gradient of every matrix that has one."""
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights:
                self._step(weights, group)

    def _step(self, weights: list[Tensor], group: Mapping[str, float]) -> None:
        """One step of matrices; all at once, as of each alone a GPU is given too little to do."""
        rate, momentum = group["lr"], group["momentum"]
        grads = [cast(Tensor, weight.grad) for weight in weights]
        for weight, grad in zip(weights, grads, strict=True):
            if "momentum_buffer" not in self.state[weight]:
                self.state[weight]["momentum_buffer"] = torch.zeros_like(grad)
        means = [self.state[weight]["momentum_buffer"] for weight in weights]
        torch._foreach_lerp_(means, grads, 1 - momentum)
        directions = dict[torch.Size, list[tuple[Tensor, Tensor]]]()
        for weight, direction in zip(
            weights, torch._foreach_lerp(grads, means, momentum), strict=True
        ):
            directions.setdefault(weight.shape, []).append((weight, direction))
        torch._foreach_mul_(weights, 1 - rate * group["weight_decay"])
        for shape, pairs in directions.items():
            of_one_shape = torch.stack([direction for _, direction in pairs])
            orthogonal = orthogonalized(of_one_shape, self.dtype, self.steps)
            moved = [weight for weight, _ in pairs]
            size = -rate * 0.2 * max(shape) ** 0.5
            torch._foreach_add_(moved, list(orthogonal.to(moved[0].dtype)), alpha=size)


def orthogonalized(
    matrices: Float[Tensor, "K N M"], dtype: torch.dtype, steps: int = _STEPS
) -> Float[Tensor, "K N M"]:
    """Matrices with singular values of about 0.7 to 1.2, by steps of Newton and Schulz."""
    a, b, c = _COEFFICIENTS
    is_tall = matrices.size(1) > matrices.size(2)
    result = (matrices.mT if is_tall else matrices).to(dtype)
    result = result / _norm(result)
    for step in range(steps):
        gram = result @ result.mT
        if step == 0 and steps < _STEPS:
            # Schatten's norm of order 8 is nearer to the largest singular value than Frobenius',
            # so that fewer steps lift as many of the others; and the first step needs it anyway.
            square = gram @ gram
            bound = _norm(square) ** 0.25
            result, gram = (
                result / bound,
                (gram / bound**2).mul_(b).add_(square / bound**4, alpha=c),
            )
        else:
            gram = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        result = torch.baddbmm(result, gram, result, beta=a)
    return result.mT if is_tall else result


def _norm(matrices: Float[Tensor, "K N M"]) -> Float[Tensor, "K 1 1"]:
    norm: Tensor = torch.linalg.vector_norm(matrices, dim=(1, 2), keepdim=True)
    return norm.clamp(min=_EPS)


def peak_rate(config: TrainingConfig, model_dim: int) -> float:
    """The highest learning rate: as set, or the paper's, (model_dim * warmup) ** -0.5."""
    if config.learning_rate is not None:
        return config.learning_rate
    return float((model_dim * config.warmup) ** -0.5)


def rate_at(update: int, share: float, *, peak: float, config: TrainingConfig) -> float:
    """The learning rate of one update, at a fraction ``share`` of the training."""
    # With ``inverse_sqrt`` and the paper's peak this is equation 3 of Vaswani et al. (2017):
    # ``model_dim ** -0.5 * min(update ** -0.5, update * warmup ** -1.5)``.
    warmup = float(config.warmup)
    if config.warmup_share is not None and share:  # its largest share of all that there will be
        warmup = float(min(config.warmup, max(1.0, config.warmup_share * update / share)))
    if update < warmup:
        return peak * update / warmup
    if config.schedule == "inverse_sqrt":
        return float(peak * (warmup / update) ** 0.5)
    # The end of warm-up as a share of training follows from where we are now.
    warm = share * warmup / update
    remaining = max(0.0, 1 - share) / max(1e-9, 1 - warm)
    if config.schedule == "linear":
        return peak * remaining
    if config.schedule == "cosine":
        wave = 0.5 * (1 - math.cos(math.pi * min(1.0, remaining)))
        return peak * (_COSINE_END + (1 - _COSINE_END) * wave)
    return peak


class MovingAverage:
    """Exponential moving average of weights; its decay is at most ``(1 + n) / (10 + n)`` at n."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, updates: int) -> None:
        """Move towards the model's weights."""
        decay = min(self.decay, (1 + updates) / (10 + updates))
        current = [p.detach() for _, p in model.named_parameters()]
        torch._foreach_lerp_(list(self.weights.values()), current, 1 - decay)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from saved averages."""
        for name, tensor in self.weights.items():
            tensor.copy_(weights[name])

    @contextmanager
    def installed(self, model: nn.Module) -> Iterator[None]:
        """The model with the averages as its weights, inside the block."""
        parameters = dict(model.named_parameters())
        before = {name: p.detach().clone() for name, p in parameters.items()}
        _fill(parameters, self.weights)
        try:
            yield
        finally:
            _fill(parameters, before)


@torch.no_grad()
def _fill(parameters: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    for name, parameter in parameters.items():
        parameter.copy_(weights[name])
