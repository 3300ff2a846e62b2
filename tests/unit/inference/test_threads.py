"""One predictor in several threads: each gets what it would get alone."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.cases import slow_but
from tests.unit.inference.conftest import make_predictor
from tests.unit.inference.test_explanation import DECODER, SENTENCES, a_language_model
from tests.unit.inference.test_looking_at_answers import (
    RECURRENT,
    TRANSFORMER,
    a_classifier,
    a_labeller,
)
from tests.unit.inference.test_looking_between_texts import ASKED, ESIM
from tests.unit.inference.test_looking_between_texts import a_labeller as a_reader
from tests.unit.interop.tiny_folders import ENGLISH, save_bert

import regard as rg
from regard.inference.checkpoint import Checkpoint

THREADS = 4
QUICK = ("classifier",)
PREDICTORS = {
    "classifier": lambda: (a_classifier(TRANSFORMER), "菜很好吃"),
    "translator": lambda: (make_predictor("transformer"), "我爱中国。"),
    "recurrent translator": lambda: (make_predictor("rnn_seq2seq"), "我爱中国。"),
    "language model": lambda: (a_language_model(DECODER), "abcc"),
    "recurrent language model": lambda: (a_language_model(RECURRENT), "abcc"),
    "tagger": lambda: (
        a_labeller("tagging", SENTENCES, TRANSFORMER, head={"crf": True}),
        "John 在 京",
    ),
    "pair matcher": lambda: (a_reader("pair_matching", ESIM), ASKED["pair_matching"]),
}


def look(predictor, text):
    return predictor.look(text).document.to_json()


def look_by_gradients(predictor, text):
    attributed = {"attribute": ["attention_gradient", "integrated_gradients"]}
    return predictor.look(text, **attributed).document.to_json()


def predict(predictor, text):
    search = {"method": "greedy"} if predictor.writes else {}
    return [answer.to_dict() for answer in predictor.predict([text], **search)]


def watch(predictor, text):
    with rg.watch(predictor, keep=True) as seen:
        answers = predict(predictor, text)
    rows = [seen.rows(w.layer, [0], w.kind, name=w.name, call=w.call).tolist() for w in seen]
    return answers, [(each.kind, each.layer, each.name, each.call) for each in seen], rows


def edit(predictor, text):
    with rg.edit(predictor) as edits:
        edits.scale(0.5, layer=None)
        return predict(predictor, text)


@pytest.fixture
def _impatient():
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.filterwarnings("ignore:the watch saw no attention")  # where there is none
@pytest.mark.parametrize("kind", slow_but(QUICK, PREDICTORS))
def test_threads_of_one_predictor_get_what_each_gets_alone(kind):
    predictor, text = PREDICTORS[kind]()
    uses = [look, predict, watch, look_by_gradients, edit]
    alone = {use: use(predictor, text) for use in uses}
    work = [use for use in uses for _ in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as threads:
        results = list(threads.map(lambda use: use(predictor, text), work[::3] + work[1::3]))
    for use, result in zip(work[::3] + work[1::3], results, strict=True):
        assert result == alone[use], use.__name__


@pytest.mark.slow
@pytest.mark.usefixtures("_impatient")
def test_threads_that_look_into_one_checkpoint_get_what_each_gets_alone(tmp_path):
    save_bert(tmp_path)
    served = Checkpoint.load(tmp_path, device="cpu")

    def look_at(text):
        return served.look(text).document.to_json()

    texts = [ENGLISH[:20], ENGLISH[5:15]] * THREADS
    alone = {text: look_at(text) for text in texts}
    with ThreadPoolExecutor(THREADS) as threads:
        assert list(threads.map(look_at, texts)) == [alone[text] for text in texts]
