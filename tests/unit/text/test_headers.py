"""Headers of the shapes that people have, and tables without one."""

import random

import pytest

from regard.text.reading.headers import count_header_rows
from regard.text.reading.records import read_records
from regard.text.reading.tables import Field, header_names

CHOICES = {
    "mood": "good bad",
    "yes": "Yes No",
    "sign": "+ -",
    "flag": "0 1",
    "stars": "1 2 3 4 5",
    "code": "P N",
    "agree": "Agree Disagree Neutral",
    "intent": "PlayMusic GetWeather BookTable",
    "gut": "gut schlecht",
    "zh": "正面 负面",
    "会": "会 不会",
    "team": "billing sales support",
    "pass": "PASS FAIL",
    "topic": "体育 财经",
    "kind": "loc num",
}
ROOM, GOOD = (
    ["room", "bath", "garden", "waiter", "view", "bed", "lift"],
    ["bright", "quiet", "clean", "noisy", "cold"],
)


def cell(kind, row):
    """A cell of a kind, the same at each call."""
    draw = random.Random(f"{kind} {row}")
    if kind in CHOICES:
        return draw.choice(CHOICES[kind].split())
    one, two, how = draw.choice(ROOM), draw.choice(ROOM), draw.choice(GOOD)
    day = f" on day {row}" if row % 3 else ""
    return {
        "en": f"The {one} was {how} and the {two} was {draw.choice(GOOD)}{day}.",
        "de": f"Das {one} war {how} und die {two} war es auch{day}.",
        "tweet": f"{one} so {how} lol {two} {row} never again",
        "query": f"{how} {one} {draw.choice(['please', 'now', 'today'])} {row or ''}".strip(),
        "question": f"Where is the {one} of floor {row}?",
        "评": f"房间{draw.choice('好吵大')}，服务也{draw.choice('好差')}，第{row}天。",
        "标题": f"第{row}场{draw.choice(['比赛', '会议'])}今天结束",
        "word": f"{one}{row}",
        "n": f"{row}",
        "number": f"{100 + draw.random() * 50:.2f}",
        "price": f"${row * 3},{draw.randint(100, 999)}.00",
        "date": f"2026/05/{1 + row % 28} 10:{row % 60:02}:00",
        "when": f"Mon Apr 06 22:19:{row % 60:02} PDT 2009",
        "id": f"R_{row * 7919:08x}",
        "mail": f"ann{row}@example.org",
        "秒": f"{30 + row}秒",
        "none": "",
    }[kind]


def rows(kinds, count=40):
    return [[cell(kind, row) for kind in kinds.split()] for row in range(count)]


HEADERS = [
    ("Timestamp|How was your stay?|Would you come again?", "date en yes"),
    ("1. Comment|2. Mood", "en mood"),
    ("Please rate us (1-5)|Customer's words|Outcome", "stars en mood"),
    ("What did you think?|verdict", "en mood"),
    ("text|label|label", "en mood mood"),
    ("In your own words, tell us what we could have done better|Were you satisfied?", "en yes"),
    ("Please describe your stay in a few sentences.|How likely are you to return?", "en stars"),
    ("Comment:|Mood:", "en mood"),
    ("Your feedback *|Happy? *", "en yes"),
    ("FEEDBACK_TXT|CAT_CD", "en code"),
    ("x|y", "en mood"),
    ("Feedback|Flag", "tweet flag"),
    ("|text|label", "n en sign"),
    ("|Remark given|Sort", "n en mood"),
    ("Unnamed: 0|Remark|Sort", "n en mood"),
    ("0|1", "en mood"),
    ("|0|1", "n en mood"),
    ("提交时间|您对我们的服务有什么意见？|您还会再来吗？", "date 评 会"),
    ("1、您的意见|2、总体满意度", "评 zh"),
    ("用户说|感受", "评 zh"),
    ("反馈|结果", "评 flag"),
    ("序号|提交答卷时间|所用时间|1、请写下您的建议|2、您是否满意", "n date 秒 评 会"),
    ("comment text|polarity", "评 zh"),
    ("英语评价|情感倾向", "en mood"),
    ("utterance|intent", "query intent"),
    ("User said|Goal", "query intent"),
    ("Comments|Agreement", "tweet agree"),
    ("Leave a comment|How satisfied were you?|Email", "en agree mail"),
    ("Ticket|Queue", "en team"),
    ("Sentence in English|Satz auf Deutsch", "en de"),
    ("Original|Übersetzung", "en de"),
    ("英文句子|中文翻译", "en 评"),
    ("Day|Open price|Close price", "date number price"),
    ("area (m2)|rooms|price €", "number stars number"),
    ("Kommentar|Bewertung", "de gut"),
    ("Qu'en pensez-vous ?|Avis", "en yes"),
    ("Response ID|Answer to Q7|Coded", "id en mood"),
    ("Note|OUTCOME", "en pass"),
    ("Frage|Typ", "question kind"),
    ("Question?|Type?", "question kind"),
    ("新闻标题|类目", "标题 topic"),
    ("Q1|Q2|Q3", "en stars yes"),
    ("message|good", "en mood"),
]
TABLES = [
    "en mood",
    "mood en",
    "en flag",
    "en stars",
    "flag when tweet",
    "评 zh",
    "zh 评",
    "query intent",
    "tweet agree",
    "en de",
    "en 评",
    "n en mood",
    "date en mood",
    "id en yes",
    "number number",
    "n number flag",
    "question kind",
    "topic 标题",
    "word word",
    "mail en team",
    "en mood none",
]


