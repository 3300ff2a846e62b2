"""Looking inside a GPT-2 beside TransformerLens: patterns, logit lens, patching, scores of heads.

It is heavy and no dependency of this project; `pip install transformer-lens` has these tests run.
"""

import copy
import warnings

import pytest
import torch
from tests.unit.interop.tiny_folders import ENGLISH, byte_tokenizer

import regard as rg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    reason = "transformer_lens is not installed: pip install transformer-lens"
    pytest.importorskip("transformer_lens", reason=reason)
    from transformer_lens.head_detector import detect_head
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.patching import get_act_patch_attn_head_out_all_pos
    from transformer_lens.tools.analysis.logit_lens import logit_lens

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")
LAYERS, HEADS = 3, 4
TEXT = f"{ENGLISH[:12]}{ENGLISH[:12]}"  # tokens that come again


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.manual_seed(3)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=64,
        n_embd=24,
        n_layer=LAYERS,
        n_head=HEADS,
        attn_implementation="eager",
    )
    made = transformers.GPT2LMHeadModel(config).eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return made


@pytest.fixture(scope="module")
def bridge(model, tokenizer):
    """Load the weights into TransformerLens; the name is asked for, and nothing is downloaded."""
    return TransformerBridge.boot_transformers(
        "gpt2", hf_model=copy.deepcopy(model), tokenizer=tokenizer, device="cpu"
    )


@pytest.fixture(scope="module")
def ids(tokenizer):
    return tokenizer(TEXT, return_tensors="pt").input_ids


@torch.no_grad()
def test_weights_are_its_patterns(model, bridge, ids):
    logits, cache = bridge.run_with_cache(ids)
    torch.testing.assert_close(logits, model(ids).logits, atol=1e-5, rtol=1e-4)
    with rg.watch(model, keep=True) as seen:
        model(ids)
    for layer in range(LAYERS):
        rows = seen.rows(layer, range(ids.shape[1]))
        torch.testing.assert_close(rows, cache["pattern", layer], atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_predictions_of_layers_are_its_logit_lens(model, bridge, tokenizer, ids):
    lens = logit_lens(bridge, ids, positions=None, return_type="probs")
    (example,) = rg.look(model, tokenizer, TEXT, attribute=[]).document.examples
    ours = torch.tensor(example.lens.probabilities.values()).float()
    theirs = lens.values[1:, 0].topk(ours.shape[-1]).values  # the first is before any layer
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)  # a page has 16 bits


@torch.no_grad()
def test_patched_heads_have_its_effects(model, bridge, ids):
    other = ids.clone()
    other[0, 3] = 44
    _, clean = bridge.run_with_cache(other)
    theirs = get_act_patch_attn_head_out_all_pos(
        bridge, ids.clone(), clean, lambda logits: logits[0, -1, 7] - logits[0, -1, 9]
    )
    ours = rg.patch(model, ids, other, target=7, against=9)
    torch.testing.assert_close(ours.values, theirs.float(), atol=1e-5, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("previous", "previous_token_head"),
        ("duplicate", "duplicate_token_head"),
        ("induction", "induction_head"),
    ],
)
def test_scores_of_heads_are_its_detections(ours, theirs, model, bridge):
    # Ours is a mean over the queries that have such a key, its one over all queries.
    shares, ids = detect_head(bridge, TEXT, theirs), bridge.to_tokens(TEXT)
    with rg.watch(model, keep=True) as seen:
        model(ids)
    for layer in range(LAYERS):
        scores = seen.head_scores(layer, ids[0].tolist())
        assert 0 < scores.queries[ours] < ids.shape[1]
        share = scores.queries[ours] / ids.shape[1]
        torch.testing.assert_close(
            scores.weight[ours] * share, shares[layer].float(), atol=1e-6, rtol=1e-4
        )
