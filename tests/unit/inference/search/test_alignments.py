import pytest
import torch
from tests.unit.inference.conftest import make_predictor

from regard.attention import observe
from regard.attention.observing import Edit, editing
from regard.errors import SettingError
from regard.inference.look import mean_weights
from regard.text import BOS_ID, EOS_ID

SENTENCES = ["我爱中国。", "他爱你", "中国", "我", "", "他爱中国我爱你。", "你爱你爱你"]
MODELS = {
    "rnn": {"model": "rnn_seq2seq"},
    "rnn of two layers": {"model": "rnn_seq2seq", "num_layers": 2, "cell": "lstm"},
    "coverage": {"model": "rnn_seq2seq", "coverage": True},
    "local-m": {"model": "rnn_seq2seq", "local": "monotonic", "reach": 1},
    "local-p": {"model": "rnn_seq2seq", "local": "predictive", "reach": 2},
    "mixture": {"model": "rnn_seq2seq", "attention": "mixture", "num_gaussians": 2},
    "hard": {"model": "rnn_seq2seq", "hard": True},
    "transformer": {"model": "transformer"},
    "transformer over embeddings": {"model": "transformer", "values": "embeddings"},
}


def sharp(name):
    """A translator that looks at something: its weights are large enough for uneven attention.

    In float64, since such a one makes much of the last digit.
    """
    translator = make_predictor(**MODELS[name])
    torch.manual_seed(2)
    for name, parameter in translator.model.named_parameters():
        is_cross = "attention." in name or "cross_attend." in name
        torch.nn.init.normal_(parameter, std=9.0 if is_cross else 0.6)
    translator.model.double()
    return translator


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("name", MODELS)
def test_alignments_are_those_of_a_look_at_each_answer(name, beam_size):
    translator = sharp(name)
    translations = translator.translate(SENTENCES, beam_size=beam_size, attention=True)
    assert translations == translator.translate(SENTENCES, beam_size=beam_size)
    uneven = 0.0
    for (best, *_), text in zip(translations, SENTENCES, strict=True):
        if not text:
            assert best.alignment is None
            continue
        look = translator.attention(text, best.tokens)
        rows = look.cross()[: len(best.tokens)]
        torch.testing.assert_close(best.alignment.weights, rows, atol=1e-7, rtol=0)
        assert best.alignment.source_pieces == look.source_pieces
        assert best.alignment.output_pieces == look.output_pieces
        if len(rows):
            uneven = max(uneven, float(rows.max() - rows.min()))
    assert uneven > 0.4  # or the rows could be anyone's


@pytest.mark.parametrize("name", ["rnn", "coverage", "local-m", "local-p", "mixture", "hard"])
def test_a_look_has_the_weights_of_each_step_of_its_own(name):
    translator = sharp(name)
    source, output = translator.tokenizer.source.encode("他爱中国我爱你。"), [5, 6, 7, 8, 5]
    translator.model.eval()
    calls = []
    with torch.no_grad(), observe(calls.append):
        translator.model(
            torch.tensor([[*source, EOS_ID]]),
            torch.tensor([len(source) + 1]),
            torch.tensor([[BOS_ID, *output]]),
        )
    rows = torch.cat([mean_weights(call)[0] for call in calls])
    torch.testing.assert_close(translator.attention("他爱中国我爱你。", output).cross(), rows)
    assert (rows[1:] - rows[:-1]).abs().amax() > 0.05  # or any step's would do


def test_a_prepared_model_shows_what_it_looks_at_and_says_the_same():
    translator = make_predictor(**MODELS["transformer"])
    torch.manual_seed(2)
    for name, parameter in translator.model.named_parameters():
        torch.nn.init.normal_(parameter, std=2.0 if "cross_attend." in name else 0.4)
    translator.warm_up()
    translations = translator.translate(SENTENCES, beam_size=4, attention=True)
    assert translations == translator.translate(SENTENCES, beam_size=4)
    for (best, *_), text in zip(translations, SENTENCES, strict=True):
        if best.alignment is not None:
            rows = translator.attention(text, best.tokens).cross()[: len(best.tokens)]
            torch.testing.assert_close(best.alignment.weights, rows, atol=1e-4, rtol=0)
            assert (rows.amax() - rows.amin()) > 0.1


def test_only_the_best_has_its_alignment_whose_links_leave_out_the_end_of_the_source():
    (outputs,) = sharp("transformer").translate(["我爱中国。"], n_best=3, attention=True)
    assert [output.alignment is not None for output in outputs] == [True, False, False]
    best = outputs.best
    most = best.alignment.weights.argmax(-1).tolist()
    length = len(best.alignment.source_pieces)
    assert best.alignment.weights.shape[1] == length + 1
    expected = [(source, target) for target, source in enumerate(most) if source < length]
    assert best.alignment.links() == expected


@pytest.mark.parametrize(
    ("settings", "layers", "message"),
    [
        ({"attention": "none"}, None, "must attend to the source to be looked at; this one does n"),
        ({}, [1, 7], r"must attend to the source .* this one does not in layers 1, 7\."),
    ],
)
def test_a_model_without_such_attention_says_so(settings, layers, message):
    with pytest.raises(SettingError, match=message):
        make_predictor(**settings).translate(["我"], attention=True, layers=layers)


def watched(translator, **settings):
    """Kinds and layers of the calls of attention that a translation makes."""
    calls = []
    with observe(lambda call: calls.append((call.kind, call.layer))):
        translator.translate(["我爱中国。"], beam_size=2, **settings)
    return calls


@pytest.mark.usefixtures("as_users_have_it")
def test_a_translator_that_is_warm_or_aligns_is_edited_and_watched_as_it_was():
    translator = make_predictor(**MODELS["transformer"])
    edited = []
    calls = [watched(translator, attention=True)]
    for is_warm in (False, True):
        if is_warm:
            translator.warm_up()
        with editing(lambda call: Edit(call.mask, lambda out, value: out * 0)):
            edited.append(translator.translate(SENTENCES))
        calls.append(watched(translator))
    assert edited[0] == edited[1] != translator.translate(SENTENCES)
    assert calls[0] == calls[1] == calls[2]
    assert len(calls[0]) > 10
