"""Trainings that begin with a checkpoint of transformers: its states, then the run alone."""

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

from regard.errors import DataError, RunError, SettingError
from regard.inference import Predictor
from regard.tasks import recipe_from_table
from regard.tasks.labels.word_parts import joined_words
from regard.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, load_tokenizer
from regard.text.tokenizers.checkpoint_pieces import borrow_pieces
from regard.training.session import fit as train

pytestmark = [pytest.mark.parity, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "under", "mat", "road", "very", "中国", "我爱"]
FEW = {"updates": 2, "validate_every": 2, "warmup": 1, "schedule": "constant", "batch_tokens": 300}
SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
# Not in the order of ours, and not in front.
BERT_SPECIAL = ["[MASK]", "[SEP]", "[UNK]", "[CLS]", "[PAD]"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def lines(count, seed):
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=7)) + "." for _ in range(count)]


def word_pieces(folder):
    """A BERT's tokenizer, learned into a folder."""
    learner = BertWordPieceTokenizer()
    texts = lines(50, 1)
    learner.train_from_iterator(
        texts, 90, 1, special_tokens=["a", *BERT_SPECIAL], show_progress=False
    )
    learner.save_model(str(folder))
    return hf.BertTokenizerFast(str(folder / "vocab.txt"))


def reader(folder, config, model, **sizes):
    """A model with BERT's tokenizer; its table has more rows than that has pieces."""
    tokenizer = word_pieces(folder)
    made = config(
        vocab_size=len(tokenizer) + 3,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        **sizes,
    )
    return tokenizer, model(made)


def bert(folder):
    return reader(folder, hf.BertConfig, hf.BertForMaskedLM, **SIZES, intermediate_size=28)


def albert(folder):
    sizes = {**SIZES, "intermediate_size": 28, "embedding_size": 7}
    return reader(folder, hf.AlbertConfig, hf.AlbertForMaskedLM, **sizes)


def electra(folder):
    sizes = {**SIZES, "intermediate_size": 28, "embedding_size": 7}
    return reader(folder, hf.ElectraConfig, hf.ElectraForPreTraining, **sizes)


def distilbert(folder):
    sizes = {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 28}
    return reader(folder, hf.DistilBertConfig, hf.DistilBertForMaskedLM, **sizes)


def bytes_of(folder, kind, special):
    """A tokenizer of byte pairs, learned into a folder."""
    learner = ByteLevelBPETokenizer()
    learner.train_from_iterator(
        lines(50, 1), vocab_size=300, special_tokens=special, show_progress=False
    )
    learner.save_model(str(folder))
    return kind(str(folder / "vocab.json"), str(folder / "merges.txt"))


def roberta(folder):
    tokenizer = bytes_of(folder, hf.RobertaTokenizerFast, ROBERTA_SPECIAL)
    config = hf.RobertaConfig(
        **SIZES,
        vocab_size=len(tokenizer),
        intermediate_size=28,
        max_position_embeddings=66,
        type_vocab_size=1,
    )
    return tokenizer, hf.RobertaForMaskedLM(config)


def gpt2(folder):
    tokenizer = bytes_of(folder, hf.GPT2TokenizerFast, ["a", "<|endoftext|>"])
    config = hf.GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=24,
        n_layer=2,
        n_head=3,
        n_positions=32,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return tokenizer, hf.GPT2LMHeadModel(config)


