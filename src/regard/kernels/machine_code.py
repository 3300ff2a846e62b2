"""Cache of the machine code of compiled loops, from which they are loaded without numba.

numba caches its machine code, but importing it takes longer than most answers. Beside its files lie
those of this module: an object file as LLVM made it, one for each loop and kind of arguments, with
the names of its symbols. LLVM loads it by itself.
"""

import ctypes
import json
import os
import platform
import sys
import zlib
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

# Variables of numba that change nothing in the code.
_NOT_OF_CODE = {"NUMBA_NUM_THREADS", "NUMBA_CACHE_DIR"}
# Functions of Intel's vector library begin so: only numba knows where it lies.
_SVML = b"__svml_"


@cache
def cache_folder() -> Path:
    """Folder of compiled loops; one for each state of this room, of which numba sees one module."""
    home = os.environ.get("XDG_CACHE_HOME")
    code = sha256()
    for module in sorted(Path(__file__).parent.rglob("*.py")):
        code.update(module.read_bytes())
    base = Path(home) if home else Path.home() / ".cache"
    return base / "regard" / "kernels" / code.hexdigest()[:16]


@cache
def folder() -> Path | None:
    """Folder of machine code for this processor and numba; None where there can be none."""
    if sys.platform != "linux" or Path(".numba_config.yaml").exists():
        return None
    try:
        import llvmlite
        from llvmlite import binding

        root = _root()
        if root is None:
            return None
        made = (root / "_version.py").stat()
        features = sorted(binding.get_host_cpu_features().items())
        settings = sorted(
            setting
            for setting in os.environ.items()
            if setting[0].startswith("NUMBA_") and setting[0] not in _NOT_OF_CODE
        )
        versions = [sys.version, platform.machine(), np.__version__, llvmlite.__version__]
        numba = [str(root), made.st_mtime_ns, made.st_size]
        fingerprint = repr((versions, numba, binding.get_host_cpu_name(), features, settings))
        return cache_folder() / f"machine_code-{sha256(fingerprint.encode()).hexdigest()[:16]}"
    except Exception:  # whatever is wrong with llvmlite, numba will say it
        return None


def _root() -> Path | None:
    """The folder of numba, which is not imported."""
    spec = find_spec("numba")
    locations = spec.submodule_search_locations if spec else None
    return Path(locations[0]) if locations else None


def is_there() -> bool:
    """Whether this numba has compiled here before, which says that it can be imported."""
    directory = folder()
    return directory is not None and directory.exists()


def name(function: Callable[..., object], arguments: tuple[object, ...]) -> str | None:
    """File name of a loop for such arguments; None for types that have no name here."""
    try:
        kinds = ",".join(map(_kind_of, arguments))
    except TypeError:
        return None
    code = sha256(kinds.encode()).hexdigest()[:16]
    return f"{function.__module__}.{function.__qualname__}-{code}"


def _kind_of(argument: object) -> str:
    """The type of an argument, as far as numba distinguishes types."""
    if type(argument) is np.ndarray:
        flags = argument.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        rights = f"{flags.writeable:d}{flags.aligned:d}"
        return f"{argument.dtype.str}{argument.ndim}{layout}{rights}"
    if isinstance(argument, np.generic):
        return argument.dtype.str
    kind = type(argument)
    if isinstance(argument, tuple):
        return f"{kind.__module__}.{kind.__qualname__}({','.join(map(_kind_of, argument))})"
    if kind in (int, float, bool, type(None)):
        return kind.__name__
    raise TypeError(kind)


def load(name: str | None, function: Callable[..., object]) -> Callable[..., None] | None:
    """The loop as a Python function; None if its machine code is not cached."""
    directory = folder()
    if directory is None or name is None:
        return None
    try:
        head, _, code = (directory / name).read_bytes().partition(b"\n")
        header = json.loads(head)
        if zlib.crc32(code) != header["checksum"]:
            return None
    except (OSError, ValueError, KeyError):
        return None
    return _link(code, header["wrapper"], header["environments"], function)


def _link(
    code: bytes, wrapper: str, environments: list[str], function: Callable[..., object]
) -> Callable[..., None]:
    from llvmlite import binding

    functions = _helpers()
    target = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target)
    file = binding.ObjectFileRef.from_data(code)
    engine.add_object_file(file)
    engine.finalize_object()
    assert isinstance(function, FunctionType)
    environment = functions.Environment(function.__globals__)
    for name in environments:
        slot = engine.get_global_value_address(name)
        ctypes.c_void_p.from_address(slot).value = id(environment)
    module = sys.modules[function.__module__]
    alive = (engine, file, code, environment)
    address = engine.get_function_address(wrapper)
    made: Callable[..., None] = functions.make_function(
        module, function.__name__, function.__doc__ or "", address, environment, alive
    )
    return made


@cache
def _helpers() -> ModuleType:
    """Give LLVM the addresses of functions that the code calls; return numba's ``_dynfunc``."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.add_symbol("_Py_NoneStruct", id(None))
    functions = _extension("_dynfunc")
    groups = [("numba_", _extension("_helperlib")), ("numba_", functions)]
    for prefix, module in (*groups, ("NRT_", _extension("core.runtime._nrt_python"))):
        for name, address in module.c_helpers.items():
            binding.add_symbol(name if name.startswith("_") else prefix + name, address)
    return functions


def _extension(name: str) -> ModuleType:
    """A module of numba written in C, without the package around it."""
    full = f"numba.{name}"
    if "numba" in sys.modules:
        return import_module(full)
    root = _root()
    assert root is not None
    folders = name.split(".")[:-1]
    spec = PathFinder.find_spec(full, [str(root.joinpath(*folders))])
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def store(name: str | None, dispatcher: Any, arguments: tuple[object, ...]) -> None:
    """Cache the machine code of a loop from numba's own cache, if it is there."""
    directory = folder()
    if directory is None or name is None:
        return
    try:
        kinds = tuple(dispatcher.typeof_pyval(argument) for argument in arguments)
        codegen = dispatcher.overloads[kinds].target_context.codegen()
        index = dispatcher._cache._index_key(kinds, codegen)
        data = dispatcher._cache._cache_file.load(index)
        (_, form, content), description, *_, referenced = data
        environments = [data[2], *referenced]
        if form != "object" or data[7] or any(environment.consts for environment in environments):
            return
        code: bytes = content[0]
    except Exception:  # these are inner parts of numba, which other versions may not have
        return
    if _SVML in code:
        return
    header = {
        "checksum": zlib.crc32(code),
        "wrapper": description.llvm_cpython_wrapper_name,
        "environments": [environment.env_name for environment in environments],
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        unfinished = directory / f"{name}.{os.getpid()}"
        unfinished.write_bytes(json.dumps(header).encode() + b"\n" + code)
        unfinished.replace(directory / name)
    except OSError:
        return
