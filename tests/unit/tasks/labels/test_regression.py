"""Regression as a task: the classic example by its recipe, and tables of one's own."""

import math
from dataclasses import replace

import pytest
import torch
from tests.looking import look_into

from regard.cli.recipes import packaged_recipe
from regard.errors import DataError, SettingError
from regard.inference import Predictor
from regard.inference.evaluation.evaluate import evaluate_task
from regard.inference.evaluation.report_plot import plot_report
from regard.models import KernelRegression, KernelRegressionConfig
from regard.models.kernel_regression import SineExample
from regard.runs import Run
from regard.tasks import TASKS, read_recipe, recipe_from_table
from regard.tasks.labels.regression import Regression
from regard.training import ConsoleReporter
from regard.training.session import fit as train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The run of the recipe that comes with the package."""
    path = tmp_path_factory.mktemp("runs") / "sine"
    recipe = read_recipe(packaged_recipe("kernel-regression"))
    train(recipe, path, reporter=ConsoleReporter(quiet=True))
    return path


def a_recipe(folder, text, **data):
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    table = {"train": [str(path)], **data}
    return recipe_from_table({"task": "regression", "data": table, "model": {"is_learned": True}})


def a_job(folder, text, **data):
    recipe = a_recipe(folder, text, **data)
    return Regression.learn(recipe, Regression.read(recipe, "train"))


ROWS = "size,age,price\n" + "\n".join(f"{n},{n * n % 7},{3 * n}" for n in range(12)) + "\n"


def test_the_recipe_learns_the_width_of_plain_gradient_descent(run):
    example, losses_by_hand = SineExample.draw(0), []
    fitted = KernelRegression(KernelRegressionConfig(is_learned=True))
    optimizer = torch.optim.SGD([fitted.w], lr=0.5)
    for _ in range(5):
        optimizer.zero_grad()
        error = fitted.leave_one_out(example.places, example.targets) - example.targets
        error.square().sum().backward()
        optimizer.step()
        losses_by_hand.append(error.square().sum().item())
    labeller = Predictor.load(run)
    torch.testing.assert_close(labeller.model.w, fitted.w)
    losses = [each["loss"] for each in Run.open(run).metrics() if each["split"] == "train"]
    assert losses == pytest.approx(losses_by_hand, rel=1e-5)
    job = labeller.task
    answers = labeller.answers(job.read(job.recipe, "test"))
    want = fitted(example.queries, example.places, example.targets)[:, 0].detach()
    torch.testing.assert_close(torch.tensor([answer.value for answer in answers]), want)


def test_the_report_compares_with_average_pooling_and_the_width_before(run):
    labeller = Predictor.load(run)
    job = labeller.task
    examples = job.read(job.recipe, "test")
    report = evaluate_task(labeller, examples, job.read(job.recipe, "train"))
    figures = {figure.name: figure.value for figure in report.figures}
    mean = report.baselines["the mean of the training points"]
    fixed = report.baselines["bandwidth 1"]
    assert figures["rmse"] < fixed["rmse"] < mean["rmse"]
    assert mean["r2"] == pytest.approx(0, abs=0.05)
    example = SineExample.draw(0)
    guesses = KernelRegression(KernelRegressionConfig())(
        example.queries, example.places, example.targets
    )
    root = float((guesses - example.truth).square().mean().sqrt())
    assert fixed["rmse"] == pytest.approx(root, rel=1e-5)
    (table,) = report.tables
    assert sum(row[-1] for row in table.rows) == len(examples)


def test_the_learned_bandwidth_is_printed_in_the_unit_of_its_input(run, tmp_path):
    labeller = Predictor.load(run)
    examples = labeller.task.read(labeller.task.recipe, "test")
    line = f"bandwidth {1 / abs(labeller.model.w.item()):.4g} (1 before training)"
    assert evaluate_task(labeller, examples).learned == (line,)
    job = a_job(tmp_path, ROWS, scale="deviation")
    (line,) = job.describe_learned(job.build_model())
    step = job.step[0].item()
    assert line.startswith(f"bandwidths (before training): {job.names[0]} {step:.4g} ({step:.4g})")


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_fits_weights_and_loss_are_drawn(ending, run, tmp_path):
    labeller = Predictor.load(run)
    examples = labeller.task.read(labeller.task.recipe, "test")
    report = evaluate_task(labeller, examples)
    path = tmp_path / f"fits.{ending}"
    plot_report(labeller, report, examples, Run.open(run).metrics(), path)
    drawn = path.read_bytes()
    assert len(drawn) > 20_000
    if ending == "svg":
        text = drawn.decode()
        for title in ("Average pooling", "Bandwidth 1, not learned", "Learned bandwidth 0.06"):
            assert title in text  # as a comment beside its glyphs
        plot_report(labeller, report, examples, Run.open(run).metrics(), path, language="zh")
        text = path.read_text("utf-8")
        for title in (
            "平均汇聚",
            "带宽 1，未学习",
            "权重，学到的带宽 0.06",
            "训练过程",
            "更新次数",
        ):
            assert title in text
        assert not any(word in text for word in ("Average", "Learned", "guesses", "update"))


def test_a_training_point_is_predicted_from_the_others_alone(tmp_path):
    job = a_job(tmp_path, ROWS, scale="deviation")
    model, examples = job.build_model(), job.read(job.recipe, "train")
    encoded = job.encode(examples, training=True)
    batch = job.collate([encoded[index] for index in (7, 2, 11)])
    expected = model.leave_one_out(job.places, job.seen)[[7, 2, 11]]
    torch.testing.assert_close(job.guesses(model, batch), expected)
    unmasked = job.guesses(model, job.collate(job.encode(examples)))
    assert not torch.allclose(unmasked[[7, 2, 11]], expected)


def test_a_table_of_ones_own_is_learned_and_predicted(tmp_path):
    lines = [f"{n / 10},{(n * 7919) % 13},{math.sin(n / 10):.4f}" for n in range(200)]
    (tmp_path / "waves.csv").write_text("x,nothing,y\n" + "\n".join(lines), encoding="utf-8")
    recipe = read_recipe(
        packaged_recipe("regression"),
        {"data.train": [str(tmp_path / "waves.csv")], "training.updates": 60},
    )
    trained = train(recipe, tmp_path / "run", reporter=ConsoleReporter(quiet=True))
    labeller = Predictor.load(tmp_path / "run")
    x, nothing = labeller.model.bandwidth.tolist()
    assert x < 0.2 < nothing  # what does not matter is averaged over
    assert trained.summary["validation"]["r2"] > 0.7
    first, second = labeller.predict(["1.5,0", {"nothing": 3, "x": "1.5"}])
    assert first.value == pytest.approx(math.sin(1.5), abs=0.4)
    assert second.to_dict()["value"] == pytest.approx(math.sin(1.5), abs=0.4)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("1", r"record 1: expected 2 numbers \(size, age\), found 1\."),
        ("1,old", r"record 1: age must be a number; got 'old'\."),
        ("size,age", r"record 1: expected numbers, found the header\. Leave it out\."),
        ({"size": 1}, r"record 1: age must be given; got size\."),
        ({"size": 1, "age": [2]}, r"record 1: age must be a number; got \[2\]\."),
    ],
)
def test_a_request_that_is_none_is_refused(record, message, tmp_path):
    job = a_job(tmp_path, ROWS)
    with pytest.raises(DataError, match=message):
        Predictor(job.build_model(), job).predict([record])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size,price\n1,5\n", r"data\.train must hold at least two points; got 1\."),
        ("size,age,price\n1,5,2\n2,5,3\n", r"age must vary .*; it is 5 in all points\."),
    ],
)
def test_points_that_cannot_be_learned_from(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        a_job(tmp_path, text)


def test_other_columns_than_in_training_are_refused_with_their_line(tmp_path):
    job = a_job(tmp_path, ROWS)
    other = tmp_path / "other.csv"
    other.write_text("size,floor,price\n1,2,3\n", encoding="utf-8")
    recipe = replace(job.recipe, data=replace(job.recipe.data, test=(str(other),)))
    message = r"other\.csv:2: inputs must be those of training \(size, age\); got size, floor\."
    with pytest.raises(DataError, match=message):
        job.encode(job.read(recipe, "test"))


@pytest.mark.parametrize(
    "model",
    [{}, {"is_learned": True, "kernel": "box"}, {"is_learned": True, "bandwidth": math.inf}],
)
def test_a_bandwidth_that_cannot_learn_is_refused(model, tmp_path):
    job = a_job(tmp_path, ROWS)
    job.recipe = recipe_from_table({"task": "regression", "model": model})
    with pytest.raises(SettingError, match="model must have a bandwidth to learn: is_learned"):
        job.build_model()


def test_a_page_lists_the_training_points_that_make_the_prediction(tmp_path):
    job = a_job(tmp_path, ROWS, scale="deviation")
    predictor = Predictor(job.build_model(), job)
    (example,) = look_into(predictor, "3,2").examples
    asked, *points = [token.text for token in example.source_tokens]
    (answer,) = predictor.predict(["3,2"])
    assert asked == f"size 3, age 2 → {answer.text()}"
    assert points[0] == "size 3, age 2: 9"
    assert "size 0, age 0: 0" in points
    none, *weights = example.answer.values
    assert none == 0
    assert weights == sorted(weights, reverse=True)
    targets = [float(point.partition(": ")[2]) for point in points]
    made = sum(weight * target for weight, target in zip(weights, targets, strict=True))
    assert made == pytest.approx(answer.value, rel=1e-3)
    assert TASKS["regression"].is_shown
