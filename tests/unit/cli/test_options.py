"""Values and names of options, as people write them."""

import pytest

from regard.cli import run_command

ON_A_DEVICE = ("train demo", "predict a", "evaluate a", "look a text", "serve a")
DEVICE = "--device must be one of auto, cpu, cuda, mps; got 'Cuda'"


def refused(capsys, *arguments):
    assert run_command(arguments) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("serve run --port 99999.5", "--port must be a whole number; got '99999.5'."),
        ("serve run --port 99999", "--port must be from 0 to 65535; got 99999."),
        ("predict run --beam-size 1.9", "--beam-size must be a whole number; got '1.9'."),
        ("predict run --top-p nan", "--top-p must be a finite number; got nan."),
        ("predict run --top-p much", "--top-p must be a number; got 'much'."),
        ("train a.tsv --processes 1.7", "--processes must be a whole number; got '1.7'."),
        ("train a.tsv --processes 2.0", "--processes must be a whole number; got '2.0'."),
        ("train a.tsv --minutes inf", "--minutes must be a finite number; got inf."),
        ("predict run -o a --threads 1e2", "--threads must be a whole number; got '1e2'."),
        (f"predict run --seed {'9' * 5001}", "--seed must be a whole number; got '999"),
        *((f"{line} --device Cuda", DEVICE) for line in ON_A_DEVICE),
    ],
)
def test_no_value_is_bent(arguments, message, capsys):
    assert f"error: {message}" in refused(capsys, *arguments.split())


@pytest.mark.parametrize(
    ("arguments", "way"),
    [
        ("train a.tsv --epochs 3", "--epochs must be given as --set training.epochs=3."),
        ("train a.tsv --lr=1e-3", "as --set training.learning_rate=1e-3."),
        ("train --learning-rate 1e-3 a.tsv", "as --set training.learning_rate=1e-3."),
        ("train a.tsv --batch-size 32", "in tokens, as --set training.batch_tokens=4096."),
        ("train a.tsv --seed 7", "as --set training.seed=7."),
        ("train a.tsv --max-steps 9", "as --set training.updates=9."),
        ("train a.tsv --warmup 10", "as --set training.warmup=10."),
        ("train a.tsv --dropout .2", "as --set model.dropout=.2."),
        ("train a.tsv --num-heads 4", "as --set model.num_heads=4."),
        ("train a.tsv --vocab-size 99", "as --set tokenizer.vocab_size=99."),
        ("train a.tsv --beam-size 4", "as --set decoding.beam_size=4."),
        ("train a.tsv --max-length 50", "as --set data.max_length=50."),
        ("train a.tsv --output runs/a", "--output must be given as --run FOLDER."),
        ("train a.tsv -o runs/a", "-o must be given as --run FOLDER."),
        ("train a.tsv --gpu", "--gpu must be given as --device cuda."),
        ("train --src a.zh --tgt a.en", "as files: regard train SOURCE TARGET."),
        ("train --source a.zh --target a.en", "as files: regard train SOURCE TARGET."),
        ("train a.tsv --max-tokens 900", "as --set training.batch_tokens=900."),
        ("train a.tsv --max_update 9", "as --set training.updates=9."),
        ("look gpt2 --text hi", "as it is: regard look RUN TEXT."),
        ("look --model_name_or_path gpt2 hi", "as --model FOLDER."),
        ("look gpt2 hi --against dog", "as --not WORD."),
        ("data check --source a.zh", "as a file: regard data … FILE."),
        ("train a.tsv --config my.toml", "before the files: regard train RECIPE FILES."),
        ("predict run --gpu", "as --device cuda."),
        ("predict run --src a.zh", "as a file: regard predict … FILE."),
        ("data check a.tsv --examples -1", "--examples must be at least 0; got -1."),
        ("export run --out a", "run must be a run folder"),
        ("export run a --to onx", "--to must be one of bundle, ctranslate2,"),
        ("train a.tsv rnn-attention", "a recipe must stand before the files; got 'rnn-attention'"),
        ("train a.tsv --frobnicate", "See regard train --help."),
    ],
)
def test_options_of_other_tools_are_answered_with_the_way_here(arguments, way, capsys):
    assert way in refused(capsys, *arguments.split())


@pytest.mark.parametrize("command", ["predict run --output", "serve"])
def test_a_loop_of_links_is_no_bug(tmp_path, capsys, command):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "loop must be " in refused(capsys, *command.split(), str(tmp_path / "loop"))
    assert (tmp_path / "loop").is_symlink()
