"""A document as one HTML file that needs nothing else: no network, no framework, no fonts."""

import base64
import hashlib
import html
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

from regard.config import JsonValue
from regard.errors import SettingError
from regard.viewer.document import Document

_STATIC = files("regard.viewer") / "static"
_FILE_ENTRY = "main.js"  # asks for nothing
_LIVE_ENTRY = "live.js"  # asks an address for exact rows
_MODEL_ENTRY = "model/typing.js"  # runs a model that the page carries
_MODEL_SHEETS = ("model/muting.css", "model/typing.css")
_FIRST_SHEET = "page/style.css"

_IMPORT = re.compile(
    r'^import \{([^}]*)\} from "(\.\.?/(?:[a-z]+/)?)([a-z]+)\.js";\n', re.MULTILINE
)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.MULTILINE)
_CSS_COMMENT = re.compile(r"^\s*/\*.*?\*/\s*?\n", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(  # on lines of its own
    r"^[ \t]*(?://.*|/\*(?:(?!\*/)[\s\S])*\*/[ \t]*)\n", re.MULTILINE
)
_REMARK = re.compile(
    r"""(?<=[;,{}()\[\]\w]) +// [^"'`\n]*$""", re.MULTILINE
)  # at the end of a line
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)  # no text of a module goes over a line
_LEFTOVER = re.compile(r"^(?:import|export)\b.*|\bimport\(|\bimport\.meta\b", re.MULTILINE)
_PLACE = re.compile(r"\{\{(\w+)\}\}")

# Characters to escape in a script element: markup, and the two line ends that older scripts count
# as such.
_UNSAFE = re.compile("[<>&\u2028\u2029]")
_MODEL = '<script type="application/json" id="regard-model">{}</script>\n'

# Scheme, host and port of an address, and a path without anything that could end an attribute or
# a line of the content policy.
_ADDRESS = re.compile(r"(https?://[\w.\-:\[\]]+)(/[\w./\-]*)?")


def page(
    document: Document, *, rows: str | None = None, model: Mapping[str, JsonValue] | None = None
) -> str:
    """Make one self-contained HTML page of a document, to be written as UTF-8.

    It opens from a file, under a content security policy that lets nothing be fetched and runs
    only the script and style it came with. Texts and tokens are data, never markup.

    Args:
        document: Its data.
        rows: Address that answers with exact rows of weights, as ``static/live.js`` describes;
            the page may then ask this host, and no other. None makes a page that asks nobody.
        model: A packed model, as ``regard.inference.live`` makes it: the page translates text
            typed into it, and makes its examples itself.

    Raises:
        SettingError: ``rows`` is no plain address.

    Example:
        >>> empty = Document(title="<b>", task="", model="", examples=())
        >>> "<title>&lt;b&gt;</title>" in page(empty)
        True
    """
    address = _ADDRESS.fullmatch(rows or "")
    if rows is not None and not address:
        raise SettingError(f"rows must be an http address without a query; got {rows!r}.")
    style = "\n".join([styles(), *map(_sheet, _MODEL_SHEETS if model is not None else ())])
    entry = _MODEL_ENTRY if model is not None else _LIVE_ENTRY if address else _FILE_ENTRY
    script = bundle(entry)
    policy = (
        "default-src 'none'; img-src data: blob:; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        + (f"connect-src {address[1]}; " if address else "")
        + "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": _text(document.title or "Attention"),
        "style": style,
        "rows": rows or "",
        "data": _data(document.to_json()),
        "model": "" if model is None else _MODEL.format(_data(json.dumps(model))),
        "script": script,
    }
    return _PLACE.sub(lambda match: parts[match[1]], _read("page.html"))


def _data(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def styles() -> str:
    """Join the style sheets of the viewer, ``style.css`` with the colours first; no comments."""
    names = [name for name, _ in files_below(_STATIC) if name.endswith(".css")]
    names.sort(key=lambda name: (name != _FIRST_SHEET, posixpath.basename(name)))
    return "\n".join(_sheet(name) for name in names if name not in _MODEL_SHEETS)


def _sheet(name: str) -> str:
    return _CSS_COMMENT.sub("", _read(name))


def bundle(entry: str) -> str:
    """Join a module, by its path in ``static/``, and its (named) imports into one script."""
    return "\n" + "".join(modules(entry).values())


def modules(entry: str) -> dict[str, str]:
    """Return a module and its imports by name, each after those that it needs.

    Names that a module exports are names of the whole script, for which they have to differ.
    """
    done: dict[str, str] = {}
    _add_module(entry, done)
    return done


def _add_module(path: str, done: dict[str, str]) -> None:
    folder, name = posixpath.split(path.removesuffix(".js"))
    source = _REMARK.sub("", _INDENT.sub("", _COMMENT.sub("", _read(path))))
    for _, parent, needed in _IMPORT.findall(source):
        if needed not in done:
            _add_module(posixpath.normpath(f"{folder or '.'}/{parent}{needed}.js"), done)
    exports = ", ".join(export for _, export in _EXPORT.findall(source))
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub("", source))
    left = _LEFTOVER.search(body)
    assert left is None, f"{path}: the bundler cannot read {left[0]!r}"
    assert "</script" not in body, f"{path} would end its own script element"
    done[name] = f"const {{ {exports} }} = (() => {{\n{body}return {{ {exports} }};\n}})();\n"


def files_below(folder: Traversable, path: str = "") -> Iterator[tuple[str, Traversable]]:
    """Yield the files of a folder and its sub-folders, each with its path from the folder."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from files_below(entry, f"{path}{entry.name}/")
        else:
            yield f"{path}{entry.name}", entry


def _read(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _text(text: str) -> str:
    return html.escape(re.sub("[\ud800-\udfff]", "\ufffd", text))
