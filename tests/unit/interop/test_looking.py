"""Hugging Face folders and texts in, pages out: tiny random models with tokenizers of their own."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.interop.tiny_folders import (
    CHINESE,
    ENGLISH,
    SIZES,
    byte_tokenizer,
    save_bert,
    save_gpt2,
    save_t5,
)

import regard
from regard.errors import DataError, SettingError
from regard.interop.checkpoints.folder import load_folder
from regard.interop.pages.looking import longest_input, written
from regard.viewer import page
from regard.viewer.drawing import draw_layers

transformers = pytest.importorskip("transformers")

SAVED: dict[str, Callable[[Path], None]] = {"bert": save_bert, "gpt2": save_gpt2, "t5": save_t5}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folders_of = {name: tmp_path_factory.mktemp("models") / name for name in SAVED}
    for name, folder in folders_of.items():
        SAVED[name](folder)
    return folders_of


def eager(folder, text):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager")
    ids = tokenizer(text, return_tensors="pt").input_ids
    with torch.no_grad():
        return ids, model.eval()(input_ids=ids, output_attentions=True).attentions


def rows(example, number):
    packed = example.summaries[number].rows
    return torch.tensor(packed.values())


@pytest.mark.parametrize("text", [CHINESE, ENGLISH])
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_page_has_the_tokens_and_the_weights_of_the_model(name, text, folders):
    look = regard.look(*load_folder(folders[name]), text)
    (example,) = look.document.examples
    ids, weights = eager(folders[name], text)
    is_encoder = name == "bert"
    tokens = example.source_tokens if is_encoder else example.output_tokens
    assert (example.source if is_encoder else example.output) == text
    assert len(tokens) == ids.shape[1]
    assert "".join(text.split()) == joined(tokens, text)
    assert [(summary.kind, summary.layer) for summary in example.summaries] == [
        ("encoder" if is_encoder else "decoder", layer) for layer in (0, 1)
    ]
    for layer, expected in enumerate(weights):
        pooled = rows(example, layer)
        torch.testing.assert_close(pooled, expected[0].double(), atol=2e-3, rtol=2e-3)
    assert text[:9] in page(look.document)


def joined(tokens, text):
    covered = {position for token in tokens for position in range(token.start, token.end)}
    return "".join("".join(text[position] for position in sorted(covered)).split())


@pytest.mark.parametrize("text", [CHINESE, ENGLISH])
def test_a_writer_is_looked_at_while_it_writes(text, folders):
    model, tokenizer = load_folder(folders["t5"])
    (example,) = regard.look(model, tokenizer, text, max_new_tokens=7).document.examples
    ids = tokenizer(text, return_tensors="pt").input_ids
    generated = model.generate(input_ids=ids, max_new_tokens=7)
    assert len(example.output_tokens) == generated.shape[1] - 1
    assert example.output == tokenizer.decode(
        generated[0, 1:], skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    eager_model = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        folders["t5"], attn_implementation="eager"
    )
    with torch.no_grad():
        out = eager_model(
            input_ids=ids, decoder_input_ids=generated[:, :-1], output_attentions=True
        )
    expected = {
        "encoder": out.encoder_attentions,
        "decoder": out.decoder_attentions,
        "cross": out.cross_attentions,
    }
    assert {summary.kind for summary in example.summaries} == set(expected)
    for number, summary in enumerate(example.summaries):
        weights = expected[summary.kind][summary.layer][0].double()
        torch.testing.assert_close(rows(example, number), weights, atol=2e-3, rtol=2e-3)


def test_a_target_is_explained_instead(folders):
    model, tokenizer = load_folder(folders["t5"])
    (example,) = regard.look(model, tokenizer, CHINESE, target="we go").document.examples
    assert example.output == "we go"
    assert len(example.output_tokens) == len(tokenizer("we go").input_ids)


def test_three_thousand_tokens_make_a_small_page(folders):
    look = regard.look(*load_folder(folders["bert"]), CHINESE * 166)
    (example,) = look.document.examples
    assert len(example.source_tokens) == 166 * 18 + 2
    assert all(one.rows is None and one.pooled is not None for one in example.summaries)
    assert len(page(look.document)) < 2_000_000
    lines = draw_layers(example).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["encoder", str(n), "3"] for n in (0, 1)]


def test_a_live_look_answers_with_the_rows_of_long_texts(folders):
    model, tokenizer = load_folder(folders["bert"])
    text = CHINESE * 40
    look = regard.look(model, tokenizer, [CHINESE, text], layers=[1], heads=[0, 2], live=True)
    for example in look.document.examples:
        assert [(summary.layer, summary.heads) for summary in example.summaries] == [(1, (0, 2))]
    home = look.serve()
    ids = tokenizer(text, return_tensors="pt").input_ids
    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights = model(input_ids=ids, output_attentions=True).attentions[1][0]
    for head, expected in ((2, weights[2]), ("mean", weights[[0, 2]].mean(0))):
        question = f"example=1&kind=encoder&layer=1&head={head}&queries=3,700"
        with urllib.request.urlopen(f"{home}rows?{question}") as answer:
            served = np.frombuffer(answer.read(), "<f4").reshape(2, -1)
        assert served == pytest.approx(expected[[3, 700]].numpy(), abs=1e-4)
    with pytest.raises(urllib.error.HTTPError, match="404"):  # the page has all of a short one
        urllib.request.urlopen(f"{home}rows?example=0&kind=encoder&layer=1&head=0&queries=1")
    look.close()
    assert regard.look(model, tokenizer, CHINESE * 40)._server is None


def test_the_model_is_left_as_it_was(folders):
    model, tokenizer = load_folder(folders["gpt2"])
    model.train()
    before = model.config._attn_implementation
    regard.look(model, tokenizer, ENGLISH)
    assert model.training
    assert model.config._attn_implementation == before


def test_a_text_beyond_the_positions_is_refused_or_cut(folders):
    model, tokenizer = load_folder(folders["gpt2"])
    with pytest.raises(
        DataError,
        match=r"at most 77 tokens long, .* of GPT2LMHeadModel go; got 108\. Cut it .*--trunc",
    ):
        regard.look(model, tokenizer, CHINESE * 2)
    (example,) = regard.look(model, tokenizer, CHINESE * 2, truncate=True).document.examples
    assert len(example.output_tokens) == 77
    assert example.output == (CHINESE * 2)[: example.output_tokens[-1].end]
    assert 20 < len(example.output) < 30
    (whole,) = regard.look(model, tokenizer, ENGLISH, truncate=True).document.examples
    assert whole.output == ENGLISH


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        (transformers.RobertaConfig(max_position_embeddings=23, pad_token_id=1, **SIZES), 21),
        (transformers.BertConfig(max_position_embeddings=23, **SIZES), 23),
        (transformers.T5Config(d_model=12, d_kv=4, d_ff=8, num_layers=1, num_heads=2), None),
    ],
    ids=["roberta", "bert", "t5"],
)
def test_the_longest_text_is_that_which_the_model_can_read(config, longest):
    model = transformers.AutoModel.from_config(config).eval()
    assert longest_input(model, byte_tokenizer()) == longest
    if longest is not None:
        with torch.no_grad():
            model(input_ids=torch.full((1, longest), 5))
            with pytest.raises((IndexError, RuntimeError)):
                model(input_ids=torch.full((1, longest + 1), 5))


def test_what_is_written_has_an_offset_for_every_id():
    tokenizer = byte_tokenizer()
    ids = [*tokenizer("we go 爱国").input_ids, 1]
    text = written(tokenizer, ids)
    assert text.text == "we go 爱国"
    assert len(text.tokens) == len(ids)
    assert [t.text for t in text.tokens if t.end > t.start][-2:] == ["爱", "国"]
    assert joined(text.tokens, text.text) == "wego爱国"
    assert (text.tokens[-1].text, text.tokens[-1].start) == ("</s>", 8)


def test_pieces_of_a_tokenizer_without_offsets_are_searched_for(folders):
    model, fast = load_folder(folders["bert"])

    class Slow:
        is_fast = False
        model_max_length = 10**30
        convert_ids_to_tokens = fast.convert_ids_to_tokens

        def __call__(self, text, return_offsets_mapping, verbose):
            assert not return_offsets_mapping
            return fast(text)

    (example,) = regard.look(model, Slow(), CHINESE).document.examples
    (expected,) = regard.look(model, fast, CHINESE).document.examples
    assert example.source_tokens[1:-1] == expected.source_tokens[1:-1]


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        ("", {}, DataError, "text must hold something to look at; got"),
        (" \n\t", {}, DataError, "text must hold something to look at; got"),
        ([], {}, DataError, "text must hold something to look at; got"),
        ("a\ud800b", {}, DataError, "text must be one that its tokenizer can encode; got"),
        (ENGLISH, {"layers": [7]}, SettingError, r"layers must be of 0, 1; got 7"),
        (ENGLISH, {"heads": [9]}, SettingError, r"heads must be below 3.*got 9"),
        (ENGLISH, {"target": " "}, DataError, r"target must have tokens that the model knows"),
        (ENGLISH, {"max_new_tokens": 0}, SettingError, r"max_new_tokens must be at least 1; got 0"),
    ],
)
def test_texts_and_wishes_that_cannot_be_are_named(text, options, error, message, folders):
    with pytest.raises(error, match=message):
        regard.look(*load_folder(folders["gpt2"]), text, **options)


def hearing():
    sizes = {"patch_size": 2, "max_length": 8, "num_mel_bins": 4, "intermediate_size": 8}
    config = transformers.ASTConfig(**sizes, frequency_stride=2, time_stride=2, **SIZES)
    return transformers.ASTModel(config)


def rwkv():
    config = transformers.RwkvConfig(vocab_size=290, hidden_size=8, num_hidden_layers=2)
    return transformers.RwkvModel(config)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.nn.Linear(2, 2), "model must be one of transformers; got Linear"),
        (hearing, r"must read text or pictures .* got ASTModel, which reads input_v"),
        (rwkv, r"must be weights of \(B, H, N, M\); got .* RwkvModel"),
    ],
)
def test_models_that_cannot_be_looked_into_are_named(make, message):
    with pytest.raises(SettingError, match=message):
        regard.look(make(), byte_tokenizer(), "we go")


@pytest.mark.parametrize(
    ("absent", "message"),
    [
        ("config.json", r"must hold a Hugging Face model; got no config\.json in it"),
        ("model.safetensors", r"must hold the model's weights; got no model\.safetensors in it"),
        ("tokenizer*", r"must hold the model's tokenizer; got no tokenizer\.json or vocabulary"),
    ],
)
def test_a_folder_must_have_all_its_parts(absent, message, tmp_path):
    save_gpt2(tmp_path)
    for path in tmp_path.glob(absent):
        path.unlink()
    with pytest.raises(DataError, match=message):
        load_folder(tmp_path)
    if absent == "model.safetensors":
        (tmp_path / "pytorch_model.bin").touch()
        message = r"must be safetensors; got pytorch_model\.bin in .*model\.save_pretrained"
        with pytest.raises(DataError, match=message):
            load_folder(tmp_path)


def test_damaged_weights_and_code_are_refused(tmp_path):
    save_gpt2(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    weights = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(weights[:500])
    with pytest.raises(DataError, match="model must be one that transformers can load"):
        load_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(weights)
    code = tmp_path / "mine.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.C", "AutoModel": "mine.M"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match=r"config must be one that transformers can load without c"):
        load_folder(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_weights_that_are_missing_are_not_made_up(tmp_path):
    from safetensors.torch import load_file, save_file

    save_gpt2(tmp_path)
    file = tmp_path / "model.safetensors"
    remaining = {name: tensor for name, tensor in load_file(file).items() if "h.1.attn" not in name}
    save_file(remaining, file, metadata={"format": "pt"})
    with pytest.raises(DataError, match=r"got none for \d+ of its parameters, such as h\.1\.attn"):
        load_folder(tmp_path)


def test_a_name_that_is_no_folder_is_not_fetched(monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("went to the network"))
    with pytest.raises(DataError, match=r"got 'gpt2', which is no folder here\. Nothing is downlo"):
        load_folder("gpt2")


def test_two_texts_are_read_as_one(folders):
    first, second = "我爱中国", "the cat sat on a mat."
    look = regard.look(*load_folder(folders["bert"]), [first, second], pair=True)
    (example,) = look.document.examples
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["bert"])
    model = transformers.AutoModel.from_pretrained(folders["bert"], attn_implementation="eager")
    inputs = tokenizer(first, second, return_tensors="pt")
    with torch.no_grad():
        weights = model.eval()(**inputs, output_attentions=True).attentions
    for layer, expected in enumerate(weights):
        got = rows(example, layer)
        torch.testing.assert_close(got, expected[0].double(), atol=2e-3, rtol=2e-3)
    assert list(example.segments) == inputs["token_type_ids"][0].tolist()
    assert example.source == f"{first}\n{second}"
    words = [example.source[token.start : token.end] for token in example.source_tokens]
    assert words[:6] == ["", "我", "爱", "中", "国", ""]
    assert words[6:] == ["the", "cat", "sat", "on", "a", "mat", ".", ""]
    assert look.document.title == f"{first} / {second}"


@pytest.mark.parametrize(
    ("name", "texts", "options", "message"),
    [
        ("bert", ["我"], {}, "pair must be two texts for a model that reads only; got 1"),
        ("t5", ["a", "b"], {}, "pair must be two texts for a model that reads only; got 2"),
        ("bert", ["我", " "], {}, "text must hold something to look at; got an empty one of"),
        ("gpt2", ["x" * 60] * 2, {}, "text must be at most 77 tokens long, both texts"),
    ],
)
def test_a_pair_that_cannot_be_read_is_refused(name, texts, options, message, folders):
    model, tokenizer = load_folder(folders[name])
    with pytest.raises(DataError, match=message):
        regard.look(model, tokenizer, texts, pair=True, **options)
    if name == "gpt2":
        (cut,) = regard.look(model, tokenizer, texts, pair=True, truncate=True).document.examples
        assert len(cut.segments) == len(cut.output_tokens) == 77


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_heads_are_scored_as_in_python(name, folders):
    text = "the cat sat on a mat . the cat sat . " * 2
    model, tokenizer = load_folder(folders[name])
    target = {"target": "the cat."} if name == "t5" else {}
    (example,) = regard.look(model, tokenizer, text, **target).document.examples
    pieces = tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)
    kinds = {"bert": "encoder", "gpt2": "decoder", "t5": "encoder"}
    with torch.no_grad(), regard.watch(model, keep=True) as seen:
        ids = torch.tensor([tokenizer(text).input_ids])
        if name == "t5":
            model(input_ids=ids, decoder_input_ids=ids[:, :2])
        else:
            model(input_ids=ids)
    for summary in example.summaries:
        if summary.kind == kinds[name]:
            scores = seen.head_scores(summary.layer, pieces, summary.kind)
            assert {"previous", "induction", "duplicate"} < set(summary.measures)
            for measure in set(scores.weight) - {"first"}:
                expected = scores.weight[measure].tolist()
                assert summary.measures[measure] == pytest.approx(expected, rel=2e-3, abs=1e-4)
        elif summary.kind == "cross":
            assert "diagonal" in summary.measures
            assert "previous" not in summary.measures


def test_heads_of_a_long_text_are_scored_without_keeping_its_queries(folders):
    model, tokenizer = load_folder(folders["bert"])
    (example,) = regard.look(model, tokenizer, "the cat sat. " * 200).document.examples
    measures = example.summaries[0].measures
    assert len(example.source_tokens) > 512
    assert len(measures["induction"]) == 3
    assert example.vectors == ()
