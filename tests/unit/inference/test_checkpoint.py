"""Hugging Face models in use: their answers are those of transformers, and of edited models."""

import pytest
import torch
from tests.unit.interop.tiny_folders import ENGLISH, save_bert, save_gpt2, save_llama, save_t5

import regard
from regard.inference.checkpoint import MOST_LIKELY, MOST_WRITTEN, Checkpoint

transformers = pytest.importorskip("transformers")
LABELS = {
    "id2label": {0: "bad", 1: "fair", 2: "good"},
    "label2id": {"bad": 0, "fair": 1, "good": 2},
}
CAUSAL = {"gpt2": save_gpt2, "llama": save_llama}


def loaded(folder):
    return Checkpoint.load(folder, device="cpu")


def seen(served, text):
    """The only example of a look."""
    (example,) = served.look(text, explain=False).document.examples
    return example


@torch.no_grad()
def by_hand(served, text):
    """The likeliest next tokens, and a greedy continuation without a cache."""
    ids = served.tokenizer(text, return_tensors="pt").input_ids
    shares = served.model(input_ids=ids).logits[0, -1].softmax(-1)
    top = shares.topk(MOST_LIKELY)
    room = min(MOST_WRITTEN, (served.longest or 1000) - ids.shape[1])
    for _ in range(room):
        best = served.model(input_ids=ids).logits[0, -1].argmax()
        ids = torch.cat([ids, best[None, None]], dim=1)
        if best == served.model.generation_config.eos_token_id:
            break
    written = served.tokenizer.decode(ids[0], skip_special_tokens=True)
    names = [served.tokenizer.decode([token]) for token in top.indices.tolist()]
    return list(zip(names, top.values.tolist(), strict=True)), written.removeprefix(text)


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_model_continues_and_edited_as_by_edit(name, tmp_path):
    CAUSAL[name](tmp_path)
    served = loaded(tmp_path)
    assert served.job == "language_modelling"
    text = ENGLISH[:20]
    example = seen(served, text)
    assert example.output == text
    plain = served.reply(text, example)
    with regard.edit(served.model) as edits:
        edits.mute(0, [0, 1])
        edits.scale(1.7, 1, 2)
        expected = by_hand(served, text)
        changed = served.reply(text, example)
    for reply, (tokens, written) in ((plain, by_hand(served, text)), (changed, expected)):
        assert [token for token, _ in reply.next_tokens] == [token for token, _ in tokens]
        shares = [share for _, share in reply.next_tokens]
        assert shares == pytest.approx([share for _, share in tokens], rel=1e-3)
        assert reply.text == written
        assert reply.text
    assert plain != changed


def test_a_text_as_long_as_the_positions_has_next_tokens_and_no_continuation(tmp_path):
    save_gpt2(tmp_path)
    served = loaded(tmp_path)
    text = "a" * 77
    reply = served.reply(text, seen(served, text))
    assert reply.text == ""
    assert len(reply.next_tokens) == MOST_LIKELY


@pytest.mark.parametrize("is_multiple", [False, True])
def test_a_classifier_says_its_labels(is_multiple, tmp_path):
    options = {"problem_type": "multi_label_classification"} if is_multiple else {}
    save_bert(tmp_path, "BertForSequenceClassification", **LABELS, **options)
    served = loaded(tmp_path)
    example = seen(served, "the cat sat")
    ids = served.tokenizer("the cat sat", return_tensors="pt").input_ids
    with torch.no_grad():
        logits = served.model(input_ids=ids).logits[0]
    shares = (logits.sigmoid() if is_multiple else logits.softmax(-1)).tolist()
    order = sorted(zip(("bad", "fair", "good"), shares, strict=True), key=lambda pair: -pair[1])
    assert [label for label, _ in example.answer.labels] == [label for label, _ in order]
    assert [share for _, share in example.answer.labels] == pytest.approx(
        [share for _, share in order], rel=1e-3
    )
    assert served.reply("the cat sat", example).text == order[0][0]
    assert (
        served.look("the cat sat", explain=False).document.title == f"the cat sat → {order[0][0]}"
    )


def test_a_masked_model_fills_the_first_mask_in(tmp_path):
    save_bert(tmp_path, "BertForMaskedLM")
    served = loaded(tmp_path)
    reply = served.reply("the [MASK] sat", seen(served, "the [MASK] sat"))
    ids = served.tokenizer("the [MASK] sat", return_tensors="pt").input_ids
    with torch.no_grad():
        best = int(served.model(input_ids=ids).logits[0, 2].argmax())
    assert reply.next_tokens[0][0] == served.tokenizer.decode([best])
    assert served.reply("the cat", seen(served, "the cat")).next_tokens == ()


def test_a_plain_encoder_is_looked_at_and_an_encoder_decoder_writes(tmp_path):
    save_bert(tmp_path / "bert")
    save_t5(tmp_path / "t5")
    bert, t5 = loaded(tmp_path / "bert"), loaded(tmp_path / "t5")
    example = seen(bert, "the cat sat")
    assert (bert.job, bert.reply("the cat sat", example).to_dict()) == (
        "attention",
        {"text": "", "labels": (), "next_tokens": (), "unknown": ()},
    )
    written = seen(t5, "the cat sat")
    assert (t5.job, t5.reply("the cat sat", written).text) == ("generation", written.output)
