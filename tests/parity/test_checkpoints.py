"""Checkpoints of transformers in our models and back: the same logits."""

import json

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from tests.cases import slow_but

from regard.errors import DataError, SettingError
from regard.interop.checkpoints.models import load_checkpoint, save_checkpoint
from regard.models import Decoder, DecoderConfig, Transformer, TransformerConfig

pytestmark = pytest.mark.parity

B, N, T, V = 3, 11, 5, 61
BERT = {
    "vocab_size": V,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 28,
    "max_position_embeddings": 16,
}
BART = {
    "vocab_size": V,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 28,
    "decoder_ffn_dim": 28,
    "max_position_embeddings": 16,
    "eos_token_id": 2,
    "forced_eos_token_id": 2,
}
GPT2 = {"vocab_size": V, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 16}
MARIAN = {"pad_token_id": 60, "decoder_start_token_id": 60, "scale_embedding": True}
ENDS = {"bos_token_id": 1, "eos_token_id": 2}
FAMILIES = {
    "bert": lambda: hf.BertForPreTraining(hf.BertConfig(**BERT)),
    "roberta": lambda: hf.RobertaForMaskedLM(
        hf.RobertaConfig(**BERT, type_vocab_size=1, layer_norm_eps=1e-5)
    ),
    "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2, **ENDS)),
    "bart": lambda: hf.BartForConditionalGeneration(hf.BartConfig(**BART)),
    "marian": lambda: hf.MarianMTModel(
        hf.MarianConfig(**BART, **MARIAN, decoder_vocab_size=V, activation_function="swish")
    ),
    "pegasus": lambda: hf.PegasusForConditionalGeneration(
        hf.PegasusConfig(**BART | {"eos_token_id": 1}, scale_embedding=True)
    ),
    "blenderbot": lambda: hf.BlenderbotForConditionalGeneration(hf.BlenderbotConfig(**BART)),
    "gpt_neox": lambda: hf.GPTNeoXForCausalLM(
        hf.GPTNeoXConfig(**BERT, use_parallel_residual=False, rotary_pct=1.0)
    ),
    "llama": lambda: hf.LlamaForCausalLM(
        hf.LlamaConfig(**BERT, num_key_value_heads=1, attention_bias=True, mlp_bias=True)
    ),
}
LLAMA = {**BERT, "num_key_value_heads": 1}
BASE = {"rope_type": "default", "rope_theta": 5e5}
# Those that are read only, and variants.
READ = {
    "albert": lambda: hf.AlbertForMaskedLM(hf.AlbertConfig(**BERT, embedding_size=7)),
    "albert with gelu": lambda: hf.AlbertForMaskedLM(
        hf.AlbertConfig(**BERT, embedding_size=7, hidden_act="gelu")
    ),
    "distilbert": lambda: hf.DistilBertForMaskedLM(
        hf.DistilBertConfig(
            vocab_size=V, dim=24, n_layers=2, n_heads=3, hidden_dim=28, max_position_embeddings=16
        )
    ),
    "electra": lambda: hf.ElectraForMaskedLM(hf.ElectraConfig(**BERT, embedding_size=7)),
    "electra as wide": lambda: hf.ElectraForMaskedLM(hf.ElectraConfig(**BERT, embedding_size=24)),
    "llama without biases": lambda: hf.LlamaForCausalLM(
        hf.LlamaConfig(**LLAMA, rope_parameters=BASE, tie_word_embeddings=True)
    ),
    "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**LLAMA, sliding_window=None)),
    "mistral with a window": lambda: hf.MistralForCausalLM(
        hf.MistralConfig(**LLAMA, sliding_window=4)
    ),
    "qwen2": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**LLAMA, rope_parameters=BASE)),
}
SEQ2SEQ = ("bart", "blenderbot", "marian", "pegasus")


def theirs(family):
    torch.manual_seed(0)
    model = (FAMILIES | READ)[family]()
    # Norms and biases begin as ones and zeros, with which half of the mistakes cannot be seen.
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name or family not in ("marian", "pegasus"):
            parameter.data += 0.2 * torch.randn_like(parameter)
    if "final_logits_bias" in dict(model.named_buffers()):
        model.final_logits_bias.normal_()
    return model.eval()


def batch(family):
    generator = torch.Generator().manual_seed(1)
    low = 3 if family == "roberta" else 0
    high = V - 1 if family == "marian" else V
    ids = torch.randint(low, high, (B, N), generator=generator)
    return ids, torch.tensor([N, 4, 7]), torch.randint(3, V - 1, (B, T), generator=generator)


