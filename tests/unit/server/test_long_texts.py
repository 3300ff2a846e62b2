"""Long texts: parts that stand in line by themselves, so that short ones pass."""

import asyncio
import time
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


def test_a_short_text_does_not_wait_for_all_of_a_long_one(site: Make):
    made = site(Limits(turn=0.05))
    turn = made.turner.translate_parts

    def slowly(parts, **options):
        time.sleep(0.01 * len(parts))
        assert parts[0].is_first if [part.text for part in parts] == ["ab"] else True
        return turn(parts, **options)

    made.turner.translate_parts = slowly  # type: ignore[method-assign]

    async def scene() -> tuple[float, float]:
        began = time.monotonic()
        long = asyncio.create_task(made.ask("POST", "/predict", json={"text": "我爱中国。" * 200}))
        await asyncio.sleep(0.1)
        asked = time.monotonic()
        assert (await made.ask("POST", "/predict", json={"text": "ab"})).status_code == 200
        short = time.monotonic() - asked
        assert (await long).json()["translations"][0]["parts"] == 200
        return short, time.monotonic() - began

    short, whole = asyncio.run(scene())
    assert whole > 2.0
    assert short < whole / 4


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
