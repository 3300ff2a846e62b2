"""Pages on commands, settings and recipes, as the program itself tells of them."""

import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout

from regard.cli import run_command
from regard.cli.app import app
from regard.cli.recipes import packaged_recipe, packaged_recipes

_TITLES = {
    "commands": ("Commands", "命令"),
    "settings": ("Settings", "设置"),
    "recipes": ("Recipes", "配方"),
}
_INTROS = {
    "commands": (
        "What `regard COMMAND --help` says, written from the program. A word with `--` is an "
        "option; `--help` works everywhere.",
        "由程序自身的 `regard COMMAND --help` 生成，说明为英文。带 `--` 的是选项；"
        "哪条命令都可以加 `--help`。",
    ),
    "settings": (
        "What a recipe may say, as `regard settings` prints it: a setting, its default, its "
        "meaning. Each can be set in a recipe file, or over a recipe: `--set training.seed=2`.",
        "配方里能写的每一项：名称、默认值和含义，由 `regard settings` 生成，说明为英文。"
        "可以写进配方文件，也可以在命令里覆盖：`--set training.seed=2`。",
    ),
    "recipes": (
        "The recipes that come with the package. Train one by name, with your text behind it: "
        "`regard train transformer-tiny pairs.tsv`. What a setting means: [settings](settings.md).",
        "随软件包附带的配方。写上配方名，后面跟自己的文本，就能训练："
        "`regard train transformer-tiny pairs.tsv`。各项设置的含义见[设置](settings.md)。",
    ),
}
_SETTING = (
    ("| setting | default | meaning |", "|---|---|---|"),
    ("| 设置 | 默认值 | 含义（英文） |", "|---|---|---|"),
)
# A line of `regard settings`: a name, its default as it stands in a recipe, its meaning.
_LINE = re.compile(r'^  (\w+) = ("[^"]*"|\[.*?\](?=  |$)|.*?)(?:  (.*))?$')


def pages() -> dict[str, str]:
    """The pages by their places, English and Chinese."""
    bodies: dict[str, Callable[[int], str]] = {
        "commands": lambda language: _commands(),
        "settings": _settings,
        "recipes": lambda language: _recipes(),
    }
    return {
        f"reference/{name}{ending}": "\n\n".join(
            (f"# {_TITLES[name][language]}", _INTROS[name][language], body(language), "")
        )
        for name, body in bodies.items()
        for language, ending in enumerate((".md", ".zh.md"))
    }


def _commands() -> str:
    """Each command is a heading; its own title and table of contents are the page's already."""
    text: str = app.generate_docs()
    return text[text.index("\n## ", text.index("**Commands**")) :].strip()


def _settings(language: int) -> str:
    parts = []
    for block in _said("settings").split("\n\n"):
        title, *lines = block.splitlines()
        rows = [_row(line) for line in lines]
        parts.append("\n".join([f"## `{title}`", "", *_SETTING[language], *rows]))
    return "\n\n".join(parts)


def _row(line: str) -> str:
    """A line of ``regard settings`` as a row of a table."""
    found = _LINE.match(line)
    if found is None:
        raise ValueError(f"regard settings must print 'name = default  meaning'; got {line!r}.")
    name, default, meaning = found.groups()
    return f"| `{name}` | `{default}` | {_cell(meaning or '')} |"


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "&#124;")


def _recipes() -> str:
    parts = []
    for name, purpose in packaged_recipes().items():
        text = packaged_recipe(name).read_text("utf-8").partition("\n")[2].strip()
        parts.append(f"## {name}\n\n{purpose}\n\n```toml\n{text}\n```")
    return "\n\n".join(parts)


def _said(*command: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        if run_command(command):
            raise RuntimeError(f"regard {' '.join(command)} must work.")
    return out.getvalue().strip()
