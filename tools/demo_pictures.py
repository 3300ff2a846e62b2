"""Pictures and samples in README, docs and course of the translator that comes with the package.

python -m tools.demo_pictures    the weights in docs/figures/course/demo.jsonl, the sample in both
                                 READMEs, and pictures of the demo's and a server's page (Chromium)

Afterwards: python -m tools.figures sequences-contexts sequences-china
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from regard.cli.demo import PAGE, SENTENCE, TRANSLATOR
from regard.cli.demo.translating import translate
from regard.inference import Predictor
from regard.viewer import draw_attention
from tools.samples import serving

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT / "docs" / "figures" / "course" / "demo.jsonl"
FIGURES = ROOT / "docs" / "figures"
DEMO, INSPECTOR = FIGURES / "demo-page.png", FIGURES / "serve-inspector.png"
READMES = ("README.md", "README.zh.md")
_SAMPLE = re.compile(rf"(?<=```console\n){SENTENCE} → .*?(?=```)", re.DOTALL)
_WIDTH, _HEIGHT, _SCALE = 1240, 1090, 1.2  # of a picture, in pixels of the page
_COLOURS = 64


def weights(predictor: Predictor) -> str:
    """The line that ``regard predict --attention --output-format jsonl`` prints."""
    (translations,) = predictor.translate([SENTENCE], attention=True)
    return json.dumps(translations.to_dict(), ensure_ascii=False) + "\n"


def sample(predictor: Predictor) -> str:
    """The first lines that ``regard demo`` prints."""
    (look,) = predictor.use.look(SENTENCE, explain=False).document.examples
    lines = f"{look.source} → {look.output}\n\n{draw_attention(look)}".splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


@contextmanager
def browsing(path: str) -> Iterator[Page]:
    """A tab of Chromium with a page."""
    with sync_playwright() as driver:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(
            viewport={"width": _WIDTH, "height": _HEIGHT},
            device_scale_factor=_SCALE,
            locale="en-US",
            color_scheme="light",
        )
        tab.goto(path)
        yield tab
        browser.close()


def take_pictures() -> None:
    """Save what the page of the demo shows first, and a server's, where a text was looked at."""
    with tempfile.TemporaryDirectory() as folder:
        translate(Path(folder))
        with browsing((Path(folder) / PAGE).as_uri()) as tab:
            tab.wait_for_timeout(1000)
            save(tab, DEMO)
    with serving() as address, browsing(address) as tab:
        tab.fill("#text", SENTENCE)
        tab.press("#text", "Enter")
        tab.wait_for_selector("#regard h1", timeout=60_000)
        tab.wait_for_timeout(1000)
        save(tab, INSPECTOR)


def save(tab: Page, path: Path) -> None:
    """Write a picture of a page, of few colours."""
    with Image.open(BytesIO(tab.screenshot())) as picture:
        picture.convert("RGB").quantize(_COLOURS).save(path, optimize=True)


def main() -> None:
    """Write all of them."""
    predictor = Predictor.load(TRANSLATOR)
    WEIGHTS.write_text(weights(predictor), "utf-8")
    for name in READMES:
        text = (ROOT / name).read_text("utf-8")
        (ROOT / name).write_text(_SAMPLE.sub(lambda _: sample(predictor), text), "utf-8")
    take_pictures()


if __name__ == "__main__":
    main()
