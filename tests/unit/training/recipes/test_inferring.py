import json
from types import MappingProxyType

import pytest

from regard.config import format_setting
from regard.errors import DataError
from regard.text import PairLayout, read_lines, read_pairs
from regard.text.reading.records import read_records
from regard.text.reading.tables import Field
from regard.text.reading.tagged import read_tagged, read_words
from regard.training.recipes.inferring import infer_tasks
from regard.training.recipes.resolving import are_pairs

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


def inferences(path, given=MappingProxyType({})):
    tasks = infer_tasks(path, given)
    inferred = {name: v for name, v in tasks.best.settings.items() if name not in given}
    settings = [format_setting(*each) for each in inferred.items()]
    return " ".join([tasks.best.recipe or "pairs", *settings, *([] if tasks.is_sure else "?")])


def spans(n, start="start", end="end"):
    return {start: 4, end: 7, "label": "CITY" if n % 2 else "PER"}


EXPORTS = {
    "doccano": (lambda n: {"label": [list(spans(n).values())]}, "tagging-entities data.tag=label"),
    "doccano relations": (
        lambda n: {"id": n, "entities": [spans(n, "start_offset", "end_offset")]},
        "tagging-entities data.tag=entities",
    ),
    "prodigy": (
        lambda n: {"spans": [spans(n)], "answer": "accept"},
        "tagging-entities data.tag=spans",
    ),
    "classes": (lambda n: {"label": ["no" if n % 2 else "yes"]}, "classification-convolution"),
}


@pytest.mark.parametrize("tool", EXPORTS)
def test_exports_of_annotation_tools_are_recognised(tmp_path, tool):
    members, expected = EXPORTS[tool]
    records = [{"text": f"Met Ann {n}.", **members(n)} for n in range(24)]
    assert inferences(objects(tmp_path, *records)) == expected


def test_spans_beside_a_class_are_one_job_or_the_other(tmp_path):
    records = [
        {"text": f"Met Ann {n}.", "intent": "ask" if n % 2 else "tell", "entities": [spans(n)]}
        for n in range(24)
    ]
    path = objects(tmp_path, *records)
    assert inferences(path) == "tagging-entities data.tag=entities ?"
    assert infer_tasks(path).candidates[1].settings == {"data.label": "intent"}


def test_annotations_of_which_none_counts_are_refused(tmp_path):
    records = [{"text": f"Met Ann {n}.", "spans": [], "answer": "ignore"} for n in range(24)]
    with pytest.raises(DataError, match="got only annotations that were rejected or skipped"):
        infer_tasks(objects(tmp_path, *records))


def test_chinese_spans_are_for_a_tagger_of_characters(tmp_path):
    records = [{"text": f"{CHINESE}{n}", "label": [[3, 5, "LOC"]]} for n in range(24)]
    path = objects(tmp_path, *records)
    assert inferences(path) == "tagging-chinese-entities data.tag=label"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("{k} {word} {tag}", "tagging-entities data.word=2 data.tag=3"),
        ("{k}\t{word}\tNN\t{tag}", "tagging-entities data.word=2 data.tag=4"),
        ("{at},{word},{tag}", "tagging-entities data.word=2 data.tag=3"),
        ("news/doc {n} {k} {word} {tag} _", "tagging-entities data.word=4 data.tag=5"),
        ("{word} {tag} {k}", "tagging-entities"),
        ("{word} -X- _ {tag}", "tagging-entities data.tag=4"),
    ],
)
def test_a_column_that_counts_or_stays_the_same_is_never_the_word(tmp_path, row, expected):
    words = [("Ann", "PER-B"), ("Lee", "PER-I"), ("sings", "O"), ("here", "O")]
    blocks = [
        [row.format(n=n, k=k, at=4 * n + k, word=f"{word}{n}", tag=tag) for k, (word, tag) in rows]
        for n, rows in enumerate([list(enumerate(words))] * 24)
    ]
    path = tmp_path / ("a.csv" if "," in row else "a.conll")
    path.write_text("\n\n".join(map("\n".join, blocks)) + "\n")
    assert inferences(path) == expected
    columns = {name.removeprefix("data."): n for name, n in infer_tasks(path).best.settings.items()}
    sentences = list(read_tagged(path, **columns))
    assert (len(sentences), sentences[1].words) == (24, ("Ann1", "Lee1", "sings1", "here1"))
    if columns.get("word") == 2:
        with pytest.raises(
            DataError, match=rf"column 1 counts them.* --set data.tag={columns['tag']}"
        ):
            list(read_tagged(path))


