"""Explanations of pages besides attention: contributions, predictions by layer, loss by token."""

import math
from dataclasses import replace

import pytest
import torch
from tests.unit.interop.tiny_folders import SIZES, byte_tokenizer, save
from torch.testing import assert_close

import regard as rg
from regard.errors import DataError, SettingError
from regard.interop.checkpoints.folder import load_folder
from regard.interop.pages.explaining import methods_named

transformers = pytest.importorskip("transformers")

TEXT = "the cat sat on a mat"
COMMON = {
    "vocab_size": 290,
    "intermediate_size": 17,
    "max_position_embeddings": 300,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
}
OPT = {"word_embed_proj_dim": 8, "ffn_dim": 17, "do_layer_norm_before": False}
GEMMA = {"head_dim": 4, "final_logit_softcapping": 0.5, "num_key_value_heads": 1}
CAUSAL = {
    "GPT2LMHeadModel": ("GPT2Config", {"n_embd": 12, "n_layer": 3, "n_head": 3}),
    "LlamaForCausalLM": ("LlamaConfig", {"num_key_value_heads": 1}),
    "Gemma2ForCausalLM": ("Gemma2Config", GEMMA),
    "OPTForCausalLM": ("OPTConfig", OPT),
    "GPTNeoXForCausalLM": ("GPTNeoXConfig", {}),
}


def make(name, config, options=None):
    torch.manual_seed(3)
    sizes = {"vocab_size": 290, "n_positions": 300} if name.startswith("GPT2") else COMMON
    return getattr(transformers, name)(
        getattr(transformers, config)(**sizes | {"eos_token_id": 1} | (options or {}))
    ).eval()


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer()


def look(model, tokenizer, text=TEXT, **options):
    (example,) = rg.look(model, tokenizer, text, **options).document.examples
    return example


def ids_of(tokenizer, text=TEXT):
    return tokenizer(text, return_tensors="pt").input_ids


def by_method(example):
    return {one.method: one for one in example.importances}


@pytest.mark.parametrize("name", CAUSAL)
def test_the_last_layer_s_predictions_and_the_losses_are_the_model_s(name, tokenizer):
    model, ids = make(name, *CAUSAL[name]), ids_of(tokenizer)
    example = look(model, tokenizer)
    with torch.no_grad():
        answer = model(ids, labels=ids)
    lens = example.lens
    assert lens.tokens.shape == (3, ids.shape[1], 5)
    top = answer.logits[0].softmax(-1).topk(5)
    assert_close(
        torch.tensor(lens.probabilities.values()[-1]).float(), top.values, atol=1e-4, rtol=1e-3
    )
    named = [[lens.words[int(n)] for n in row] for row in lens.tokens.values()[-1]]
    for (name, *_), token in zip(named, top.indices[:, 0].tolist(), strict=True):
        piece = tokenizer.convert_ids_to_tokens(token)  # where bytes are no text
        assert name in (tokenizer.decode([token]), piece)
    assert example.surprise[0] is None
    assert sum(example.surprise[1:]) == pytest.approx(
        float(answer.loss) * (ids.shape[1] - 1), rel=1e-4
    )


def test_each_layer_is_read_by_the_last_norm_and_the_output_matrix(tokenizer):
    model, ids = make("GPT2LMHeadModel", *CAUSAL["GPT2LMHeadModel"]), ids_of(tokenizer)
    lens = look(model, tokenizer).lens
    with torch.no_grad():
        states = model(ids, output_hidden_states=True).hidden_states
        logits = [model.lm_head(model.transformer.ln_f(each)) for each in states[1:3]]
    for layer, each in enumerate(logits):
        expected = each[0].softmax(-1).topk(5).values
        assert_close(
            torch.tensor(lens.probabilities.values()[layer]).float(), expected, atol=1e-4, rtol=1e-3
        )


