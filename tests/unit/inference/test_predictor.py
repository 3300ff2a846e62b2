from dataclasses import replace
from functools import cache

import pytest
import torch

from regard.attention import observe
from regard.errors import DataError, SettingError
from regard.inference import Predictor
from regard.inference.look import Look
from regard.runs import Run
from regard.tasks import recipe_from_table
from regard.tasks.translation import TranslationTask
from regard.text import UNK_ID, train_pair_tokenizer

LETTERS = "abcdefghijklmnopqrst ."
MODELS = {
    "transformer": {
        "type": "transformer",
        "model_dim": 12,
        "num_heads": 3,
        "ffn_dim": 17,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
    },
    "rnn additive": {
        "type": "rnn_seq2seq",
        "embed_dim": 6,
        "hidden_dim": 10,
        "attention_dim": 7,
        "output_bias": False,  # of random weights, one that ends every output
    },
    "rnn fixed": {
        "type": "rnn_seq2seq",
        "attention": "none",
        "embed_dim": 6,
        "hidden_dim": 10,
    },
}
every_model = pytest.mark.parametrize("kind", sorted(MODELS))
attending = pytest.mark.parametrize("kind", ["rnn additive", "transformer"])
SENTENCES = ["abc", "fed cab", "q", "the slant. a", "pqrst pqrst pqrst", "", "bad cafe", "a"]


@cache
def tokenizer(kind="characters", text=LETTERS):
    settings = recipe_from_table({"tokenizer": {"type": kind}}).tokenizer
    return train_pair_tokenizer([text], [text], settings)


@cache
def model(kind, **settings):
    torch.manual_seed(5)
    made = TranslationTask(recipe(kind, **settings), tokenizer()).build_model()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made


def recipe(kind, *, decoding=None, data=None, **settings):
    return recipe_from_table(
        {
            "data": {"max_length": 20} | (data or {}),
            "tokenizer": {"type": "characters"},
            "model": MODELS[kind] | settings,
            "decoding": decoding or {},
        }
    )


def predictor(kind, **settings):
    return Predictor(model(kind), TranslationTask(recipe(kind, **settings), tokenizer()))


@every_model
@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_answer_does_not_depend_on_its_company(kind, beam_size):
    short = {"max_ratio": 0.3}
    made = predictor(kind, decoding=short)
    read = [made.translate([text], beam_size=beam_size)[0] for text in SENTENCES]
    alone, texts_read = [each[0] for each in read], [each.source for each in read]
    for seed, budget in ((1, 16384), (2, 40)):
        order = torch.randperm(len(SENTENCES), generator=torch.Generator().manual_seed(seed))
        other = predictor(kind, decoding=short | {"batch_tokens": budget})
        texts = [SENTENCES[i] for i in order.tolist()]
        for place, found in zip(
            order.tolist(), other.translate(texts, beam_size=beam_size), strict=True
        ):
            expected = alone[place]
            assert found.source == texts_read[place]
            assert found[0].score == pytest.approx(expected.score, abs=1e-4)
            if found[0].text != expected.text:
                assert found[0].score == pytest.approx(expected.score, abs=1e-5)


@every_model
def test_n_best_come_in_order_and_differ(kind):
    found = predictor(kind).translate(["fed cab"], beam_size=5, n_best=3)[0]
    assert len(found) == 3
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert len({one.tokens for one in found}) == 3
    best = predictor(kind).translate(["fed cab"], beam_size=5)[0][0]
    assert best.tokens == found[0].tokens