def test_brat_is_named_by_its_annotations_or_its_folder(tmp_path):
    (tmp_path / "a.txt").write_text("Met Ann.\n" * 24)
    annotations = tmp_path / "a.ann"
    annotations.write_text("".join(f"T{n}\tPER {9 * n + 4} {9 * n + 7}\tAnn\n" for n in range(24)))
    assert inferences(annotations) == "tagging-entities data.tag=spans"
    assert inferences(tmp_path) == "tagging-entities data.tag=spans"
    with pytest.raises(DataError, match=r"Say: regard train .*a\.ann"):
        infer_tasks(tmp_path / "a.txt")
    assert not are_pairs([str(tmp_path / "a.txt"), str(annotations)], {})


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


def test_answers_that_stand_in_the_text_are_read_from_it_and_others_written(tmp_path):
    header = ["context", "question", "answer", "answer_start"]
    rows = many("Ann {n} is here.", "Who is here {n}?", "Ann {n}", "0")
    assert inferences(table(tmp_path, *rows, ending="csv", header=header)) == "question-answering"
    rows = many("Ann {n} is here.", "Who is here {n}?", "It is her {odd}", "0")
    expected = "generation-copy data.document=context data.question=question"
    assert inferences(table(tmp_path, *rows, ending="csv", header=header)) == expected


def test_a_list_of_texts_with_their_questions_is_questions(tmp_path):
    asked = {"query_text": "谁？", "query_id": "Q", "answers": ["我们"]}
    path = tmp_path / "cmrc.json"
    texts = [{"context_text": f"{CHINESE}{n}", "qas": [asked], "title": "t"} for n in range(24)]
    path.write_text(json.dumps(texts, indent=2), encoding="utf-8")
    assert inferences(path) == "question-answering-chinese"


def test_answers_of_a_table_may_be_called_as_squad_does(tmp_path):
    rows = many("{n} boats came to the town of Rome in May.", "How many came to {n}?", "{n}", "0")
    path = table(tmp_path, *rows, header=["context", "question", "text", "answer_start"])
    assert inferences(path) == "question-answering"


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
    ("header", "cells", "settings"),
    [
        (
            "Timestamp,How was it?,Again?",
            "2026/05/{n} 10:00:00,{e} {n},{odd}",
            "How was it?,Again?",
        ),
        ("1. Comment,2. Mood", "{e} {n},{odd}", "1. Comment,2. Mood"),
        (
            "Please rate us (1-5),Customer's words,Outcome",
            "3,{e} {n},{odd}",
            "Customer's words,Outcome",
        ),
        ("text,label,label", "{e} {n},{odd},{odd}", "text,2"),
        ("您的意见,您满意吗？", "{zh}{n},{odd}", "您的意见,您满意吗？"),
    ],
)
def test_headers_of_surveys_name_the_columns(tmp_path, header, cells, settings):
    cells = cells.replace("{e}", ENGLISH).replace("{zh}", CHINESE).split(",")
    path = table(tmp_path, *many(*cells), ending="csv", header=header.split(","))
    tasks = infer_tasks(path)
    text, label = settings.split(",")
    fields = [Field("text", text), Field("label", int(label) if label.isdecimal() else label)]
    assert tasks.is_sure
    expected = {f"data.{field.name}": field.column for field in fields if field.column != "text"}
    assert tasks.best.settings == expected
    assert len(list(read_records(path, fields))) == 24


@pytest.mark.parametrize(
    ("rows", "job"),
    [
        ([["review", "label"], ["great really", "pos"], ["bad", "neg"]], "texts with labels"),
        ([["source", "target"], ["hello", "hallo"], ["world", "welt"]], "sentence pairs"),
    ],
)
def test_the_task_of_few_rows_is_inferred_from_their_header(tmp_path, rows, job):
    assert infer_tasks(table(tmp_path, *rows[1:], header=rows[0])).best.description == job


def test_several_labels_in_a_cell_are_named_as_a_class_of_their_own(tmp_path):
    labels = ("food", "food;price", "price", "Sci/Tech")
    rows = [(f"The room number {n} is nice and so on", labels[n % 4]) for n in range(40)]
    path = table(tmp_path, *rows, header=["text", "label"])
    assert "'food;price', of several, is a class of its own" in infer_tasks(path).best.reason
    path = table(tmp_path, *[row for row in rows if row[1] != "price"], header=["text", "label"])
    assert "of several" not in infer_tasks(path).best.reason


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
        ({"tokens": ["Ann"], "pos_tags": ["NNP"], "ner_tags": ["B-PER"]}, "tagging-entities"),
        ({"words": ["Ann"], "chunk_tags": ["B-NP"], "ner": ["NNP"]}, "tagging-words"),
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


