"""Why runs answer so: contributions to their answers, queries and keys, scores of heads."""

from dataclasses import replace

import pytest
import torch
from tests.looking import look_into
from tests.unit.inference.conftest import PHRASE, make_predictor
from tests.unit.inference.test_looking_at_answers import (
    RECURRENT,
    TRANSFORMER,
    a_classifier,
    a_labeller,
)
from tests.unit.inference.test_looking_between_texts import ASKED, ESIM, MATCH
from tests.unit.inference.test_looking_between_texts import a_labeller as a_reader
from torch.testing import assert_close

import regard as rg
from regard.errors import DataError, SettingError
from regard.interop.attribution.faithfulness import logits_of
from regard.tasks.running_text.running_text import Passage
from regard.text import BOS_ID, EOS_ID
from regard.text.reading.tagged import TaggedWords
from regard.viewer import Document

SENTENCES = [
    TaggedWords(("江", "在", "京"), ("B-PER", "O", "B-LOC"), ""),
    TaggedWords(("John", "ran"), ("B-PER", "O"), ""),
]
DECODER = {"type": "decoder", "num_layers": 2, "num_heads": 2, "model_dim": 8, "ffn_dim": 7}


def explained(predictor, text, output=None, target=None, methods=None, **options):
    options |= {"target": output or target, "attribute": methods}
    document = look_into(predictor, [text], explain=True, **options)
    assert Document.from_json(document.to_json()) == document
    return list(document.examples)


def batch_of(predictor, text):
    task = predictor.task
    return task.collate(task.encode([task.request(text, "")]))


def by_method(example):
    return {one.method: one for one in example.importances}


def assert_near(values, expected):
    assert list(values) == pytest.approx(expected.tolist(), rel=2e-3, abs=1e-6)


def a_language_model(model, context=8):
    passage = Passage(("abcab", "bca"), "")
    sections = {"tokenizer": {"type": "characters"}, "data": {"context": context}}
    return a_labeller("language_modelling", [passage], model, **sections)