@every_model
def test_scores_are_the_models_own(kind):
    made = predictor(kind)
    for beam_size in (1, 3):
        found = made.translate(["fed cab"], beam_size=beam_size, length_penalty=0.0)[0][0]
        source = torch.tensor([[*tokenizer().source.encode("fed cab"), 3]])
        target = torch.tensor([[2, *found.tokens]])
        with torch.no_grad():
            states, _ = made.model(source, torch.tensor([source.shape[1]]), target)
            log_probs = made.model.project(states)[0].log_softmax(-1)
        answer = [*found.tokens, 3] if found.is_finished else list(found.tokens)
        expected = sum(log_probs[t, token].item() for t, token in enumerate(answer))
        assert found.log_prob == pytest.approx(expected, abs=1e-3)
        assert found.score == pytest.approx(found.log_prob)
        assert found.text == tokenizer().target.decode(found.tokens)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("beam_size", 1, 8),
        ("length_penalty", 0.0, 1.0),
        ("max_ratio", 0.0, 3.0),
        ("batch_tokens", 1, 16384),
    ],
)
def test_every_setting_of_decoding_counts(name, one, other, monkeypatch):
    results, sizes = [], []
    begin = type(model("rnn additive")).begin

    def counted(self, source, *read):
        sizes.append(len(source))
        return begin(self, source, *read)

    monkeypatch.setattr(type(model("rnn additive")), "begin", counted)
    for value in (one, other):
        sizes.clear()
        made = predictor("rnn additive", decoding={name: value})
        found = made.translate(SENTENCES)
        results.append((sizes.copy(), [(f[0].tokens, f[0].score) for f in found]))
    if name == "batch_tokens":
        assert [max(result[0]) for result in results] == [1, 7]
    else:
        assert results[0][1] != results[1][1]


def test_an_output_is_cut_at_its_longest():
    made = predictor("transformer", decoding={"max_ratio": 0.5, "beam_size": 1})
    made.model = never_ending()
    (found,) = made.translate(["abcdefg"])[0]
    assert not found.is_finished
    assert len(found.tokens) == 8 // 2 + 10


def never_ending():
    class Never(type(model("transformer"))):
        def project(self, states):
            logits = super().project(states)
            logits[..., 3] = -1e9
            return logits

    made = model("transformer")
    never = Never(made.config, source_vocab=26, target_vocab=26, shared_vocab=True)
    never.load_state_dict(made.state_dict())
    return never


def test_an_output_fits_learned_positions():
    settings = {"positions": "learned", "max_length": 21}
    task = TranslationTask(recipe("transformer", **settings), tokenizer())
    made = Predictor(model("transformer", **settings), task)
    project = made.model.project

    def never_end(states):
        logits = project(states)
        logits[..., 3] = -1e9
        return logits

    made.model.project = never_end
    try:
        (found,) = made.translate(["abcdefghijklmnopqrst"], beam_size=1)[0]
    finally:
        del made.model.project
    assert len(found.tokens) == 20
    made.attention("abcdefghijklmnopqrst", found.tokens)


@every_model
@pytest.mark.parametrize("text", ["", "   ", "\n", "\t \u3000"])
def test_an_empty_line_gives_an_empty_line(kind, text):
    (found,) = predictor(kind).translate([text])[0]
    assert (found.text, found.tokens, found.score, found.is_finished) == ("", (), 0.0, True)


def test_progress_adds_up_to_the_lines_with_text():
    done = []
    made = predictor("transformer", decoding={"batch_tokens": 40})
    made.translate(SENTENCES, beam_size=1, progress=done.append)
    assert len(done) > 1
    assert sum(done) == sum(text != "" for text in SENTENCES)


def test_no_lines_give_no_answers():
    assert predictor("transformer").translate([]) == []


@every_model
@pytest.mark.parametrize("text", ["😀🎉", "ab 😀 cd", "我爱中国", "\u200b", "x" * 19])
def test_characters_never_seen_are_read_all_the_same(kind, text):
    (found,) = predictor(kind).translate([text], beam_size=2)[0]
    assert UNK_ID not in found.tokens
    assert isinstance(found.text, str)


@every_model
@pytest.mark.parametrize("mark", ["", ". ", "。"])
def test_ten_thousand_characters_are_translated_in_parts(kind, mark):
    text = (("abcdefghi" + mark) * 1500)[:10_000]
    (found,) = predictor(kind, decoding={"max_ratio": 0.1}).translate([text], beam_size=1)
    assert found.parts >= 10_000 // 20
    assert found.source == text.strip()
    assert found.best.tokens


def parts(text):
    return predictor("rnn fixed").task.parts(text)


def test_long_texts_are_cut_at_sentence_ends():
    assert parts("abc def. ghi jkl mno. a") == ["abc def.", "ghi jkl mno.", "a"]
    assert parts("我爱中国。你爱中国。他爱中国？她爱中国！我们爱你") == [
        "我爱中国。",
        "你爱中国。",
        "他爱中国？",
        "她爱中国！",
        "我们爱你",
    ]


def test_long_texts_are_not_cut_inside_a_number():
    assert parts("abc 3.14 def ghi. jkl mno") == ["abc 3.14 def ghi.", "jkl mno"]


