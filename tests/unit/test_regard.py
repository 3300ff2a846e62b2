"""The package itself: quick to import, and its names lead where they say."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import regard


def test_importing_the_package_alone_loads_no_torch():
    code = "import sys, regard; print(regard.__version__, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [regard.__version__, "False"]


def test_the_package_is_built_as_the_version_it_says():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["version"] == regard.__version__


@pytest.mark.parametrize("name", regard.__all__)
def test_every_name_leads_somewhere(name):
    assert getattr(regard, name).__doc__
    assert name in dir(regard)


def test_the_list_of_names_is_sorted():
    assert sorted(regard.__all__) == regard.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'atend'"):
        regard.atend  # noqa: B018