def test_contributions_on_the_page_are_those_of_attribute(tokenizer):
    model, ids = make("GPT2LMHeadModel", *CAUSAL["GPT2LMHeadModel"]), ids_of(tokenizer)
    cat, dog = (tokenizer(word).input_ids[0] for word in (" mat", " on"))
    example = look(model, tokenizer, target=" mat", against=" on", attribute=methods_named("all"))
    importances = by_method(example)
    assert next(iter(importances)) == "attention"
    assert len(importances) == 6
    for method, one in zip(methods_named("all"), (
        importances[name] for name in (
            "gradient × input", "integrated gradients", "leave one out", "attention", "rollout",
            "attention × gradient",
        )
    ), strict=True):  # fmt: skip
        expected = rg.attribute(model, {"input_ids": ids}, target=cat, against=dog, method=method)
        assert one.values == pytest.approx(expected.values.tolist(), rel=1e-3, abs=1e-5)
        assert (one.target, one.against) == (tokenizer.decode([cat]), tokenizer.decode([dog]))
        assert one.position == ids.shape[1] - 1
    complete = importances["integrated gradients"]
    assert complete.total == pytest.approx(complete.change, abs=1e-3)
    output = {"target": cat, "against": dog}
    attention = rg.attribute(model, {"input_ids": ids}, **output, method="attention").values
    rollout = rg.attribute(model, {"input_ids": ids}, **output, method="rollout").values
    correlation = rg.interop.rank_correlation(rollout, attention)
    assert importances["rollout"].correlation == pytest.approx(correlation, abs=1e-3)
    assert all(
        one.correlation is not None for name, one in importances.items() if name != "attention"
    )


def test_a_word_is_read_in_fewer_tokens_or_as_is_likelier_and_held_against_another(tokenizer):
    model = make("GPT2LMHeadModel", *CAUSAL["GPT2LMHeadModel"])
    with torch.no_grad():
        row = model(ids_of(tokenizer)).logits[0, -1]
    for word in ("mat", "the", "cat"):
        forms = [tokenizer(form).input_ids for form in (word, f" {word}")]
        best = min(forms, key=lambda form: (len(form), -float(row[form[0]])))[0]
        named = by_method(look(model, tokenizer, target=word))["attention"].target
        assert named == tokenizer.decode([best])
    with pytest.raises(DataError, match="--not must differ from --target in its first token"):
        look(model, tokenizer, target="mat", against="mat")


def test_a_masked_word_is_explained_in_its_place(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TEXT.split()]
    tokenizer = transformers.BertTokenizer(vocab={word: i for i, word in enumerate(words)})
    config = transformers.BertConfig(vocab_size=len(words), intermediate_size=17, **SIZES)
    save(transformers.BertForMaskedLM(config), tokenizer, tmp_path)
    model, tokenizer = load_folder(tmp_path)
    assert type(model).__name__ == "BertForMaskedLM"
    example = look(model, tokenizer, "the [MASK] sat", target="cat", against="mat")
    importance = by_method(example)["gradient × input"]
    inputs = tokenizer("the [MASK] sat", return_tensors="pt")
    expected = rg.attribute(
        model,
        {"input_ids": inputs.input_ids},
        target=words.index("cat"),
        against=words.index("mat"),
        position=2,
        method="gradient_times_input",
    )
    assert importance.values == pytest.approx(expected.values.tolist(), rel=1e-3)
    assert (importance.target, importance.against, importance.position) == ("cat", "mat", 2)
    with torch.no_grad():
        chances = model(inputs.input_ids).logits[0].softmax(-1).topk(5).values
    assert_close(
        torch.tensor(example.lens.probabilities.values()[-1]).float(), chances, atol=1e-4, rtol=1e-3
    )
    assert example.lens.ahead == 0
    assert example.surprise == ()
    assert look(model, tokenizer, "the cat").importances == ()
    with pytest.raises(DataError, match="text must have a mask where --target is to stand"):
        look(model, tokenizer, "the cat", target="cat")


def test_a_class_is_explained_and_must_be_one(tokenizer):
    labels = {0: "bad", 1: "good"}
    model = make(
        "BertForSequenceClassification", "BertConfig", {"id2label": labels, "hidden_size": 12}
    )
    importances = by_method(look(model, tokenizer, target="good", against="bad"))
    expected = rg.attribute(model, ids_of(tokenizer), target=1, against=0, method="leave_one_out")
    assert importances["leave one out"].values == pytest.approx(expected.values.tolist(), rel=1e-3)
    assert (importances["rollout"].target, importances["rollout"].position) == ("good", None)
    with pytest.raises(DataError, match="target must be one of bad, good; got 'fine'"):
        look(model, tokenizer, target="fine")
    with pytest.raises(DataError, match="--not must be one of bad, good; got 'fine'"):
        look(model, tokenizer, against="fine")


