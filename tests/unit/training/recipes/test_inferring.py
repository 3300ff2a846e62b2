import json

import pytest

from regard.config import format_setting
from regard.errors import DataError
from regard.text import PairLayout, read_lines, read_pairs
from regard.text.reading.records import read_records
from regard.text.reading.tables import Field
from regard.text.reading.tagged import read_tagged, read_words
from regard.training.recipes.inferring import infer_tasks

ENGLISH = "The cat is on the mat and it was not in the house number"
GERMAN = "Die Katze ist auf der Matte und war nicht in dem Haus Nummer"
CHINESE = "我们在北京的学校里学习中文"
LONG = f"{ENGLISH}. " * 6


def table(tmp_path, *rows, ending="tsv", header=None):
    sign = {"tsv": "\t", "csv": ","}[ending]
    lines = [*([sign.join(header)] if header else []), *(sign.join(row) for row in rows)]
    path = tmp_path / f"mine.{ending}"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def objects(tmp_path, *records):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def many(*cells):
    return [[cell.format(n=n, odd="yes" if n % 2 else "no") for cell in cells] for n in range(24)]


def inferences(path):
    tasks = infer_tasks(path)
    settings = [format_setting(*each) for each in tasks.best.settings.items()]
    return " ".join([tasks.best.recipe or "pairs", *settings, *([] if tasks.is_sure else "?")])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (("{odd}", CHINESE + "{n}"), "classification-chinese data.text=2 data.label=1"),
        (("The cat {n}", LONG + "{n}"), "summarisation data.document=2 data.answer=1"),
        (("{n}", "{n}"), "regression"),
        ((ENGLISH + " {n}",), "language-model-characters-fast"),
    ],
)
def test_the_task_of_a_table_is_inferred_from_its_columns(tmp_path, cells, expected):
    assert inferences(table(tmp_path, *many(*cells))) == expected


def test_the_lines_of_a_text_file_say_whether_it_is_a_table(tmp_path):
    path = tmp_path / "deu.txt"
    row = f"{ENGLISH} {{n}}.\t{GERMAN} {{n}}.\tby hand, in house {{n}}\n"
    path.write_text("".join(row.format(n=n) for n in range(24)), encoding="utf-8")
    assert inferences(path) == "pairs data.columns=[1, 2]"
    assert next(read_pairs(path, layout=PairLayout(columns=(1, 2)))).target == f"{GERMAN} 0."
    path.write_text("".join(f"{n % 2}\t{ENGLISH} {n}\n" for n in range(24)), encoding="utf-8")
    assert inferences(path) == "classification-convolution data.text=2 data.label=1"
    fields = [Field("text", 2), Field("label", 1)]
    assert next(read_records(path, fields))[0] == {"text": f"{ENGLISH} 0", "label": "0"}


def test_a_file_sorted_by_its_labels_is_looked_at_all_over(tmp_path):
    rows = [[f"{LONG} {n}", "good" if n < 4000 else "bad"] for n in range(6000)]
    assert inferences(table(tmp_path, *rows)) == "classification-convolution"


def test_columns_go_by_the_names_of_a_header(tmp_path):
    rows = many("{n}", "{odd}", ENGLISH + " {n}")
    path = table(tmp_path, *rows, ending="csv", header=["id", "verdict", "what they said"])
    settings = "data.text=what they said data.label=verdict"
    assert inferences(path) == f"classification-convolution {settings}"
    command = "regard train classification-convolution a.csv --set 'data.text=what they said'"
    assert infer_tasks(path).best.command(["a.csv"]).startswith(command)


@pytest.mark.parametrize(
    ("rows", "job"),
    [
        ([["review", "label"], ["great really", "pos"], ["bad", "neg"]], "texts with labels"),
        ([["source", "target"], ["hello", "hallo"], ["world", "welt"]], "sentence pairs"),
    ],
)
def test_the_task_of_few_rows_is_inferred_from_their_header(tmp_path, rows, job):
    assert infer_tasks(table(tmp_path, *rows[1:], header=rows[0])).best.description == job