@pytest.mark.parametrize("model", [RECURRENT, DECODER])
def test_a_language_model_s_next_token_is_explained(model):
    predictor = a_language_model(model)
    (example,) = explained(predictor, "abcc", target="b", against="c")
    assert example.surprise == pytest.approx(example.answer.values, rel=1e-3)
    inputs = {"ids": batch_of(predictor, "abcc")["ids"]}
    importance = by_method(example)["gradient × input"]
    target, against = map(predictor.task.tokenizer.names.index, "bc")
    expected = rg.attribute(
        predictor.model, inputs, target=target, against=against, method="gradient_times_input"
    )
    assert_near([importance.start, *importance.values[:4]], expected.values)
    assert (importance.target, importance.against, importance.position) == ("b", "c", 3)
    if model is RECURRENT:
        assert (example.lens, importance.correlation, example.vectors) == (None, None, ())
        return
    assert importance.correlation is not None
    logits = logits_of(predictor.model, predictor.model(**inputs))[0]
    last = torch.tensor(example.lens.probabilities.values()[-1]).float()
    assert_close(last, logits.detach().softmax(-1).topk(5).values, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("model", ["rnn_seq2seq", "transformer"])
def test_each_token_of_a_translation_is_explained(model):
    predictor = make_predictor(model)
    (example,) = explained(predictor, PHRASE.source, PHRASE.target)
    tokenizer = predictor.tokenizer
    written = [*tokenizer.target.encode(PHRASE.target), EOS_ID]
    source, lengths = predictor.sequence_task.pad_sources([tokenizer.source.encode(PHRASE.source)])
    inputs = {"source": source, "source_lengths": lengths}
    inputs["target"] = torch.tensor([[BOS_ID, *written[:-1]]])
    assert {one.output for one in example.importances} == set(range(len(written)))
    with torch.no_grad():
        logits = logits_of(predictor.model, predictor.model(**inputs))[0].log_softmax(-1)
    assert_near(example.surprise, -logits[range(len(written)), written])
    (importance,) = (
        one for one in example.importances if (one.output, one.method) == (1, "leave one out")
    )
    options = {"target": written[1], "position": 1, "method": "leave_one_out"}
    expected = rg.attribute(predictor.model, inputs, **options).values
    assert importance.values == pytest.approx(expected.tolist(), rel=1e-2, abs=1e-5)
    assert importance.correlation is not None
    if model == "transformer":
        last = torch.tensor(example.lens.probabilities.values()[-1]).float()
        assert_close(last, logits.exp().topk(5).values, atol=1e-4, rtol=1e-3)
        assert example.lens.tokens.shape[0] == 3
    (other,) = explained(predictor, PHRASE.source, PHRASE.target, against="I love you.")
    assert {one.output for one in other.importances} == {2}


@pytest.mark.parametrize("head", [{}, {"ngram_scores": True}])
def test_a_class_is_explained_and_must_be_one(head):
    predictor = a_classifier(TRANSFORMER, head=head)
    (example,) = explained(predictor, "菜很好吃", target="bad", against="good")
    batch, importances = batch_of(predictor, "菜很好吃"), by_method(example)
    inputs = predictor.task.inputs(batch)
    assert ("ngram_values" in inputs) == bool(head)
    options = {"target": 0, "against": 1, "method": "integrated_gradients"}
    expected = rg.attribute(predictor.model, inputs, **options)
    one = importances["integrated gradients"]
    assert_near(one.values, expected.values)
    assert one.total == pytest.approx(one.change, abs=1e-4)
    assert (one.target, one.against) == ("bad", "good")
    assert all(each.correlation is not None for each in importances.values() if each.method != "attention")  # fmt: skip  # noqa: E501
    with pytest.raises(DataError, match="target must be one of bad, good; got 'fine'"):
        explained(predictor, "菜", target="fine")


@pytest.mark.parametrize("parts", ["none", "characters"])
@pytest.mark.parametrize("model", [RECURRENT, TRANSFORMER])
def test_the_tag_of_each_word_is_explained(model, parts):
    is_read = parts != "none"
    sections = {"data": {"parts": parts}} if is_read else {}
    read = {"parts": "convolution"} if is_read else {}
    predictor = a_labeller("tagging", SENTENCES, {**model, **read}, head={"crf": True}, **sections)
    text = "John 在 京"
    (example,) = explained(predictor, text)
    (answer,) = predictor.predict([text])
    batch, tags = batch_of(predictor, text), predictor.task.tags
    inputs = {name: batch[name] for name in ("ids", "lengths", "parts") if name in batch}
    assert {one.output for one in example.importances} == {0, 1, 2}
    for one in example.importances:
        assert (one.target, one.position) == (answer.tags[one.output], one.output)
    with torch.no_grad():
        scores = predictor.model(**inputs)[0]
    for word, tag in enumerate(answer.tags):
        of_word = replace(example, importances=tuple(o for o in example.importances if o.output == word))  # fmt: skip  # noqa: E501
        complete = by_method(of_word)["integrated gradients"]
        assert complete.total == pytest.approx(complete.change, abs=2e-3)
        options = {"target": tags.index(tag), "position": word, "method": "leave_one_out"}
        expected = rg.attribute(predictor.model, inputs, **options)
        assert float(scores[word, tags.index(tag)]) == pytest.approx(expected.output, rel=1e-4)
        assert_near(by_method(of_word)["leave one out"].values, expected.values)
        assert ("rollout" in by_method(of_word)) is (model is TRANSFORMER)
    (one,) = explained(predictor, text, target="B-LOC", against="O", methods=["leave_one_out"])
    assert {(each.target, each.against) for each in one.importances} == {("B-LOC", "O")}
    with pytest.raises(DataError, match="--not must be one of B-LOC, B-PER, O; got 'X'"):
        explained(predictor, text, against="X")


def test_the_vectors_of_words_hold_what_their_parts_bring():
    predictor = a_labeller(
        *("tagging", SENTENCES, {**RECURRENT, "parts": "convolution"}), data={"parts": "characters"}
    )
    batch = batch_of(predictor, "John 在")
    inputs = {name: batch[name] for name in ("ids", "lengths", "parts")}
    predictor.model.eval()
    attribution = rg.attribute(
        predictor.model, inputs, target=0, position=1, method="leave_one_out"
    )
    with torch.no_grad():
        whole = predictor.model(**inputs)[0, 1, 0]
        reader = predictor.model.reader.words
        cut = []
        for module in (reader.embedding, reader.parts):
            cut.append(module.register_forward_hook(lambda _, args, out: out * torch.tensor([0.0, 1.0])[:, None]))  # fmt: skip  # noqa: E501
        without = predictor.model(**inputs)[0, 1, 0]
        for hook in cut:
            hook.remove()
    assert float(attribution.values[0]) == pytest.approx(float(whole - without), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("model", [TRANSFORMER, MATCH, RECURRENT])
def test_start_and_end_of_an_answer_are_explained_in_both_texts(model):
    predictor = a_reader("question_answering", model)
    request = ASKED["question_answering"]
    examples = explained(predictor, request)
    batch = batch_of(predictor, request)
    (answer,) = predictor.answers([predictor.task.request(request, "")])
    inputs = {"ids": batch["ids"], "lengths": batch["lengths"], **batch["reading"]}
    context = 1 if model is MATCH else 5 + 2
    first, last = context + answer.start, context + answer.end - 1

    def logits(out):
        return out[0][:, first] + out[1][:, last]

    name = "other" if model is MATCH else "ids"
    expected = rg.attribute(
        predictor.model, inputs, target=logits, method="gradient_times_input", name=name
    ).values
    sides = {"何时成立？": slice(0, 5) if model is MATCH else slice(1, 6)}
    for example in examples:
        importance = by_method(example)["gradient × input"]
        assert importance.target == answer.text()
        part = sides.get(example.source, slice(context, context + len(example.source)))
        assert_near(importance.values, expected[part])
        assert ("attention" in by_method(example)) is (model is not RECURRENT)
    assert len(examples) == (2 if model is TRANSFORMER else 1)
    with pytest.raises(DataError, match="--target and --not must be left out for an answer"):
        explained(predictor, request, target="他")


@pytest.mark.parametrize("model", [TRANSFORMER, ESIM, MATCH])
def test_the_label_of_a_pair_is_explained_in_both_texts(model):
    predictor = a_reader("pair_matching", model)
    request = ASKED["pair_matching"]
    batch = batch_of(predictor, request)
    read = {"ids": batch["ids"], "lengths": batch["lengths"], **batch["reading"]}
    if model is ESIM:
        names = {"other": "first", "other_lengths": "first_lengths", "ids": "second"}
        read = {names.get(name, "second_lengths"): each for name, each in read.items()}
    examples = explained(predictor, request, target="same", against="no")
    for example in examples:
        name = "first" if example.source == "何时？" else "second"
        if model is MATCH:
            name = {"first": "other", "second": "ids"}[name]
        part = slice(0, len(example.source_tokens))
        if model is not ESIM:
            name = "other" if name == "other" else "ids"
            start = {"何时？": 0 if model is MATCH else 1, "成立于": 5}.get(example.source, 0)
            part = slice(start, start + len(example.source_tokens))
        elif name == "second":
            part = slice(1, 1 + len(example.source_tokens))
        target = predictor.task.labels.index("same")
        expected = rg.attribute(
            predictor.model, read, target=target, against=1 - target, name=name,
            method="gradient_times_input",
        ).values  # fmt: skip
        importance = by_method(example)["gradient × input"]
        assert (importance.target, importance.against) == ("same", "no")
        assert_near(importance.values, expected[part])
        assert ("attention" in by_method(example)) is (model is TRANSFORMER)
    assert len(examples) == {"transformer": 3, "esim": 2, "match": 1}[model["type"]]


def test_masked_words_are_explained_in_their_places():
    passage = Passage(("abcab", "bca"), "")
    predictor = a_labeller(
        "masked_language_modelling", [passage], TRANSFORMER, tokenizer={"type": "characters"}
    )
    (example,) = explained(predictor, "a[MASK]ca[MASK]")
    batch = batch_of(predictor, "a[MASK]ca[MASK]")
    inputs = {"ids": batch["ids"]}
    places = [(one.output, one.position) for one in example.importances]
    assert set(places) == {(0, 2), (1, 5)}
    assert next(each.target for each in example.importances if each.output == 1) == (
        example.output_tokens[1].text
    )
    with torch.no_grad():
        logits = logits_of(predictor.model, predictor.model(**inputs))[0, [2, 5]]
    last = torch.tensor(example.lens.probabilities.values()[-1]).float()
    assert_close(last, logits.softmax(-1).topk(5).values, atol=1e-4, rtol=1e-3)
    (other,) = explained(predictor, "a[MASK]ca", target="b", against="c")
    target, against = (predictor.task.tokenizer.encode(each)[0] for each in "bc")
    expected = rg.attribute(
        predictor.model, {"ids": batch_of(predictor, "a[MASK]ca")["ids"]}, position=2,
        target=target, against=against, method="gradient_times_input",
    )  # fmt: skip
    assert_near(by_method(other)["gradient × input"].values, expected.values)


@pytest.mark.parametrize("kind", ["decoder", "encoder", "cross", "pair"])
def test_products_of_queries_and_keys_on_a_run_s_page_are_its_scores(kind):
    if kind == "decoder":
        (example, *_) = explained(a_language_model(DECODER), "abcc")
    elif kind == "encoder":
        (example, *_) = explained(a_classifier(TRANSFORMER), "菜很好吃")
    elif kind == "cross":
        (example, *_) = explained(make_predictor("transformer"), PHRASE.source, PHRASE.target)
    else:
        (example, *_) = explained(a_reader("pair_matching", TRANSFORMER), ASKED["pair_matching"])
    maps = {(one.kind, one.layer, one.head): torch.tensor(one.rows) for one in example.maps}
    assert {(one.kind, one.layer, one.head) for one in example.vectors} == set(maps)
    for one in example.vectors:
        weights = maps[one.kind, one.layer, one.head]
        scores = torch.tensor(one.scale * one.query.values() @ one.key.values().T).float()
        if one.bias is not None:
            scores = scores + torch.tensor(one.bias.values()).float()
        expected = scores.masked_fill(weights == 0, -torch.inf).softmax(-1)
        # Weights of a pair are those of a longer row.
        expected = expected * weights.sum(-1, keepdim=True)
        assert_close(expected, weights, atol=2e-3, rtol=1e-2)


def test_heads_of_long_texts_are_scored_by_their_tokens():
    predictor = a_classifier(TRANSFORMER, max_length=100)
    (example,) = explained(predictor, "菜很好吃，" * 15, methods=[])
    measures = example.summaries[0].measures
    rows = torch.tensor(example.summaries[0].rows.values())
    previous = rows.diagonal(-1, 1, 2).mean(-1)
    assert measures["previous"] == pytest.approx(previous.tolist(), rel=1e-2)
    commas = [n for n, token in enumerate(example.source_tokens) if token.text == "，"]
    assert measures["punctuation"] == pytest.approx(
        rows[:, :, commas].sum(-1).mean(-1).tolist(), rel=1e-2
    )
    assert {"induction", "duplicate", "same", "next"} <= set(measures)
    (chosen,) = look_into(predictor, ["菜很好吃，" * 15], heads=[1]).examples
    assert chosen.summaries[0].measures["previous"] == measures["previous"][1:]
    decoder = a_language_model(DECODER, context=90)
    (text,) = look_into(decoder, ["abc" * 25]).examples
    of_past = torch.tensor(text.summaries[0].rows.values())
    expected = of_past.diagonal(-1, 1, 2).mean(-1).tolist()
    assert text.summaries[0].measures["previous"] == pytest.approx(expected, rel=1e-2)


def test_a_record_is_looked_at_as_its_line_is():
    predictor = a_reader("question_answering", MATCH)
    asked = dict(zip(("question", "context"), ASKED["question_answering"].split("\t"), strict=True))
    (expected,) = predictor.look(ASKED["question_answering"]).document.examples
    assert predictor.look(asked).document.examples == (expected,)
    assert predictor.look([asked, asked]).document.examples == (expected, expected)


def test_a_reader_that_pools_a_question_is_not_explained_by_gradients_of_attention():
    predictor = a_reader("question_answering", MATCH)
    message = "'attention_gradient' for a model of which a layer does not attend from each position"
    with pytest.raises(SettingError, match=f"{message}; got layers of 1, 14 queries"):
        predictor.look(ASKED["question_answering"], attribute=["attention_gradient"])


def test_a_page_in_python_says_why_and_refuses_what_is_not_explained():
    predictor = a_classifier(TRANSFORMER)
    (example,) = predictor.look("菜很好吃", target="bad", attribute=["rollout"]).document.examples
    assert {one.method for one in example.importances} == {"attention", "rollout"}
    assert len(example.vectors) == 6
    page = predictor.look("菜很好吃", attribute=[], neurons=[(2, 1)]).document
    assert [(each.layer, each.head) for each in page.examples[0].vectors] == [(2, 1)]
    with pytest.raises(SettingError, match=r"neurons must name heads LAYER.HEAD.*; got 7\.0"):
        predictor.look("菜", neurons=[(7, 0)])
    other = a_reader("multiple_choice", TRANSFORMER)
    assert other.look(ASKED["multiple_choice"]).document.examples
    with pytest.raises(SettingError, match="against must be left out for a run of multiple_choice"):
        other.look(ASKED["multiple_choice"], against="a")
