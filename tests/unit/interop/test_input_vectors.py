"""Whatever a model calls its input's vectors, gradients are taken along them."""

import pytest
import torch
from tests.unit.interop.tiny_models import tiny
from torch import nn
from torch.testing import assert_close

import regard as rg
from regard.errors import SettingError

V, N, C, H = 23, 7, 12, 3
SIZES = {
    "hidden_size": C,
    "num_hidden_layers": 2,
    "num_attention_heads": H,
    "intermediate_size": 11,
    "num_labels": 5,
}
IMAGES = {"image_size": 9, "patch_size": 3}
TWO_SIDED = {
    "vocab_size": V,
    "d_model": C,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": H,
    "decoder_attention_heads": H,
    "encoder_ffn_dim": 11,
    "decoder_ffn_dim": 11,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": None,
    "forced_eos_token_id": None,
    "decoder_start_token_id": 2,
}
WHISPER = {
    "max_source_positions": 8,
    "max_target_positions": 9,
    "num_mel_bins": 5,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}
WAVES = {
    "conv_dim": (8, 8),
    "conv_stride": (2, 2),
    "conv_kernel": (3, 3),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
}


def noisy_model(name, config, **options):
    model = tiny(name, config, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.double()


def ids(length=N):
    return torch.randint(3, V, (1, length))


def pair():
    return {"input_ids": ids(), "decoder_input_ids": ids(5)}


def image():
    return {"pixel_values": torch.randn(1, 3, 9, 9).double()}


def sounds():
    return {"input_features": torch.randn(1, 5, 16).double(), "decoder_input_ids": ids(5)}


# A model, its inputs, the module that gives (or is given) the vectors, how many of them.
FAMILIES = {
    "bart": (
        "BartForConditionalGeneration", "BartConfig", TWO_SIDED, pair,
        "model.encoder.embed_tokens", N,
    ),
    "gpt2": (
        "GPT2LMHeadModel", "GPT2Config",
        {"vocab_size": V, "n_embd": C, "n_layer": 2, "n_head": H, "eos_token_id": 1},
        lambda: {"input_ids": ids()}, "transformer.wte", N,
    ),
    "vit": (
        "ViTForImageClassification", "ViTConfig", SIZES | IMAGES, image, "vit.embeddings", 10,
    ),
    "whisper": (
        "WhisperForConditionalGeneration", "WhisperConfig", TWO_SIDED | WHISPER, sounds,
        ">model.encoder.layers.0", 8,
    ),
    "wav2vec2": (
        "Wav2Vec2ForSequenceClassification",
        "Wav2Vec2Config",
        SIZES | WAVES | {"vocab_size": V},
        lambda: {"input_values": torch.randn(1, 40).double()},
        "wav2vec2.feature_projection.projection",
        9,
    ),
}  # fmt: skip


def by_differences(model, inputs, module_name, explained, length):
    """How fast the log-probability grows where the vector of each place does."""
    module, step = model.get_submodule(module_name.removeprefix(">")), [0, 0.0]

    def scaled(vectors):
        vectors = vectors.clone()
        vectors[:, step[0]] *= 1 + step[1]
        return vectors

    if module_name.startswith(">"):
        handle = module.register_forward_pre_hook(
            lambda _, args, options: ((scaled(args[0]), *args[1:]), options), with_kwargs=True
        )
    else:
        handle = module.register_forward_hook(lambda _, args, output: scaled(output))

    def log_prob(position, size):
        step[:] = position, size
        logits = model(**inputs).logits
        position, token = explained.output
        return (logits[0] if logits.dim() == 2 else logits[0, position]).log_softmax(-1)[token]

    with torch.no_grad():
        slopes = [
            (log_prob(position, 1e-3) - log_prob(position, -1e-3)) / 2e-3
            for position in range(length)
        ]
    handle.remove()
    return torch.stack(slopes)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_gradient_is_along_the_vectors_that_the_model_makes_of_its_input(name):
    kind, config, options, give, where, length = FAMILIES[name]
    model, inputs = noisy_model(kind, config, **options), give()
    learned = [parameter.requires_grad for parameter in model.parameters()]
    explained = rg.faithfulness(model, inputs)
    assert [parameter.requires_grad for parameter in model.parameters()] == learned
    assert explained.positions.tolist() == list(range(length))
    expected = by_differences(model, inputs, where, explained, length)
    assert expected.abs().max() > 1e-2
    assert_close(explained.evidence["gradient"], expected, atol=1e-4, rtol=1e-2)


def test_a_decoder_that_is_given_the_same_ids_is_not_taken_for_the_input():
    model, same = noisy_model("BartForConditionalGeneration", "BartConfig", **TWO_SIDED), ids()
    inputs = {"input_ids": same, "decoder_input_ids": same}
    explained = rg.faithfulness(model, inputs, (2, None))
    expected = by_differences(model, inputs, "model.encoder.embed_tokens", explained, N)
    assert_close(explained.evidence["gradient"], expected, atol=1e-4, rtol=1e-2)


class Reader(nn.Module):
    """An encoder layer over what ``read`` makes of its input, and logits of its first state."""

    def __init__(self, read, past=None):
        super().__init__()
        self.read, self.past = read, past
        self.layer = rg.use(nn.TransformerEncoderLayer(C, H, 11, batch_first=True, dropout=0.0))
        self.out = nn.Linear(C, 5)

    def forward(self, inputs):
        logits = self.out(self.layer(self.read(inputs))[:, 0])
        return Answer(logits if self.past is None else logits + self.past(inputs))


class Answer:
    def __init__(self, logits):
        self.logits = logits


class TwoTables(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Embedding(V, C), nn.Embedding(V, 5)
        self.wider = nn.Linear(5, C)

    def forward(self, inputs):
        return self.one(inputs) + self.wider(self.other(inputs))


def test_every_table_that_is_looked_up_with_the_ids_counts():
    model, inputs = Reader(TwoTables()).eval().double(), {"inputs": ids()}
    explained = rg.faithfulness(model, inputs)
    expected = sum(
        by_differences(model, inputs, f"read.{name}", explained, N) for name in ("one", "other")
    )
    assert_close(explained.evidence["gradient"], expected, atol=1e-4, rtol=1e-2)


def test_vectors_that_are_given_are_the_input_themselves():
    model = noisy_model("BertForSequenceClassification", "BertConfig", vocab_size=V, **SIZES)
    token_ids = ids()
    embedded = model.get_input_embeddings()(token_ids).detach()
    with torch.no_grad():
        explained = rg.faithfulness(model, {"inputs_embeds": embedded})
    expected = rg.faithfulness(model, {"input_ids": token_ids})
    assert_close(explained.evidence["gradient"], expected.evidence["gradient"])


def test_ids_are_the_models_main_input_whatever_stands_first():
    model = noisy_model("BertForMaskedLM", "BertConfig", vocab_size=V, **SIZES)
    token_ids, mask = ids(), torch.ones(1, N, dtype=torch.long)
    ids_first = rg.faithfulness(
        model, {"input_ids": token_ids, "attention_mask": mask}, replacement=3
    )
    mask_first = rg.faithfulness(
        model, {"attention_mask": mask, "input_ids": token_ids}, replacement=3
    )
    for name, numbers in ids_first.evidence.items():
        assert_close(mask_first.evidence[name], numbers)


class Patches(nn.Conv2d):
    def __init__(self):
        super().__init__(3, C, 3, stride=3)

    def forward(self, inputs):
        return super().forward(inputs).flatten(2).transpose(1, 2)


def test_input_that_reaches_the_answer_past_its_vectors_is_an_error():
    past = nn.Sequential(nn.Flatten(), nn.Linear(243, 5))
    inputs = {"inputs": torch.randn(1, 3, 9, 9)}
    rg.faithfulness(Reader(Patches()).eval(), inputs)
    with pytest.raises(SettingError, match=r"one vector of each position; got Reader, which its"):
        rg.faithfulness(Reader(Patches(), past).eval(), inputs)


def test_an_input_whose_vectors_no_module_meets_is_an_error():
    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.mixed = nn.Linear(2, C)

        def forward(self, inputs):
            states = self.mixed(inputs.reshape(-1, 2)).reshape(len(inputs), 1, -1, C)
            return Answer(rg.attend(states, states, states)[:, 0, 0])

    with pytest.raises(SettingError, match=r"must make one vector of each position .* got Hidden"):
        rg.faithfulness(Hidden().eval(), {"inputs": torch.randn(1, 14)})


def test_attention_to_parts_of_the_input_is_an_error_that_names_it():
    sizes = {"image_size": 16, "patch_size": 2, "embed_dim": 12, "window_size": 2}
    model = noisy_model(
        "SwinForImageClassification", "SwinConfig", **sizes, depths=[1, 1], num_heads=[2, 3]
    )
    with pytest.raises(SettingError, match=r"attend to its whole input.*swin\.encoder.*in 16 part"):
        rg.faithfulness(model, {"pixel_values": torch.randn(1, 3, 16, 16).double()})


def test_logits_without_a_gradient_are_an_error():
    class Deaf(Reader):
        def forward(self, inputs):
            return Answer(super().forward(inputs).logits.detach())

    with pytest.raises(SettingError, match="must have a gradient from its logits"):
        rg.faithfulness(Deaf(nn.Embedding(V, C)).eval(), {"inputs": ids()})
