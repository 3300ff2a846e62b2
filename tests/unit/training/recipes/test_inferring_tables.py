import random
from pathlib import Path

import pytest

from regard.config import format_setting
from regard.errors import DataError
from regard.text import Line
from regard.training.recipes.inferring_tables import of_table

ENGLISH = "the cat dog house river car school teacher road bank market film story good bad long"
GERMAN = "die Katze Hund Haus Fluss Auto Schule Lehrer nicht Bank Markt Film gut ist lang und"
FINNISH = "kissa koira talo joki auto koulu opettaja tie pankki tori elokuva tarina hyvä paha"
CHINESE = "我们在北京的学校里学习中文房间很好服务不错价格便宜明天再来看书电影故事音乐城市"
PEOPLE = "bobsmith anne_x jörg9 lee.w scotthamilton mia77"


def texts(language, size):
    if language == "zh":
        return "".join(random.choice(CHINESE) for _ in range(random.randint(size - 2, size))) + "。"
    words = {"en": ENGLISH, "de": GERMAN, "fi": FINNISH}[language].split()
    text = " ".join(random.choice(words) for _ in range(random.randint(size - 2, size)))
    return f"{text}.".capitalize()


def cell(kind, row):
    """A cell of a kind: ``en:8`` is a text of some eight words, ``a|b`` one of two labels."""
    language, colon, size = kind.partition(":")
    if colon:
        random.seed(1009 * row + int(size))  # as long as its translation in the same row
        return texts(language, int(size))
    if "|" in kind:
        return kind.split("|")[row * 7 % 5 % len(kind.split("|"))]
    return {
        "n": f"{row}",
        "id": f"{30000000 + 37 * row}",
        "hex": f"{7919 * (row + 99):040x}",
        "code": f"B001E4KFG{row}",
        "date": f"2024-01-{row % 28 + 1:02}",
        "when": f"Mon Apr 06 22:19:{row:02} PDT 2009",
        "url": f"https://example.org/{row}.html",
        "user": PEOPLE.split()[row % 6] + "abcdef"[row // 6 % 6],
        "place": ("", "London", "Vagabonds place, here", "")[row % 4],
        "float": f"{row * 37 % 51 / 10:.3f}",
        "price": f"{100 + row * 7 % 50}.5",
        "by": f"CC-BY 2.0 (France) Attribution: tatoeba.org #{53812 + row} (CM) & #{89 + row} (Bo)",
        "empty": "",
    }.get(kind, kind)


CONVOLUTION, CHINESE_LABELS = "classification-convolution", "classification-chinese"
SHAPES = [
    ("XSum", "document summary id", "en:80 en:12 id", "summarisation answer=summary"),
    ("AG News", "Class Index,Title,Description", "1|2|3|4 en:6 en:30", "asks"),
    ("AG News, no header", None, "1|2|3|4 en:6 en:30", "asks"),
    ("Chinese news", "标题 正文 分类", "zh:8 zh:60 体育|财经", "asks"),
    ("Yelp", "stars text", "1|2|3|4|5 en:40", f"{CONVOLUTION} label=stars"),
    ("Yelp, no header", None, "1|2|3|4|5 en:40", f"{CONVOLUTION} text=2 label=1"),
    ("SST", "sentence label", "en:8 0|1", f"{CONVOLUTION} text=sentence"),
    ("CoLA", None, "gj04 0|1 *|* en:8", f"{CONVOLUTION} text=4 label=2"),
    ("integers as labels", None, "en:9 0|1|2|3", CONVOLUTION),
    ("spam", "v1,v2,,,", "ham|spam en:14 empty empty empty", f"{CONVOLUTION} text=v2 label=v1"),
    ("a data frame's index", ",text,label", "n en:9 +|-", CONVOLUTION),
    (
        "a label and its number",
        "text label label_text",
        "en:12 0|1 neg|pos",
        f"{CONVOLUTION} label=label_text",
    ),
    ("a column of splits", "text label split", "en:12 0|1 train|test|train", CONVOLUTION),
    ("date first", "date text label", "date en:12 a|b", CONVOLUTION),
    ("link first, no header", None, "url en:12 a|b", f"{CONVOLUTION} text=2 label=3"),
    ("id last", None, "en:12 a|b hex", CONVOLUTION),
    ("tweets", "id date user text label", "id when user en:12 0|4", CONVOLUTION),
    ("Sentiment140", None, "0|4 id when NO_QUERY user en:12", f"{CONVOLUTION} text=6 label=1"),
    ("toxic", "id comment_text toxic obscene threat", "hex en:40 0|1 0|0|1 1|0|0", "asks"),
    ("Chinese reviews", "评论 标签", "zh:30 好|差", f"{CHINESE_LABELS} text=评论 label=标签"),
    (
        "Quora",
        "id qid1 qid2 question1 question2 is_duplicate",
        "n id id en:9 en:11 0|1",
        "pair-matching first=question1 second=question2 label=is_duplicate",
    ),
    (
        "STS",
        "index genre sentence1 sentence2 score",
        "n news|forum en:8 en:9 float",
        "no job fits: .*pairs of texts with a number",
    ),
    ("essays", "essay_id essay score", "n en:60 float", "no job fits: .*texts with a number"),
    (
        "SQuAD",
        "id title context question answer",
        "hex Rome|Oslo en:60 en:8 en:3",
        "generation-copy document=context question=question",
    ),
    ("questions of kinds", "question answer category", "en:8 en:9 pay|login", "asks"),
    (
        "right answers or not",
        "question answer label",
        "en:8 en:9 0|1",
        "pair-matching first=question second=answer",
    ),
    ("headlines, no header", None, "en:60 en:6", "summarisation"),
    ("a source and its translation", "原文 译文", "zh:20 en:12", 'pairs columns=["原文", "译文"]'),
    ("languages and an id", "id en de", "n en:9 de:9", 'pairs columns=["en", "de"]'),
    ("an id, no header", None, "n en:9 de:9", "pairs columns=[2, 3]"),
    ("Tatoeba", None, "id eng en:6 id deu de:6", "pairs columns=[3, 6]"),
    ("scored pairs", None, "en:6 de:6 float", "pairs columns=[1, 2]"),
    ("who translated", None, "en:6 de:6 by", "pairs columns=[1, 2]"),
    ("an unknown language", None, "en:6 fi:6 by", "pairs columns=[1, 2]"),
    (
        "prices",
        "date open close",
        "date price float",
        r"no job fits: dates and numbers. .*regression x.tsv --set "
        r"""'data.inputs=\["open"\]' --set data.target=close""",
    ),
    ("a target not last", "price area floor", "price float price", "regression target=price"),
    ("ids and texts", "id text", "n en:30", "no job fits: .*nothing to learn"),
]


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [shape[1:] for shape in SHAPES],
    ids=[shape[0] for shape in SHAPES],
)
def test_a_table_is_for_the_job_of_its_columns(header, row, expected):
    lines = ["\t".join(cell(kind, n) for kind in row.split()) for n in range(40)]
    if header is not None:
        lines.insert(0, "\t".join(header.split("," if "," in header else " ")))
    read = [Line(line, f"x.tsv:{n}") for n, line in enumerate(lines, 1)]
    if expected.startswith("no job"):
        with pytest.raises(DataError, match=expected):
            of_table(Path("x.tsv"), read, ".tsv")
        return
    tasks = of_table(Path("x.tsv"), read, ".tsv")
    best = tasks.best
    if expected == "asks":
        assert not tasks.is_sure, best
        assert len({task.command(["x.tsv"]) for task in tasks.candidates}) > 1
        return
    settings = [format_setting(*each).removeprefix("data.") for each in best.settings.items()]
    assert (tasks.is_sure, " ".join([best.recipe or "pairs", *settings])) == (True, expected)
