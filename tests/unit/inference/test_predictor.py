import pytest
import torch
from tests.unit.inference.conftest import letters_predictor

from regard.errors import DataError, SettingError
from regard.inference.look import Look
from regard.text import UNK_ID

every_model = pytest.mark.parametrize("kind", ["rnn_seq2seq", "rnn_seq2seq fixed", "transformer"])
attending = pytest.mark.parametrize("kind", ["rnn_seq2seq", "transformer"])
SENTENCES = ["abc", "fed cab", "q", "the slant. a", "pqrst pqrst pqrst", "", "bad cafe", "a"]


@every_model
def test_scores_are_the_models_own(kind):
    translator = letters_predictor(kind)
    for beam_size in (1, 3):
        output = translator.translate(["fed cab"], beam_size=beam_size, length_penalty=0.0)[0][0]
        source = torch.tensor([[*translator.tokenizer.source.encode("fed cab"), 3]])
        target = torch.tensor([[2, *output.tokens]])
        with torch.no_grad():
            states, _ = translator.model(source, torch.tensor([source.shape[1]]), target)
            log_probs = translator.model.project(states)[0].log_softmax(-1)
        answer = [*output.tokens, 3] if output.is_finished else list(output.tokens)
        expected = sum(log_probs[t, token].item() for t, token in enumerate(answer))
        assert output.log_prob == pytest.approx(expected, abs=1e-3)
        assert output.score == pytest.approx(output.log_prob)
        assert output.text == translator.tokenizer.target.decode(output.tokens)


