import pytest
import torch
from torch import nn

from regard.errors import DataError, SettingError
from regard.tasks import read_parts, recipe_from_table
from regard.tasks.sequences import translation
from regard.tasks.sequences.sequence_task import states_and_labels
from regard.tasks.sequences.translation import TranslationTask
from regard.text import BadLines, Pair, pad_pairs

TINY = {"type": "rnn_seq2seq", "embed_dim": 4, "hidden_dim": 5, "attention_dim": 3}


@pytest.fixture
def folder(tmp_path):
    def lines(name, *rows):
        (tmp_path / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")

    lines("pairs.tsv", *(f"s{n}\tt{n}" for n in range(100)))
    lines("valid.tsv", "a\tb", "c\td", "a\te")
    lines("bad.tsv", "a\tb", "no tab", "c\td")
    lines("swapped.tsv", "b\ta\tx", "d\tc\ty")
    lines("long.tsv", "a b c d e f g\tb", "c\td")
    lines("side.zh", "我", "你")
    lines("side.en", "I", "you")
    return tmp_path


def recipe(folder, **data):
    table = {"data": data, "tokenizer": {"type": "words"}, "model": TINY}
    return recipe_from_table(table, folder=folder)


def read_split(recipe, split, *, merge=False, bad_lines=None):
    return TranslationTask.read(recipe, split, merge=merge, bad_lines=bad_lines)


def read_training(recipe):
    parts = read_parts(recipe)
    return parts.train, parts.valid


def sides(pairs):
    return [(pair.source, pair.target) for pair in pairs]


def test_one_file_of_pairs_or_two_of_lines(folder):
    assert sides(read_split(recipe(folder, train="valid.tsv"), "train")) == [
        ("a", "b"),
        ("c", "d"),
        ("a", "e"),
    ]
    both = recipe(folder, train=["side.zh", "side.en"])
    assert sides(read_split(both, "train")) == [("我", "I"), ("你", "you")]
    assert read_split(both, "valid") == []


def test_pairs_that_a_recipe_is_chosen_by_are_read_once(folder, monkeypatch):
    read_pairs, read = translation.read_pairs, []

    def counted(*args, **options):
        read.append(args)
        return read_pairs(*args, **options)

    monkeypatch.setattr(translation, "read_pairs", counted)
    for name in ("pairs.tsv", "bad.tsv"):
        own = recipe(folder, train=name, on_bad_line="skip")
        bad_lines, expected = BadLines(), BadLines()
        pairs = TranslationTask.peek(own)
        assert read_split(own, "train", bad_lines=bad_lines) is pairs
        assert len(read) == 1
        assert read_split(own, "train", bad_lines=expected) == pairs  # from the file again
        assert len(read) == 2
        assert bad_lines.counts == expected.counts
        TranslationTask.peek(own)
        (folder / name).write_text("other\tpair\n", encoding="utf-8")
        assert sides(read_split(own, "train")) == [("other", "pair")]
        read.clear()


def test_held_out_pairs_are_spread_and_share_no_side_with_the_rest(folder):
    with (folder / "pairs.tsv").open("a", encoding="utf-8") as file:
        file.write("s0\tother\nother\tt50\nthird\tt51\n")
    train, valid = read_training(recipe(folder, train="pairs.tsv"))
    assert sides(valid) == [("s0", "t0"), ("s51", "t51")]
    assert ("s0", "other") not in sides(train)
    assert ("third", "t51") not in sides(train)
    assert ("other", "t50") in sides(train)
    assert len(train) == 99
    sources, targets = {pair.source for pair in valid}, {pair.target for pair in valid}
    assert not any(pair.source in sources or pair.target in targets for pair in train)


def test_every_pair_is_trained_on_held_out_or_counted_as_left_out(folder):
    rows = [f"s{n}\tt{n}\ns{n}\tother t{n}\nother s{n}\tt{n}\n" for n in range(100)]
    (folder / "many.tsv").write_text("".join(rows), encoding="utf-8")
    for data, in_file in (({}, 0), ({"test": "held out"}, 0), ({"valid": "valid.tsv"}, 2)):
        parts = read_parts(recipe(folder, train="many.tsv", **data))
        held = len(parts.valid) - in_file + len(parts.test) + parts.references
        assert len(parts.train) + held + parts.overlap == 300
        assert (parts.overlap > 0) == ("valid" not in data)
        assert parts.references == sum(len(pair.references) - 1 for pair in parts.test)
        assert (parts.references > 0) == ("test" in data)


def test_a_validation_file_is_taken_as_it_is(folder):
    train, valid = read_training(recipe(folder, train="pairs.tsv", valid="valid.tsv"))
    assert len(train) == 100
    assert len(valid) == 2


def test_text_that_cannot_be_used_is_named(folder):
    with pytest.raises(DataError, match=r"data.train must name the training text; got nothing"):
        read_training(recipe(folder))
    with pytest.raises(DataError, match=r"at least 10 pairs where data.valid is not set; got 3"):
        read_training(recipe(folder, train="valid.tsv"))
    (folder / "same.tsv").write_text("a\tb\n" * 20, encoding="utf-8")
    with pytest.raises(DataError, match=r"data.train must hold different sentences"):
        read_training(recipe(folder, train="same.tsv"))
    (folder / "labels.tsv").write_text("".join(f"text {n}\t{n % 2}\n" for n in range(99)))
    with pytest.raises(DataError, match=r"2 targets for 99 sources, such as .* classification"):
        read_training(recipe(folder, train="labels.tsv", test="held out"))


def test_bad_lines_are_refused_or_left_out(folder):
    with pytest.raises(DataError, match=r"bad.tsv:2"):
        read_split(recipe(folder, train="bad.tsv"), "train")
    bad = BadLines()
    pairs = read_split(recipe(folder, train="bad.tsv", on_bad_line="skip"), "train", bad_lines=bad)
    assert sides(pairs) == [("a", "b"), ("c", "d")]
    assert bad.total == 1


def test_one_vocabulary_or_two(folder):
    pairs = [Pair("a b", "c", ("c",), "x:1"), Pair("a", "d e f", ("d e f",), "x:2")]
    shared = TranslationTask.learn(recipe(folder), pairs).tokenizer
    table = {"tokenizer": {"type": "words", "shared": False}, "model": TINY}
    separate_recipe = recipe_from_table(table)
    separate = TranslationTask.learn(separate_recipe, pairs).tokenizer
    assert shared.is_shared
    assert not separate.is_shared
    model = TranslationTask(separate_recipe, separate).build_model()
    assert len(model.source_embedding.weight) == separate.source.vocab_size
    assert len(model.target_embedding.weight) == separate.target.vocab_size
    assert separate.source.vocab_size < separate.target.vocab_size < shared.source.vocab_size


def test_learned_positions_must_reach_the_longest_sentence(folder):
    table = {"data": {"max_length": 50}, "model": {"positions": "learned", "max_length": 50}}
    table["model"] |= {"model_dim": 8, "num_heads": 2, "ffn_dim": 8}
    tokenizer = TranslationTask.learn(recipe(folder), [Pair("a", "b", ("b",), "x:1")]).tokenizer
    with pytest.raises(SettingError, match=r"model.max_length must be above data.max_length = 50"):
        TranslationTask(recipe_from_table(table), tokenizer).build_model()
    table["model"]["max_length"] = 51
    TranslationTask(recipe_from_table(table), tokenizer).build_model()


class Echo(nn.Module):
    """States that say which token was read."""

    def forward(self, source, lengths, target, target_lengths):
        return target[..., None].float(), torch.tensor(7.0)


def test_only_real_tokens_are_learned_from():
    batch = pad_pairs([[7], [8, 9], [6]], [[5, 6], [4], []])
    states, labels, auxiliary = states_and_labels(Echo(), batch)
    assert states[:, 0].tolist() == [2, 5, 6, 2, 4, 2]
    assert labels.tolist() == [5, 6, 3, 4, 3, 3]
    assert auxiliary == 7


def gradients(task, model, batch, **options):
    model.zero_grad()
    loss, terms = task.backward(model, batch, smoothing=0.1, **options)
    return loss, terms, [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("kind", ["rnn_seq2seq", "transformer"])
def test_read_twice_a_batch_is_as_read_once_unless_something_is_dropped(kind):
    torch.manual_seed(0)
    small = {"model_dim": 8, "ffn_dim": 8, "num_heads": 2} if kind == "transformer" else TINY
    model_table = {**small, "type": kind, "dropout": 0.5}
    pairs = [Pair("a b c", "d e", ("d e",), "x:1"), Pair("b", "e f d", ("e f d",), "x:2")]
    table = recipe_from_table({"tokenizer": {"type": "words"}, "model": model_table})
    task = TranslationTask.learn(table, pairs)
    model = task.build_model()
    batch = task.collate(list(task.encode(pairs, training=True)))
    once, twice = (gradients(task, model.eval(), batch, r_drop=r_drop) for r_drop in (0, 2.0))
    assert once[1] == twice[1] == 7
    torch.testing.assert_close(once[0], twice[0])
    torch.testing.assert_close(once[2], twice[2], atol=1e-5, rtol=1e-4)
    model.train()
    dropped = []
    for r_drop in (1e-9, 2.0):
        torch.manual_seed(1)
        dropped.append(gradients(task, model, batch, r_drop=r_drop))
    assert dropped[0][0] == dropped[1][0]  # the loss is that of the words alone
    pairs_of_gradients = zip(dropped[0][2], dropped[1][2], strict=True)
    assert any((one - other).abs().max() > 1e-3 for one, other in pairs_of_gradients)