def test_each_written_token_is_explained_and_another_output_from_where_it_differs(tokenizer):
    sizes = {"d_model": 12, "d_kv": 4, "d_ff": 17, "num_layers": 2, "num_heads": 3}
    torch.manual_seed(3)
    config = transformers.T5Config(vocab_size=290, **sizes, decoder_start_token_id=0)
    model = transformers.T5ForConditionalGeneration(config).eval()
    example = look(model, tokenizer, target="we go to school")
    written = tokenizer(text_target="we go to school").input_ids
    assert {one.output for one in example.importances} == set(range(len(written)))
    inputs = {
        "input_ids": ids_of(tokenizer),
        "decoder_input_ids": torch.tensor([[0, *written[:-1]]]),
    }
    (importance,) = (
        one for one in example.importances if (one.output, one.method) == (2, "gradient × input")
    )
    expected = rg.attribute(
        model, inputs, target=written[2], position=2, method="gradient_times_input"
    )
    assert importance.values == pytest.approx(expected.values.tolist(), rel=1e-3, abs=1e-6)
    with torch.no_grad():
        logits = model(**inputs).logits[0].log_softmax(-1)
    assert example.surprise == pytest.approx(
        (-logits[range(len(written)), written]).tolist(), rel=1e-3
    )
    assert example.lens.tokens.shape == (2, len(written), 5)
    other = look(model, tokenizer, target="we go to school", against="we sat on it")
    (position,) = {one.output for one in other.importances}
    assert written[:position] == tokenizer(text_target="we sat on it").input_ids[:position]
    with pytest.raises(DataError, match="--not must differ from the output within it"):
        look(model, tokenizer, target="we go", against="we go")


def test_what_takes_long_is_computed_where_it_is_asked_for(tokenizer):
    model = make("GPT2LMHeadModel", "GPT2Config", {"n_embd": 24, "n_layer": 2, "n_head": 3})
    short, long = (by_method(look(model, tokenizer, text)) for text in (TEXT, TEXT * 13))
    assert set(short) == {"attention", "gradient × input", "integrated gradients", "leave one out", "rollout"}  # fmt: skip  # noqa: E501
    assert set(long) == set(short)  # so small a model takes little time
    chosen = by_method(look(model, tokenizer, attribute=["leave_one_out"]))
    assert list(chosen) == ["attention", "leave one out"]
    assert look(model, tokenizer, attribute=[]).importances == ()
    with pytest.raises(SettingError, match="--attribute must be one of"):
        methods_named("gradients")
    assert methods_named("rollout, leave-one-out") == ["rollout", "leave_one_out"]


def test_a_model_without_a_head_is_looked_at_and_not_explained(tokenizer):
    model = make("GPT2Model", *CAUSAL["GPT2LMHeadModel"])
    example = look(model, tokenizer)
    assert (example.importances, example.lens, example.surprise) == ((), None, ())
    with pytest.raises(SettingError, match="model must give logits"):
        look(model, tokenizer, target="mat")


def test_layers_that_are_chosen_for_the_page_change_no_prediction(tokenizer):
    model = make("GPT2LMHeadModel", *CAUSAL["GPT2LMHeadModel"])
    whole, part = look(model, tokenizer), look(model, tokenizer, layers=[0], heads=[1])
    assert (part.lens, part.surprise) == (whole.lens, whole.surprise)
    assert part.importances == whole.importances


def test_numbers_that_do_not_fit_an_example_are_named():
    (example,) = rg.show(torch.eye(3), ["a", "b", "c"]).document.examples
    with pytest.raises(DataError, match="surprise must have a value for each of 0 output tokens"):
        replace(example, surprise=(1.0,))
    written = replace(example, source="", source_tokens=(), summaries=(), output="a b c", output_tokens=example.source_tokens)  # fmt: skip  # noqa: E501
    with pytest.raises(DataError, match="surprise must be finite; got nan"):
        replace(written, surprise=(None, math.nan, 1.0))
    pack = rg.viewer.pack([[[0.5]] * 4])
    lens = rg.viewer.Lens(
        words=("a",), tokens=rg.viewer.pack_integers([[[0]] * 4]), probabilities=pack
    )
    with pytest.raises(DataError, match="lens must be of 3 tokens at most; got positions up to 4"):
        replace(written, lens=lens)
    with pytest.raises(DataError, match="lens must have tokens and probabilities of one shape"):
        rg.viewer.Lens(words=("a",), tokens=rg.viewer.pack_integers([[0]]), probabilities=pack)
