"""Names of devices and precisions; without torch, so that settings are read fast."""

from typing import Annotated, Literal

from regard.checks import choose
from regard.errors import SettingError

# The fastest device here; the one of every machine; and all kinds, the fastest first.
AUTO, ON_CPU = "auto", "cpu"
KINDS = ("cuda", "mps", ON_CPU)
# Types of weights while a model is used; "auto" rounds nothing.
Precision = Literal["auto", "float32", "int8", "bfloat16"]
# Of which a machine may have several, counted from 0.
_COUNTED = ("cuda",)


def check_device_name(name: str, value: str) -> None:
    """Raise unless ``value`` is ``auto``, or a kind of device; of a GPU perhaps with its number."""
    kind, colon, number = value.partition(":")
    if kind.casefold() == "gpu":
        raise SettingError(
            f"{name} must be one of {', '.join(sorted((AUTO, *KINDS)))}; got {value!r}. "
            "A GPU is cuda, that of a Mac mps; auto takes one if there is one."
        )
    if not colon or kind not in _COUNTED:
        choose(name, value, dict.fromkeys((AUTO, *KINDS)))
    elif not (number.isascii() and number.isdecimal()):
        raise SettingError(f"{name} must be {kind}, or {kind}: and a number from 0; got {value!r}.")


DeviceName = Annotated[str, check_device_name]