def llama(folder):
    """Untied, with a base of its own, and without biases."""
    tokenizer = bytes_of(folder, hf.GPT2TokenizerFast, ["a", "<|endoftext|>"])
    config = hf.LlamaConfig(
        **SIZES,
        vocab_size=len(tokenizer),
        intermediate_size=28,
        num_key_value_heads=1,
        rope_parameters={"rope_type": "default", "rope_theta": 5e5},
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return tokenizer, hf.LlamaForCausalLM(config)


RELATIVES = ("albert", "distilbert", "electra")
MAKERS = {
    **{"albert": albert, "bert": bert, "distilbert": distilbert, "electra": electra},
    **{"gpt2": gpt2, "llama": llama, "roberta": roberta},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a checkpoint of each layout, and texts of each task."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for name, make in MAKERS.items():
        (folder / name).mkdir()
        tokenizer, model = make(folder / name)
        torch.manual_seed(0)
        for parameter in model.parameters():  # biases begin as zeros, which hide mistakes
            parameter.data += 0.2 * torch.randn_like(parameter)
        tokenizer.save_pretrained(folder / name)
        model.save_pretrained(folder / name)
    text = lines(60, 2)
    labelled = [f"{line}\t{'cat' in line}" for line in text]
    (folder / "labels.tsv").write_text("\n".join(labelled), encoding="utf-8")
    documents = [f"{line}\t{line.split()[2]}" for line in text]
    (folder / "documents.tsv").write_text("\n".join(documents), encoding="utf-8")
    tagged = ["".join(f"{word}\t{word == 'cat'}\n" for word in line.split()) for line in text]
    (folder / "tagged.conll").write_text("\n".join(tagged), encoding="utf-8")
    pairs = [f"{a}\t{b}\t{a[:3] == b[:3]}" for a, b in zip(text, lines(60, 3), strict=True)]
    (folder / "pairs.tsv").write_text("\n".join(pairs), encoding="utf-8")
    (folder / "text.txt").write_text("\n".join(lines(300, 4)), encoding="utf-8")
    questions = [
        json.dumps({"question": "the cat?", "context": line, "answers": [line.split()[2]]})
        for line in text
    ]
    (folder / "asked.jsonl").write_text("\n".join(questions), encoding="utf-8")
    return folder


DATA = {
    "classification": {"train": "labels.tsv", "max_length": 40},
    "language_modelling": {"train": "text.txt", "context": 16},
    "masked_language_modelling": {"train": "text.txt", "context": 16},
    "pair_matching": {"train": "pairs.tsv", "max_length": 30},
    "generation": {"train": "documents.tsv", "max_length": 40},
    "tagging": {"train": "tagged.conll", "max_length": 40},
    "question_answering": {
        "train": "asked.jsonl",
        "max_length": 32,
        "stride": 16,
        "max_question": 16,
    },
}


@pytest.fixture
def recipe_of(home):
    def make(task, checkpoint, **sections):
        training = {**FEW, "learning_rate": 1e-12, "label_smoothing": 0.0, "pretrained": checkpoint}
        table = {"task": task, "data": DATA.get(task, {}), "training": training, **sections}
        return recipe_from_table(table, folder=home)

    return make


def states_of_theirs(folder, *texts):
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    model = hf.AutoModel.from_pretrained(folder).eval()
    read = tokenizer(*texts, return_tensors="pt")
    with torch.no_grad():
        return model(**read).last_hidden_state[0]


@torch.no_grad()
def test_a_classifier_begins_with_the_states_of_its_checkpoint(home, recipe_of, tmp_path):
    text = "the cat ran on 中国 very, xyz."
    for name in ("bert", "roberta", *RELATIVES):
        with torch.enable_grad():
            trained = train(recipe_of("classification", name), tmp_path / name)
        labeller = trained.predictor
        batch = labeller.task.collate(labeller.task.encode([labeller.task.request(text, "here")]))
        ours = labeller.model.reader(batch["ids"], batch["lengths"])[0]
        torch.testing.assert_close(
            ours, states_of_theirs(home / name, text), atol=1e-5, rtol=1e-5, msg=name
        )
        prepared = labeller.preparation.of(labeller.model).reader
        torch.testing.assert_close(prepared(batch["ids"], batch["lengths"])[0], ours)


@torch.no_grad()
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_tagger_begins_with_the_states_of_its_checkpoint(home, recipe_of, tmp_path, name):
    words = ["the", "catdog", "ran", "on", "中国", "very", "."]
    with torch.enable_grad():
        labeller = train(recipe_of("tagging", name), tmp_path / "run").predictor
    states = []
    prepared = labeller.preparation.of(labeller.model)
    prepared.output.register_forward_pre_hook(lambda _, args: states.append(args[0][0]))
    labeller.predict([{"tokens": words}])
    text = joined_words(words)
    tokenizer = hf.AutoTokenizer.from_pretrained(home / name)
    encoded = tokenizer(text)
    firsts = [encoded.char_to_token(text.index(word)) for word in words]
    firsts = [
        position - (encoded.tokens()[position - 1] == "Ġ") for position in firsts
    ]  # a space may be a piece
    theirs = states_of_theirs(home / name, text)[firsts]
    torch.testing.assert_close(states[0], theirs, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_writer_begins_with_the_states_of_its_checkpoint(home, recipe_of, tmp_path, name):
    recipe = recipe_of("generation", name, model={"type": "transformer", "num_decoder_layers": 1})
    with torch.enable_grad():
        predictor = train(recipe, tmp_path / "run").predictor
    text, model = "the cat ran on 中国 very, xyz.", predictor.model.eval()
    ids = torch.tensor([[*predictor.tokenizer.source.encode(text), EOS_ID]])
    memory, _ = model._encode(ids, torch.tensor([ids.shape[1]]), None)
    theirs = states_of_theirs(home / name, text)[1:]  # the begin is read, not looked at
    torch.testing.assert_close(memory[0], theirs, atol=1e-5, rtol=1e-5)
    # Padding, and the end of the source in a batch, change nothing.
    padded = torch.cat([ids, torch.zeros(1, 9, dtype=torch.long)], 1)
    both = torch.cat([padded, padded.flip(1)])
    memory, _ = model._encode(both, torch.tensor([ids.shape[1], padded.shape[1]]), None)
    torch.testing.assert_close(memory[0, : ids.shape[1]], theirs, atol=1e-5, rtol=1e-5)
    assert Predictor.load(tmp_path / "run").translate([text]) == predictor.translate([text])
    look = predictor.attention(text, "the cat")
    assert {each.kind for each in look.maps} == {"cross", "decoder"}


@torch.no_grad()
def test_a_pooler_begins_with_that_of_its_checkpoint(home, recipe_of, tmp_path):
    folder, text = tmp_path / "whole", "the cat ran on 中国 very."
    shutil.copytree(home / "bert", folder)
    full_model = hf.BertModel.from_pretrained(
        home / "bert"
    )  # which has a pooler, unlike that for words
    full_model.pooler.dense.weight.copy_(0.3 * torch.randn_like(full_model.pooler.dense.weight))
    full_model.pooler.dense.bias.copy_(0.3 * torch.randn_like(full_model.pooler.dense.bias))
    full_model.save_pretrained(folder)
    head = {"pooling": "first", "pooler": True}
    with torch.enable_grad():
        recipe = recipe_of("classification", str(folder), head=head)
        labeller = train(recipe, tmp_path / "run").predictor
        bare = train(recipe_of("classification", "bert", head=head), tmp_path / "bare").predictor
    states = []
    prepared = labeller.preparation.of(labeller.model)
    prepared.output.register_forward_pre_hook(lambda _, args: states.append(args[0]))
    labeller.predict([text])
    encoded = hf.AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    theirs = full_model.eval()(**encoded).pooler_output
    torch.testing.assert_close(states[0], theirs, atol=1e-5, rtol=1e-5)
    # A folder without one leaves it as new.
    assert bare.model.pooler.bias.abs().max() <= SIZES["hidden_size"] ** -0.5


@torch.no_grad()
@pytest.mark.parametrize("name", ["albert", "bert", "distilbert", "electra"])
def test_pairs_begin_with_the_states_of_a_checkpoint(home, recipe_of, tmp_path, name):
    task = "pair_matching" if name in RELATIVES[1:] else "question_answering"
    first, second = "the cat?", "the dog sat on 中国."
    recipe = recipe_of(task, name, model={"type": "transformer"})
    with torch.enable_grad():
        labeller = train(recipe, tmp_path / "run").predictor
    task = labeller.task
    batch = task.collate(task.encode([task.request(f"{first}\t{second}", "here")]))
    ours = labeller.model.reader(batch["ids"], batch["lengths"], **batch["reading"])[0]
    theirs = states_of_theirs(home / name, first, second)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", ["albert", "bert", "distilbert", "roberta"])
def test_masked_words_begin_with_the_logits_of_a_checkpoint(home, recipe_of, tmp_path, name):
    tokenizer = hf.AutoTokenizer.from_pretrained(home / name)
    with torch.enable_grad():
        run = train(recipe_of("masked_language_modelling", name), tmp_path / "run").predictor
    task, text = run.task, "the cat ran on very."
    ids = torch.tensor([[BOS_ID, *task.tokenizer.encode(text), EOS_ID]])
    ids[0, 3] = task.mask_id
    ours = run.model.project(run.model(ids))[0]
    read = tokenizer(text, return_tensors="pt")
    read["input_ids"][0, 3] = tokenizer.mask_token_id
    theirs = hf.AutoModelForMaskedLM.from_pretrained(home / name).eval()(**read).logits[0]
    rows = [*task.tokenizer.theirs, tokenizer.mask_token_id]
    torch.testing.assert_close(ours, theirs[:, rows], atol=1e-5, rtol=1e-5)
    # Other jobs begin with that run.
    with torch.enable_grad():
        recipe = recipe_of("classification", str(tmp_path / "run"))
        labels = train(recipe, tmp_path / "labels").predictor
    assert labels.predict([text])[0].label in ("True", "False")


@torch.no_grad()
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_language_model_begins_with_the_states_of_a_decoder(home, recipe_of, tmp_path, name):
    with torch.enable_grad():
        labeller = train(recipe_of("language_modelling", name), tmp_path / "run").predictor
    ids = labeller.task.tokenizer.encode("the cat 我爱 very")
    ours = labeller.model(torch.tensor([ids]))[0]
    theirs = states_of_theirs(home / name, "the cat 我爱 very")
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    logits = labeller.model.project(ours)
    table = {"gpt2": "transformer.wte.weight", "llama": "lm_head.weight"}[name]
    their_table = load_file(home / name / "model.safetensors")[table]
    rows = list(labeller.task.tokenizer.theirs)
    torch.testing.assert_close(logits, theirs @ their_table[rows].T, atol=1e-4, rtol=1e-4)


def test_the_run_alone_is_enough_after_training(home, recipe_of, tmp_path):
    for task, name in (("classification", "bert"), ("language_modelling", "gpt2")):
        folder = Path(shutil.copytree(home / name, tmp_path / name))
        training = {**FEW, "learning_rate": 0.01, "pretrained": str(folder)}
        recipe = recipe_of(task, name, training=training)
        trained = train(recipe, tmp_path / task)
        texts = ["the dog ran on 中国."]
        predictions = trained.predictor.predict(texts)
        shutil.rmtree(folder)
        assert Predictor.load(tmp_path / task).predict(texts) == predictions
        train(recipe, tmp_path / task)  # and to go on with it
    # What begins with such a run has its tokenizer too.
    after = train(
        recipe_of("language_modelling", str(tmp_path / "language_modelling")), tmp_path / "after"
    )
    assert after.predictor.task.recipe.tokenizer.type == "checkpoint"
    assert Predictor.load(tmp_path / "after").predict("the cat")


@pytest.mark.parametrize("name", ["bert", "gpt2", "roberta"])
def test_a_borrowed_tokenizer_is_theirs_on_our_reserved_ids(home, name, tmp_path):
    ours, theirs = borrow_pieces(home / name), hf.AutoTokenizer.from_pretrained(home / name)
    text = "the cat ran on 中国 very fast."
    ids = ours.encode(text)
    assert [ours.theirs[i] for i in ids] == theirs(text, add_special_tokens=False)["input_ids"]
    names = theirs.convert_ids_to_tokens(ours.theirs)
    assert ours.names == ["<pad>", "<unk>", "<s>", "</s>", *names[4:]]
    assert ours.theirs[EOS_ID] == (theirs.eos_token_id if name != "bert" else theirs.sep_token_id)
    if name != "gpt2":
        expected = (theirs.pad_token_id, theirs.unk_token_id, theirs.cls_token_id)
        assert (ours.theirs[PAD_ID], ours.theirs[UNK_ID], ours.theirs[BOS_ID]) == expected
        assert ours.decode(ours.encode("the cat ran.")) == "the cat ran."
    assert sorted(set(ours.theirs)) == list(range(len(theirs)))
    assert {"the", "very"} <= {text[p.start : p.end] for p in ours.pieces(text)}
    assert all(piece.start < piece.end for piece in ours.pieces(text))
    assert [piece.id for piece in ours.pieces(text)] == ids
    assert ours.encode_all([text, "the"])[0] == ids
    assert ours.encode("[SEP]") != [EOS_ID]
    decoded, spans = ours.decode_with_spans(ids)
    assert len(spans) == len(ids)
    assert decoded[slice(*spans[0])] == "the"
    ours.save(tmp_path)
    reloaded = load_tokenizer(tmp_path)
    assert (reloaded.encode(text), reloaded.vocab_size) == (ids, ours.vocab_size)


HEADS = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
BART = {"d_model": 12, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 40, **HEADS}


@pytest.mark.parametrize(
    ("task", "checkpoint", "sections", "message"),
    [
        (
            "classification",
            "gpt2",
            {},
            r"whose model reads text for classification; got one of language_modelling .*gpt2",
        ),
        (
            "classification",
            "bert",
            {"tokenizer": {"type": "words"}},
            r"tokenizer.type must be 'checkpoint', as in .*bert, which .*; got 'words'. Leave tok",
        ),
        (
            "classification",
            "bert",
            {"data": {"train": "labels.tsv", "max_length": 63}},
            r"model.max_length must be at least 65, for data.max_length = 63 .*got 64. Lower data",
        ),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_named(
    recipe_of, tmp_path, task, checkpoint, sections, message
):
    with pytest.raises(SettingError, match=message):
        train(recipe_of(task, checkpoint, **sections), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_lacks_something_is_named(home, recipe_of, tmp_path):
    def refused(spoil, message, error=DataError):
        folder = tmp_path / "spoiled"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(home / "bert", folder)
        spoil(folder)
        with pytest.raises(error, match=message):
            train(recipe_of("classification", str(folder)), tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def empty(folder):
        for file in folder.iterdir():
            file.unlink()

    def bart(folder):
        hf.BartModel(hf.BartConfig(**BART)).save_pretrained(folder)

    def grow(folder):
        tokenizer = hf.AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens([f"new{n}" for n in range(9)])
        tokenizer.save_pretrained(folder)

    refused(
        lambda folder: (folder / "tokenizer.json").unlink(),
        r"spoiled must hold the checkpoint's tokenizer in tokenizer.json; got none. Write it there",
    )
    refused(
        lambda folder: (folder / "tokenizer.json").write_text("{}"),
        r"tokenizer.json must hold a tokenizer that tokenizers can read; got",
    )
    refused(grow, r"spoiled must hold a tokenizer of the model's \d+ ids; got one with the id \d+")
    refused(bart, r"must name a checkpoint of albert, bert, dist.*; got one of bart", SettingError)
    refused(
        empty, r"must name a run, .*; got '.*spoiled', a folder without run.json, and", RunError
    )
