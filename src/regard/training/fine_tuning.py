"""Settings of training that fit the encoder that it begins with."""

from collections.abc import Mapping
from types import MappingProxyType

from regard.config import JsonValue
from regard.tasks import TASKS

Sections = Mapping[str, Mapping[str, JsonValue]]

# An encoder at most so wide is a masked language model of one's own, which has read little: it is
# learned nearly anew, with as much noise as without it.
_SMALL = 256
_NONE: Sections = MappingProxyType({"training": {}, "model": {}, "head": {}})
_OF_SMALL: Sections = MappingProxyType(
    {
        "training": {"learning_rate": 1e-3, "warmup": 50, "weight_decay": 0.05},
        "model": {"dropout": 0.2},
        "head": {"dropout": 0.3},
    }
)
# The rate of a larger encoder, which would forget its pretraining at that one; it falls with the
# width: 1e-4 at that of MiniLM, 5e-5 at that of BERT base (Devlin et al., 2019, appendix A.3). Its
# dropout stays as it was.
_RATE_TIMES_WIDTH = 0.0384
_OF_LARGE: Sections = MappingProxyType(
    {
        "training": {"warmup_share": 0.1, "weight_decay": 0.01, "label_smoothing": 0.0},
        "model": {},
        "head": {"dropout": 0.1},
    }
)


def fine_tuning(task: str, width: object) -> Sections:
    """Settings by section for an encoder of this width, for a recipe's open settings."""
    if not isinstance(width, int):
        return _NONE
    if width <= _SMALL:
        return _NONE if TASKS[task].head is None else _OF_SMALL
    rate = float(f"{_RATE_TIMES_WIDTH / width:.2g}")
    if TASKS[task].is_written:  # the decoder is new, and learns at the rate of its recipe
        return {**_NONE, "training": {"encoder_rate": rate}}
    return {**_OF_LARGE, "training": {**_OF_LARGE["training"], "learning_rate": rate}}
