"""One package names devices; all others take the device as an argument."""

import ast
import re
from pathlib import Path

import regard

PACKAGE = Path(regard.__file__).parent
NAMES = ("cpu", "cuda", "mps")
WORDS = r"""["'](cpu|cuda|mps)|\.(cuda|mps|xpu)\("""  # without which a file need not be parsed
# Where a CPU is meant, whatever else there is, and why.
EXCEPTIONS = {
    "attention/masks/base.py": "a mask that is bound or drawn by itself is nowhere yet",
    "attention/inspect/softmax_statistics.py": "compiled loops, which run on a CPU only",
}


def named_devices(tree):
    """``.cuda()``, ``torch.device("cpu")``, ``device="cpu"`` and ``.to("cpu")`` in a file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            if isinstance(node, ast.arguments):
                named = zip(reversed(node.args), reversed(node.defaults), strict=False)
                yield from (
                    f"{a.arg}=" for a, d in named if a.arg == "device" and is_device_name(d)
                )
                keyword = zip(node.kwonlyargs, node.kw_defaults, strict=True)
                yield from (
                    f"{a.arg}=" for a, d in keyword if a.arg == "device" and is_device_name(d)
                )
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in ("cuda", "mps", "xpu"):
            yield f".{name}()"
        if name in ("device", "to") and node.args and is_device_name(node.args[0]):
            yield f".{name}({ast.unparse(node.args[0])})"
        for keyword in node.keywords:
            if keyword.arg == "device" and is_device_name(keyword.value):
                yield f"device={ast.unparse(keyword.value)}"


def is_device_name(node):
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text and node.value.partition(":")[0] in NAMES


def test_what_names_a_device_would_be_found():
    names = ["x.cuda()", 'torch.device("cpu")', 'f(device="cuda:1")', 'x.to("mps")']
    names += ['def f(device="cpu"): ...', 'def f(*, device="cpu"): ...']
    for text in names:
        assert re.search(WORDS, text), text
        assert list(named_devices(ast.parse(text))), text
    for text in ["x.to(y.device)", "f(device=device)", "x.cpu()", 'd.type == "cuda"', 'to("text")']:
        assert not list(named_devices(ast.parse(text))), text


def test_only_the_room_of_devices_names_one():
    named_by_file = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file, text = path.relative_to(PACKAGE).as_posix(), path.read_text("utf-8")
        if file.startswith("devices/") or not re.search(WORDS, text):
            continue
        if named := list(named_devices(ast.parse(text))):
            named_by_file[file] = named
    assert named_by_file.keys() == EXCEPTIONS.keys(), named_by_file
