"""Packages that import a name at its first use."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import regard
from regard.lazy import names

ALL = ["regard", *(each.name for each in pkgutil.walk_packages(regard.__path__, "regard."))]
PACKAGES = {name: importlib.import_module(name) for name in ALL if not name.endswith("__main__")}
LAZY = [name for name, package in PACKAGES.items() if vars(package).get("_names") is names]


def test_a_name_is_imported_once_and_cached(tmp_path):
    package = tmp_path / "drawers"
    package.mkdir()
    (package / "socks.py").write_text("class Sock: ...\nprint('opened')\n")
    (package / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\nfrom regard.lazy import names\n"
        "if TYPE_CHECKING:\n    from drawers.socks import Sock as Sock\n"
        "__getattr__ = names(__name__, __file__)\n"
    )
    code = "import drawers; print('closed'); drawers.Sock; drawers.Sock; print(*vars(drawers))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{tmp_path}:{':'.join(filter(None, sys.path))}", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    closed, opened, names_found = done.stdout.splitlines()
    assert (closed, opened) == ("closed", "opened")
    assert "Sock" in names_found.split()


def test_an_old_name_works_and_says_the_new_one(tmp_path, monkeypatch):
    package = tmp_path / "shelves"
    package.mkdir()
    (package / "boxes.py").write_text("class Box: ...\n")
    (package / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\nfrom regard.lazy import names\n"
        "if TYPE_CHECKING:\n    from shelves.boxes import Box as Box\n"
        "__getattr__ = names(__name__, __file__, renamed={'Carton': 'Box'})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    shelves = importlib.import_module("shelves")
    with pytest.warns(
        DeprecationWarning, match=r"^shelves.Carton is called shelves.Box now; "
    ) as at:
        assert shelves.Carton is shelves.Box
    assert at[0].filename == __file__
    assert shelves.__all__ == ["Box"]


def test_a_package_may_lie_in_a_zip(tmp_path):
    home = Path(regard.__file__).parent
    with ZipFile(tmp_path / "regard.zip", "w") as archive:
        for file in home.rglob("*.py"):
            archive.write(file, Path("regard") / file.relative_to(home))
    code = (
        "import regard, torch; print(regard.attend(*torch.ones(2, 1, 3)).tolist());"
        "print(len(dir(regard)), getattr(regard, 'atend', 'no such name'), regard.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{tmp_path / 'regard.zip'}", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    mixed, names_found = done.stdout.splitlines()
    assert mixed == "[[1.0, 1.0, 1.0]]"
    assert names_found.endswith(f"no such name {tmp_path}/regard.zip/regard/__init__.py")


@pytest.mark.parametrize("name", LAZY)
def test_a_lazy_package_gives_every_name_of_its_list(name):
    package = PACKAGES[name]
    find = names(name, package.__file__)
    assert all(find(public) is getattr(package, public) for public in package.__all__)
    assert {*regard.__all__} <= {*dir(regard)}
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert not modules & set(package.__all__)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("MultiheadAttention", "regard.layers.MultiHeadAttention"),
        ("casual", "regard.causal"),
        ("atend", "regard.attend"),
        ("scaled_dot_product_attention", "regard.attend"),
        ("evaluate", r"regard.load\(RUN\).evaluate"),
        ("Transformer", "regard.models.Transformer"),
    ],
)
def test_a_name_of_elsewhere_is_answered_with_ours(name, meant):
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. Did you mean {meant}\?"):
        getattr(PACKAGES["regard"], name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'regard' has no attribute 'foo'$"):
        PACKAGES["regard"].foo  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'regard\.text' has no attribute 'Tokeniser'"):
        PACKAGES["regard.text"].Tokeniser  # noqa: B018
    assert not hasattr(PACKAGES["regard"], "no.module")
