"""Formulas of eager attention functions of transformers, and whether the engine computes them."""

import sys
from collections.abc import Mapping
from typing import NamedTuple

from torch import nn

from regard.errors import SettingError

# Names in the eager functions of transformers that are understood here.
_UNDERSTOOD = set(
    "repeat_kv num_key_value_groups torch matmul transpose nn functional softmax float32 to dtype "  # noqa: SIM905
    "dropout training contiguous size head_dim tanh sinks reshape expand shape cat max values F "
    "float logsumexp view sigmoid unsqueeze type maybe_autocast device hasattr getattr".split()
)
_HONOURED = set(
    "module query key value query_states key_states value_states attention_mask scaling dropout "  # noqa: SIM905
    "is_causal softcap position_bias sinks s_aux sliding_window".split()
)
# Arguments that change which keys are attended, and that no eager function takes by name.
_REFUSED = ("indices", "block_indices", "cache", "head_mask", "attention_bias", "alibi")


class Formula(NamedTuple):
    """Formula of a model's own eager attention function."""

    unknown: tuple[str, ...]  # names in it that are not understood
    arguments: tuple[str, ...]  # that it takes and the engine does not
    has_sinks: bool  # it looks for sinks on the module

    def check(self, name: str, options: dict[str, object]) -> None:
        """Raise SettingError unless the engine can compute the same."""
        if self.unknown:
            raise SettingError(
                f"model must attend by a formula that is known here; got {name}, whose eager "
                f"attention uses {', '.join(self.unknown)}. It cannot be watched or served."
            )
        for option in (*_REFUSED, *self.arguments):
            if options.get(option) is not None:
                raise SettingError(
                    f"{option} must be left out of attention by the engine; got "
                    f"{type(options[option]).__name__} from {name}. It cannot be watched or served."
                )


def formula_of(module: nn.Module) -> Formula:
    """Return the formula of the eager functions beside a module's class."""
    home = type(module).__module__
    if home not in _formulas:
        _formulas[home] = formula_in(vars(sys.modules.get(home, object)))
    return _formulas[home]


def formula_in(home: Mapping[str, object]) -> Formula:
    """Read off the eager functions of a module of models."""
    codes = [
        function.__code__
        for name, function in home.items()
        if name.endswith("eager_attention_forward") and hasattr(function, "__code__")
    ]
    names = {name for code in codes for name in code.co_names}
    arguments = {
        name
        for code in codes
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    }
    return Formula(
        tuple(sorted(names - _UNDERSTOOD)), tuple(sorted(arguments - _HONOURED)), "sinks" in names
    )


# By the names of modules: a compiler looks through a cache of functions.
_formulas: dict[str, Formula] = {}
