"""A run in one file: the same bytes again, and nothing that others may have put into it."""

import stat
import struct
import tempfile
import zipfile
from pathlib import Path

import pytest
import torch

from regard.errors import RunError
from regard.runs import DamageError, Run, RunWarning, is_bundle
from regard.runs.bundle import unpack
from regard.runs.card import SHIPPED
from regard.runs.overview import overview_of
from regard.runs.packing import pack

README = "# A run\n"


def make_run(path, *, finished=True):
    with Run.create(path, {"task": "translation"}, "translation") as run:
        with run.new_tokenizer_folder() as folder:
            (folder / "source").mkdir()
            (folder / "source" / "tokenizer.json").write_text('{"type": "words"}')
        if finished:
            run.finish({"w": torch.arange(6.0)}, {"updates": 3})
    return run


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run")


@pytest.fixture
def bundle(run, tmp_path):
    pack(run, tmp_path / "a.regard", readme=README)
    return tmp_path / "a.regard"


def test_it_holds_the_run_byte_for_byte(run, bundle):
    opened = Run.open(bundle)
    names = ["run.json", "recipe.toml", "model.safetensors"]
    names += ["tokenizer/checksums.json", "tokenizer/source/tokenizer.json"]
    for name in names:
        assert (opened.folder / name).read_bytes() == (run.path / name).read_bytes()
    assert (opened.folder / "README.md").read_text() == README
    assert torch.equal(opened.load_model()["w"], torch.arange(6.0))
    assert opened.tokenizer_folder.is_dir()
    assert (opened.task, opened.summary) == ("translation", {"updates": 3})
    assert opened.metrics() == []


def test_the_same_run_is_the_same_file(run, bundle, tmp_path):
    again = tmp_path / "b.regard"
    pack(Run.open(bundle), again, readme=README)
    assert again.read_bytes() == bundle.read_bytes()


def test_it_names_no_folder_of_who_trained(tmp_path):
    recipe = {
        "task": "translation",
        "data": {"train": ["/home/mary/pairs.tsv"], "test": "held_out", "source_language": "zh"},
        "training": {"pretrained": "/home/mary/runs/read", "keep": 3},
    }
    with Run.create(tmp_path / "run", recipe, "translation") as run:
        with run.new_tokenizer_folder() as folder:
            (folder / "tokenizer.json").write_text("{}")
        run.change(5, {"data.valid": (None, ["/home/mary/valid.tsv"]), "training.keep": (3, 5)})
        run.finish({"w": torch.arange(6.0)}, {})
    pack(run, tmp_path / "a.regard", readme=README)
    opened = Run.open(tmp_path / "a.regard")
    assert opened.recipe == {
        "task": "translation",
        "data": {
            "train": ["pairs.tsv"],
            "test": "held_out",
            "source_language": "zh",
            "valid": ["valid.tsv"],
        },
        "training": {"pretrained": "read", "keep": 5},
    }
    assert b"/home/" not in (tmp_path / "a.regard").read_bytes()
    assert run.recipe["data"]["train"] == ["/home/mary/pairs.tsv"]


def test_what_was_unpacked_goes_with_who_opened_it(bundle):
    opened = Run.open(bundle)
    folder = opened.folder
    assert folder.is_dir()
    del opened
    assert not folder.exists()