def logits_of_theirs(model, family):
    ids, lengths, target = batch(family)
    mask = (torch.arange(N) < lengths[:, None]).long()
    ids = ids.masked_fill(mask == 0, model.config.pad_token_id or 0)
    with torch.no_grad():
        if family in SEQ2SEQ:
            return [model(input_ids=ids, attention_mask=mask, decoder_input_ids=target).logits]
        if family == "bert":
            segments = (torch.arange(N) > 3).long().expand(B, N)
            out = model(input_ids=ids, attention_mask=mask, token_type_ids=segments)
            words = out.prediction_logits
        else:
            words = model(input_ids=ids, attention_mask=mask).logits
        rows = [each[:length] for each, length in zip(words, lengths.tolist(), strict=True)]
        return [*rows, out.seq_relationship_logits] if family == "bert" else rows


def logits_of_ours(model, family):
    ids, lengths, target = batch(family)
    with torch.no_grad():
        if family in SEQ2SEQ:
            return [model.project(model(ids, lengths, target)[0])]
        more = {}
        if family == "bert":
            more = {"segments": (torch.arange(N) > 3).long().expand(B, N)}
        states = model(ids, lengths, **more)
        words = model.project(states)
        rows = [each[:length] for each, length in zip(words, lengths.tolist(), strict=True)]
        return [*rows, model.follows(states)] if family == "bert" else rows


def assert_same(logits, expected):
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", slow_but(["bert", "gpt2", "marian"], sorted(FAMILIES)))
def test_a_checkpoint_has_the_same_logits_here_and_when_it_is_written_back(family, tmp_path):
    model = theirs(family)
    model.save_pretrained(tmp_path / "theirs")
    expected = logits_of_theirs(model, family)
    checkpoint = load_checkpoint(tmp_path / "theirs")
    assert checkpoint.layout == family
    assert checkpoint.unused == ()
    assert checkpoint.absent == ()
    assert_same(logits_of_ours(checkpoint.model, family), expected)

    save_checkpoint(
        checkpoint.model, tmp_path / "ours", layout=family, settings=checkpoint.settings
    )
    reloaded, info = type(model).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert_same(logits_of_theirs(reloaded.eval(), family), expected)


@pytest.mark.parametrize("family", sorted(READ))
def test_a_relative_has_the_same_logits_here(family, tmp_path):
    model = theirs(family)
    model.save_pretrained(tmp_path)
    checkpoint = load_checkpoint(tmp_path)
    assert (checkpoint.layout, checkpoint.unused) == (family.split()[0], ())
    assert {*checkpoint.absent} <= {"pooler.weight", "pooler.bias"}  # no head of theirs has one
    assert_same(logits_of_ours(checkpoint.model, family), logits_of_theirs(model, family))
    with pytest.raises(SettingError, match="layout must be one of bart, bert, blenderbot, gpt2, "):
        save_checkpoint(checkpoint.model, tmp_path, layout="qwen3")


def test_the_layers_of_an_albert_have_their_own_weights(tmp_path):
    theirs("albert").save_pretrained(tmp_path)
    first, second = load_checkpoint(tmp_path).model.encoder.layers
    torch.testing.assert_close(first.feed.inner.weight, second.feed.inner.weight)
    assert first.feed.inner.weight.data_ptr() != second.feed.inner.weight.data_ptr()
    change(tmp_path, num_hidden_groups=2)
    with pytest.raises(SettingError, match="num_hidden_groups must be 1 for a model of ours"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("qwen2", {"use_sliding_window": True}, "use_sliding_window must be False for a model of"),
        ("llama", {"head_dim": 16}, "head_dim must be 8 for a model of ours; got 16"),
        ("llama", {"rope_parameters": {"rope_type": "llama3"}}, "rope_type must be 'default' for"),
        (
            "albert",
            {"hidden_act": "tanh"},
            "hidden_act must be 'gelu' for a model of ours; got 'ta",
        ),
    ],
)
def test_what_a_relative_cannot_be_here_is_named(family, settings, message, tmp_path):
    theirs(family).save_pretrained(tmp_path)
    change(tmp_path, **settings)
    with pytest.raises(SettingError, match=message):
        load_checkpoint(tmp_path)


def test_a_decoder_trained_here_generates_the_same_there(tmp_path):
    config = DecoderConfig(
        model_dim=24, num_heads=3, num_layers=2, ffn_dim=32, max_length=16, dropout=0.0
    )
    ours = Decoder(config, vocab_size=V).eval()
    for parameter in ours.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    save_checkpoint(ours, tmp_path, layout="gpt2", settings={"eos_token_id": 2, "bos_token_id": 1})
    model = hf.GPT2LMHeadModel.from_pretrained(tmp_path).eval()
    ids = torch.randint(3, V, (B, N))
    with torch.no_grad():
        assert_same([ours.project(ours(ids))], [model(ids).logits])


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_body_alone_is_read_and_missing_members_are_named(family, tmp_path):
    model = theirs(family)
    body = model.bert if family == "bert" else model.transformer
    body.save_pretrained(tmp_path)
    checkpoint = load_checkpoint(tmp_path)
    heads = {name.split(".")[0] for name in checkpoint.absent}
    expected = {"transform", "norm", "bias", "next_sentence"}
    assert heads == (expected if family == "bert" else set())
    if family == "gpt2":
        assert_same(logits_of_ours(checkpoint.model, family), logits_of_theirs(model, family))


