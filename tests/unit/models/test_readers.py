import pytest
import torch

from regard.errors import SettingError
from regard.layers import Pooling
from regard.models import READERS

B, N, L, VOCAB, PARTS = 3, 7, 5, 19, 11
SIZES = {
    "bag": {"embed_dim": 6},
    "convolutional": {"embed_dim": 6, "channels": 4, "widths": (1, 2, 3)},
    "recurrent": {"embed_dim": 6, "hidden_dim": 5, "num_layers": 2},
    "transformer": {"model_dim": 12, "num_heads": 2, "num_layers": 2, "ffn_dim": 17},
}
KINDS = [(name, "none") for name in sorted(SIZES)]
KINDS += [
    ("bag", "bag"),
    ("convolutional", "lstm"),
    ("recurrent", "convolution"),
    ("transformer", "bag"),
]
every_kind = pytest.mark.parametrize(("name", "parts"), KINDS)


def reader(name, parts):
    config, architecture = READERS[name].config, READERS[name].load()
    more = {} if parts == "none" else {"parts": parts}
    if more and name != "transformer":  # which adds them to a word, and does not put them beside it
        more["parts_dim"] = 4
    vocab = {} if parts == "none" else {"parts_vocab": PARTS}
    built = architecture(config(**SIZES[name], **more), vocab_size=VOCAB, **vocab)
    for parameter in built.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return built.eval()


def batch(parts):
    ids, lengths = torch.randint(1, VOCAB, (B, N)), torch.tensor([7, 1, 4])
    if parts == "none":
        return ids, lengths, {}
    spelled = torch.randint(1, PARTS, (B, N, L))
    spelled[torch.arange(L) >= torch.randint(1, L + 1, (B, N, 1))] = 0
    return ids, lengths, {"parts": spelled}


@every_kind
def test_padding_changes_nothing_of_words_and_of_their_parts(name, parts):
    model, (ids, lengths, more) = reader(name, parts), batch(parts)
    states = model(ids, lengths, **more)
    assert states.shape == (B, N, model.output_dim)
    for row, length in enumerate(lengths.tolist()):
        single = {key: each[row : row + 1, :length] for key, each in more.items()}
        expected = model(ids[row : row + 1, :length], **single)[0]
        torch.testing.assert_close(states[row, :length], expected, atol=1e-5, rtol=1e-5)
    if more:
        wider = torch.nn.functional.pad(more["parts"], (0, 3))
        torch.testing.assert_close(model(ids, lengths, parts=wider), states, atol=1e-5, rtol=1e-5)


@every_kind
def test_every_parameter_learns(name, parts):
    model, (ids, lengths, more) = reader(name, parts).train(), batch(parts)
    if name == "transformer":
        more["segments"] = torch.arange(N).remainder(2).expand(B, N)
    model(ids, lengths, **more).square().sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


@torch.no_grad()
def test_filters_of_several_widths_and_the_largest_answer_of_each_are_kims():
    """c_i = relu(w · x_{i:i+h−1} + b) and the maximum over i, for every filter, in loops."""
    config, architecture = READERS["convolutional"].config, READERS["convolutional"].load()
    model = architecture(
        config(embed_dim=6, channels=4, widths=(3, 4, 5), dropout=0.0), vocab_size=VOCAB
    )
    ids, lengths = torch.randint(1, VOCAB, (2, N)), torch.tensor([N, 2])
    states = model(ids, lengths)
    assert states.shape == (2, N, 3 * 4)
    pooled = Pooling("maximum", 12)(states, lengths)
    for row, length in enumerate(lengths.tolist()):
        words = model.words.embedding(ids[row, :length]).double()
        for index, (width, filters) in enumerate(zip((3, 4, 5), model.filters, strict=True)):
            before, after = (width - 1) // 2, width // 2
            zeros = words.new_zeros(1, 6)
            padded = torch.cat([zeros.expand(before, 6), words, zeros.expand(after, 6)])
            for channel in range(4):
                w, b = filters.weight[channel].double(), filters.bias[channel].double()
                answers = [max(0.0, (w * padded[i : i + width].T).sum() + b) for i in range(length)]
                output = pooled[row, 4 * index + channel].item()
                assert output == pytest.approx(float(max(answers)), abs=1e-5)


@pytest.mark.parametrize("parts", ["bag", "convolution", "lstm"])
def test_a_word_never_seen_is_read_from_its_parts(parts):
    model = reader("bag", parts)
    unknown = torch.ones(1, 2, dtype=torch.long)
    states = model(unknown, parts=torch.tensor([[[3, 4, 5], [3, 6, 5]]]))[0]
    assert (states[0] - states[1]).abs().max() > 1e-3
    order = model(unknown, parts=torch.tensor([[[3, 4, 5], [5, 4, 3]]]))[0]
    assert ((order[0] - order[1]).abs().max() > 1e-3) == (parts != "bag")


def test_what_is_wrong_is_named():
    with pytest.raises(
        SettingError, match=r"parts must be given where model.parts is set.*got none"
    ):
        reader("bag", "lstm")(torch.ones(1, 2, dtype=torch.long))
    with pytest.raises(SettingError, match=r"got some with model\.parts = 'none'"):
        reader("recurrent", "none")(*batch("none")[:2], **batch("bag")[2])
    with pytest.raises(SettingError, match="parts_vocab must be at least 1; got 0"):
        READERS["bag"].load()(READERS["bag"].config(parts="bag"), vocab_size=VOCAB)
    with pytest.raises(SettingError, match=r"widths\[1\] must be at least 1; got 0"):
        READERS["convolutional"].config(widths=(3, 0))
