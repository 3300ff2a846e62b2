"""Trainings of records begin again; what their losses say, the record says."""

import importlib
import json

import pytest
from benchmarks import measuring, occasion, replay

from regard.tasks import Recipe, recipe_from_table

RECIPE = {"task": "regression", "data": {"example": "sine"}, "training": {"minutes": 2}}
LOSSES = {"10": 2.0, "50": 1.0, "200": 0.5}


@pytest.fixture
def begin(monkeypatch, tmp_path):
    """Replays a record of trainings `a` and `b`, whose losses are given by their code."""
    monkeypatch.setattr(measuring, "RECORDS", tmp_path)
    monkeypatch.setattr(replay.occasion, "kind", lambda _: "a processor")

    def run(record, *, commit, losses=LOSSES, code=occasion.ROOT, machine="a processor"):
        made = []

        class Script:
            @staticmethod
            def trainings(work):
                return dict.fromkeys(("a", "b"), recipe_from_table(RECIPE))

        def first_losses(table, folder, code):
            made.append(code)
            return losses if code == occasion.ROOT else LOSSES

        monkeypatch.setattr(replay.occasion, "kind", lambda _: machine)
        monkeypatch.setattr(replay, "importlib", importlib)
        monkeypatch.setattr(importlib, "import_module", lambda name: Script)
        monkeypatch.setattr(replay, "first_losses", first_losses)
        monkeypatch.setattr(replay, "commit_in", lambda code: "abc1234")
        when = {"date": "2026-01-31", "commit": commit}
        monkeypatch.setattr(occasion, "occasion", lambda: when)
        monkeypatch.setattr(occasion, "commit", lambda: commit)
        monkeypatch.setattr(measuring, "store", lambda record: stored.append(json.dumps(record)))
        replay.replay(record, tmp_path, code, 1)
        return made

    stored = []
    return run


def recorded():
    part = {"recipe": {**RECIPE, "name": "a recipe", "set": []}}
    details = {"runs": {"a": part, "b": part}}
    return {"name": "made_up", "commit": "abc1234", "figures": [{}], "details": details}


def test_a_fingerprint_of_the_records_own_commit_lets_it_hold(begin):
    record = recorded()
    assert len(begin(record, commit="abc12345")) == 2
    assert record["held"] == {"date": "2026-01-31", "commit": "abc12345"}
    assert record["fingerprint"]["a"]["losses"] == LOSSES


def test_a_later_fingerprint_never_says_that_a_record_holds(begin):
    record = recorded()
    begin(record, commit="fff0000")
    begin(record, commit="fff1111")  # the losses are still the same
    assert record["fingerprint"]["b"]["compared"]["agrees"]
    assert record["held"] is None
    assert record["unsure"] == "losses are kept since 2026-01-31 only"


@pytest.mark.parametrize(
    ("factor", "machine", "agrees"),
    [
        (1 + 0.9 * replay.SAME, "a processor", True),
        (1 + 1.1 * replay.SAME, "a processor", False),
        (1 + 0.9 * replay.OTHER, "another", True),
        (1 - 1.1 * replay.OTHER, "another", False),
    ],
)
def test_losses_agree_within_what_the_machines_allow(begin, factor, machine, agrees):
    record = recorded()
    begin(record, commit="abc1234")
    others = {**LOSSES, "200": LOSSES["200"] * factor}
    assert len(begin(record, commit="fff0000", losses=others, machine=machine)) == 2
    held = {"date": "2026-01-31", "commit": "fff0000"}
    assert record["held"] == (held if agrees else None)
    assert record["unsure"] == ("" if agrees else "losses differ: a; b")


def test_the_code_of_a_checkout_is_compared_with_the_code_as_it_is(begin, tmp_path):
    record = recorded()
    made = begin(record, commit="fff0000", code=tmp_path)
    assert sorted(made, key=str) == sorted([tmp_path, occasion.ROOT] * 2, key=str)
    assert record["held"] == {"date": "2026-01-31", "commit": "fff0000"}


