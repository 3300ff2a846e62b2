"""Long texts: parts that stand in line by themselves, so that short ones pass."""

import asyncio
from collections.abc import Callable

from tests.unit.server.conftest import Site, refusal

from regard.server import Limits

Make = Callable[..., Site]


def test_a_long_text_is_its_parts_put_together_again(site: Make):
    made = site()
    text = "我爱中国。" * 20
    (found,) = made.post("/predict", {"text": text}).json()["translations"]
    assert found["source"] == text
    assert found["translation"] == " ".join(["国中爱我"] * 20)
    assert found["parts"] == 20
    assert max(map(len, made.turner.batches)) <= 20


def test_a_request_for_which_there_is_no_room_is_refused_before_it_is_cut(site: Make):
    made = site(Limits(queue=5, max_batch=1))
    made.turner.opened.clear()

    async def scene() -> None:
        first = [
            asyncio.create_task(made.ask("POST", "/predict", json={"text": f"{n}"}))
            for n in range(3)
        ]
        await asyncio.sleep(0.1)
        made.turner.encoded_parts = None  # type: ignore[assignment, method-assign]
        said = await made.ask("POST", "/predict", json={"text": "我爱中国。" * 400})
        assert "server must have room for a request" in refusal(said, 503)
        made.turner.opened.set()
        assert {answer.status_code for answer in await asyncio.gather(*first)} == {200}

    asyncio.run(scene())
