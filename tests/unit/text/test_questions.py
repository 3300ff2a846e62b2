"""Questions from files: SQuAD's JSON, JSONL, and what is wrong with one."""

import gzip
import json

import pytest

from regard.errors import DataError, SettingError
from regard.text import BadLines, normalize
from regard.text.reading.questions import Answer, places_of_normalized, read_questions

CONTEXT = "Ann built  the ship.\nIt was the best ship."


def squad(tmp_path, *qas, name="q.json"):
    paragraph = {"context": CONTEXT, "qas": list(qas)}
    path = tmp_path / name
    root = {"version": "1.1", "data": [{"title": "Ships", "paragraphs": [paragraph]}]}
    path.write_text(json.dumps(root), encoding="utf-8")
    return path


def qa(text="Ann", start=0, **more):
    answers = [{"text": text, "answer_start": start}]
    return {"id": "q7", "question": " Who  built it?", "answers": answers} | more


def test_squads_layout_with_its_article_and_all_its_answers(tmp_path):
    more = [{"text": "Ann", "answer_start": 0}, {"text": "the ship", "answer_start": 11}]
    (found,) = read_questions(squad(tmp_path, qa(answers=more)))
    assert (found.text, found.context, found.article, found.id) == (
        "Who built it?",
        CONTEXT,
        "Ships",
        "q7",
    )
    assert found.answers == (Answer("Ann", 0), Answer("the ship", 11))
    assert [CONTEXT[a.start : a.end] for a in found.answers] == ["Ann", "the ship"]


def test_a_compressed_file_reads_the_same(tmp_path):
    plain = squad(tmp_path, qa())
    packed = tmp_path / "q.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    (ours,), (theirs,) = read_questions(plain), read_questions(packed)
    assert (ours.text, ours.answers) == (theirs.text, theirs.answers)


def test_a_question_without_an_answer_says_so(tmp_path):
    (found,) = read_questions(squad(tmp_path, qa(answers=[], is_impossible=True)))
    assert found.answers == ()
    with pytest.raises(DataError, match=r"q\.json:1: question q7: answers must hold at least one"):
        list(read_questions(squad(tmp_path, qa(answers=[]))))


@pytest.mark.parametrize(
    ("text", "start", "message"),
    [
        ("the ship", 4, r"got 'built  t' at 4 for 'the ship'. Set answer_start to 11"),
        ("the car", 4, r"It stands nowhere there: correct the answer, or leave it out"),
        ("Ann", -1, r"got no place for 'Ann'. Set answer_start to 0"),
        ("Ann", "0", r"answer_start must be a whole number; got '0'"),
    ],
)
def test_an_answer_that_is_not_in_its_context(tmp_path, text, start, message):
    with pytest.raises(DataError, match=rf"q\.json:1: question q7: .*{message}"):
        list(read_questions(squad(tmp_path, qa(text, start))))


def test_skipping_counts_what_is_left_out(tmp_path):
    bad = BadLines()
    path = squad(tmp_path, qa("the car"), qa())
    assert len(list(read_questions(path, on_bad_line="skip", bad_lines=bad))) == 1
    assert bad.counts == {"questions": 1}
    with pytest.raises(DataError, match="must hold questions with answers; got none"):
        list(read_questions(squad(tmp_path, qa("the car")), on_bad_line="skip"))


def test_free_answers_need_no_place(tmp_path):
    (found,) = read_questions(squad(tmp_path, qa("a shipwright", 3)), spans=False)
    assert found.answers == (Answer("a shipwright", -1),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{\n1", r"q\.json:2: not JSON"),
        (
            '{"paragraphs": [], "qas": []}',
            r"q\.json must hold a list at 'data', as SQuAD's files do",
        ),
        ('{"data": [{}, {"paragraphs": []}]}', r"data\[0\] must hold a list at 'paragraphs'"),
        ('{"data": [{"paragraphs": [{"qas": [3]}]}]}', r"expected a JSON object, found 3"),
        ('{"data": [{"paragraphs": [{"qas": [{"question": "x"}]}]}]}', "context must be text"),
    ],
)
def test_what_is_no_squad_file(tmp_path, text, message):
    path = tmp_path / "q.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read_questions(path))


def test_jsonl_finds_the_places_of_answers(tmp_path):
    path = tmp_path / "q.jsonl"
    line = {"question": "谁？", "context": "他叫小明。", "answers": ["小明"], "story": "s"}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    (found,) = read_questions(path)
    assert (found.answers, found.article) == ((Answer("小明", 2),), "s")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"q\.jsonl:2: not JSON"),
        ("3", r"q\.jsonl:2: expected a JSON object, found 3"),
        ('{"question": "", "context": "a"}', r"q\.jsonl:2: question must be text; got ''"),
        ('{"question": "a"}', r"q\.jsonl:2: context must be text; got none"),
        ('{"question": "a", "context": "b"}', r"q\.jsonl:2: answers must hold at least one"),
        (
            '{"question": "a", "context": "b", "answers": [""]}',
            r"q\.jsonl:2: an answer's text must be text; got ''",
        ),
        (
            '{"question": "a", "context": "b", "answers": ["b"], "choices": "b"}',
            r"q\.jsonl:2: choices must be texts; got 'b'",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "q.jsonl"
    good = '{"question": "a", "context": "b", "answers": "b"}'
    path.write_text(f"{good}\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read_questions(path))


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(SettingError, match=r"must be one of \.json, \.jsonl"):
        list(read_questions(tmp_path / "q.csv"))


@pytest.mark.parametrize("text", ["", " a ", "a\t\tb c\n", "\u3000我爱\u3000\u3000中国 ", "ab"])
def test_places_are_those_of_the_same_characters(text):
    places = places_of_normalized(text)
    plain = normalize(text)
    assert len(places) == len(plain)
    assert all(
        text[place] == char or char == " " for place, char in zip(places, plain, strict=True)
    )


@pytest.mark.parametrize("nothing", [[], {"text": [], "answer_start": []}])
def test_rows_without_answers_are_questions_that_their_context_does_not_answer(tmp_path, nothing):
    record = {"question": "a", "context": "It was Ann."}
    rows = [{**record, "answers": nothing}, {**record, "answers": {"text": ["Ann"]}}]
    (tmp_path / "q.json").write_text(json.dumps(rows), encoding="utf-8")
    found = [question.answers for question in read_questions(tmp_path / "q.json")]
    assert found == [(), (Answer("Ann", 7),)]
