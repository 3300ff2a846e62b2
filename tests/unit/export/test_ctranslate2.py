"""Runs for CTranslate2: the same log-probabilities and answers, and what is refused."""

import ctranslate2
import pytest
import torch
from torch import nn

from regard.decoding import greedy
from regard.errors import SettingError
from regard.export import export_run
from regard.export.ctranslate2 import language_model_spec, translator_spec, unheld, vocabularies
from regard.inference import Predictor
from regard.models import Decoder, DecoderConfig, Transformer, TransformerConfig
from regard.text import BOS_ID, EOS_ID, PAD_ID
from regard.text.tokenizers.pieces import RESERVED

SOURCE, TARGET, LONGEST = 19, 23, 20
SIZES = {"model_dim": 24, "num_heads": 4, "ffn_dim": 40, "dropout": 0.0}
DEPTHS = {"num_encoder_layers": 2, "num_decoder_layers": 3}
TRANSLATORS = {
    "the paper's": {},
    "pre-norm": {"norm": "pre", "tie_embeddings": "target"},
    "three tables": {"tie_embeddings": "none", "output_bias": True},
    "as BART is": {
        "positions": "learned",
        "own_positions": True,
        "embedding_norm": True,
        "scale_embeddings": False,
        "activation": "gelu",
        "max_length": LONGEST + 1,
    },
    "as later ones are": {
        "norm": "pre",
        "norm_kind": "rms",
        "activation": "swiglu",
        "num_key_heads": 2,
        "positions": "rotary",
        "norm_eps": 1e-3,
    },
    "one head of keys": {"num_key_heads": 1, "activation": "silu"},
    "dot": {"score": "dot", "activation": "gelu_tanh", "norm_eps": 1e-2},
    "Shaw's distances": {"positions": "relative"},
    "T5's distances": {"positions": "t5", "norm": "pre"},
    "T5's distances of dot": {"positions": "t5", "score": "dot"},
    "no positions": {"positions": "none"},
}
DECODERS = {
    "as GPT-2 is": {"activation": "gelu_tanh"},
    "post-norm": {"norm": "post", "positions": "sinusoidal", "tie_embeddings": False},
    "as Llama is": {
        "positions": "rotary",
        "norm_kind": "rms",
        "activation": "swiglu",
        "num_key_heads": 2,
    },
    "alibi": {"positions": "alibi", "activation": "relu"},
    "alibi of three heads": {"positions": "alibi", "num_heads": 3, "num_key_heads": 1},
}


def names(size):
    return [*RESERVED, *(f"w{each}" for each in range(len(RESERVED), size))]


def shaken(model):
    """With no weight at zero or one, and predictions that are neither even nor sure."""
    with torch.no_grad():
        for each in model.parameters():
            each.add_(0.3 * torch.randn_like(each) / each.shape[-1] ** 0.5)
        model.output.weight *= 2
        model.output.weight[EOS_ID] *= 2
    return model.eval()


def saved(spec, folder):
    spec.validate()
    spec.optimize()
    folder.mkdir()
    spec.save(str(folder))
    return str(folder)


def made_translator(tmp_path, options):
    is_shared = options.get("tie_embeddings", "all") == "all"
    source = TARGET if is_shared else SOURCE
    model = Transformer(
        TransformerConfig(**SIZES, **DEPTHS, **options),
        source_vocab=source,
        target_vocab=TARGET,
        shared_vocab=is_shared,
    )
    spec = translator_spec(shaken(model), names(source), names(TARGET), source_end=False)
    folder = saved(spec, tmp_path / "model")
    return model, ctranslate2.Translator(folder, compute_type="float32", intra_threads=1)


def random_ids(counts, size):
    return [torch.randint(len(RESERVED), size, (count,)).tolist() for count in counts]


def padded(rows):
    tensors = [torch.tensor(row) for row in rows]
    ids = nn.utils.rnn.pad_sequence(tensors, batch_first=True)
    return ids, torch.tensor([len(row) for row in rows])


def called(rows):
    return [[names(TARGET)[each] for each in row] for row in rows]


@pytest.mark.parametrize("options", TRANSLATORS.values(), ids=TRANSLATORS)
def test_a_translator_gives_the_same_log_probabilities(tmp_path, options):
    model, translator = made_translator(tmp_path, options)
    sources, targets = random_ids([7, 1, 13, 5], SOURCE), random_ids([11, 3, 2, 17], TARGET)
    scored = translator.score_batch(called(sources), called(targets))
    assert torch.tensor(scored[0].log_probs).std() > 0.3  # neither even nor sure
    for source, target, theirs in zip(sources, targets, scored, strict=True):
        decoder_input = torch.tensor([[BOS_ID, *target]])
        states, _ = model(torch.tensor([source]), torch.tensor([len(source)]), decoder_input)
        log_probs = model.project(states)[0].log_softmax(-1)
        ours = log_probs[range(len(target) + 1), [*target, EOS_ID]]
        assert ours.tolist() == pytest.approx(theirs.log_probs, abs=2e-5)