@pytest.mark.parametrize(
    ("ratio", "settings", "text", "longest"),
    [
        (0.5, {}, "abcdefg", 8 // 2 + 10),
        (2.0, {"positions": "learned", "max_length": 21}, "abcdefghijklmnopqrst", 20),
    ],
)
def test_an_output_is_cut_at_its_longest_and_fits_learned_positions(
    ratio, settings, text, longest, monkeypatch
):
    decoding = {"max_ratio": ratio, "beam_size": 1}
    translator = letters_predictor(decoding=decoding, **settings)
    project = translator.model.project

    def never_end(states):
        logits = project(states)
        logits[..., 3] = -1e9
        return logits

    monkeypatch.setattr(translator.model, "project", never_end)
    (output,) = translator.translate([text])[0]
    assert not output.is_finished
    assert len(output.tokens) == longest
    translator.attention(text, output.tokens)


@every_model
def test_an_empty_line_gives_an_empty_line(kind):
    for (one,) in letters_predictor(kind).translate(["", "   ", "\n", "\t \u3000"]):
        assert (one.text, one.tokens, one.score, one.is_finished) == ("", (), 0.0, True)


def test_progress_adds_up_to_the_lines_with_text():
    done = []
    translator = letters_predictor("transformer", decoding={"batch_tokens": 40})
    translator.translate(SENTENCES, beam_size=1, progress=done.append)
    assert translator.translate([]) == []
    assert len(done) > 1
    assert sum(done) == sum(text != "" for text in SENTENCES)


@every_model
def test_characters_never_seen_are_read_all_the_same(kind):
    texts = ["😀🎉", "ab 😀 cd", "我爱中国", "\u200b", "x" * 19]
    for (one,) in letters_predictor(kind).translate(texts, beam_size=2):
        assert UNK_ID not in one.tokens


def parts(text):
    return letters_predictor("rnn_seq2seq fixed").task.parts(text)


def test_long_texts_are_cut_at_sentence_ends():
    assert parts("abc def. ghi jkl mno. a") == ["abc def.", "ghi jkl mno.", "a"]
    assert parts("我爱中国。你爱中国。他爱中国？她爱中国！我们爱你") == [
        "我爱中国。",
        "你爱中国。",
        "他爱中国？",
        "她爱中国！",
        "我们爱你",
    ]
    assert parts("abc 3.14 def ghi. jkl mno") == ["abc 3.14 def ghi.", "jkl mno"]
    assert parts("abcdefghijklmnopqrst" * 2 + "abc") == ["abcdefghijklmnopqrst"] * 2 + ["abc"]


@pytest.mark.parametrize(("language", "space"), [("zh", ""), ("ja", ""), ("en", " "), (None, " ")])
def test_parts_are_joined_as_the_language_writes(language, space):
    data = {} if language is None else {"target_language": language}
    translator = letters_predictor("rnn_seq2seq fixed", data=data)
    text = "abc def. ghi jkl mno. a"
    (outputs,) = translator.translate([text], beam_size=1)
    (output,) = outputs
    single = [translator.translate([part], beam_size=1)[0][0] for part in parts(text)]
    assert output.text == space.join(part_output.text for part_output in single)
    assert output.log_prob == pytest.approx(
        sum(part_output.log_prob for part_output in single), abs=1e-4
    )
    assert output.tokens == tuple(token for part_output in single for token in part_output.tokens)
    assert outputs.parts == 3


@attending
def test_a_look_has_a_row_for_each_output_token_and_a_column_for_each_source_token(kind):
    look = letters_predictor(kind).attention("fed cab", "abc")
    T, S = 3 + 1, 7 + 1
    layers = 3 if kind == "transformer" else 1
    for layer in (None, *range(layers)):
        assert look.cross(layer).shape == (T, S)
        torch.testing.assert_close(look.cross(layer).sum(-1), torch.ones(T))
    crosses = [map_ for map_ in look.maps if map_.kind == "cross"]
    assert [map_.layer for map_ in crosses] == list(range(layers))
    mean = torch.stack([map_.weights.mean(0) for map_ in crosses]).mean(0)
    torch.testing.assert_close(look.cross(), mean)
    for piece, letter in zip(look.source_pieces, "fed cab", strict=True):
        assert look.source[piece.start : piece.end] == letter
    assert [look.output[p.start : p.end] for p in look.output_pieces] == list("abc")


@attending
def test_a_long_text_is_looked_at_in_summaries(kind):
    translator, source, output = letters_predictor(kind), "fed cab " * 80, "abc " * 30
    look = translator.attention(source, output)
    assert look.maps == []
    M, N = len(look.source_pieces) + 1, len(look.output_pieces) + 1
    assert M == 640  # without the space at the end, with the end of the sentence
    sizes = {"cross": (N, M), "encoder": (M, M), "decoder": (N, N)}
    layers = {"cross": 3, "encoder": 2, "decoder": 3}
    kinds = ["cross"] if kind == "rnn_seq2seq" else sorted(layers)
    heads = 1 if kind == "rnn_seq2seq" else 3
    assert sorted({summary.kind for summary in look.summaries}) == kinds
    for summary in look.summaries:
        assert summary.summary.shape == (heads, *sizes[summary.kind])
    with pytest.raises(SettingError, match="at most 512 tokens long for its weights to be kept"):
        look.cross()


def test_what_cannot_be_read_is_not_looked_at():
    with pytest.raises(DataError, match="source must hold text to look at; got an empty line"):
        letters_predictor("transformer").attention("  ", "abc")
    settings = {"positions": "learned", "max_length": 21}
    translator = letters_predictor(**settings)
    translator.attention("a" * 20, "b" * 20)
    with pytest.raises(
        DataError, match=r"source must be at most 20 tokens long .* got 21\. The mod"
    ):
        translator.attention("a" * 21, "b")
    with pytest.raises(DataError, match="output must be at most 20 tokens long to be looked at"):
        translator.attention("a", "b" * 21)


@every_model
def test_a_model_in_training_is_used_without_its_dropout(kind):
    translator = letters_predictor(kind)
    before = translator.translate(["fed cab"])[0][0].score
    translator.model.train()
    assert translator.translate(["fed cab"])[0][0].score == before
    translator.model.train()
    first_look = translator.attention("fed cab", "abc")
    translator.model.train()
    second_look = translator.attention("fed cab", "abc")
    for a, b in zip(first_look.maps, second_look.maps, strict=True):
        assert torch.equal(a.weights, b.weights)


def test_a_model_without_attention_says_so():
    look = letters_predictor("rnn_seq2seq fixed").attention("fed cab", "abc")
    assert isinstance(look, Look)
    with pytest.raises(SettingError, match="must attend to the source to be looked at; this one"):
        look.cross()
