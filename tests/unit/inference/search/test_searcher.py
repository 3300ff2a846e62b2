from functools import cache

import pytest
import torch
from tests.unit.inference.conftest import make_predictor

from regard import decoding
from regard.errors import SettingError
from regard.inference.search.searcher import FORBIDDEN
from regard.tasks import DecodingConfig
from regard.tasks.sequences.sequence_task import longest_output
from regard.text import BOS_ID, EOS_ID

TEXTS = ["我爱中国。", "他爱你", "国爱我他"]
SAMPLE = {"method": "sample"}
# Settings that are compared with themselves but for the last: each one has to count.
CHANGES = [
    ({}, {"beam_size": 1}),
    ({}, {"method": "greedy"}),
    ({}, {"method": "sample"}),
    ({}, {"length_penalty": 3.0}),
    ({}, {"coverage_penalty": 5.0}),
    ({}, {"min_length": 7}),
    (SAMPLE, {"temperature": 0.2}),
    (SAMPLE, {"top_k": 1}),
    (SAMPLE, {"top_p": 0.1}),
    (SAMPLE, {"seed": 3}),
    ({}, {"repetition_penalty": 9.0}),
    ({}, {"no_repeat_ngram": 1}),
    ({}, {"prefix": "China"}),
]


@cache
def predictor(kind):
    """A translator that says different things, and ends them now and then."""
    translator = make_predictor(kind, output_bias=True)
    torch.manual_seed(2)
    for parameter in translator.model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    translator.model.output_bias.data[EOS_ID] = 1.0
    return translator


def answers(kind="transformer", texts=TEXTS, attention=False, **settings):
    settings = {"min_length": 3} | settings
    return predictor(kind).translate(
        texts, decoding=DecodingConfig(**settings), attention=attention
    )


def tokens(outputs):
    return [[output.tokens for output in each] for each in outputs]


@pytest.mark.parametrize(("before", "change"), CHANGES, ids=lambda s: " ".join(map(str, s)))
def test_every_setting_changes_what_is_found(before, change):
    assert tokens(answers(**before)) != tokens(answers(**before | change))


@pytest.mark.parametrize("kind", ["rnn_seq2seq", "transformer"])
@pytest.mark.parametrize("settings", [SAMPLE | {"n_best": 3}, {"n_best": 5}, {}])
def test_an_answer_does_not_depend_on_its_company(kind, settings):
    batched = tokens(answers(kind, **settings))
    assert tokens(answers(kind, texts=TEXTS[::-1], **settings)) == batched[::-1]
    assert [tokens(answers(kind, texts=[text], **settings))[0] for text in TEXTS] == batched


def test_the_searches_are_those_of_decoding():
    translator = predictor("transformer")
    ids = [translator.tokenizer.source.encode(text) for text in TEXTS]
    source, lengths = translator.task.pad_sources(ids)

    def run(search, **options):
        return search(
            translator.model.step,
            translator.model.start(source, lengths),
            batch_size=len(TEXTS),
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            max_lengths=longest_output(lengths, 2.0),
            forbidden=FORBIDDEN,
            min_length=3,
            **options,
        )

    outputs = answers(beam_size=4, n_best=3, no_repeat_ngram=2)
    rules = [decoding.NoRepeatedNgrams(2)]
    assert tokens(outputs) == tokens(run(decoding.beam, beam_size=4, n_best=3, rules=rules))
    outputs = answers(method="greedy", repetition_penalty=2.0)
    expected = run(decoding.greedy, rules=[decoding.RepetitionPenalty(2.0)])
    assert tokens(outputs) == [[output.tokens] for output in expected]
    outputs = answers(method="sample", top_k=1)
    assert tokens(outputs) == [[output.tokens] for output in run(decoding.greedy)]


def test_a_prefix_and_avoided_words_are_respected():
    for settings in ({}, {"method": "greedy"}, {"method": "sample", "n_best": 4}):
        for each in answers(prefix="He does", avoid=("China", "you"), **settings):
            for output in each:
                assert output.text.startswith("He does")
                assert not {"China", "you"} & set(output.text.replace(".", " ").split())


def test_of_a_text_in_parts_the_first_has_the_prefix():
    (outputs,) = answers(texts=["我爱中国。" * 4], prefix="He does", method="greedy")
    assert outputs.parts > 1
    assert outputs[0].text.startswith("He does")
    assert answers(texts=[""], prefix="He does")[0][0].text == ""


@pytest.mark.parametrize("kind", ["rnn_seq2seq", "transformer"])
@pytest.mark.parametrize("settings", [SAMPLE | {"n_best": 3}, {"coverage_penalty": 2.0}], ids=str)
def test_what_the_best_looked_at_is_known_of_every_search(kind, settings):
    for each in answers(kind, attention=True, **settings):
        look = predictor(kind).attention(each.source, each[0].tokens)
        rows = each[0].alignment.weights
        torch.testing.assert_close(rows, look.cross()[: len(each[0].tokens)], atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prefix": "I ☃"}, "prefix must be words that the vocabulary can spell; got 'I ☃'"),
        ({"prefix": "I love", "avoid": ("love",)}, "prefix must hold no word .*'love' in 'I love'"),
    ],
)
def test_words_that_cannot_be_written_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        answers(**settings)


def test_a_model_without_attention_has_no_coverage():
    translator = make_predictor("rnn_seq2seq", attention="none")
    with pytest.raises(SettingError, match="must attend to its source for a coverage penalty"):
        translator.translate(TEXTS, decoding=DecodingConfig(coverage_penalty=0.2))
