"""Attribution beside captum: gradient × input, integrated gradients and leaving out."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.unit.interop.tiny_models import SIZES, V, gpt2, llama, tiny
from torch import nn

import regard as rg

captum = pytest.importorskip("captum.attr")
PAD = 1


def bert():
    return tiny("BertForSequenceClassification", "BertConfig", **SIZES, num_labels=3)


def opt():
    sizes = {"hidden_size": 12, "word_embed_proj_dim": 12, "ffn_dim": 7, "num_hidden_layers": 2}
    return tiny("OPTForCausalLM", "OPTConfig", vocab_size=V, num_attention_heads=3, **sizes)


class Recurrent(nn.Module):
    """A classifier that is no Transformer, (B, N) → (B, 3)."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, 6)
        self.cell = nn.GRU(6, 5, batch_first=True)
        self.out = nn.Linear(5, 3)

    def forward(self, ids):
        return self.out(self.cell(self.embedding(ids))[1][-1])


FAMILIES: dict[str, Callable[[], Any]] = {
    "gpt2": gpt2,
    "llama": llama,
    "bert": bert,
    "opt": opt,
    "gru": lambda: Recurrent().eval(),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", ["gradient_times_input", "integrated_gradients"])
@pytest.mark.parametrize("against", [None, 0])
def test_attribution_is_captums(family, method, against):
    torch.manual_seed(3)
    model = FAMILIES[family]().double()
    ids = torch.tensor([[4, 7, 2, 9, 7]])
    table = model.embedding if family == "gru" else model.get_input_embeddings()

    def explained(ids):
        output = model(ids)
        logits = getattr(output, "logits", output)
        last = logits[:, -1] if logits.dim() == 3 else logits
        return last[:, 2] - (0 if against is None else last[:, against])

    if method == "integrated_gradients":
        theirs = captum.LayerIntegratedGradients(explained, table).attribute(
            ids, baselines=torch.full_like(ids, PAD), n_steps=32, method="gausslegendre"
        )
    else:
        theirs = captum.LayerGradientXActivation(explained, table).attribute(ids)
    ours = rg.attribute(model, ids, target=2, against=against, method=method, baseline=PAD)
    torch.testing.assert_close(ours.values, theirs[0].sum(-1), check_dtype=False)