def test_a_sentence_that_is_still_too_long_is_cut_where_it_must_be():
    found = parts("abcdefghijklmnopqrst" * 2 + "abc")
    assert found == ["abcdefghijklmnopqrst"] * 2 + ["abc"]
    assert parts("a" * 20) == ["a" * 20]


@pytest.mark.parametrize(("language", "space"), [("zh", ""), ("ja", ""), ("en", " "), (None, " ")])
def test_parts_are_joined_as_the_language_writes(language, space):
    data = {} if language is None else {"target_language": language}
    made = predictor("rnn fixed", data=data)
    text = "abc def. ghi jkl mno. a"
    (whole,) = made.translate([text], beam_size=1)
    (found,) = whole
    single = [made.translate([part], beam_size=1)[0][0] for part in parts(text)]
    assert found.text == space.join(one.text for one in single)
    assert found.log_prob == pytest.approx(sum(one.log_prob for one in single), abs=1e-4)
    assert found.tokens == tuple(token for one in single for token in one.tokens)
    assert whole.parts == 3


@attending
def test_a_look_has_a_row_for_each_output_token_and_a_column_for_each_source_token(kind):
    look = predictor(kind).attention("fed cab", "abc")
    T, S = 3 + 1, 7 + 1
    layers = 3 if kind == "transformer" else 1
    for layer in (None, *range(layers)):
        assert look.cross(layer).shape == (T, S)
        torch.testing.assert_close(look.cross(layer).sum(-1), torch.ones(T))
    crosses = [one for one in look.maps if one.kind == "cross"]
    assert [one.layer for one in crosses] == list(range(layers))
    mean = torch.stack([one.weights.mean(0) for one in crosses]).mean(0)
    torch.testing.assert_close(look.cross(), mean)
    for piece, letter in zip(look.source_pieces, "fed cab", strict=True):
        assert look.source[piece.start : piece.end] == letter
    assert [look.output[p.start : p.end] for p in look.output_pieces] == list("abc")


@attending
def test_a_text_longer_than_training_allowed_is_looked_at_all_the_same(kind):
    look = predictor(kind).attention("a" * 50, "b" * 40)
    assert look.cross().shape == (41, 51)


@attending
def test_a_long_text_is_looked_at_in_summaries(kind):
    made, source, output = predictor(kind), "fed cab " * 80, "abc " * 30
    look = made.attention(source, output)
    assert look.maps == []
    M, N = len(look.source_pieces) + 1, len(look.output_pieces) + 1
    assert M == 640  # without the space at the end, with the end of the sentence
    sizes = {"cross": (N, M), "encoder": (M, M), "decoder": (N, N)}
    layers = {"cross": 3, "encoder": 2, "decoder": 3}
    kinds = ["cross"] if kind == "rnn additive" else sorted(layers)
    heads = 1 if kind == "rnn additive" else 3
    assert sorted({one.kind for one in look.summaries}) == kinds
    for one in look.summaries:
        assert one.summary.shape == (heads, *sizes[one.kind])
    with pytest.raises(SettingError, match="at most 512 tokens long for its weights to be kept"):
        look.cross()


@attending
def test_summaries_are_those_of_the_weights(kind, monkeypatch):
    made = predictor(kind)
    maps = made.attention("fed cab", "abc").maps
    assert made.attention("fed cab", "abc").summaries == []
    monkeypatch.setattr("regard.inference.look.MOST_WITHOUT_SUMMARIES", 6)
    look = made.attention("fed cab", "abc")
    assert len(look.maps) == len(maps)
    summaries = look.summaries
    assert [(one.kind, one.layer) for one in summaries] == [(one.kind, one.layer) for one in maps]
    for one, other in zip(summaries, maps, strict=True):
        torch.testing.assert_close(one.summary.received, other.weights.sum(-2))
        best = one.summary.top_keys[..., :1]
        torch.testing.assert_close(
            other.weights.gather(-1, best), other.weights.amax(-1, keepdim=True)
        )


def test_what_a_model_has_no_positions_for_is_not_looked_at():
    settings = {"positions": "learned", "max_length": 21}
    task = TranslationTask(recipe("transformer", **settings), tokenizer())
    made = Predictor(model("transformer", **settings), task)
    made.attention("a" * 20, "b" * 20)
    with pytest.raises(
        DataError, match=r"source must be at most 20 tokens long .* got 21\. The mod"
    ):
        made.attention("a" * 21, "b")
    with pytest.raises(DataError, match="output must be at most 20 tokens long to be looked at"):
        made.attention("a", "b" * 21)


