"""``use(model)`` as a program or an ONNX graph: right at any batch and length."""

import onnxruntime
import pytest
import torch
from torch import nn
from torch.export import Dim

from regard import use

pytestmark = [
    pytest.mark.parity,
    pytest.mark.slow,
    pytest.mark.usefixtures("as_users_have_it"),
    pytest.mark.filterwarnings("ignore"),  # the exporter's own
]
B, N, M = Dim("B", min=1, max=512), Dim("N", min=1, max=512), Dim("M", min=1, max=512)
SIZES = [(3, 5, 7), (1, 1, 2), (2, 7, 3), (9, 4, 4)]


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = {"need_weights": False, **options}
        extra = self.options.pop("add_zero_attn", False)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True, add_zero_attn=extra)

    def forward(self, states, others=None, padding=None):
        others = states if others is None else others
        return self.attend(states, others, others, key_padding_mask=padding, **self.options)[0]


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)


def states(batch, length):
    return torch.randn(batch, length, 8)


def hidden(batch, length):
    return torch.arange(length) >= torch.arange(1, batch + 1).clamp_max(length)[:, None]


CASES = {
    "causal": (lambda: Attention(is_causal=True), lambda b, n, m: (states(b, n),), ({0: B, 1: N},)),
    "causal, and a zero": (
        lambda: Attention(is_causal=True, add_zero_attn=True),
        lambda b, n, m: (states(b, n),),
        ({0: B, 1: N},),
    ),
    "with weights": (
        lambda: Attention(need_weights=True),
        lambda b, n, m: (states(b, n),),
        ({0: B, 1: N},),
    ),
    "padded": (
        Attention,
        lambda b, n, m: (states(b, n), states(b, m), hidden(b, m)),
        ({0: B, 1: N}, {0: B, 1: M}, {0: B, 1: M}),
    ),
    "encoder": (encoder, lambda b, n, m: (states(b, n),), ({0: B, 1: N},)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", ["program", "onnx"])
def test_one_graph_serves_all_batches_and_lengths(case, form, tmp_path):
    make, inputs, sizes = CASES[case]
    model = use(make()).eval()
    example = inputs(*SIZES[0])
    if not isinstance(model, Attention):
        shapes = sizes
    else:
        shapes = {
            name: sizes[at] if at < len(sizes) else None
            for at, name in enumerate(["states", "others", "padding"])
        }
        example = (*example, *[None] * (3 - len(example)))
    with torch.no_grad():
        if form == "program":
            run = torch.export.export(model, example, dynamic_shapes=shapes).module()
        else:
            path = tmp_path / "model.onnx"
            program = torch.onnx.export(
                model, example, dynamic_shapes=shapes, dynamo=True, verbose=False
            )
            program.save(path)
            session = onnxruntime.InferenceSession(path)

            def run(*given):
                names = [each.name for each in session.get_inputs()]
                arrays = [each.numpy() for each in given if each is not None]
                answers = session.run(None, dict(zip(names, arrays, strict=True)))
                return torch.from_numpy(answers[0])

        for each in SIZES:
            given = inputs(*each)
            given = (*given, *[None] * (len(example) - len(given)))
            torch.testing.assert_close(run(*given), model(*given))
