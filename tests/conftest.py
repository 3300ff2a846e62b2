"""What every test may ask for: a seed, the corpora, the tolerance of a dtype."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from functools import wraps
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import jaxtyping
import pytest
import torch

# Processes that tests start write as those of a shell do: a buffer, and a last flush of it.
os.environ.pop("PYTHONUNBUFFERED", None)

CORPORA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))

# Largest error of a result of order one, by dtype: a few roundings of a sum of some ten terms.
TOLERANCE = {
    torch.float64: 1e-10,
    torch.float32: 2e-5,
    torch.bfloat16: 3e-2,
    torch.float16: 4e-3,
}


# Checks of shapes take longer than most functions they are around, and the hundredth call in a test
# shows nothing that the first ones did not: each test checks the first calls of a function. One
# made inside of another is made anew by each call of that, so its makings are counted.
CHECKED_CALLS = 5
_SEEN: Counter[CodeType] = Counter()
_jaxtyped = vars(jaxtyping)["jaxtyped"]


def _checked_at_first(typechecker: object) -> Callable[[object], object]:
    def decorated(made: object) -> object:
        if not isinstance(made, FunctionType):
            return _jaxtyped(typechecker=typechecker)(made)
        code = made.__code__
        if "<locals>" in made.__qualname__:
            _SEEN[code] += 1
            is_enough = jaxtyping.config.jaxtyping_disable or _SEEN[code] > CHECKED_CALLS
            return made if is_enough else _jaxtyped(typechecker=typechecker)(made)
        checked = _jaxtyped(typechecker=typechecker)(made)

        @wraps(made)
        def checked_at_first(*given: object, **named: object) -> object:
            _SEEN[code] += 1
            return (checked if _SEEN[code] <= CHECKED_CALLS else made)(*given, **named)

        return checked_at_first

    return decorated


vars(jaxtyping)["jaxtyped"] = _checked_at_first


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _seen_anew() -> None:
    _SEEN.clear()


@pytest.fixture
def unchecked_shapes() -> Iterator[None]:
    """Switch the net of shape checks off, to reach the errors users meet without it."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def corpora() -> Path:
    """The folder of real corpora; the test is skipped where it is absent."""
    if not CORPORA.is_dir():
        pytest.skip(f"no corpora at {CORPORA}; set REGARD_DATA to their folder")
    return CORPORA


@pytest.fixture(scope="module")
def as_users_have_it(request: pytest.FixtureRequest) -> Iterator[None]:
    """The package without the shape checks around its functions: compilers cannot trace those."""
    with pytest.MonkeyPatch.context() as patch:
        # For functions out of reach, and for those made inside of functions.
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        patch.setattr(jaxtyping, "jaxtyped", lambda typechecker: lambda function: function)
        _take_checks_off(request.module, patch)
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "regard":
                _take_checks_off(module, patch)
                for each in vars(module).values():
                    if isinstance(each, type) and each.__module__ == name:
                        _take_checks_off(each, patch)
        yield


def _take_checks_off(owner: ModuleType | type, patch: pytest.MonkeyPatch) -> None:
    def plain(function: object) -> FunctionType | None:
        found = None
        while isinstance(function, FunctionType) and (
            function.__code__ is at_first or function.__globals__ is checker
        ):
            function = found = vars(function)["__wrapped__"]
        return found

    example = _checked_at_first(None)(_take_checks_off)
    at_first = example.__code__ if isinstance(example, FunctionType) else None
    checker = sys.modules["jaxtyping._decorator"].__dict__
    for name, each in list(vars(owner).items()):
        if isinstance(each, staticmethod | classmethod) and (own := plain(each.__func__)):
            patch.setattr(owner, name, type(each)(own))
        elif isinstance(each, property) and (own := plain(each.fget)):
            patch.setattr(owner, name, property(own))
        elif own := plain(each):
            patch.setattr(owner, name, own)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for the corpora is a test of data."""
    for item in items:
        if "corpora" in getattr(item, "fixturenames", ()):
            item.add_marker("data")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under CI=true, a test of data or of the browser that is skipped has failed."""
    report = yield
    is_needed = any(item.get_closest_marker(name) for name in ("data", "browser"))
    if os.environ.get("CI") == "true" and is_needed and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"must not be skipped where CI=true: {report.longrepr}"
    return report