@pytest.mark.parametrize(
    ("words", "tags", "recipe"),
    [
        ("Ann runs", "B-PER O", "tagging-entities"),
        ("江 泽", "B-PER I-PER", "tagging-chinese-entities"),
        ("Ann runs", "NOUN VERB", "tagging-words"),
    ],
)
def test_blocks_of_short_rows_are_tagged_words(tmp_path, words, tags, recipe):
    block = "".join(f"{w}\t{t}\n" for w, t in zip(words.split(), tags.split(), strict=True))
    path = tmp_path / "mine.txt"
    path.write_text("\n".join([block] * 12), encoding="utf-8")
    assert inferences(path) == recipe


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"text": ENGLISH, "label": "a"}, "classification-convolution"),
        ({"tokens": ["Ann"], "tags": ["B-PER"]}, "tagging-entities"),
        ({"source": "a", "target": "b"}, "pairs"),
        (
            {"sentence1": ENGLISH, "sentence2": "a", "gold_label": "c"},
            "pair-matching data.first=sentence1 data.second=sentence2 data.label=gold_label",
        ),
        ({"document": "a", "summary": "b"}, "summarisation"),
        ({"first": "a", "second": "b", "label": "c"}, "pair-matching"),
        ({"question": "Who?", "context": "It is Ann.", "answers": ["Ann"]}, "question-answering"),
        ({"question": "Who?", "context": "It is Ann.", "answers": ["Nobody"]}, "generation-copy"),
        (
            {"question": "Who?", "context": "a", "answers": ["b"], "choices": ["b", "c"]},
            "multiple-choice",
        ),
        (
            {"title": "a", "body": ENGLISH, "label": "c"},
            "classification-convolution data.text=body ?",
        ),
    ],
)
def test_the_task_of_objects_is_inferred_from_their_keys(tmp_path, record, expected):
    assert inferences(objects(tmp_path, *[record] * 12)) == expected


def test_the_task_of_unknown_keys_is_inferred_from_their_values(tmp_path):
    record = {"reviewerID": "A3", "asin": "B7", "overall": 5.0, "verified": "true"}
    records = [{**record, "reviewText": f"{LONG} {n}", "overall": n % 5 + 1.0} for n in range(24)]
    path = objects(tmp_path, *records)
    assert inferences(path) == "classification-convolution data.text=reviewText data.label=overall"
    fields = [Field("text", "reviewText"), Field("label", "overall")]
    assert next(read_records(path, fields))[0]["label"] == "1.0"


def test_an_object_of_languages_is_a_pair(tmp_path):
    sides = [{"en": f"{ENGLISH} {n}", "de": f"{GERMAN} {n}"} for n in range(24)]
    path = objects(tmp_path, *({"id": n, "translation": each} for n, each in enumerate(sides)))
    assert inferences(path) == 'pairs data.columns=["translation.en", "translation.de"]'


def test_squads_json_holds_questions(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"data": [{"paragraphs": []}]}', encoding="utf-8")
    assert inferences(path) == "question-answering"


