"""Packages that import a name when it is asked for."""

import gc
import importlib
import pkgutil
import subprocess
import sys

import pytest

import regard
from regard.lazy import names

ALL = ["regard", *(each.name for each in pkgutil.walk_packages(regard.__path__, "regard."))]
PACKAGES = {name: importlib.import_module(name) for name in ALL if not name.endswith("__main__")}
LAZY = [name for name, package in PACKAGES.items() if vars(package).get("_names") is names]


def test_a_name_is_imported_once_and_kept(tmp_path):
    package = tmp_path / "drawers"
    package.mkdir()
    (package / "socks.py").write_text("class Sock: ...\nprint('opened')\n")
    (package / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\nfrom regard.lazy import names\n"
        "if TYPE_CHECKING:\n    from drawers.socks import Sock\n"
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
    closed, opened, found = done.stdout.splitlines()
    assert (closed, opened) == ("closed", "opened")
    assert "Sock" in found.split()


@pytest.mark.parametrize("name", LAZY)
def test_a_lazy_package_gives_every_name_of_its_list(name):
    package = PACKAGES[name]
    find = names(name, package.__file__)
    assert all(find(public) is getattr(package, public) for public in package.__all__)


@pytest.mark.parametrize("name", LAZY)
def test_no_public_name_of_a_lazy_package_is_one_of_its_modules(name):
    package = PACKAGES[name]
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert not modules & set(package.__all__)


def test_imports_are_frozen_where_that_is_asked_for(tmp_path):
    (tmp_path / "things.py").write_text("thing = [[] for _ in range(1000)]\n")
    package = tmp_path / "__init__.py"
    package.write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from things import thing\n"
    )
    code = (
        "import gc; from regard.lazy import freeze_imports, names; {first}\n"
        f"before = gc.get_freeze_count(); names('gc', {str(package)!r})('thing')\n"
        "print(gc.get_freeze_count() - before >= 1000, gc.isenabled())"
    )
    env = {"PYTHONPATH": f"{tmp_path}:{':'.join(filter(None, sys.path))}", "PATH": "/usr/bin"}
    for first, is_frozen in (("freeze_imports()", True), ("gc.freeze()", False)):
        command = [sys.executable, "-c", code.format(first=first)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [str(is_frozen), "True"]


def test_searches_for_garbage_go_on_after_an_import_as_before():
    find = names("regard.text", PACKAGES["regard.text"].__file__)
    gc.disable()
    try:
        find("normalize")
        assert not gc.isenabled()
    finally:
        gc.enable()
    find("PAD_ID")
    assert gc.isenabled()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'regard\.text' has no attribute 'Tokeniser'"):
        PACKAGES["regard.text"].Tokeniser  # noqa: B018
