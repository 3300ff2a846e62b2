import pytest
import torch
from scipy.stats import spearmanr
from tests.unit.interop.tiny_models import SIZES, V, gpt2, tiny
from torch.testing import assert_close

import regard as rg
from regard.errors import SettingError, ShapeError
from regard.interop import rank_correlation
from regard.models import Transformer, TransformerConfig

N = 7
SMALL = SIZES | {"num_hidden_layers": 2, "initializer_range": 0.5}


def bert(name="BertForMaskedLM"):
    return tiny(name, "BertConfig", **SMALL, num_labels=5)


def padded_inputs(padded=2):
    mask = torch.ones(1, N, dtype=torch.long)
    mask[:, N - padded :] = 0
    return {"input_ids": torch.randint(3, V, (1, N)), "attention_mask": mask}


def log_prob(logits, explained):
    position, token = explained.output
    chosen = logits[0] if logits.dim() == 2 else logits[0, position]
    return chosen.log_softmax(-1)[token]


@pytest.mark.parametrize("name", ["BertForMaskedLM", "BertForSequenceClassification"])
def test_a_removed_token_is_one_that_the_padding_mask_hides(name):
    model, inputs = bert(name), padded_inputs()
    explained = rg.faithfulness(model, inputs, rows=2)
    assert explained.positions.tolist() == list(range(N - 2))
    with torch.no_grad():
        assert_close(explained.log_prob, float(log_prob(model(**inputs).logits, explained)))
        for position in range(N - 2):
            mask = inputs["attention_mask"].clone()
            mask[:, position] = 0
            without = log_prob(model(**inputs | {"attention_mask": mask}).logits, explained)
            assert_close(explained.evidence["removed"][position], explained.log_prob - without)


def test_a_replaced_token_is_another_at_its_position():
    model, inputs = gpt2(eos_token_id=1, initializer_range=0.5), padded_inputs(0)
    explained = rg.faithfulness(model, inputs, (5, 4), replacement=3)
    assert explained.output == (5, 4)
    for position in range(N):
        ids = inputs["input_ids"].clone()
        ids[:, position] = 3
        with torch.no_grad():
            replaced = log_prob(model(**inputs | {"input_ids": ids}).logits, explained)
        assert_close(explained.evidence["removed"][position], explained.log_prob - replaced)
    assert_close(explained.evidence["removed"][6], torch.tensor(0.0), atol=1e-5, rtol=0)


def test_attention_and_rollout_are_those_of_the_watched_model():
    model, inputs = gpt2(eos_token_id=1, initializer_range=0.5), padded_inputs(0)
    explained = rg.faithfulness(model, inputs, (4, None))
    with torch.no_grad(), rg.watch(model, keep=True) as watched:
        model(**inputs)
    rows = torch.stack([watched.rows(layer, [4])[0, :, 0] for layer in (0, 1)])
    assert_close(explained.evidence["attention"], rows.mean((0, 1)))
    assert_close(explained.evidence["rollout"], watched.rollout([4])[0, 0])
    assert list(explained.evidence) == ["removed", "gradient", "attention", "rollout"]
    assert len(explained.correlation) == 6


def test_a_translation_is_explained_by_its_source():
    config = TransformerConfig(
        model_dim=12, num_heads=3, num_encoder_layers=2, num_decoder_layers=2, ffn_dim=11
    )
    model = Transformer(config, source_vocab=V, target_vocab=V).eval()
    inputs = {
        "source": torch.randint(4, V, (1, N)),
        "source_lengths": torch.tensor([5]),
        "target": torch.randint(4, V, (1, 3)),
    }
    explained = rg.faithfulness(model, inputs)
    assert explained.output[0] == 2
    assert explained.positions.tolist() == [0, 1, 2, 3, 4]
    # The last word of a source can be left out by its length alone.
    shorter = inputs | {"source_lengths": torch.tensor([4])}
    with torch.no_grad():
        without = log_prob(model.project(model(**shorter)[0]), explained)
    assert_close(explained.evidence["removed"][4], explained.log_prob - without)
    assert_close(explained.evidence["attention"].sum(), torch.tensor(1.0))
    assert "rank correlation" in str(explained)


@pytest.mark.parametrize("few", [3, 1000])
def test_rank_correlation_is_spearmans_also_with_ties(few):
    one, other = torch.randint(few, (50,)).double(), torch.randint(few, (50,)).double()
    assert rank_correlation(one, other) == pytest.approx(spearmanr(one, other).statistic)


def test_what_cannot_be_explained_is_an_error():
    model, inputs = bert(), padded_inputs()
    with pytest.raises(ShapeError, match="inputs must be of one text; got input_ids of 2"):
        rg.faithfulness(model, {"input_ids": torch.zeros(2, N, dtype=torch.long)})
    with pytest.raises(SettingError, match=f"output must be at a position below {N}; got 9"):
        rg.faithfulness(model, inputs, (9, None))
    with pytest.raises(SettingError, match=f"output must be a token below {V}; got {V}"):
        rg.faithfulness(model, inputs, (0, V))
    with pytest.raises(SettingError, match="model must be in evaluation mode; got training"):
        rg.faithfulness(model.train(), inputs)
    with pytest.raises(SettingError, match="model must give logits"):
        rg.faithfulness(bert("BertModel"), inputs)
