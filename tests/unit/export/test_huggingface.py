"""Runs as folders of transformers: their cards, and what is refused."""

import pytest
from tests.unit.export.random_runs import ENCODER, translator, write_run

from regard.errors import SettingError
from regard.export import export_run
from regard.text.reading.questions import Answer, Question


def test_of_a_unigram_tokenizer_the_card_says_what_ties_are(tmp_path):
    tokenizer = {"type": "unigram", "may_shrink": True}
    translator(tmp_path / "run", tokenizer=tokenizer)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    assert "cut a text that are equally probable" in (tmp_path / "out" / "README.md").read_text()


def test_a_run_whose_words_no_tokenizer_cuts_says_so(tmp_path):
    translator(tmp_path / "run", tokenizer={"type": "words"})
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    named = {"README.md", "config.json", "generation_config.json", "model.safetensors"}
    assert files == {*named, "tokenizer", "program.py"}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "There is no tokenizer of transformers beside it" in card
    assert "The model reads ids as `… 3`" in card


def test_the_card_is_what_the_hub_reads(tmp_path):
    predictor = translator(tmp_path / "run")
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    head = card.split("---\n")[1]
    assert "library_name: transformers\n" in head
    assert "pipeline_tag: translation\n" in head
    assert "language: [zh, en]\n" in head
    assert f"{sum(p.numel() for p in predictor.model.parameters()):,} parameters" in card


def test_a_reader_with_inputs_besides_ids_is_refused(tmp_path):
    table = {
        "task": "question_answering",
        "data": {"train": "questions.jsonl", "max_length": 30, "stride": 9, "max_question": 20},
        "tokenizer": {"type": "characters"},
        "model": ENCODER,
    }
    questions = [Question("Who?", "He is here.", (Answer("He", 0),))]
    write_run(tmp_path / "run", table, questions)
    with pytest.raises(SettingError, match="which is told what both texts share, and encoders"):
        export_run(tmp_path / "run", "huggingface", tmp_path / "out")
