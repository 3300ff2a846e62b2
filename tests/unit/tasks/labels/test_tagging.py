"""Tagging besides its training: what words are read from, entities, baselines, bad input."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DataError
from regard.metrics.labels import as_bio, entities, entity_tags
from regard.tasks import recipe_from_table
from regard.tasks.labels.tag_baselines import REGRESSION
from regard.tasks.labels.tagging import Tagging, Tags
from regard.tasks.labels.word_parts import framed, joined_words, pieces_of
from regard.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, TokenizerConfig, train_tokenizer
from regard.text.reading.tagged import TaggedWords

LIST = "李|B-PER 、|O 王|B-PER 明|I-PER 、|O 北|B-LOC 京|I-LOC 来|O"


def sentence(text, where="a.txt:1"):
    pairs = [pair.split("|") for pair in text.split()]
    return TaggedWords(tuple(w for w, _ in pairs), tuple(t for _, t in pairs), where)


def recipe(folder=None, *, parts="convolution", head=None, **data):
    table = {
        "task": "tagging",
        "data": data,
        "model": {"type": "bag", "embed_dim": 5, "parts": parts, "parts_dim": 6, "dropout": 0.0},
        "head": {"dropout": 0.0} | (head or {}),
    }
    return recipe_from_table(table, folder=folder)


def job_of(*examples, **settings):
    return Tagging.learn(recipe(**settings), examples)


def written(folder, text, name="a.txt"):
    (folder / name).write_text(text, encoding="utf-8")
    return recipe(folder, train=name)


def test_words_made_of_neighbours_share_their_pairs():
    data = {"parts": "neighbours"}
    recipe = recipe_from_table({"task": "tagging", "data": data, "model": {"type": "recurrent"}})
    assert recipe.data.parts == "neighbours"
    example = sentence("北|B-LOC 京|I-LOC 人|O")
    table = {"task": "tagging", "data": data, "model": {"type": "bag", "parts": "bag"}}
    job = Tagging.learn(recipe_from_table(table), [example])
    first, second, third = job.encode([example])[0]["parts"]
    assert (first[1], second[1]) == (second[0], third[0])
    assert len({*first, *second, *third}) == 4
    # A pair never met is unknown: here the one that begins the sentence.
    assert job.encode([sentence("京|O 人|O")])[0]["parts"] == [[UNK_ID, second[1]], third]


def test_parts_and_rare_words_are_dropped_in_training_alone():
    job = job_of(sentence("ab|X ab|X cd|Y efg|Y"), drop_words=0.5, drop_parts=0.5)
    encoded = job.encode([sentence("ab|X cd|Y efg|Y")] * 200)
    still = job.collate(encoded)
    assert still["ids"].ne(UNK_ID).all()
    assert still["parts"].ne(UNK_ID).all()
    moved = job.collate(encoded, generator=torch.Generator().manual_seed(1))
    unknown = moved["ids"] == UNK_ID
    assert not unknown[:, 0].any()  # it occurs twice
    assert 0.4 < unknown[:, 1:].float().mean() < 0.6
    assert 0.4 < (moved["parts"] == UNK_ID)[still["parts"] != PAD_ID].float().mean() < 0.6
    assert (moved["parts"] == PAD_ID).equal(still["parts"] == PAD_ID)


def test_a_sentence_that_is_too_long_takes_several_rows_and_comes_back_whole():
    long = sentence(" ".join(f"w{index}|{'XY'[index % 2]}" for index in range(7)))
    short = sentence("w0|X w1|Y")
    job = job_of(long, short, max_length=3)
    batch = job.collate(job.encode([long, short]))
    assert batch["lengths"].tolist() == [3, 3, 1, 2]
    assert batch["owners"] == [0, 0, 0, 1]
    assert batch["parts"][2, 1:].eq(PAD_ID).all()
    answers = job.predict(job.build_model().eval(), batch)
    assert [len(answer.tags) for answer in answers] == [7, 2]


def test_names_in_a_list_are_also_readwithout_id_their_marks_in_training():
    job = job_of(sentence(LIST), join_entities=True)
    whole, joined = job.encode([sentence(LIST)], training=True)
    assert whole["words"] == tuple("李、王明、北京来")
    # The mark between two people goes; the one between a person and a place stays.
    assert joined["words"] == tuple("李王明、北京来")
    assert [job.tags[tag] for tag in joined["tags"][:3]] == ["B-PER", "B-PER", "I-PER"]
    assert len(job.encode([sentence(LIST)])) == 1
    assert len(job.encode([sentence("李|B-PER 和|O 王|B-PER")], training=True)) == 1
    plain = job_of(sentence(LIST))
    assert len(plain.encode([sentence(LIST)], training=True)) == 1


@pytest.mark.parametrize(
    "tags", ["B-PER I-PER E-PER S-LOC O", "B-PER I-PER L-PER U-LOC O", "B-PER M-PER E-PER W-LOC O"]
)
def test_schemes_that_mark_last_and_single_words_are_read_as_bio(tmp_path, tags):
    lines = [f"{word}\t{tag}\n" for word, tag in zip("abcde", tags.split(), strict=True)]
    (example,) = Tagging.read(written(tmp_path, "".join(lines)), "train")
    assert example.tags == ("B-PER", "I-PER", "I-PER", "B-LOC", "O")
    # A run that was trained on the tags as the file has them goes on with them.
    job = job_of(replace(example, tags=tuple(tags.split())))
    (encoded,) = job.encode([example])
    prediction = Tags(example.words, tuple(job.tags[number] for number in encoded["tags"]))
    assert prediction.tags == tuple(tags.split())
    assert job.score([prediction], [example]) == {"accuracy": 100, "f1": 100}
    assert job.show(example, prediction) == "[abc PER][d LOC]e"
    assert job.tables([prediction], [example])[0].rows[1] == ("PER", 100.0, 100.0, 100.0, 1)


@pytest.mark.parametrize(
    ("tags", "read"),
    [
        ("PER-B PER-I PER-I LOC-B O", "B-PER I-PER I-PER B-LOC O"),
        ("PER-B PER-M PER-E LOC-S O", "B-PER I-PER I-PER B-LOC O"),
        ("B_PER I_PER I_PER B_LOC O", "B-PER I-PER I-PER B-LOC O"),
        ("b-PER i-PER i-PER b-LOC o", "B-PER I-PER I-PER B-LOC O"),
        ("B I I B O", "B I I B O"),
        ("B M E S O", "B I I B O"),
        ("I I I B O", "B I I B O"),
        ("B M E S S", "B I I B B"),
    ],
)
def test_marks_behind_types_andwithout_id_types_are_entities(tmp_path, tags, read):
    lines = [f"{word}\t{tag}\n" for word, tag in zip("abcde", tags.split(), strict=True)]
    (example,) = Tagging.read(written(tmp_path, "".join(lines)), "train")
    assert example.tags == tuple(read.split())
    job = job_of(example)
    wrong = Tags(example.words, ("O", *example.tags[1:]))
    found = len(entities(example.tags))
    assert job.score([Tags(example.words, example.tags)], [example])["f1"] == 100
    assert job.score([wrong], [example])["f1"] == 100 * (found - 1) / found
    (row, *_) = job.baselines([example], [example])["entities met in training"]
    assert row.tags == example.tags
    kinds = {row[0] for row in job.tables([wrong], [example])[0].rows}
    assert kinds == ({"PER", "LOC"} if "-" in read else {"entity"})
    crf = job_of(example, head={"crf": True}).build_model().crf
    assert crf is not None


def test_tags_of_words_that_look_like_marks_are_no_entities():
    for tags in ({"NOUN", "B"}, {"M", "W"}, {"S", "E"}, {"O"}, {"X-N", "B-N", "O"}):
        assert entity_tags(tags) is None


def test_a_run_goes_on_with_marks_behind_types(tmp_path):
    (example,) = Tagging.read(written(tmp_path, "a\tPER-B\nb\tPER-I\nc\tO\n"), "train")
    job = job_of(replace(example, tags=("PER-B", "PER-I", "O")))
    (encoded,) = job.encode([example])
    assert [job.tags[number] for number in encoded["tags"]] == ["PER-B", "PER-I", "O"]


@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "E-A", "S-A", "B-C", "I-C", "U-C"])))
def test_mending_keeps_the_entities_and_leaves_nothing_to_mend(tags):
    mended = as_bio(tags)
    assert entities(mended) == entities(tags)
    assert as_bio(mended) == mended
    assert all(
        tag[0] != "I" or before[1:] == tag[1:]
        for before, tag in zip(("O", *mended), mended, strict=False)
    )


def test_no_answer_of_a_field_continues_what_did_not_begin():
    job = job_of(sentence(LIST), head={"crf": True})
    model = job.build_model()
    with torch.no_grad():
        model.output.bias += torch.tensor([9.0 * tag.startswith("I-") for tag in job.tags])
    batch = job.collate(job.encode([sentence(LIST)] * 3))
    for answer in job.predict(model.eval(), batch):
        assert any(tag != "O" for tag in answer.tags)
        assert as_bio(answer.tags) == answer.tags


def test_baselines_are_looked_up_in_the_training_text():
    train = [sentence("北|B-LOC 京|I-LOC 人|O"), sentence("北|B-LOC 来|O 人|O")]
    job = job_of(*train)
    inputs = [sentence("北|O 京|O 北|O 车|O")]
    tags = {name: each.tags for name, (each,) in job.baselines(train, inputs).items()}
    assert tags == {
        "each word's most frequent tag": ("B-LOC", "I-LOC", "B-LOC", "O"),
        REGRESSION: ("B-LOC", "O", "O", "O"),
        "entities met in training": ("B-LOC", "I-LOC", "B-LOC", "O"),
    }
    words = job_of(sentence("a|DET dog|NOUN"))
    names = ["each word's most frequent tag", REGRESSION]
    assert list(words.baselines([sentence("a|DET")], inputs)) == names


def test_a_report_has_types_words_and_the_confusion_matrix():
    job = job_of(sentence(LIST))
    example = sentence("李|B-PER 北|B-LOC 京|I-LOC 沪|B-LOC")
    answer = job.predict(job.build_model().eval(), job.collate(job.encode([example])))[0]
    wrong = type(answer)(example.words, ("B-PER", "B-LOC", "O", "B-PER"))
    kinds, words, confusion = job.tables([wrong], [example])
    assert kinds.rows == (("LOC", 0.0, 0.0, 0.0, 2), ("PER", 50.0, 100.0, 200 / 3, 1))
    assert words.rows == (("known from training", 200 / 3, 3), ("unknown", 0.0, 1))
    assert confusion.is_matrix
    assert job.show(example, wrong) == (
        "[李 PER][北 LOC]京[沪 PER]  (wrong: 北 LOC, 沪 PER; right: 北京 LOC, 沪 LOC)"
    )
    words_job = job_of(sentence("a|DET dog|NOUN"))
    english = sentence("a|DET dog|NOUN")
    predicted = type(answer)(english.words, ("DET", "DET"))
    assert words_job.show(english, predicted) == "a/DET dog/DET(right: NOUN)"
    assert job.example_score(wrong, example) == 0.5


def test_a_linewithout_id_spaces_is_its_characters_where_those_were_the_words():
    assert job_of(sentence(LIST)).request("李明来", "line 1").words == ("李", "明", "来")
    assert job_of(sentence("ab|X c|Y")).request("abc", "line 1").words == ("abc",)
    assert job_of(sentence("ab|X c|Y")).request({"tokens": ["ab"]}, "line 1").words == ("ab",)
    job = job_of(sentence("Rome|X .|O U.S.|X"), sentence("李|X 伟|X Rome|X 1950|O"))
    assert job.request("U.S. Paris. a-b", "line 1").words == ("U.S.", "Paris", ".", "a-b")
    assert job.request("李来 Rome1950", "line 1").words == ("李", "来", "Rome1950")
    assert job.request({"text": "Paris."}, "line 1").words == ("Paris", ".")
    for record in ("  ", {"text": " "}, {"tokens": []}, {"tokens": ["a", 1]}):
        with pytest.raises(DataError, match="line 3: tokens must hold words to tag; got"):
            job_of(sentence(LIST)).request(record, "line 3")


def test_a_tag_that_training_does_not_know_is_named_with_its_word():
    job = job_of(sentence(LIST))
    with pytest.raises(
        DataError, match=r"b.txt:7: tags must be ones met in .*got 'B-ORG' for '党'"
    ):
        job.encode([sentence("党|B-ORG", "b.txt:7")])


PIECED = ["the cat sat on the mat.", "a dog ran on the road.", "我爱中国。", "中国很大。"] * 5


@pytest.mark.parametrize("kind", ["bpe", "unigram", "characters", "words"])
@pytest.mark.parametrize(
    "words",
    [["the", "cat", "ran", "."], ["我", "爱", "中", "国", "。"], ["the", "中国", "x9"], ["a"]],
)
def test_the_pieces_of_a_word_are_of_it_alone(kind, words):
    tokenizer = train_tokenizer(PIECED, TokenizerConfig(type=kind))
    pieces = pieces_of(words, tokenizer)
    assert all(pieces)
    for word, ids in zip(words, pieces, strict=True):
        if UNK_ID not in ids:
            assert tokenizer.decode(ids).strip() == word
    text = joined_words(words)
    cut = [piece.text for piece in tokenizer.pieces(text)]
    if all(any(word.startswith(piece) for word in words) for piece in cut):  # none is of two words
        assert [one for ids in pieces for one in ids] == tokenizer.encode(text)


def test_rows_begin_only_where_texts_do():
    words = [[7], [8, 9]]
    assert framed(words, begins=False) == ([7, 8, 9, EOS_ID], [0, 1])
    assert framed(words, begins=True) == ([BOS_ID, 7, 8, 9, EOS_ID], [1, 2])
