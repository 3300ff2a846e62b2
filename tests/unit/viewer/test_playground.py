"""Plans of typed masks, for the page's playground."""

import json
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import torch

from regard.attention import causal, explain, lengths
from regard.errors import SettingError, ShapeError
from regard.viewer.playground import explained
from regard.viewer.row_server import RowServer

MASKS = {
    "causal()": causal(),
    "causal() & lengths([5, 3])": causal() & lengths([5, 3]),
}


@pytest.mark.parametrize("text", MASKS)
def test_the_plan_is_that_of_explain(text: str) -> None:
    batch = 2 if "[" in text else 1
    query, key = torch.zeros(batch, 3, 5, 13), torch.zeros(batch, 3, 7, 13)
    plan = explain(query, key, mask=MASKS[text])
    found = explained(text, queries=5, keys=7, heads=3, head_dim=13)
    assert found == {
        "backend": plan.backend,
        "reason": plan.reason,
        "notes": list(plan.notes),
        "bytes": plan.bytes,
        "operations": plan.operations,
    }


def test_a_million_places_are_planned_without_their_memory() -> None:
    found = explained("causal() & window(before=4)", queries=1 << 20, keys=1 << 20)
    assert found["bytes"] < 1 << 30


def test_sizes_and_masks_that_cannot_be_are_refused() -> None:
    with pytest.raises(SettingError, match=r"queries must be at least 1; got 0\."):
        explained("causal()", queries=0, keys=1)
    with pytest.raises(SettingError, match=r"head_dim must be at most 512; got 513\."):
        explained("causal()", queries=1, keys=1, head_dim=513)
    with pytest.raises(SettingError, match="Did you mean 'causal'"):
        explained("casual()", queries=1, keys=1)
    with pytest.raises(ShapeError, match="documents must have shape"):
        explained("documents([0, 1])", queries=3, keys=3)


def test_a_notebooks_process_answers_with_the_plan_or_with_why_not() -> None:
    server = RowServer(lambda *_: None)
    try:
        sizes = {"queries": 5, "keys": 7, "heads": 3, "head_dim": 13}
        with urlopen(f"{server.address}?{urlencode({'mask': 'causal()', **sizes})}") as answer:
            assert json.loads(answer.read()) == explained("causal()", **sizes)
        for asked in ({"mask": "casual()", **sizes}, {"mask": "causal()", "queries": "x"}):
            with pytest.raises(HTTPError, match="400") as refused:
                urlopen(f"{server.address}?{urlencode(asked)}")
            with refused.value as answer:
                assert json.loads(answer.read())["message"]
    finally:
        server.close()
