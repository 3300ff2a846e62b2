"""Runs as folders of transformers: the same ids, logits and outputs there, and back here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard.errors import RunError, SettingError
from regard.export import export_run
from regard.export.tokenizer_json import tokenizer_config, tokenizer_json
from regard.inference import Predictor
from regard.inference.generator import Generator
from regard.interop import load_checkpoint
from regard.runs import Run
from regard.tasks import recipe_from_table
from regard.tasks.classification import LabelledText
from regard.tasks.language_modelling import Passage
from regard.tasks.registry import TASKS
from regard.text import Pair
from regard.text.checkpoint_pieces import borrow_pieces
from regard.text.questions import Answer, Question
from regard.text.tagged import TaggedWords

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

PAIRS = [
    ("我爱中国。", "I love China."),
    ("他爱你吗？", "Does he love you?"),
    ("我们都在这里学习。", "We are all here to learn, aren't we?"),
    ("明天会下雨。", "It will rain tomorrow; so it seems."),
    ("这本书很有意思。", "This book is very interesting."),
    ("3个人在那里。", "3 people are over there."),
]
ODD = [
    "",
    " ",
    " I\u00a0love\t\u3000it ",
    "a ▁ b▁",
    "<s> it </s>",
    "1</s>2<0x1Axs>",
    "<0x0A>",
    "<pad><unk><0x0",
    "🙂 人",
    "naïve",
]
SMALL = {
    "type": "transformer",
    "model_dim": 20,
    "num_heads": 2,
    "ffn_dim": 12,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
    "max_length": 40,
}
DECODER = {
    "type": "decoder",
    "model_dim": 24,
    "num_heads": 4,
    "num_layers": 2,
    "ffn_dim": 10,
    "max_length": 30,
}
ENCODER = {
    "type": "transformer",
    "model_dim": 24,
    "num_heads": 4,
    "num_layers": 2,
    "ffn_dim": 10,
    "max_length": 60,
}
LLAMA = {"positions": "rotary", "norm_kind": "rms", "activation": "swiglu"}
PRE = {"norm": "pre"}
LEARNED = {"positions": "learned"}


def write_run(path: Path, table: dict, examples: list) -> Predictor:
    """A finished run of random weights."""
    recipe = recipe_from_table(table)
    task = TASKS[recipe.task].task.learn(recipe, examples)
    torch.manual_seed(0)
    model = task.build_model().eval()
    for parameter in model.parameters():  # norms and biases too, else mistakes cannot be seen
        parameter.data += 0.2 * torch.randn_like(parameter)
    with Run.create(path, recipe.table(), recipe.task) as run:
        with run.new_tokenizer_folder() as folder:
            task.save(folder)
        run.finish(model.state_dict(), {"updates": 24})
    predictor = Predictor.load(path)
    predictor.model.eval()
    return predictor


def translator(path: Path, *, tokenizer: dict | None = None, data: dict | None = None, **model):
    table = {
        "task": "translation",
        "data": {
            "source_language": "zh",
            "target_language": "en",
            "train": "pairs.tsv",
            "max_length": 30,
            **(data or {}),
        },
        "tokenizer": {"type": "characters", **(tokenizer or {})},
        "model": {**SMALL, **model} if model.get("type") is None else model,
        "decoding": {"max_ratio": 0.5},
    }
    pairs = [Pair(source, target, (target,), "pairs.tsv:1") for source, target in PAIRS]
    return write_run(path, table, pairs)


def language_model(path: Path, *, decoding: dict | None = None, **model):
    table = {
        "task": "language_modelling",
        "data": {"train": "text.txt", "context": 20, "overlap": 4},
        "tokenizer": {"type": "characters"},
        "model": {**DECODER, **model} if model.get("type") is None else model,
        "decoding": {"method": "greedy", "max_tokens": 9, **(decoding or {})},
    }
    return write_run(path, table, [Passage(tuple(target for _, target in PAIRS), "text.txt:1")])


def masked_model(path: Path, *, data: dict | None = None, tokenizer: dict | None = None, **model):
    table = {
        "task": "masked_language_modelling",
        "data": {"train": "text.txt", "context": 30, **(data or {})},
        "tokenizer": {"type": "bpe", "may_shrink": True, **(tokenizer or {})},
        "model": {**ENCODER, **model},
    }
    return write_run(path, table, [Passage(tuple(target for _, target in PAIRS), "text.txt:1")])


def tagger(path: Path, *, tokenizer: dict | None = None, head: dict | None = None, **model):
    table = {
        "task": "tagging",
        "data": {"train": "tags.tsv", "max_length": 50},
        "model": {**ENCODER, **model},
        "head": head or {},
        **({} if tokenizer is None else {"tokenizer": tokenizer}),
    }
    sentences = [target.split() for _, target in PAIRS]
    tags = [tuple("upper" if word[0].isupper() else "lower" for word in each) for each in sentences]
    pairs = zip(sentences, tags, strict=True)
    return write_run(path, table, [TaggedWords(tuple(words), tag, "t:1") for words, tag in pairs])


def classifier(path: Path, *, tokenizer: dict | None = None, head: dict | None = None, **model):
    table = {
        "task": "classification",
        "data": {"train": "texts.tsv", "max_length": 50},
        "tokenizer": {"type": "characters", **(tokenizer or {})},
        "model": {**ENCODER, **model},
        "head": {"pooling": "first", "pooler": True, **(head or {})},
    }
    texts = [
        LabelledText(text, f"{place % 3}", None, "t:1") for place, (_, text) in enumerate(PAIRS)
    ]
    return write_run(path, table, texts)


def opened(folder, kind="AutoModelForSeq2SeqLM"):
    model, told = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    assert not any(told[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    return model.eval()


def logits_here(model, source, lengths, target):
    with torch.no_grad():
        return model.project(model(source, lengths, target)[0])


def logits_there(model, source, lengths, target):
    mask = (torch.arange(source.shape[1]) < lengths[:, None]).long()
    with torch.no_grad():
        return model(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits


def script_of(folder, text):
    """What the card says to do, with a text."""
    script = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert "THIS FOLDER" in script
    return script.replace("THIS FOLDER", str(folder)).replace("A text.", text)


def a_batch(predictor):
    generator = torch.Generator().manual_seed(1)
    sizes = predictor.tokenizer.source.vocab_size, predictor.tokenizer.target.vocab_size
    lengths = torch.tensor([11, 3, 7])
    source = torch.randint(4, sizes[0], (3, 11), generator=generator)
    source = source.masked_fill(torch.arange(11) >= lengths[:, None], 0)
    target = torch.randint(4, sizes[1], (3, 5), generator=generator)
    target[:, 0] = 2
    return source, lengths, target


@pytest.mark.parity
@pytest.mark.parametrize(
    ("layout", "model", "tokenizer"),
    [
        ("marian", {}, {}),
        ("marian", {"activation": "gelu_tanh", "output_bias": True, "norm_eps": 1e-5}, {}),
        ("marian", {"tie_embeddings": "target", "scale_embeddings": False}, {}),
        ("marian", {"tie_embeddings": "none", "num_key_heads": 2}, {}),
        ("marian", {"tie_embeddings": "target"}, {"shared": False}),
        ("marian", {}, {"shared": False}),
        ("marian", {"tie_embeddings": "none", "own_positions": True}, {"shared": False}),
        ("pegasus", PRE | {"activation": "silu"}, {}),
        ("pegasus", PRE | {"model_dim": 15, "num_heads": 3}, {}),
        ("blenderbot", PRE | LEARNED, {}),
        ("blenderbot", PRE | LEARNED | {"own_positions": True, "output_bias": True}, {}),
        ("bart", LEARNED | {"embedding_norm": True, "activation": "gelu"}, {}),
    ],
)
def test_a_translator_has_the_same_logits_there_again_there_and_here(
    tmp_path, layout, model, tokenizer
):
    predictor = translator(tmp_path / "run", tokenizer=tokenizer, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    batch = a_batch(predictor)
    wanted = logits_here(predictor.model, *batch)
    theirs = opened(tmp_path / "out")
    assert theirs.config.model_type == layout
    theirs.save_pretrained(tmp_path / "again")
    back = load_checkpoint(tmp_path / "out")
    assert not back.absent
    assert not back.unused
    for found in (
        logits_there(theirs, *batch),
        logits_there(opened(tmp_path / "again"), *batch),
        logits_here(back.model, *batch),
        logits_here(load_checkpoint(tmp_path / "again").model, *batch),
    ):
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("model", "beam_size"),
    [({}, 1), ({}, 4), (PRE, 3), (PRE | LEARNED, 2)],
    ids=["marian, greedy", "marian", "pegasus", "blenderbot"],
)
def test_generate_writes_what_our_search_writes(tmp_path, model, beam_size):
    predictor = translator(tmp_path / "run", **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = opened(tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    sources = [source for source, _ in PAIRS[:3]]
    found = predictor.translate(sources, beam_size=beam_size, length_penalty=0.0)
    for source, (best, *_) in zip(sources, found, strict=True):
        batch = tokenizer([source], return_tensors="pt")
        most = int(batch["input_ids"].shape[1] * predictor.decoding.max_ratio) + 10
        (ids,) = theirs.generate(
            **batch, num_beams=beam_size, length_penalty=0.0, max_new_tokens=most
        ).tolist()
        assert ids[0] == 2
        assert tuple(ids[1:-1] if ids[-1] == 3 else ids[1:]) == best.tokens
        assert tokenizer.decode(ids, skip_special_tokens=True) == best.text


@pytest.mark.parity
def test_each_side_has_its_tokenizer_where_they_are_two(tmp_path):
    predictor = translator(tmp_path / "run", tokenizer={"shared": False})
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    load = transformers.AutoTokenizer.from_pretrained
    source, target = load(tmp_path / "out"), load(tmp_path / "out", subfolder="target")
    ours = predictor.tokenizer
    for one, other in PAIRS:
        assert source(one)["input_ids"] == [*ours.source.encode(one), 3]
        assert target(other)["input_ids"] == [*ours.target.encode(other), 3]


@pytest.mark.parity
@pytest.mark.parametrize(
    "tokenizer",
    [
        {"type": "characters"},
        {"type": "bpe", "may_shrink": True, "vocab_size": 400},
        {"type": "bpe", "may_shrink": True, "character_coverage": 0.98, "vocab_size": 320},
        {"type": "unigram", "may_shrink": True, "vocab_size": 360},
        {"type": "unigram", "may_shrink": True, "character_coverage": 0.98, "vocab_size": 320},
    ],
)
@pytest.mark.parametrize("ends", [True, False])
def test_its_tokenizer_gives_the_same_ids_and_texts(tmp_path, tokenizer, ends):
    predictor = translator(tmp_path / "run", tokenizer=tokenizer, data={"source_end": ends})
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    theirs.save_pretrained(tmp_path / "again")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    ours = predictor.tokenizer.source
    assert len(theirs) == ours.vocab_size
    for text in [*(text for pair in PAIRS for text in pair), *ODD]:
        ids = ours.encode(text)
        wanted = [*ids, 3] if ends else ids
        assert theirs(text)["input_ids"] == again(text)["input_ids"] == wanted
        if 1 not in ids:
            assert theirs.decode(wanted, skip_special_tokens=True) == ours.decode(ids)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
def test_a_tokenizer_that_a_checkpoint_brought_goes_on_with_our_ids(tmp_path, kind):
    lines = [text for pair in PAIRS for text in pair]
    if kind == "bert":
        made = tokenizers.BertWordPieceTokenizer()
        made.train_from_iterator(lines, vocab_size=200, show_progress=False)
        names = {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    else:
        signs = ["<|endoftext|>"] if kind == "gpt2" else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        made = tokenizers.ByteLevelBPETokenizer()
        made.train_from_iterator(lines, 300, special_tokens=signs, show_progress=False)
        names = {"eos_token": signs[0]} if kind == "gpt2" else {}
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(names))
    ours = borrow_pieces(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    text = tokenizer_json(ours, before=(2,), after=(3,))
    (out / "tokenizer.json").write_text(text)
    (out / "tokenizer_config.json").write_text(tokenizer_config(begin=2, longest=50))
    theirs = transformers.AutoTokenizer.from_pretrained(out)
    assert theirs.pad_token_id == 0
    for line in [*lines, *ODD, "[MASK] <mask> <|endoftext|> [SEP]"]:
        ids = ours.encode(line)
        assert theirs(line)["input_ids"] == [2, *ids, 3]
        assert theirs.decode(ids, skip_special_tokens=True) == ours.decode(ids)


def test_of_a_unigram_tokenizer_the_card_says_what_ties_are(tmp_path):
    tokenizer = {"type": "unigram", "may_shrink": True}
    translator(tmp_path / "run", tokenizer=tokenizer)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    assert "cut a text that are equally probable" in (tmp_path / "out" / "README.md").read_text()


def test_a_run_whose_words_no_tokenizer_cuts_says_so(tmp_path):
    translator(tmp_path / "run", tokenizer={"type": "words"})
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"README.md", "config.json", "generation_config.json", "model.safetensors"}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "There is no tokenizer beside it" in card
    assert "the model reads them as `… 3`" in card


def test_the_card_is_what_the_hub_reads_and_its_script_runs_without_us(tmp_path):
    predictor = translator(tmp_path / "run")
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    head = card.split("---\n")[1]
    assert "library_name: transformers\n" in head
    assert "pipeline_tag: translation\n" in head
    assert "language: [zh, en]\n" in head
    assert f"{sum(p.numel() for p in predictor.model.parameters()):,} parameters" in card
    script = script_of(tmp_path / "out", PAIRS[0][0])
    script += "import sys; assert 'regard' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.strip()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"positions": "rotary"}, "model.positions is 'rotary', and"),
        ({"positions": "alibi"}, "model.positions is 'alibi', and"),
        ({"positions": "relative"}, "model.positions is 'relative', and"),
        ({"positions": "t5"}, "model.positions is 't5', and"),
        ({"positions": "none"}, "model.positions is 'none', and"),
        ({"norm_kind": "rms"}, "model.norm_kind is 'rms', and .* layer norms"),
        ({"norm_kind": "batch"}, "model.norm_kind is 'batch', and"),
        ({"norm_eps": 1e-6}, "model.norm_eps is 1e-06, and"),
        ({"num_key_heads": 1}, "model.num_key_heads is 1, and"),
        ({"activation": "swiglu"}, "model.activation is 'swiglu', and"),
        ({"score": "additive"}, "model.score is 'additive', and"),
        ({"window": 3}, "model.window is 3, and"),
        ({"source_begin": True}, "model.source_begin is true, and"),
        ({"values": "embeddings"}, "model.values is 'embeddings', and"),
        ({"copy": True}, "model.copy is true, and"),
        ({"embedding_norm": True}, "model.embedding_norm is true, which none of"),
        (LEARNED, "model.embedding_norm is false, which none of .* learned positions"),
        (PRE | {"tie_embeddings": "target"}, "model.tie_embeddings is 'target', and"),
        (PRE | {"tokenizer": {"shared": False}}, "tokenizer.shared is false, and"),
    ],
)
def test_what_no_layout_holds_is_refused_by_the_option(tmp_path, settings, reason):
    translator(tmp_path / "run", **settings)
    with pytest.raises(SettingError, match=f"got 'huggingface', but {reason}"):
        export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_model_that_transformers_has_not_is_refused(tmp_path):
    translator(tmp_path / "run", type="rnn_seq2seq")
    with pytest.raises(SettingError, match=r"but model\.type is 'rnn_seq2seq' of tr"):
        export_run(tmp_path / "run", "huggingface", tmp_path / "out")


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    translator(tmp_path / "run")

    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("regard.export.huggingface.fill_file", full)
    with pytest.raises(RunError, match="must fit on its disk"):
        export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_its_settings_are_ours(tmp_path):
    translator(tmp_path / "run", attention_dropout=0.25)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["attention_dropout"] == 0.25
    assert config["architectures"] == ["MarianMTModel"]
    search = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert search["num_beams"] == 5
    assert search["suppress_tokens"] == [0, 1, 2]


@pytest.mark.parity
@pytest.mark.parametrize(
    ("layout", "model"),
    [
        ("gpt2", {}),
        ("gpt2", {"tie_embeddings": False, "activation": "gelu_tanh", "norm_eps": 1e-3}),
        ("gpt2", {"positions": "sinusoidal", "activation": "relu"}),
        ("gpt_neox", {"positions": "rotary"}),
        ("gpt_neox", {"positions": "rotary", "tie_embeddings": False, "norm_eps": 1e-3}),
        ("llama", LLAMA | {"num_key_heads": 2}),
        ("llama", LLAMA | {"tie_embeddings": False, "norm_eps": 1e-3}),
    ],
)
def test_a_language_model_has_the_same_logits_there_again_there_and_here(tmp_path, layout, model):
    predictor = language_model(tmp_path / "run", **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    ids = torch.randint(4, predictor.task.tokenizer.vocab_size, (3, 11))
    theirs = opened(tmp_path / "out", "AutoModelForCausalLM")
    assert theirs.config.model_type == layout
    theirs.save_pretrained(tmp_path / "again")
    with torch.no_grad():
        wanted = predictor.model.project(predictor.model(ids))
        again = opened(tmp_path / "again", "AutoModelForCausalLM")
        found = [each(input_ids=ids).logits for each in (theirs, again)]
        for name in ("out", "again"):
            back = load_checkpoint(tmp_path / name)
            assert not back.absent
            assert not back.unused
            found.append(back.model.project(back.model(ids)))
    for each in found:
        torch.testing.assert_close(each, wanted, atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize("one_line", [True, False])
def test_generate_goes_on_as_ours_does(tmp_path, one_line):
    model = LLAMA | {"tie_embeddings": False}  # a table of its own says something else than before
    predictor = language_model(tmp_path / "run", decoding={"one_line": one_line}, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = opened(tmp_path / "out", "AutoModelForCausalLM")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for prompt in ("I lo", "This is", "W"):
        batch = tokenizer([prompt], return_tensors="pt")
        assert batch["input_ids"].tolist() == [[3, *predictor.task.tokenizer.encode(prompt)]]
        (ids,) = theirs.generate(**batch).tolist()
        (wanted,) = Generator.of(predictor).continuations(prompt)
        text = tokenizer.decode(ids[1:]).replace("</s>", "\n")
        assert text.removesuffix("\n") == (prompt + wanted).removesuffix("\n")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"positions": "alibi"}, "model.positions is 'alibi', and"),
        ({"norm": "post"}, "model.norm is 'post', and"),
        ({"window": 3}, "model.window is 3, and"),
        ({"norm_kind": "rms"}, "model.norm_kind is 'rms', and"),
        ({"activation": "swiglu"}, "model.activation is 'swiglu', and .* learned positions"),
        ({"num_key_heads": 2}, "model.num_key_heads is 2, and"),
        (LLAMA | {"norm_kind": "layer"}, "model.activation is 'swiglu', and .* unless norm_kind"),
        (LLAMA | {"activation": "gelu"}, "model.norm_kind is 'rms', and"),
        (LLAMA | {"window": 3}, "model.window is 3, and"),
        ({"type": "recurrent"}, "model.type is 'recurrent' of language_modelling, which"),
    ],
)
def test_a_language_model_that_no_layout_holds_is_refused_by_the_option(tmp_path, settings, reason):
    language_model(tmp_path / "run", **settings)
    with pytest.raises(SettingError, match=f"got 'huggingface', but {reason}"):
        export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parity
@pytest.mark.parametrize(
    ("tokenizer", "model", "asks"),
    [
        ({}, {}, True),
        ({"type": "characters"}, {"num_segments": 0, "norm_eps": 1e-3}, False),
        ({"type": "unigram"}, {"num_segments": 1}, False),
    ],
)
def test_a_masked_language_model_guesses_alike(tmp_path, tokenizer, model, asks):
    data = {"next_sentence": asks}
    predictor = masked_model(tmp_path / "run", data=data, tokenizer=tokenizer, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    kind = transformers.AutoModelForPreTraining
    theirs, told = kind.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(told.values())
    theirs.eval().save_pretrained(tmp_path / "again")
    again = kind.from_pretrained(tmp_path / "again").eval()
    back = load_checkpoint(tmp_path / "again").model
    cut = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert ("token_type_ids" in cut("a")) == asks
    task, ours = predictor.task, predictor.model
    for text in ("I love [MASK].", "This is [MASK] [MASK]! </s>", "[MASK]"):
        (encoded,) = task.encode([task.request(text, "here")])
        batch, asked = task.collate([encoded]), cut(text, return_tensors="pt")
        assert asked["input_ids"].tolist() == batch.ids.tolist()
        with torch.no_grad():
            states = ours(batch.ids, batch.lengths)
            found = [each(**asked) for each in (theirs, again)]
            words = [each.prediction_logits for each in found]
            words.append(back.project(back(batch.ids, batch.lengths)))
            for each in words:
                torch.testing.assert_close(each, ours.project(states), atol=1e-4, rtol=0)
            for each in found:
                follows = each.seq_relationship_logits
                torch.testing.assert_close(follows, ours.follows(states), atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("tokenizer", "model"),
    [
        ({"type": "bpe", "may_shrink": True}, {}),
        ({"type": "characters", "begin": True}, {"positions": "sinusoidal", "num_segments": 0}),
        (None, {"num_segments": 0}),
    ],
)
def test_a_tagger_tags_alike(tmp_path, tokenizer, model):
    predictor = tagger(tmp_path / "run", tokenizer=tokenizer, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = opened(tmp_path / "out", "AutoModelForTokenClassification")
    theirs.save_pretrained(tmp_path / "again")
    again = opened(tmp_path / "again", "AutoModelForTokenClassification")
    assert theirs.config.id2label == dict(enumerate(predictor.task.tags))
    backs = [load_checkpoint(tmp_path / name) for name in ("out", "again")]
    for _, text in PAIRS:
        batch = predictor.task.collate(predictor.task.encode([predictor.task.request(text, "")]))
        ids, lengths = (
            (batch.words, batch.lengths)
            if batch.pieces is None
            else (batch.pieces.ids, batch.pieces.lengths)
        )
        if tokenizer is not None:
            cut = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
            assert cut(text)["input_ids"] == ids[0].tolist()
        with torch.no_grad():
            wanted = predictor.model(ids, lengths)
            found = [each(input_ids=ids).logits for each in (theirs, again)]
            for back in backs:
                assert not back.absent
                assert not back.unused
                found.append(back.model(ids, lengths))
        for each in found:
            torch.testing.assert_close(each, wanted, atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("tokenizer", "model"),
    [
        ({"begin": True}, {}),
        ({}, {"positions": "sinusoidal"}),
        ({"begin": True}, {"num_segments": 0}),
    ],
)
def test_a_classifier_classifies_alike(tmp_path, tokenizer, model):
    predictor = classifier(tmp_path / "run", tokenizer=tokenizer, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = opened(tmp_path / "out", "AutoModelForSequenceClassification")
    theirs.save_pretrained(tmp_path / "again")
    again = opened(tmp_path / "again", "AutoModelForSequenceClassification")
    cut = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    batch = cut([text for _, text in PAIRS], padding=True, return_tensors="pt")
    found = predictor.predict([text for _, text in PAIRS])
    back = load_checkpoint(tmp_path / "again")
    assert not back.absent
    assert not back.unused
    with torch.no_grad():
        for logits in (
            theirs(**batch).logits,
            again(**batch).logits,
            back.model(batch["input_ids"], batch["attention_mask"].sum(1)),
        ):
            for row, answer in zip(logits.softmax(-1).tolist(), found, strict=True):
                named = {theirs.config.id2label[place]: share for place, share in enumerate(row)}
                assert named == pytest.approx(answer.probabilities, abs=1e-4)


@pytest.mark.parametrize(
    ("make", "settings", "reason"),
    [
        (masked_model, {"positions": "rotary"}, "model.positions is 'rotary', and"),
        (masked_model, {"positions": "sinusoidal"}, "model.positions is 'sinusoidal', and"),
        (masked_model, {"norm": "pre"}, "model.norm is 'pre', and"),
        (masked_model, {"norm_kind": "rms"}, "model.norm_kind is 'rms', and"),
        (masked_model, {"activation": "relu"}, "model.activation is 'relu', and"),
        (tagger, {"head": {"crf": True}}, "head.crf is true, and"),
        (tagger, {"parts": "bag"}, "model.parts is 'bag', and"),
        (classifier, {"head": {"pooling": "mean"}}, "head.pooling is 'mean', and"),
        (classifier, {"head": {"pooler": False}}, "head.pooler is false, and"),
    ],
)
def test_an_encoder_that_bert_does_not_hold_is_refused(tmp_path, make, settings, reason):
    make(tmp_path / "run", **settings)
    with pytest.raises(SettingError, match=f"got 'huggingface', but {reason}"):
        export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_reader_that_is_told_more_than_ids_is_refused(tmp_path):
    table = {
        "task": "question_answering",
        "data": {"train": "questions.jsonl", "max_length": 30, "stride": 9, "max_question": 20},
        "tokenizer": {"type": "characters"},
        "model": ENCODER,
    }
    asked = [Question("Who?", "He is here.", (Answer("He", 0),))]
    write_run(tmp_path / "run", table, asked)
    with pytest.raises(SettingError, match="which is told what both texts share, and encoders"):
        export_run(tmp_path / "run", "huggingface", tmp_path / "out")


@pytest.mark.parametrize("make", [language_model, masked_model, tagger, classifier])
def test_every_card_holds_a_script_that_runs(tmp_path, capsys, make):
    bpe = {"type": "bpe", "may_shrink": True}
    make(tmp_path / "run", **({} if make is language_model else {"tokenizer": bpe}))
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    exec(script_of(tmp_path / "out", "This is it."), {})
    assert capsys.readouterr().out.strip()