def test_shards_and_half_precision_are_read(tmp_path):
    model = theirs("gpt2")
    model.save_pretrained(tmp_path, max_shard_size="5KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert_same(
        logits_of_ours(load_checkpoint(tmp_path).model, "gpt2"), logits_of_theirs(model, "gpt2")
    )
    model.half().save_pretrained(tmp_path / "half")
    loaded = load_checkpoint(tmp_path / "half").model
    assert_same(logits_of_ours(loaded, "gpt2"), logits_of_theirs(model.float(), "gpt2"))


@pytest.fixture
def folder(tmp_path):
    theirs("bert").save_pretrained(tmp_path)
    return tmp_path


def change(folder, **settings):
    table = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(table | settings))


def test_pickled_weights_are_refused_with_the_cure(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    with pytest.raises(DataError, match=r"must be safetensors; got pytorch_model\.bin.*save_pretr"):
        load_checkpoint(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(DataError, match=r"must hold model\.safetensors; it does not"):
        load_checkpoint(folder)


def test_folders_that_are_no_checkpoints_are_refused(tmp_path, folder):
    with pytest.raises(DataError, match=r"got no config\.json in it"):
        load_checkpoint(tmp_path / "nothing")
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-7])
    with pytest.raises(DataError, match="must be a whole safetensors file"):
        load_checkpoint(folder)
    weights.write_bytes(whole)
    tensors = load_file(weights)
    del tensors["bert.encoder.layer.1.output.dense.bias"]
    save_file(tensors, weights)
    with pytest.raises(DataError, match=r"must hold bert\.encoder\.layer\.1\.output\.dense\.bias"):
        load_checkpoint(folder)
    (folder / "config.json").write_text("[]")
    with pytest.raises(DataError, match="must hold a table; got list"):
        load_checkpoint(folder)
    (folder / "config.json").write_text("[" * 5000 + "]" * 5000)
    with pytest.raises(DataError, match="nested more than 100 deep"):
        load_checkpoint(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(DataError, match="must hold JSON"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"model_type": "mamba"}, SettingError, "model_type must be one of albert, bart, bert, b"),
        ({"hidden_act": "relu"}, SettingError, "hidden_act must be 'gelu' for a model of ours"),
        ({"is_decoder": True}, SettingError, "is_decoder must be False for a model of ours"),
        ({"intermediate_size": 29}, DataError, r"intermediate\.dense\.weight must make \(29, 24\)"),
        ({"hidden_size": "24"}, DataError, r"must say hidden_size as int; got '24'"),
        ({"hidden_size": 24 * 10**9}, DataError, "must describe the model of the weights"),
        ({"num_hidden_layers": 10**9}, DataError, "must describe the model of the weights"),
        ({"vocab_size": 10**18}, DataError, "must describe the model of the weights"),
    ],
)
def test_what_cannot_be_held_is_named(folder, settings, error, message):
    change(folder, **settings)
    with pytest.raises(error, match=message):
        load_checkpoint(folder)


@pytest.mark.parametrize("spoil", [lambda t: t * float("nan"), lambda t: t.long()])
def test_weights_that_are_not_finite_numbers_are_named(folder, spoil):
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if name.endswith("query.weight"))
    save_file({**weights, name: spoil(weights[name])}, folder / "model.safetensors")
    with pytest.raises(DataError, match=f"must hold finite weights; got NaN, .* in {name}"):
        load_checkpoint(folder)


def test_an_index_may_not_point_outside(folder):
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"x": "../elsewhere.safetensors"}})
    )
    with pytest.raises(DataError, match="must name files beside it"):
        load_checkpoint(folder)


def test_a_model_that_a_layout_cannot_hold_is_not_written(tmp_path):
    rotary = Decoder(DecoderConfig(positions="rotary"), vocab_size=V)
    with pytest.raises(SettingError, match=r"model\.positions must be 'learned' in this layout"):
        save_checkpoint(rotary, tmp_path, layout="gpt2")
    with pytest.raises(SettingError, match="must be a MaskedLanguageModel for this layout"):
        save_checkpoint(rotary, tmp_path, layout="bert")
    config = TransformerConfig(positions="learned", copy=True, num_decoder_layers=1)
    copying = Transformer(config, source_vocab=V, target_vocab=V, shared_vocab=True)
    with pytest.raises(SettingError, match=r"model\.copy must be False in this layout"):
        save_checkpoint(copying, tmp_path, layout="bart")
    assert not list(tmp_path.iterdir())