@pytest.mark.parametrize("escapes", [True, False])
@pytest.mark.parametrize(
    ("context", "recipe"),
    [
        (f"{CHINESE}。", "question-answering-chinese"),
        (f'{ENGLISH} "of" 苏轼 (Su Shi). {ENGLISH}', "question-answering"),
    ],
)
def test_the_language_of_squads_json_is_that_of_its_texts(tmp_path, context, recipe, escapes):
    data = {"data": [{"paragraphs": [{"context": context, "qas": []}]}]}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(data, ensure_ascii=escapes), encoding="utf-8")
    assert inferences(path) == recipe


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "", r"must hold something to learn from; got an empty file"),
        ("a.csv", "text,label\n\n", r"must hold rows below its header; got 'text,label' alone"),
        ("a.json", '[{"x": 1}]', r"must say what to learn; got 'x'"),
        ("a.json", "[1, 2]", r"must hold a JSON object a line; got '\[1, 2\]'"),
        ("a.jsonl", '{"x": 1}\n', r"must say what to learn; got 'x'. There are text and label"),
        ("a.txt", "2024-01,3\n2024-02,5\n" * 12, r"no job fits|must hold texts"),
        (
            "a.txt",
            "1\n00:00:01,000 --> 00:00:03,000\nHello.\n\n" * 12,
            r"got subtitles, .* Take them out: grep -vE .* > a-text.txt",
        ),
        ("a.csv", "1,x\n2,y\n" * 24, r"must hold texts; .*column 2 has 2 labels \(x, y\)"),
        ("a.csv", '"abc,def\n', r"a.csv:1: a quote opens in this row"),
        ("a.csv", "sep=;\n", r"must hold rows; got none"),
        ("a.tmx", '<?xml version="1.0"?>\n' + "<seg>Hi.</seg>\n" * 12, r"got markup, as of XML"),
        ("a.iob", "BOS show flights EOS\tO O O\n" * 12, r"must have a word and its tag a line"),
        (
            "a.txt",
            "The/at jury/nn said/vbd ./.\n" * 12,
            r"in one word. Convert it: sed -E .*a\.conll",
        ),
    ],
)
def test_what_nothing_can_be_learned_from_says_why(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        infer_tasks(tmp_path / name)


def test_a_header_of_words_and_tags_is_no_tag_and_a_column_may_part_sentences(tmp_path):
    rows = [["Sentence #", "Word", "POS", "Tag"]]
    for n in range(12):
        rows += [[f"Sentence: {n}", "Ann", "NNP", "B-PER"], ["", "sings", "VB", "O"]]
    path = tmp_path / "ner.csv"
    path.write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    task = infer_tasks(path).best
    assert (task.recipe, task.settings) == ("tagging-entities", {})
    assert "(B-PER, O, …)" in task.reason
    sentences = list(read_tagged(path))
    assert len(sentences) == 12
    assert (sentences[1].words, sentences[1].tags) == (("Ann", "sings"), ("B-PER", "O"))
    untagged = read_words(read_lines(path), ".csv", Field("word", 1))
    assert [sentence.words for sentence in untagged] == [sentence.words for sentence in sentences]


def test_words_with_tags_that_nothing_parts_say_what_would(tmp_path):
    rows = [["Ann", "NNP"], ["sings", "VB"]] * 12
    with pytest.raises(DataError, match="must part its sentences; got 'Word' and 'Tag'"):
        infer_tasks(table(tmp_path, *rows, ending="csv", header=["Word", "Tag"]))


def test_a_folder_of_folders_of_pictures_is_pictures_with_labels(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for label, sides in (("cats", (28, 28)), ("dogs", (28, 28)), ("owls", (28, 40))):
        (tmp_path / label).mkdir()
        image.new("L", sides).save(tmp_path / label / "1.png")
    inferred = infer_tasks(tmp_path).best
    assert inferred.recipe == "vision-transformer"
    assert inferred.settings == {"model.patch": 4, "data.size": 32}
    (tmp_path / "owls" / "1.png").unlink()
    (tmp_path / "owls").rmdir()
    assert infer_tasks(tmp_path).best.settings == {"model.patch": 4}
    (tmp_path / "all").mkdir()
    for label in ("cats", "dogs"):
        (tmp_path / label).rename(tmp_path / "all" / label)
    (tmp_path / "all").rename(tmp_path / "train")
    with pytest.raises(DataError, match=r"must be one part of the pictures; .*/train, and --test"):
        infer_tasks(tmp_path)


def test_a_large_file_in_another_encoding_is_looked_at_from_its_beginning(tmp_path):
    rows = "".join(f"{ENGLISH} {n}\t{'yes' if n % 2 else 'no'}\r\n" for n in range(9000))
    path = tmp_path / "mine.txt"
    path.write_bytes(rows.encode("utf-16"))
    assert inferences(path) == "classification-convolution"
