import json
import re
from pathlib import Path

from regard.server import Service, make_app
from regard.server.problems import STATUSES
from regard.server.requests import Limits

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "serving.md").read_text("utf-8")


def test_its_routes_are_those_of_the_server():
    documented = set(re.findall(r"`(?:POST |GET )?(/[a-z/]+)`", PAGE))
    app = make_app(Service({}, Limits()))
    paths = {route.path for route in app.routes}
    assert documented <= paths
    undocumented = {"/health/ready", "/health/live", "/openapi.json", "/"}
    assert {path for path in paths if path.count(".") == 0} - undocumented <= documented


def test_its_statuses_figures_and_answers_are_right():
    rows = re.findall(r"^\| ([\d, ]+) \|", PAGE, re.MULTILINE)
    documented = {int(status) for row in rows for status in row.split(",")}
    assert documented == set(STATUSES) - {500}
    limits = Limits()
    assert f"({limits.patience:g} s)" in PAGE
    assert f"{limits.max_texts:,} texts" in PAGE
    (answer,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert set(json.loads(answer)) == {"run", "translations"}
    for picture in re.findall(r"\((figures/[^)]+)\)", PAGE):
        assert (DOCS / picture).stat().st_size < 60_000