@pytest.mark.parametrize(("names", "kinds"), HEADERS, ids=[names for names, _ in HEADERS])
@pytest.mark.parametrize("count", [40, 12])
def test_a_first_row_that_differs_in_kind_is_a_header(names, kinds, count):
    table = [names.split("|"), *rows(kinds, count)]
    assert count_header_rows(table, header_names()) == 1


@pytest.mark.parametrize("kinds", TABLES)
@pytest.mark.parametrize("count", [40, 12, 5, 1])
def test_a_first_row_like_the_others_is_no_header(kinds, count):
    assert count_header_rows(rows(kinds, count), header_names()) == 0


@pytest.mark.parametrize(
    "first",
    [
        ["The garden was warm and the bed was soft.", "mixed"],
        ["Good value.", "neutral"],
        ["Bad.", "bad"],
        ["Nice place", "Good"],
        ["GREAT STAY", "good"],
        ["!!!", "good"],
    ],
)
def test_a_short_text_or_a_label_that_is_rare_is_no_header(first):
    assert count_header_rows([first, *rows("en mood")], header_names()) == 0


def test_sentences_sorted_by_length_begin_with_no_header():
    short = [["Go.", "Geh."], ["Hi.", "Hallo!"], ["Run!", "Lauf!"], ["Help!", "Hilfe!"]]
    short += [["I try.", "Ich versuche es."], ["I won!", "Gewonnen!"], ["Smile.", "Lächeln!"]]
    assert count_header_rows([*short, *rows("en de")], header_names()) == 0


def test_a_number_that_is_missing_in_the_first_row_makes_no_header():
    first = ["n/a", "The bath was bright and the view was clean.", "good"]
    assert count_header_rows([first, *rows("n en mood")], header_names()) == 0


def test_surveys_name_their_columns_in_several_rows(write):
    header = [
        ["StartDate", "Status", "Q1", "Q2"],
        ["Start Date", "Response Type", "How was your stay?", "Would you come again?"],
        [f'{{"ImportId":"{name}"}}' for name in ("startDate", "status", "QID1", "QID2")],
    ]
    table = [*header, *rows("date flag en yes")]
    assert count_header_rows(table, header_names()) == 3
    path = write("a.tsv", "".join("\t".join(row) + "\n" for row in table))
    for fields in (
        [Field("text", "Q1"), Field("label", "Q2")],
        [Field("text", 3, is_fixed=True), Field("label", 4, is_fixed=True)],
    ):
        assert len(list(read_records(path, fields))) == 40


def test_columns_by_number_are_read_below_a_header_of_any_names(write):
    table = [["What did you think?", "verdict"], *rows("en mood")]
    path = write("a.tsv", "".join("\t".join(row) + "\n" for row in table))
    records = list(read_records(path, [Field("text", 1), Field("label", 2)]))
    assert [one["label"] for one, _ in records] == [row[1] for row in table[1:]]


def write_rows(write, table, name="a.tsv"):
    return write(name, "".join("\t".join(row) + "\n" for row in table))


def labels(path, **columns):
    fields = [Field(name, column) for name, column in columns.items()]
    return [record["label"] for record, _ in read_records(path, fields)]


@pytest.mark.parametrize("columns", [{"text": 1, "label": 2}, {"text": "Comment", "label": "Mood"}])
def test_a_title_above_and_headers_within_are_left_out(write, columns):
    body = rows("en mood")
    header = ["Comment", "Mood"]
    table = [["Hotel survey 2025"], [""], header, *body, header, *body]
    assert len(labels(write_rows(write, table), **columns)) == 80


def test_row_names_of_r_have_no_name_in_the_header(write):
    body = [[f"{n}", *row] for n, row in enumerate(rows("en mood"), 1)]
    path = write_rows(write, [["text", "label"], *body])
    assert labels(path, text=1, label=2) == [row[2] for row in body]


def test_a_first_row_that_comes_again_and_again_is_no_header():
    people = [["Ann Lee", "Paris"], ["Bo Li", "Oslo"], ["Cy Day", "Rome"]]
    assert count_header_rows(people * 16, header_names()) == 0
