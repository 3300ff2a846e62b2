"""Questions from files: SQuAD's JSON, JSONL, and what is wrong with one."""

import json

import pytest

from regard.errors import DataError
from regard.text import BadLines, normalize
from regard.text.reading.questions import Answer, normalized_positions, read_questions

CONTEXT = "Ann built  the ship.\nIt was the best ship."


@pytest.fixture
def squad(write):
    def write_squad(*qas):
        paragraph = {"context": CONTEXT, "qas": list(qas)}
        root = {"version": "1.1", "data": [{"title": "Ships", "paragraphs": [paragraph]}]}
        return write("q.json", json.dumps(root))

    return write_squad


def qa(text="Ann", start=0, **more):
    answers = [{"text": text, "answer_start": start}]
    return {"id": "q7", "question": " Who  built it?", "answers": answers} | more


def test_squads_layout_with_its_article_and_all_its_answers(squad):
    more = [{"text": "Ann", "answer_start": 0}, {"text": "the ship", "answer_start": 11}]
    (read,) = read_questions(squad(qa(answers=more)))
    assert (read.text, read.context) == ("Who built it?", CONTEXT)
    assert (read.article, read.id) == ("Ships", "q7")
    assert read.answers == (Answer("Ann", 0), Answer("the ship", 11))
    assert [CONTEXT[a.start : a.end] for a in read.answers] == ["Ann", "the ship"]


def test_rows_of_a_table_are_questions_with_their_answers(write):
    rows = ["Ann is here.,Who?,Ann,0", "Ann saw Ann.,Who?,Ann,8", '"A, b",What?,,', "a,b,c,x,y"]
    path = write("q.csv", "context,question,answer,answer_start\n" + "\n".join(rows) + "\n")
    bad_lines = BadLines()
    read = list(read_questions(path, on_bad_line="skip", bad_lines=bad_lines))
    assert [one.answers for one in read] == [(Answer("Ann", 0),), (Answer("Ann", 8),), ()]
    assert (read[0].text, read[2].context, bad_lines.total) == ("Who?", "A, b", 1)
    path = write("q.tsv", "Who?\tAnn  is here.\there\nWho?\tAnn is here.\tBo\n")
    with pytest.raises(DataError, match=r"q\.tsv:2: the answer must stand in its context"):
        list(read_questions(path))
    (read,) = read_questions(path, on_bad_line="skip")
    assert (read.answers[0].text, read.context[read.answers[0].start :]) == ("here", "here.")


@pytest.mark.parametrize("form", ["[{}, {}]", "{}\n{}\n"])
@pytest.mark.parametrize("keys", [("context", "question"), ("context_text", "query_text")])
def test_texts_with_their_questions_are_read_without_articles(write, form, keys):
    context, question = keys
    asked = {question: "Who built it?", "answers": ["Ann"]}
    text = json.dumps({context: CONTEXT, "qas": [asked]})
    read = list(read_questions(write("q.json", form.replace("{}", text))))
    assert [(one.text, one.context, one.answers) for one in read] == [
        ("Who built it?", CONTEXT, (Answer("Ann", 0),))
    ] * 2


def test_a_table_may_call_answers_as_squad_does(write):
    path = write("q.csv", "context,question,id,answer_start,text\nAnn saw Ann.,Who?,q7,8,Ann\n")
    (read,) = read_questions(path)
    assert (read.text, read.answers) == ("Who?", (Answer("Ann", 8),))


def test_a_question_without_an_answer_says_so(squad):
    (read,) = read_questions(squad(qa(answers=[], is_impossible=True)))
    assert read.answers == ()
    with pytest.raises(DataError, match=r"q\.json:1: question q7: answers must hold at least one"):
        list(read_questions(squad(qa(answers=[]))))