@pytest.mark.parametrize("options", DECODERS.values(), ids=DECODERS)
@torch.no_grad()
def test_a_language_model_continues_alike(tmp_path, options):
    model = shaken(
        Decoder(DecoderConfig(**{**SIZES, "num_layers": 2, **options}), vocab_size=TARGET)
    )
    folder = saved(language_model_spec(model, names(TARGET)), tmp_path / "model")
    generator = ctranslate2.Generator(folder, compute_type="float32", intra_threads=1)
    texts = random_ids([17, 2, 9], TARGET)
    for text, theirs in zip(texts, generator.score_batch(called(texts)), strict=True):
        log_probs = model.project(model(torch.tensor([text[:-1]])))[0].log_softmax(-1)
        ours = log_probs[range(len(text) - 1), text[1:]]
        assert ours.tolist() == pytest.approx(theirs.log_probs, abs=2e-5)
    for end in (EOS_ID, PAD_ID):
        generated = generator.generate_batch(
            called(texts),
            sampling_topk=1,
            max_length=LONGEST,
            include_prompt_in_result=False,
            end_token=names(TARGET)[end],
        )
        answers = greedy(
            model.step,
            model.start(*padded(texts)),
            batch_size=len(texts),
            bos_id=BOS_ID,
            eos_id=end,
            max_lengths=LONGEST,
        )
        for ours, theirs in zip(answers, generated, strict=True):
            assert called([list(ours.tokens)]) == theirs.sequences


def small_model():
    config = TransformerConfig(**SIZES)
    return shaken(Transformer(config, source_vocab=TARGET, target_vocab=TARGET))


def test_what_is_written_in_int8_leaves_the_model_as_it_is(tmp_path):
    model = small_model()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    spec = translator_spec(model, names(TARGET), names(TARGET), source_end=False)
    spec.validate()
    spec.optimize(quantization="int8")
    for name, each in model.state_dict().items():
        assert each.equal(before[name])


def test_a_model_reads_the_end_of_sources_where_training_did(tmp_path):
    model = small_model()
    source, target = random_ids([5, 3], TARGET)
    log_probs = []
    for source_end, ids in ((True, source), (False, [*source, EOS_ID])):
        spec = translator_spec(model, names(TARGET), names(TARGET), source_end=source_end)
        folder = saved(spec, tmp_path / f"{source_end}")
        translator = ctranslate2.Translator(folder, intra_threads=1)
        log_probs.append(translator.score_batch(called([ids]), called([target]))[0].log_probs)
    assert log_probs[0] == pytest.approx(log_probs[1])


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (TransformerConfig(positions="alibi"), "model.positions = 'alibi'; train with"),
        (TransformerConfig(positions="relative", score="dot"), "model.score = 'dot'; train with"),
        (TransformerConfig(score="additive"), "model.score = 'additive'; train with"),
        (TransformerConfig(window=3), "model.window = 3; train without model.window"),
        (TransformerConfig(copy=True), "model.copy = true; train with"),
        (DecoderConfig(window=3), "model.window = 3; train without model.window"),
        (TransformerConfig(), None),
        (DecoderConfig(positions="alibi"), None),
    ],
)
def test_the_unsupported_option_is_named(config, expected):
    unsupported = unheld(config)
    assert unsupported is None if expected is None else unsupported.startswith(expected)


def test_no_piece_has_the_name_of_a_reserved_id():
    source, target = vocabularies([*RESERVED, "a", "</s>"], [*RESERVED, "<</s>>", "</s>"])
    assert source == ["<pad>", "<unk>", "<s>", "<<</s>>>", "a", "</s>"]
    assert target == ["<pad>", "<unk>", "<s>", "<<</s>>>", "<</s>>", "</s>"]


HELD = ("translation-bpe", "language-model")


@pytest.mark.parametrize("name", HELD)
def test_the_folder_is_whole(runs, tmp_path, name):
    run, out = runs / name / "run", tmp_path / "out"
    export_run(run, "ctranslate2", out)
    assert ctranslate2.contains_model(str(out))
    assert "ctranslate2" in (out / "README.md").read_text("utf-8")
    files = [file for file in (out / "tokenizer").rglob("*") if file.is_file()]
    assert files
    for file in files:
        assert file.read_bytes() == (run / file.relative_to(out)).read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_smaller_weights_say_nearly_the_same(runs, tmp_path):
    run = runs / "translation-bpe" / "run"
    sizes, scores = {}, {}
    pieces = Predictor.load(run).tokenizer.source.names[4:10]
    for precision in ("float32", "float16", "int8"):
        out = tmp_path / precision
        export_run(run, "ctranslate2", out, precision=precision)
        sizes[precision] = (out / "model.bin").stat().st_size
        translator = ctranslate2.Translator(str(out), intra_threads=1)
        assert precision != "int8" or translator.compute_type.startswith("int8")
        (scored,) = translator.score_batch([pieces], [pieces])
        scores[precision] = scored.log_probs
    assert max(sizes["int8"], sizes["float16"]) < sizes["float32"]
    assert scores["float16"] == pytest.approx(scores["float32"], abs=0.01)
    assert scores["int8"] == pytest.approx(scores["float32"], abs=0.5)
    assert scores["int8"] != pytest.approx(scores["float32"], abs=1e-4)


def test_precisions_that_it_has_not_are_refused(runs, tmp_path):
    run = runs / "language-model" / "run"
    with pytest.raises(SettingError, match="precision must be one of float16, float32, int8; got"):
        export_run(run, "ctranslate2", tmp_path / "out", precision="int4")
    with pytest.raises(SettingError, match="precision must be left out for huggingface, whose"):
        export_run(run, "huggingface", tmp_path / "out", precision="int8")
    assert not list(tmp_path.iterdir())
