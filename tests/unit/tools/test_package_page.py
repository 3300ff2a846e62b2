"""The page of the package: no link leads nowhere, and no address is made up."""

import re
from pathlib import Path

import pytest
from tools.package_page import PackagePage, alone, with_address

ROOT = Path(__file__).parents[3]
TARGET = re.compile(r"\]\(([^)]+)\)")


@pytest.fixture
def metadata(monkeypatch):
    def build(home):
        monkeypatch.setenv("REGARD_HOME", home)
        fields = {}
        PackagePage(str(ROOT), {}).update(fields)
        return fields

    return build


def test_without_an_address_nothing_relative_is_left(metadata):
    fields = metadata("")
    targets = TARGET.findall(fields["readme"]["text"])
    assert all(target.startswith("http") for target in targets)
    assert "![" not in fields["readme"]["text"]
    assert fields["urls"] == {}


def test_with_an_address_links_and_pictures_lead_there(metadata):
    fields = metadata("https://host.example/regard/")
    targets = TARGET.findall(fields["readme"]["text"])
    assert "https://host.example/regard/raw/main/docs/figures/demo-page.png" in targets
    assert "https://host.example/regard/blob/main/docs/training.md" in targets
    assert all(target.startswith("http") for target in targets)
    assert fields["urls"]["Homepage"] == "https://host.example/regard"


def test_links_elsewhere_and_to_headings_stay():
    text = "[a](https://host.example/a) [b](#b)"
    assert alone(text) == with_address(text, "https://other.example") == text