@pytest.mark.parametrize(
    ("text", "start", "message"),
    [
        ("the ship", 4, r"got 'built  t' at 4 for 'the ship'. Set answer_start to 11"),
        ("the car", 4, r"It stands nowhere there: correct the answer, or leave it out"),
        ("Ann", -1, r"got no position for 'Ann'. Set answer_start to 0"),
        ("Ann", "0", r"answer_start must be a whole number; got '0'"),
    ],
)
def test_an_answer_that_is_not_in_its_context(squad, text, start, message):
    with pytest.raises(DataError, match=rf"q\.json:1: question q7: .*{message}"):
        list(read_questions(squad(qa(text, start))))


def test_skipping_counts_what_is_left_out(squad):
    bad = BadLines()
    path = squad(qa("the car"), qa())
    assert len(list(read_questions(path, on_bad_line="skip", bad_lines=bad))) == 1
    assert bad.counts == {"questions": 1}
    with pytest.raises(DataError, match="must hold questions with answers; got none"):
        list(read_questions(squad(qa("the car")), on_bad_line="skip"))


def test_free_answers_need_no_position(squad):
    (read,) = read_questions(squad(qa("a shipwright", 3)), spans=False)
    assert read.answers == (Answer("a shipwright", -1),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{\n1", r"q\.json:2: not JSON"),
        ('{"paragraphs": [], "qas": []}', r"must hold a list at 'data', as SQuAD's files do"),
        ('{"data": [{}, {"paragraphs": []}]}', r"data\[0\] must hold a list at 'paragraphs'"),
        ('{"data": [{"paragraphs": [{"qas": [3]}]}]}', r"expected a JSON object, found 3"),
        ('{"data": [{"paragraphs": [{"qas": [{"question": "x"}]}]}]}', "context must be text"),
    ],
)
def test_what_is_no_squad_file(write, text, message):
    with pytest.raises(DataError, match=message):
        list(read_questions(write("q.json", text)))


def test_jsonl_finds_the_positions_of_answers(write):
    line = {"question": "谁？", "context": "他叫小明。", "answers": ["小明"], "story": "s"}
    (read,) = read_questions(write("q.jsonl", json.dumps(line)))
    assert (read.answers, read.article) == ((Answer("小明", 2),), "s")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"q\.jsonl:2: not JSON"),
        ("3", r"q\.jsonl:2: expected a JSON object, found 3"),
        ('{"question": "", "context": "a"}', r"q\.jsonl:2: question must be text; got ''"),
        ('{"question": "a"}', r"q\.jsonl:2: context must be text; got none"),
        ('{"question": "a", "context": "b"}', r"q\.jsonl:2: answers must hold at least one"),
        ('{"question": "a", "context": "b", "answers": [""]}', r"an answer's text must be text"),
        ('{"question": "a", "context": "b", "choices": "b"}', r"choices must be texts; got 'b'"),
    ],
)
def test_a_bad_line_is_named(write, line, message):
    good = '{"question": "a", "context": "b", "answers": "b"}'
    path = write("q.jsonl", f"{good}\n{line}\n")
    with pytest.raises(DataError, match=message):
        list(read_questions(path))


@pytest.mark.parametrize("text", ["", " a ", "a\t\tb c\n", "\u3000我爱\u3000\u3000中国 ", "ab"])
def test_positions_are_those_of_the_same_characters(text):
    positions = normalized_positions(text)
    plain = normalize(text)
    assert len(positions) == len(plain)
    assert all(
        text[position] == char or char == " "
        for position, char in zip(positions, plain, strict=True)
    )


@pytest.mark.parametrize("empty", [[], {"text": [], "answer_start": []}])
def test_rows_without_answers_are_questions_that_their_context_does_not_answer(write, empty):
    record = {"question": "a", "context": "It was Ann."}
    rows = [{**record, "answers": empty}, {**record, "answers": {"text": ["Ann"]}}]
    answers = [question.answers for question in read_questions(write("q.json", json.dumps(rows)))]
    assert answers == [(), (Answer("Ann", 7),)]
