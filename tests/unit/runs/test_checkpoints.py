from collections import OrderedDict

import pytest
import torch

from regard.errors import RunError
from regard.runs import DamageError, RunWarning, average
from regard.runs.checkpoints import (
    build_filled,
    checkpoints,
    newest_checkpoints,
    prune,
    save_checkpoint,
)


def save(home, step, value=1.0):
    return save_checkpoint(home, step, {"w": torch.full((3,), value)}, {"step": torch.tensor(step)})


def steps(home):
    return [checkpoint.step for checkpoint in checkpoints(home)]


def damage(checkpoint, name="model.safetensors"):
    path = checkpoint.folder / name
    content = bytearray(path.read_bytes())
    content[-3] ^= 4
    path.write_bytes(content)


def test_a_checkpoint_comes_back_with_what_was_saved(tmp_path):
    model = torch.nn.Linear(2, 3)
    saved = save_checkpoint(tmp_path, 12, model.state_dict(), {"lr": 0.5}, metrics_length=7)
    assert saved.folder == tmp_path / "000000012"
    assert (saved.step, saved.metrics_length, saved.load_trainer()) == (12, 7, {"lr": 0.5})
    assert all(torch.equal(w, model.state_dict()[name]) for name, w in saved.load_model().items())


@pytest.mark.parametrize("name", ["model.safetensors", "state.safetensors", "state.json"])
def test_every_flipped_bit_cut_or_loss_of_a_file_is_found(tmp_path, name):
    checkpoint = save(tmp_path, 1)
    path = checkpoint.folder / name
    content = path.read_bytes()
    for index in range(len(content)):
        flipped = bytearray(content)
        flipped[index] ^= 1 << index % 8
        path.write_bytes(flipped)
        with pytest.raises(DamageError, match=name):
            checkpoint.check()
    for broken in (content[:-1], content + b"\n", b""):
        path.write_bytes(broken)
        with pytest.raises(DamageError, match=name):
            checkpoint.check()
    path.unlink()
    with pytest.raises(DamageError, match=name):
        checkpoint.check()
    path.write_bytes(content)
    checkpoint.check()


def test_a_damaged_checkpoint_gives_way_to_the_one_before_with_a_warning(tmp_path):
    saved = [save(tmp_path, step) for step in (1, 2, 3, 10)]
    damage(saved[3], "state.json")
    damage(saved[1])
    with pytest.warns(RunWarning, match=r"000000010/state\.json .*: damaged\. The .*: step 3\."):
        assert newest_checkpoints(tmp_path) == [saved[2]]
    with pytest.warns(RunWarning, match="damaged and not used"):
        assert newest_checkpoints(tmp_path, 2) == [saved[0], saved[2]]


def test_no_checkpoint_is_no_error_and_only_damaged_ones_are(tmp_path):
    assert newest_checkpoints(tmp_path / "absent") == []
    damage(save(tmp_path, 1))
    with pytest.raises(RunError, match=r"got 1, all damaged .* delete it to train from the start"):
        newest_checkpoints(tmp_path)


def test_unfinished_and_foreign_folders_are_not_checkpoints(tmp_path):
    for name in (".tmp-000000001", ".old-000000002", "notes"):
        (tmp_path / name).mkdir()
    assert checkpoints(tmp_path) == []


def test_saving_a_step_again_replaces_it_only_if_it_changed(tmp_path):
    saved = save(tmp_path, 1, value=1.0)
    written = (saved.folder / "state.json").stat().st_mtime_ns
    save(tmp_path, 1, value=1.0)
    assert (saved.folder / "state.json").stat().st_mtime_ns == written
    save(tmp_path, 1, value=2.0)
    assert saved.load_model()["w"].tolist() == [2, 2, 2]
    damage(saved)
    save(tmp_path, 1, value=2.0)
    saved.check()
    assert [path.name for path in tmp_path.iterdir()] == ["000000001"]


def test_a_step_below_zero_is_refused(tmp_path):
    with pytest.raises(RunError, match="step must be at least 0 to be saved; got -1"):
        save(tmp_path, -1)


@pytest.mark.parametrize(("best", "remaining"), [(None, [4, 5]), (2, [2, 4, 5]), (5, [4, 5])])
def test_prune_keeps_the_last_and_the_best(tmp_path, best, remaining):
    for step in range(1, 6):
        save(tmp_path, step)
    prune(tmp_path, keep_last=2, best=best)
    assert steps(tmp_path) == remaining
    prune(tmp_path, keep_last=9)
    assert steps(tmp_path) == remaining


def test_average_of_one_or_of_equal_weights_is_exact(tmp_path):
    weights = {"w": torch.randn(50), "half": torch.randn(50).bfloat16(), "n": torch.tensor([3])}
    saved = [save_checkpoint(tmp_path, step, weights, None) for step in (1, 2, 3)]
    for count in (1, 3):
        mean = average(saved[:count])
        assert all(torch.equal(mean[name], weights[name]) for name in weights)
        assert [mean[name].dtype for name in weights] == [w.dtype for w in weights.values()]


def test_average_is_the_mean_in_float64_rounded_once(tmp_path):
    values = [torch.randn(1000) * 10.0**power for power in (0, 3, -3, 6, 0)]
    saved = [
        save_checkpoint(tmp_path, step, {"w": value, "n": torch.tensor([step])}, None)
        for step, value in enumerate(values)
    ]
    mean = average(saved)
    assert torch.equal(mean["w"], torch.stack(values).double().mean(0).float())
    assert not torch.equal(mean["w"], sum(values[1:], values[0]) / 5)  # float32 sums would differ
    assert mean["n"].tolist() == [4]


def test_average_keeps_tied_weights_tied(tmp_path):
    for step in (1, 2):
        table = torch.full((2,), float(step))
        save_checkpoint(tmp_path, step, OrderedDict(embedding=table, output=table), None)
    mean = average(checkpoints(tmp_path))
    assert mean["embedding"] is mean["output"]
    assert mean["output"].tolist() == [1.5, 1.5]


def test_average_of_nothing_or_of_two_models_is_refused(tmp_path):
    with pytest.raises(RunError, match="at least one checkpoint; got none"):
        average([])
    saved = [
        save_checkpoint(tmp_path, 1, {"w": torch.ones(2)}, None),
        save_checkpoint(tmp_path, 2, {"w": torch.ones(3)}, None),
    ]
    with pytest.raises(RunError, match=r"000000001 and .*000000002 must be of one model"):
        average(saved)


def test_many_names_of_one_tensor_make_no_room_for_a_large_model(tmp_path):
    tensors = dict.fromkeys((f"x{n}" for n in range(5000)), torch.ones(10_000))
    with pytest.raises(RunError, match="no more than 5000 tensors of 20,000 numbers"):
        build_filled(lambda: torch.nn.Linear(10_000, 4000), tensors, tmp_path)
