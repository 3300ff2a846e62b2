"""Requests that the runs which are served do answer, for whoever reads the OpenAPI page."""

from collections.abc import Mapping

from regard.config import JsonValue
from regard.errors import RegardError
from regard.inference import Predictor

_TEXT = "我爱中国"
_MASK = "causal() & window(before=2)"

# What tasks are asked; the first that a task takes is shown.
_ASKED: tuple[str | Mapping[str, JsonValue], ...] = (
    _TEXT,
    "我爱[MASK]国",
    "0.5",
    {"text": _TEXT, "aspect": "taste"},
    {"first": _TEXT, "second": "我爱北京"},
    {"question": "谁爱中国?", "context": "我爱中国。他爱北京。"},
    {"question": "谁爱中国?", "context": "我爱中国。他爱北京。", "choices": ["我", "他"]},
)


def example_requests(predictors: Mapping[str, Predictor]) -> dict[str, dict[str, JsonValue]]:
    """A request for each route that some run answers, by the route's path.

    Args:
        predictors: The models by name.
    """
    asked = {name: _asked(served) for name, served in predictors.items()}
    found: dict[str, dict[str, JsonValue]] = {"/explain": {"mask": _MASK}}

    def show(path: str, names: list[str], members: dict[str, JsonValue] | None = None) -> None:
        if names:
            run = {} if names[0] == next(iter(predictors)) else {"run": names[0]}
            found[path] = {**(members or asked[names[0]] or {}), **run}

    translators = [name for name, each in predictors.items() if each.is_seq2seq]
    writers = [
        name for name, each in predictors.items() if each.recipe.task == "language_modelling"
    ]
    read = [name for name, each in asked.items() if each is not None and "text" in each]
    show("/predict", [name for name, each in asked.items() if each is not None])
    show("/continue", writers, {"text": _TEXT, "max_tokens": 20})
    show("/attention", [name for name in read if predictors[name].recipe.task != "regression"])
    show("/attention/rows", translators, {"text": _TEXT, "layer": 0, "head": 0})
    return found


def _asked(served: Predictor) -> dict[str, JsonValue] | None:
    """Example input for a run, or None if there is none."""
    if served.is_seq2seq:
        return {"text": _TEXT}
    record = next((each for each in _ASKED if _is_taken(served, each)), None)
    if record is None:
        return None
    return {"text": record} if isinstance(record, str) else {"records": [record]}


def _is_taken(served: Predictor, record: str | Mapping[str, JsonValue]) -> bool:
    try:
        served.answers([served.task.request(record, "")])
    except RegardError:
        return False
    return True