def test_the_tags_that_a_setting_names_say_the_recipe(tmp_path):
    record = {"tokens": ["Ann"], "pos_tags": ["NNP"], "ner_tags": ["B-PER"]}
    path = objects(tmp_path, *[record] * 12)
    assert inferences(path, {"data.tag": "pos_tags"}) == "tagging-words"


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
        ("a.csv", "1,x\n2,y\n" * 24, r"must hold texts; .*column 2 has labels \(x, y\)"),
        ("a.csv", '"abc,def\n', r"a.csv:1: a quote opens in this row"),
        ("a.csv", "sep=;\n", r"must hold rows; got none"),
        ("a.tmx", '<?xml version="1.0"?>\n' + "<seg>Hi.</seg>\n" * 12, r"got markup, as of XML"),
        ("a.iob", "BOS show flights EOS\tO O O\n" * 12, r"must have a word and its tag a line"),
        (
            "a.txt",
            "655_!_101_!_news_culture_!_京城最值得你来场文化之旅的博物馆_!_博物馆\n" * 12,
            r"got '_!_' in every line. Convert it: sed 's/ \*_!_ \*/\\t/g' .*a.txt > a.tsv",
        ),
        (
            "a.txt",
            "The/at jury/nn said/vbd ./.\n" * 12,
            r"in one word. Convert it: sed -E .*a\.conll",
        ),
        (
            "a.txt",
            "迈向_VV 希望_NN 的_DEC\n" * 12,
            r"one word. Convert it: sed -E .*s#_\(.*a.conll",
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


@pytest.mark.parametrize("tags", ["B-PER O O", "['B-PER', 'O', 'O']"])
def test_tags_of_a_sentence_in_a_cell_are_no_label(tmp_path, tags):
    rows = [[f"Ann sat {'down here'[: 4 + n % 2 * 5]}", tags + " O" * (n % 2)] for n in range(24)]
    with pytest.raises(DataError, match=r"tags of a whole sentence in a cell of 'labels'.*jsonl"):
        infer_tasks(table(tmp_path, *rows, header=["text", "labels"]))


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


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"data.label": "tone"}, "classification-convolution data.text=body ?"),
        ({"data.label": 4}, "classification-convolution data.text=body ?"),
        ({"data.text": "title", "data.label": "tone"}, "classification-convolution"),
        ({"data.text": "Title"}, "classification-convolution data.label=topic ?"),
        ({"data.first": "title"}, "pair-matching data.second=body data.label=topic"),
        ({"data.answer": "title"}, "summarisation data.document=body"),
        ({"data.text": "body", "data.aspect": "topic"}, "classification-aspect data.label=tone"),
    ],
)
def test_columns_that_settings_name_are_obeyed(tmp_path, settings, expected):
    rows = [
        [f"{ENGLISH} {n}", f"{LONG} {n}", "abc"[n % 3], "good" if n % 2 else "bad"]
        for n in range(24)
    ]
    path = table(tmp_path, *rows, header=["title", "body", "topic", "tone"])
    assert inferences(path, settings) == expected


def test_settings_that_name_no_column_say_which_there_are(tmp_path):
    path = table(tmp_path, *many(ENGLISH + " {n}", "{odd}"), header=["review", "tone"])
    with pytest.raises(DataError, match=r"no column 'tune', which data.label names. .* 'tone'\?"):
        infer_tasks(path, {"data.label": "tune"})
    with pytest.raises(DataError, match=r"no job reads data.text, data.first together"):
        infer_tasks(path, {"data.text": "review", "data.first": "tone"})


def test_columns_of_words_and_tags_that_settings_name_are_obeyed(tmp_path):
    block = "".join(f"{n}\t{w}\tNN\t{t}\n" for n, w, t in ((1, "Ann", "B-PER"), (2, "sat", "O")))
    path = tmp_path / "mine.conll"
    path.write_text("\n".join([block] * 12), encoding="utf-8")
    assert inferences(path).startswith("tagging-entities data.word=2 data.tag=4")
    assert "(NN" not in infer_tasks(path).best.reason
    path.write_text("\n".join([block.replace("sat\tNN", "sat\tVB")] * 12), encoding="utf-8")
    assert "(NN, VB, …)" in infer_tasks(path, {"data.tag": 3}).best.reason


def test_labels_of_which_most_are_still_missing_are_labels(tmp_path):
    rows = [[f"{LONG} {n}", "" if n % 3 else "yes" if n % 2 else "no"] for n in range(48)]
    path = table(tmp_path, *rows, header=["text", "label"])
    assert inferences(path) == "classification-convolution"
    assert "labels (no, yes)" in infer_tasks(path).best.reason


def test_labels_may_be_phrases_that_come_often(tmp_path):
    labels = ["Credit reporting, or other consumer reports", "Neither agree nor disagree"]
    rows = [[f"{LONG} {n}", labels[n % 2]] for n in range(24)]
    path = table(tmp_path, *rows, header=["What happened", "Product"])
    named = "data.text=What happened data.label=Product"
    assert inferences(path) == f"classification-convolution {named}"