def test_what_is_there_of_a_commit_is_not_made_again(begin):
    record = recorded()
    begin(record, commit="abc1234")
    assert begin(record, commit="abc1234") == []
    assert begin(record, commit="fff0000") == [occasion.ROOT] * 2
    assert begin(record, commit="fff0000") == []


def test_a_checkout_is_asked_for_the_trainings_recorded_of_its_commit(begin, tmp_path):
    record = recorded()
    parts = record["details"]["runs"]
    parts["b"] = {**parts["b"], "measured": {"commit": "eee0000"}}
    record["figures"] = [{"parts": ["a"]}, {"parts": ["a", "b"]}, {}]
    made = begin(record, commit="fff0000", code=tmp_path)
    assert sorted(made, key=str) == sorted([tmp_path, occasion.ROOT], key=str)
    assert (record["held"], record["unsure"]) == (None, "no losses of b")
    holds = [measuring.holds(record, figure) for figure in record["figures"]]
    assert holds == [True, False, False]
    assert measuring.holds({"held": {"commit": "abc1234"}}, {})


def test_a_figure_whose_losses_differ_does_not_hold(begin):
    record = recorded()
    begin(record, commit="abc1234")
    begin(record, commit="fff0000", losses={**LOSSES, "200": 0.4})
    assert not measuring.holds(record, {"parts": ["a"]})


def test_speed_beside_trainings_is_not_found_to_hold(begin):
    record = {**recorded(), "figures": [{"parts": ["a"]}, {"parts": ["steps"]}]}
    begin(record, commit="abc1234")
    assert (record["held"], record["unsure"]) == (None, "no losses of steps")
    assert [measuring.holds(record, figure) for figure in record["figures"]] == [True, False]


def test_a_part_has_what_its_first_seed_has():
    seeds = {"seeds": {"1": {"recipe": "x", "measured": {"commit": "abc"}}, "2": {"recipe": "y"}}}
    part = replay.part_of({"details": {"a": seeds}}, "a")
    assert (part["recipe"], part["measured"]) == ("x", {"commit": "abc"})
    again = {"recipe": "x", "measured": {"commit": "later"}, "seeds": [{"measured": {"commit": 1}}]}
    assert replay.part_of({"details": {"a": again}}, "a 1")["measured"] == {"commit": 1}
    assert replay.part_of({"details": {"a": {**again, "seeds": []}}}, "a")["measured"] == {
        "commit": "later"
    }


def test_a_part_is_looked_for_from_the_top():
    details = {"runs": {"a": {"recipe": "x"}}, "simple": {"a": {"accuracy": 1}}}
    assert replay.part_of({"details": details}, "a")["recipe"] == "x"


def test_a_recorded_recipe_reads_from_the_places_of_today():
    places = {"data": {"train": ["x.tsv"]}, "training": {"pretrained": "bert", "seed": 1}}
    today = recipe_from_table({"task": "classification", **places})
    settings = {"data": {"text": 2}, "training": {"seed": 7}, "tokenizer": {"type": "checkpoint"}}
    part = {"recipe": {"task": "classification", **settings}}
    table = replay.recorded_table(part, today)
    assert (table["data"]["text"], table["training"]["seed"]) == (2, 7)
    assert table["data"]["train"] == today.table()["data"]["train"]
    assert table["tokenizer"] == {}  # the encoder's
    assert table["training"]["pretrained"] == today.table()["training"]["pretrained"]
    with pytest.raises(SystemExit, match="keep the recipe"):
        replay.recorded_table({}, today)


def test_a_training_that_is_not_in_the_record_is_left_out(begin):
    record = recorded()
    del record["details"]["runs"]["b"]
    assert len(begin(record, commit="abc1234")) == 1


