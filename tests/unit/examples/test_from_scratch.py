"""The Transformer of chapter 8: the page's lines, the library's outputs, trained by its script."""

import re
from pathlib import Path

import pytest
import torch
from examples.experiments import from_scratch
from examples.experiments.from_scratch import Transformer, from_library

from regard.models import Transformer as LibraryTransformer
from regard.models import TransformerConfig

COURSE = Path(__file__).parents[3] / "docs" / "course"


@pytest.fixture
def both():
    """The library's model and the one from scratch, with the same parameters."""
    torch.manual_seed(5)
    config = TransformerConfig(
        model_dim=42, num_heads=3, ffn_dim=31, num_encoder_layers=2, num_decoder_layers=2
    )
    library = LibraryTransformer(config, source_vocab=17, target_vocab=19).eval()
    for parameter in library.parameters():  # biases and norms too
        if parameter.dim() == 1:
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
        else:
            torch.nn.init.normal_(parameter, std=42**-0.5)
    scratch = Transformer(17, 19, 42, 3, 31, 2, 0.1).eval()
    scratch.load_state_dict(dict(from_library(library.named_parameters())))
    return library, scratch


@torch.no_grad()
def test_its_outputs_are_those_of_the_library(both):
    library, scratch = both
    source = torch.tensor(
        [[4, 9, 16, 5, 7, 11, 13], [8, 6, 14, 0, 0, 0, 0], [12, 4, 5, 10, 9, 0, 0]]
    )
    target = torch.tensor([[2, 5, 18, 7, 4], [2, 9, 6, 3, 0], [2, 11, 17, 8, 12]])
    states, _ = library(source, (source != 0).sum(1), target)
    torch.testing.assert_close(scratch(source, target), library.project(states), rtol=0, atol=1e-5)


def test_its_gradients_are_those_of_the_library(both):
    library, scratch = (model.double() for model in both)
    source, target = (
        torch.tensor([[4, 9, 16, 5], [8, 6, 0, 0]]),
        torch.tensor([[2, 5, 18], [2, 9, 6]]),
    )
    states, _ = library(source, (source != 0).sum(1), target)
    library.project(states).logsumexp(-1).sum().backward()
    scratch(source, target).logsumexp(-1).sum().backward()
    expected = dict(from_library((n, p.grad) for n, p in library.named_parameters()))
    for name, parameter in scratch.named_parameters():
        # A bias of the keys changes no weight: its gradient is zero but for rounding.
        tolerance = 1e-10 if name.endswith("key.bias") else 1e-6 * expected[name].abs().max()
        assert (parameter.grad - expected[name]).abs().max() <= tolerance, name


def test_a_wrong_line_would_be_found(both):
    library, scratch = both
    scratch.decoder[0].cross_attend.key.weight.data.mul_(1.1)
    with pytest.raises(AssertionError, match="not close"):
        test_its_outputs_are_those_of_the_library((library, scratch))


def test_a_later_word_of_the_target_changes_nothing_before(both):
    source, target = torch.tensor([[4, 9, 16]]), torch.tensor([[2, 5, 18, 7]])
    changed = torch.tensor([[2, 5, 18, 9]])
    logits = [both[1](source, each)[:, :3] for each in (target, changed)]
    torch.testing.assert_close(*logits)


@pytest.mark.parametrize("page", ["transformer.md", "transformer.zh.md"])
def test_the_chapter_has_the_lines_of_the_example(page):
    source = Path(from_scratch.__file__).read_text("utf-8")
    model = source[source.index("class Attention") : source.index("UNKNOWN, BEGIN")].strip()
    assert len(model.splitlines()) < 120
    assert "regard" not in model
    text = (COURSE / page).read_text("utf-8")
    section = re.search(r"^## 8\.8 .*?^!!! ", text, re.DOTALL | re.MULTILINE)[0]
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert "\n\n\n".join(block.strip() for block in blocks[:-1]) == model


@pytest.mark.slow
def test_its_script_trains_both_alike(capsys):
    from_scratch.main(updates=4, seeds=2, num_test=20)
    lines = capsys.readouterr().out.splitlines()
    losses = [float(line) for line in re.findall(r"loss (\d+\.\d+)", "\n".join(lines))]
    assert losses[::2] == pytest.approx(losses[1::2], abs=0.011)
    assert losses[0] != losses[2]  # of another seed
    assert lines[-1].endswith("(2 seeds, 95 %)")


def test_its_interval_is_students():
    from scipy import stats

    quantiles = [stats.t.ppf(0.975, degrees) for degrees in range(1, len(from_scratch.STUDENT) + 1)]
    assert pytest.approx(quantiles, abs=0.005) == from_scratch.STUDENT
