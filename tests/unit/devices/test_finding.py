import pytest
import torch

from regard.devices import CPU, describe_device, device_of, find_device, finding
from regard.errors import SettingError


@pytest.fixture
def gpus(monkeypatch):
    """A machine with two GPUs, and a torch that knows them."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)


@pytest.fixture
def nothing(monkeypatch):
    """A machine with a CPU alone."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def test_auto_takes_what_is_fastest(nothing, monkeypatch):
    assert find_device() == CPU
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device("auto") == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_device("auto") == torch.device("cuda", 1)
    assert find_device("cpu") == CPU


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", "--device must be one of auto, cpu, cuda, mps; got 'gpu'. A GPU is cuda, "),
        ("GPU:1", "got 'GPU:1'. A GPU is cuda, that of a Mac mps; auto takes one"),
        ("cpu:0", "--device must be one of auto, cpu, cuda, mps; got 'cpu:0'"),
        ("Cuda", "--device must be one of .*; got 'Cuda'. Did you mean 'cuda'"),
        ("cuda:", "--device must be cuda, or cuda: and a number from 0; got 'cuda:'"),
        ("cuda:-1", "--device must be cuda, or cuda: and a number from 0; got 'cuda:-1'"),
        ("mps", "--device must be a device that can be used here; got 'mps', but that is the GPU"),
    ],
)
def test_a_device_that_is_none_is_refused(nothing, name, message):
    with pytest.raises(SettingError, match=message):
        find_device(name, setting="--device")


def test_a_torch_without_cuda_and_a_machine_without_driver_are_distinguished(nothing, monkeypatch):
    monkeypatch.setattr(finding.torch.version, "hip", None)
    monkeypatch.setattr(finding.torch.version, "cuda", None)
    with pytest.raises(SettingError, match=r"built without CUDA. Install one .* auto, which takes"):
        find_device("cuda:1", setting="training.device")
    monkeypatch.setattr(finding.torch.version, "cuda", "13.0")
    with pytest.raises(SettingError, match=r"'cuda', but torch finds no driver, .* nvidia-smi"):
        find_device("cuda", setting="training.device")


def test_a_gpu_beyond_the_last_is_refused(gpus, monkeypatch):
    assert find_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(SettingError, match="got 'cuda:2', but they end at cuda:1"):
        find_device("cuda:2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(SettingError, match="got 'cuda:1', but cuda:0 is the only one"):
        find_device("cuda:1")


def test_a_gpu_is_set_to_give_the_same_bits_each_time(gpus, monkeypatch):
    find_device("cuda")
    assert finding.os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    find_device("cuda")
    assert finding.os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"


def test_a_model_is_where_its_weights_are():
    assert device_of(torch.nn.Linear(2, 3, device="meta")) == torch.device("meta")
    norm = torch.nn.BatchNorm1d(3, affine=False)
    assert device_of(norm.to("meta")) == torch.device("meta")


def test_threads_and_memory_are_printed(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert describe_device(CPU) == "cpu, 2 threads"
    about = type("About", (), {"name": "NVIDIA H100", "total_memory": 79 * 2**30})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: about)
    assert describe_device(torch.device("cuda", 0)) == "cuda:0, NVIDIA H100 with 79 GiB"
    assert describe_device(torch.device("mps")) == "mps"
