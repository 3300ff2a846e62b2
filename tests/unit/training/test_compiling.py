"""``training.compile``: one program for batches of all sizes; messages where it fails."""

import pytest
import torch

from regard.errors import TrainingError

COMPILE = torch.nn.Module.compile


@pytest.fixture
def programs(monkeypatch, as_users_have_it):
    """The programs that were made; torch's own compiler would take minutes over them."""
    torch._dynamo.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def compile_model(model, **settings):
        return COMPILE(model, backend=backend, **settings)

    monkeypatch.setattr(torch.nn.Module, "compile", compile_model)
    return graphs


def test_a_compiled_training_is_the_same_and_compiles_once_for_batches_of_all_sizes(
    toy, tmp_path, programs
):
    toy.fit(tmp_path / "plain", model=model(toy), updates=20)
    assert not programs
    trainer, _ = toy.fit(tmp_path / "run", model=model(toy), updates=20, compile=True)
    # One program to learn with and one to validate with.
    assert 1 <= len(programs) <= 3
    assert toy.losses(tmp_path / "run") == pytest.approx(toy.losses(tmp_path / "plain"), rel=1e-5)
    assert trainer.model._compiled_call_impl is None


def model(toy):
    torch.manual_seed(1)
    return toy.Model(dropout=0.0)


def test_where_it_cannot_be_compiled_the_error_names_the_cure(
    toy, tmp_path, monkeypatch, as_users_have_it
):
    torch._dynamo.reset()

    def backend(graph, inputs):
        raise OSError("no compiler")

    monkeypatch.setattr(
        torch.nn.Module, "compile", lambda model, **more: COMPILE(model, backend=backend, **more)
    )
    with pytest.raises(
        TrainingError,
        match=r"training.compile must be false where .* no compiler .*--set training.compile=false",
    ):
        toy.fit(tmp_path / "run", model=model(toy), compile=True)