def test_a_full_disk_leaves_nothing_half_written(run, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("regard.runs.bundle.shutil.copyfileobj", full)
    with pytest.raises(RunError, match="must fit on its disk"):
        pack(run, tmp_path / "a.regard", readme=README)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_other_files_are_no_bundles(tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    assert not is_bundle(other)
    assert not is_bundle(tmp_path)
    with pytest.raises(RunError, match="must be a run folder; got a file"):
        Run.open(other)
    other = other.rename(tmp_path / "notes.regard")
    with pytest.raises(DamageError, match="must be a bundle as `regard export` writes it"):
        Run.open(other)


def rewritten(bundle, change):
    with zipfile.ZipFile(bundle, "a") as archive:
        change(archive)
    return bundle


def link():
    member = zipfile.ZipInfo("tokenizer/link")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    return member


HOSTILE = {
    "a path upwards": (lambda z: z.writestr("../up", "x"), "no part of a run"),
    "a path upwards, within": (lambda z: z.writestr("tokenizer/../../up", "x"), "no part"),
    "a path from the root": (lambda z: z.writestr("/tmp/up", "x"), "no part of a run"),
    "a path of Windows": (lambda z: z.writestr("tokenizer\\..\\up", "x"), "no part of a run"),
    "a drive": (lambda z: z.writestr("C:up", "x"), "no part of a run"),
    "a hidden file": (lambda z: z.writestr("tokenizer/.up", "x"), "no part of a run"),
    "a folder": (lambda z: z.writestr("tokenizer/source/", ""), "no part of a run"),
    "code": (lambda z: z.writestr("model.py", "import os"), "no part of a run"),
    "a link": (lambda z: z.writestr(link(), "/etc/passwd"), "which is no plain file"),
    "a bomb": (
        lambda z: z.writestr("tokenizer/bomb", bytes(10**7), zipfile.ZIP_DEFLATED),
        "compressed",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_run_has_is_refused(bundle, tmp_path, monkeypatch, name):
    change, message = HOSTILE[name]
    monkeypatch.setattr(
        "regard.runs.bundle.mkdtemp", lambda prefix: folder_at(tmp_path / "temporary")
    )
    with pytest.raises(DamageError, match=message):
        Run.open(rewritten(bundle, change))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.regard", "run"]


def folder_at(folder):
    folder.mkdir()
    return str(folder)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(bundle):
    with pytest.raises(DamageError, match=r"'recipe.toml' twice"):
        Run.open(rewritten(bundle, lambda z: z.writestr("recipe.toml", "x")))


@pytest.mark.parametrize("count", [101, 3000])
def test_many_members_are_not_unpacked(bundle, count):
    def fill(archive):
        for number in range(count):
            archive.writestr(f"tokenizer/{number:07}", "")

    with pytest.raises(DamageError, match="got more than 100 members"):
        Run.open(rewritten(bundle, fill))


def test_a_file_that_no_checksum_names_is_not_packed(run, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (run.path / "tokenizer" / "more.txt").symlink_to(tmp_path / "secret.txt")
    pack(run, tmp_path / "a.regard", readme=README)
    with zipfile.ZipFile(tmp_path / "a.regard") as archive:
        assert "tokenizer/more.txt" not in archive.namelist()


def test_members_that_lie_in_each_other_are_refused(bundle):
    """As in bombs that need no compression: many names for the same bytes."""
    content = bundle.read_bytes()
    end = content.rindex(b"PK\x05\x06")
    *_, count, _, size, start, _ = struct.unpack("<4s4H2LH", content[end : end + 22])
    entries = content[start : start + size]
    start_of_entry = entries.index(b"model.safetensors") - 46
    entry = entries[start_of_entry : start_of_entry + 46 + len("model.safetensors")]
    names = [b"tokenizer/%07d" % number for number in range(2000)]
    more = b"".join(entry.replace(b"model.safetensors", name) for name in names)
    tail = struct.pack(
        "<4s4H2LH", *(b"PK\x05\x06", 0, 0, count + 2000, count + 2000, size + len(more), start, 0)
    )
    bundle.write_bytes(content[:start] + entries + more + tail)
    assert len(zipfile.ZipFile(bundle).infolist()) == count + 2000
    with pytest.raises(DamageError):
        unpack(bundle)


@pytest.mark.parametrize("name", ["run.json", "recipe.toml", "model.safetensors"])
def test_what_is_missing_is_named(bundle, tmp_path, name):
    other = tmp_path / "other.regard"
    with zipfile.ZipFile(bundle) as whole, zipfile.ZipFile(other, "w") as part:
        for member in whole.infolist():
            if member.filename != name:
                part.writestr(member, whole.read(member))
    with pytest.raises(DamageError, match=f"got no {name}"):
        Run.open(other)


def test_a_file_that_was_cut_is_refused(bundle):
    content = bundle.read_bytes()
    for length in (0, 1, len(content) // 2, len(content) - 1):
        bundle.write_bytes(content[:length])
        with pytest.raises(DamageError, match="must be a bundle"):
            Run.open(bundle)


def test_whatever_byte_is_wrong_the_run_is_refused_or_the_same(run, bundle):
    content = bytearray(bundle.read_bytes())
    refused = 0
    for index in range(0, len(content), 13):
        content[index] ^= 0x55
        bundle.write_bytes(content)
        content[index] ^= 0x55
        try:
            opened = Run.open(bundle)
            assert opened.tokenizer_folder.is_dir()
            assert opened.load_model()["w"].tolist() == list(range(6))
            assert opened.recipe == run.recipe
        except RunError:
            refused += 1
    assert refused > len(content) / 13 / 2


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder for temporary ones, outside of the test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("model.safetensors", Run.load_model),
        ("tokenizer/source/tokenizer.json", lambda run: run.tokenizer_folder),
        ("tokenizer/checksums.json", lambda run: run.tokenizer_folder),
        ("recipe.toml", lambda run: run),
        ("run.json", lambda run: run),
    ],
)
def test_an_error_about_a_file_names_the_bundle(bundle, elsewhere, tmp_path, name, use):
    broken = tmp_path / "broken.regard"
    with zipfile.ZipFile(bundle) as whole, zipfile.ZipFile(broken, "w") as archive:
        for member in whole.infolist():
            content = whole.read(member)
            archive.writestr(member, content[:-1] if member.filename == name else content)
    with pytest.raises(RunError) as caught:
        use(Run.open(broken))
    assert str(caught.value).startswith(f"{broken}/{name} must ")
    assert str(elsewhere) not in str(caught.value)


def test_a_warning_about_a_run_names_the_bundle(tmp_path):
    recipe = {"task": "translation", "decoding": {"groups": 2}}
    run = Run.create(tmp_path / "run", {"task": "translation"}, "translation")
    with run.new_tokenizer_folder() as folder:
        (folder / "tokenizer.json").write_text("{}")
    run.recipe = recipe  # as a version that had groups wrote it
    run.finish({"w": torch.arange(6.0)}, {})
    pack(run, tmp_path / "a.regard", readme=README)
    run.close()
    with pytest.warns(RunWarning, match=r"/a\.regard was made with decoding\.groups = 2"):
        Run.open(tmp_path / "a.regard")


def test_a_full_folder_for_temporary_files_is_named(bundle, elsewhere, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("regard.runs.bundle.shutil.copyfileobj", full)
    with pytest.raises(RunError, match=rf"a\.regard must be unpacked into {elsewhere}; got 'No sp"):
        Run.open(bundle)


def test_an_overview_of_a_bundle_has_its_updates(bundle):
    glance = overview_of(Run.open(bundle))
    assert (glance.run, glance.state, glance.updates) == (bundle, "done", 3)


def test_in_sixteen_bits_it_is_smaller_and_tied_weights_stay_tied(tmp_path):
    tied, numbers = torch.randn(3, 5), torch.arange(2)
    with Run.create(tmp_path / "run", {"task": "translation"}, "translation") as run:
        with run.new_tokenizer_folder() as folder:
            (folder / "tokenizer.json").write_text("{}")
        run.finish({"source": tied, "target": tied, "steps": numbers})
    pack(run, tmp_path / "half.regard", readme=README, dtype=torch.bfloat16)
    weights = Run.open(tmp_path / "half.regard").load_model()
    assert torch.equal(weights["source"], tied.bfloat16())
    assert weights["target"] is weights["source"]
    assert torch.equal(weights["steps"], numbers)


def test_what_is_at_a_path_goes_before_a_bundle_that_comes_along(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = next(SHIPPED.glob("*.regard")).stem
    assert Run.open(name).task == "translation"
    with pytest.raises(RunError, match=f"Did you mean {name}?"):
        Run.open(f"{name}s")
    make_run(tmp_path / name)
    assert Run.open(name).path == Path(name)
    with pytest.raises(RunError, match="must be a run folder; got nothing there"):
        Run.open(f"{name}/none")