@pytest.mark.parametrize("change", ["data", "losses"])
def test_other_data_and_missing_updates_do_not_agree(change):
    known = {"machine": "x", "data": "0f", "losses": LOSSES}
    other = {"data": "00"} if change == "data" else {"losses": {"10": 2.0}}
    assert replay.agree(known, {**known})
    assert not replay.agree(known, {**known, **other})


def test_the_end_agrees_by_the_training_or_by_the_validation_loss():
    known = {"machine": "x", "data": "0f", "losses": {**LOSSES, "validation": 1.0}}

    def others(**losses):
        return {**known, "losses": {**LOSSES, **losses}}

    assert replay.agree(known, others(**{"200": 0.7}, validation=1.0))  # that of one update
    assert replay.agree(known, others(validation=1.1))
    assert replay.agree(known, others())
    assert replay.agree(others(), known)
    assert not replay.agree(known, others(**{"200": 0.7}, validation=1.1))
    assert not replay.agree(others(), others(**{"200": 0.7}, validation=1.0))
    assert not replay.agree(known, others(**{"50": 1.1}, validation=1.0))


def test_time_ends_no_training_that_is_compared():
    training = replay.without_clock(recipe_from_table(RECIPE).table())["training"]
    assert (training["minutes"], training["updates"]) == (None, 1000)
    updates = {"training": {"updates": 7, "minutes": None, "validate_every": 200}}
    assert replay.without_clock(updates) == updates


def test_a_digest_is_of_settings_and_of_what_files_hold(tmp_path):
    def digests(text, **training):
        (tmp_path / "x.tsv").write_text(text, "utf-8")
        data = {"train": [str(tmp_path / "x.tsv")]}
        table = {"task": "regression", "data": data, "training": training}
        return replay.digests(recipe_from_table(table))

    one, other, third = digests("1\t2\n"), digests("1\t3\n"), digests("1\t2\n", seed=2)
    assert (one["recipe"], one["data"]) != (other["recipe"], other["data"])
    assert one["recipe"] == other["recipe"] != third["recipe"]
    assert one["data"] == third["data"]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [("abc1234", "abc12345", True), ("abc1234", "abc1235", False), ("abc1234+", "abc1234", False)],
)
def test_names_of_a_commit_may_be_shorter(one, other, is_same):
    assert replay.is_same(one, other) is is_same
    assert not replay.is_same(one, None)


def test_losses_are_read_as_far_as_they_are_written(tmp_path):
    train = [f'{{"update": {n}, "split": "train", "loss": {n}.5}}\n' for n in (10, 20, 200)]
    valid = '{"update": 200, "split": "valid", "loss": 3.0}\n'
    figures = tmp_path / "metrics.jsonl"
    figures.write_text("".join(train) + '{"update": 20, "sp', "utf-8")
    assert replay.losses_of(tmp_path) == {"10": 10.5, "200": 200.5}
    assert not replay.is_complete(tmp_path)
    figures.write_text("".join([*train, valid]), "utf-8")
    assert replay.losses_of(tmp_path) == {"10": 10.5, "200": 200.5, "validation": 3.0}
    assert replay.is_complete(tmp_path)
    figures.write_text("".join(train).replace("20,", "250,"), "utf-8")  # nothing to validate on
    assert replay.is_complete(tmp_path)
    assert replay.losses_of(tmp_path / "none") == {}


def test_each_script_names_its_trainings(corpora, tmp_path, monkeypatch):
    for name in (*replay.SCRIPTS, *replay.ENCODERS):
        if name in replay.ENCODERS:  # random ones are written for a tiny run
            monkeypatch.setattr(measuring, "TINY", tmp_path)
        recipes = importlib.import_module(f"benchmarks.{name}").trainings(tmp_path)
        assert recipes
        assert all(isinstance(recipe, Recipe) for recipe in recipes.values())
        record = json.loads((measuring.RECORDS / f"{name}.json").read_text("utf-8"))
        assert any(replay.part_of(record, each) for each in recipes), name