def test_a_length_penalty_below_zero_is_named_as_one_knows_it():
    with pytest.raises(SettingError, match="length_penalty must be at least 0; got -5"):
        predictor("transformer").translate(["fed"], length_penalty=-5.0)


def test_a_look_shows_every_kind_of_attention():
    look = predictor("transformer").attention("fed cab", "abc")
    shapes = {(one.kind, one.layer): tuple(one.weights.shape) for one in look.maps}
    assert shapes == {
        **{("encoder", layer): (3, 8, 8) for layer in range(2)},
        **{("decoder", layer): (3, 4, 4) for layer in range(3)},
        **{("cross", layer): (3, 4, 8) for layer in range(3)},
    }
    for one in look.maps:
        if one.kind == "decoder":
            assert not one.weights.triu(1).any()


@attending
def test_a_row_is_what_the_step_that_predicts_its_token_looked_at(kind):
    made = predictor(kind)
    look = made.attention("fed cab", "abc")
    source = torch.tensor([[*tokenizer().source.encode("fed cab"), 3]])
    tokens = [2, *tokenizer().target.encode("abc")]
    calls = []
    with torch.no_grad():
        state = made.model.start(source, torch.tensor([8]))
        with observe(calls.append):
            for token in tokens:
                _, state = made.model.step(torch.tensor([token]), state)
    from regard.attention import weights

    crosses = [seen for seen in calls if (seen.kind, seen.layer) == ("cross", 0)]
    assert len(crosses) == 4
    for row, seen in zip(look.cross(0), crosses, strict=True):
        stepped = weights(
            seen.query, seen.key, score=seen.score, mask=seen.mask, weighting=seen.weighting
        )
        torch.testing.assert_close(row, stepped.reshape(-1, 8).mean(0))


@every_model
def test_looking_changes_no_output(kind):
    made = predictor(kind)
    before = made.translate(SENTENCES, n_best=2)
    made.attention("fed cab", "abc")
    assert made.translate(SENTENCES, n_best=2) == before


@every_model
def test_a_model_in_training_is_used_without_its_dropout(kind):
    made = predictor(kind)
    before = made.translate(["fed cab"])[0][0].score
    made.model.train()
    assert made.translate(["fed cab"])[0][0].score == before
    made.model.train()
    one = made.attention("fed cab", "abc")
    made.model.train()
    other = made.attention("fed cab", "abc")
    for a, b in zip(one.maps, other.maps, strict=True):
        assert torch.equal(a.weights, b.weights)


def test_text_and_its_tokens_are_looked_at_alike():
    made = predictor("transformer")
    one = made.attention("fed cab", "abc")
    other = made.attention("fed cab", tokenizer().target.encode("abc"))
    assert one.output == other.output
    assert torch.equal(one.cross(), other.cross())


def test_a_model_without_attention_says_so():
    look = predictor("rnn fixed").attention("fed cab", "abc")
    assert isinstance(look, Look)
    with pytest.raises(SettingError, match="must attend to the source to be looked at; this one"):
        look.cross()


def test_an_empty_source_cannot_be_looked_at():
    with pytest.raises(DataError, match="source must hold text to look at; got an empty line"):
        predictor("transformer").attention("  ", "abc")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 0}, "beam_size must be at least 1; got 0. Use 1 for greedy search"),
        ({"n_best": 0}, "n_best must be at least 1; got 0"),
        ({"n_best": 3, "beam_size": 2}, "n_best must be at most beam_size; got n_best=3, beam_si"),
    ],
)
def test_wrong_wishes_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        predictor("transformer").translate(["abc"], **settings)


@every_model
def test_a_run_folder_gives_the_same_translator(kind, tmp_path):
    made = predictor(kind)
    with Run.create(tmp_path / "run", made.recipe.table(), "translation") as run:
        with run.new_tokenizer_folder() as folder:
            made.tokenizer.save(folder)
        run.finish(made.model.state_dict())
    loaded = Predictor.load(tmp_path / "run")
    assert replace(loaded.recipe, folder=made.recipe.folder) == made.recipe
    assert loaded.translate(SENTENCES, n_best=2) == made.translate(SENTENCES, n_best=2)
