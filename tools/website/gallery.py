"""Pages of what models looked at: trained and drawn when the site is built."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch

import regard as rg
from regard.cli import run_command
from regard.cli.demo import SENTENCE, SENTENCES, TRANSLATOR
from regard.cli.recipes import packaged_recipe
from regard.viewer import Document, NotebookPage, page, show
from tools.website.thumbnails import thumbnail

# A text of the words below, with a label each: what a classifier of the gallery learns from.
_OPINIONS = {
    "room": ("clean quiet bright cosy", "dirty noisy dark cold"),
    "staff": ("friendly helpful polite patient", "rude slow careless grumpy"),
    "breakfast": ("fresh tasty generous warm", "stale bland greasy poor"),
    "lobby": ("elegant tidy spacious welcoming", "shabby messy cramped gloomy"),
}
_FORMS = ("The {} was {}.", "I found the {} very {}.", "To be honest, the {} was {}.")
# What the encoder looked at in a sentence; ``python -m benchmarks.heads`` wrote it.
_READER = Path(__file__).parents[2] / "docs" / "figures" / "course" / "reader.json"
_TO_TYPE = (SENTENCE, *SENTENCES[-2:])
_PLACES = 24


@dataclass(frozen=True)
class Picture:
    """A page of the gallery."""

    file: str  # its name in the folder gallery/
    title: tuple[str, str]  # in English and Chinese
    says: tuple[str, str]  # what is to be seen, in English and Chinese


PICTURES = (
    Picture(
        "type.html",
        ("Type a sentence", "输入一句话"),
        (
            "The package's translator lives in this page: type Chinese, translation and attention "
            "follow; mute heads, and see what becomes of it. No server, no network.",
            "自带的翻译器就装在这一页里：输入中文，译文和注意力随着输入出现；"
            "关掉几个头，看看译文会怎样。不需要服务器，也不用联网。",
        ),
    ),
    Picture(
        "demo.html",
        ("A translator", "翻译器"),
        (
            "Everyday sentences, Chinese to English: links, matrix, every layer and head, and "
            "the steps of the search.",
            "日常句子，汉译英：连线、矩阵、每一层每一个头，还有搜索的每一步。",
        ),
    ),
    Picture(
        "sentence.html",
        ("A translation that was given", "给定的译文"),
        (
            "What the same translator looks at when it is told what to write.",
            "译文由人给定，看同一个翻译器写每个词时看了哪里。",
        ),
    ),
    Picture(
        "opinion.html",
        ("Two opinions in one sentence", "一句话里两种意见"),
        (
            "A classifier with one learned query: which words it weighs, and which words the label "
            "hangs on. They are not the same.",
            "带一个可学习查询的分类器：它给哪些词权重，标签又真正取决于哪些词。两者并不一样。",
        ),
    ),
    Picture(
        "reader.html",
        ("A pretrained reader", "预训练的阅读模型"),
        (
            "All heads of minilm-en (Apache-2.0) on one sentence: one looks at the word before, "
            "one at full stops, one finds the noun of *it*.",
            "minilm-en（Apache-2.0）读一个句子时的所有头：有的看前一个词，有的看句号，"
            "有的从 *it* 找到名词。",
        ),
    ),
    Picture(
        "digits.html",
        ("Handwritten digits", "手写数字"),
        (
            "A Vision Transformer on the digits of scikit-learn: point at a patch.",
            "Vision Transformer 识别 scikit-learn 自带的手写数字：把鼠标移到图块上看看。",
        ),
    ),
    Picture(
        "masks.html",
        ("Masks and positions", "掩码与位置"),
        (
            "The same attention of 24 places under masks and biases, a head each: causal, window, "
            "documents, a prefix, ALiBi.",
            "24 个位置上的同一种注意力，每个头用一种掩码或偏置：因果、窗口、文档、前缀、ALiBi。",
        ),
    ),
    Picture(
        "kernel.html",
        ("Kernel regression", "核回归"),
        (
            "Attention before it had the name: the weights of 24 inputs on each other, three "
            "bandwidths.",
            "注意力得名之前的样子：24 个输入互相之间的权重，三种带宽。",
        ),
    ),
)
_TITLE = ("Gallery", "注意力展厅")
_INTRO = (
    "Pages to click, each one file of HTML that needs no network. They were made when this site "
    "was built, by models trained for it in a few minutes: `python -m tools.website`. The "
    "pretrained reader was looked at before, by `python -m benchmarks.heads`.",
    "可以点开的网页，每个都是单个 HTML 文件，断网也能看。它们与本站一同生成，"
    "所用的模型是当场花几分钟训练出来的：`python -m tools.website`。"
    "预训练的阅读模型是事先看好的：`python -m benchmarks.heads`。",
)


def pages() -> dict[str, str]:
    """The page that leads to them, in English and Chinese."""
    found = {}
    for language, ending in enumerate((".md", ".zh.md")):
        cards = [
            f"[![]({_drawing(one)}) **{one.title[language]}** {one.says[language]}]"
            f"(gallery/{one.file}{'#lang=zh' * language})"
            for one in PICTURES
        ]
        lines = [
            f"# {_TITLE[language]}",
            "",
            _INTRO[language],
            "",
            '<div class="gallery" markdown>',
        ]
        found[f"gallery{ending}"] = "\n".join([*lines, *cards, "</div>", ""])
    return found


def _drawing(one: Picture) -> str:
    return f"gallery/{Path(one.file).with_suffix('.svg')}"


def draw(target: Path, runs: Path, *, updates: int | None = None) -> None:
    """Train what is not trained yet, and write every page."""
    target.mkdir(parents=True, exist_ok=True)
    runs.mkdir(parents=True, exist_ok=True)
    _regard("look", TRANSLATOR, *_TO_TYPE, "--live", "--out", target / "type.html")
    _regard("look", TRANSLATOR, SENTENCE, *SENTENCES, "--out", target / "demo.html")
    given = ("--target", "Yesterday he went to Beijing.")
    _regard("look", TRANSLATOR, "他昨天去北京了", *given, "--out", target / "sentence.html")
    opinions = _opinions(runs)
    _regard("train", opinions, "--run", runs / "opinions", *_shorter(updates))
    said = "I found the room very cold, the staff friendly."
    _regard("look", runs / "opinions", said, "--out", target / "opinion.html")
    read = Document.from_json(_READER.read_text("utf-8"))
    (target / "reader.html").write_text(page(read), "utf-8")
    digits = ("vision-transformer", "--run", runs / "digits", "--set", "training.epochs=20")
    _regard("train", *digits, *_shorter(updates))
    shown = [f"test:{number}" for number in range(1, 9)]
    _regard("look", runs / "digits", *shown, "--out", target / "digits.html")
    _masks().save(target / "masks.html")
    _kernels().save(target / "kernel.html")
    for one in PICTURES:
        # The page that one types into has no examples: its card shows the translator's sentence.
        shown_by = "sentence.html" if one.file == "type.html" else one.file
        text = (target / shown_by).read_text("utf-8")
        data = text.partition('id="regard-data"')[2].partition(">")[2].partition("</script>")[0]
        drawing = thumbnail(Document.from_json(data).examples[0])
        (target / Path(one.file).with_suffix(".svg")).write_text(drawing, "utf-8")


def leave_blank(target: Path) -> None:
    """Write empty pages, for a site that is looked at for something else."""
    target.mkdir(parents=True, exist_ok=True)
    for one in PICTURES:
        (target / one.file).write_text("<!doctype html><title>not drawn</title>\n", "utf-8")
        blank = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 150"/>\n'
        (target / Path(one.file).with_suffix(".svg")).write_text(blank, "utf-8")


def _opinions(folder: Path) -> Path:
    """A recipe and its text, made up so that nothing has to be fetched."""
    lines = [
        f"{form.format(thing, word)}\t{label}\n"
        for thing, both in _OPINIONS.items()
        for label, words in zip(("good", "bad"), both, strict=True)
        for word, form in product(words.split(), _FORMS)
    ]
    (folder / "opinions.tsv").write_text("".join(lines), "utf-8")
    recipe = packaged_recipe("classification-recurrent").read_text("utf-8")
    text = recipe.replace("[data]", '[data]\ntrain = "opinions.tsv"', 1)
    (folder / "opinions.toml").write_text(text, "utf-8")
    return folder / "opinions.toml"


def _masks() -> NotebookPage:
    torch.manual_seed(0)
    query, key = torch.randn(2, _PLACES, 16)
    within, is_causal = rg.window(before=4), rg.causal()
    weights = {
        "all": rg.weights(query, key),
        "causal()": rg.weights(query, key, mask=is_causal),
        "causal() & window(before=4)": rg.weights(query, key, mask=is_causal & within),
        "documents": rg.weights(query, key, mask=rg.documents(torch.arange(_PLACES) // 8)),
        "prefix(6)": rg.weights(query, key, mask=rg.prefix(6)),
        "causal(), alibi()": rg.weights(query[None], key[None], mask=is_causal, bias=rg.alibi())[0],
    }
    return _shown(weights, "Masks and positions")


def _kernels() -> NotebookPage:
    points = torch.linspace(0, 5, _PLACES)[:, None]
    weights = {
        f"bandwidth {width}": rg.weights(points[None], points[None], score=rg.Gaussian(width))[0]
        for width in (0.1, 0.3, 1.0)
    }
    return _shown(weights, "Kernel regression")


def _shown(heads: Mapping[str, torch.Tensor], title: str) -> NotebookPage:
    places = [str(place) for place in range(_PLACES)]
    weights = torch.stack(list(heads.values()))
    return show(weights, keys=places, queries=places, names=list(heads), title=title)


def _shorter(updates: int | None) -> tuple[str, ...]:
    if updates is None:
        return ()
    settings = {"updates": updates, "epochs": "none", "validate_every": updates, "warmup": 1}
    return tuple(
        word for name, value in settings.items() for word in ("--set", f"training.{name}={value}")
    )


def _regard(*command: object) -> None:
    if run_command([str(word) for word in command]):
        raise RuntimeError(f"regard {' '.join(map(str, command))} must work.")
