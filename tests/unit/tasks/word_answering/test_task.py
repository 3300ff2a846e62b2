"""Words as answers to questions about stories, by a memory network."""

import json
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from regard.errors import DataError
from regard.tasks import TASKS, recipe_from_table
from regard.tasks.word_answering import WordAnswer, WordAnswering
from regard.text.questions import Answer, Question

NAMES, PLACES = ("Mary", "John", "Sandra"), ("kitchen", "garden", "office", "hall")


def story(seed, count=None):
    """Who went where, and where one of them is now: the last of the places of theirs."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(most, least=0):
        return int(torch.randint(least, most, (), generator=generator))

    steps = [(NAMES[drawn(3)], PLACES[drawn(4)]) for _ in range(count or drawn(7, 2))]
    name = steps[drawn(len(steps))][0]
    answer = next(place for who, place in reversed(steps) if who == name)
    text = " ".join(f"{who} went to the {place}." for who, place in steps)
    return Question(f"Where is {name}?", text, (Answer(answer),), where=f"q.jsonl:{seed + 1}")


def job_of(examples, **model):
    sizes = {"model_dim": 24, "num_hops": 2, "max_sentences": 8, "dropout": 0.0, **model}
    table = {
        "task": "word_answering",
        "data": {"min_count": 1, "oov_buckets": 3},
        "model": {"type": "memory_network", **sizes},
    }
    return WordAnswering.learn(recipe_from_table(table), examples)


def trained(examples, **model):
    torch.manual_seed(0)
    job = job_of(examples, **model)
    network = job.build_model()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    encoded = job.encode(examples, training=True)
    for step in range(150):
        start = 50 * step % len(encoded)
        loss, count = job.loss(network, job.collate(encoded[start : start + 50]))
        optimizer.zero_grad()
        (loss / count).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return job, network.eval()


def test_where_somebody_is_now_is_learned_by_places_counted_from_the_question():
    """The last of several sentences with the same name counts, in stories of any length."""
    train, new = [story(seed) for seed in range(400)], [story(1000 + seed) for seed in range(100)]
    found = {}
    for counted_from in ("last", "first"):
        job, network = trained(train, counted_from=counted_from)
        answers = job.predict(network, job.collate(job.encode(new)))
        found[counted_from] = job.score(answers, new)["accuracy"]
    guessed = job.baselines(train, new)
    assert found["last"] > 85
    assert found["last"] > found["first"]
    assert all(found["last"] > 20 + job.score(each, new)["accuracy"] for each in guessed.values())


def test_an_answer_is_any_word_of_training_and_need_not_stand_in_the_story():
    never = replace(story(0), answers=(Answer("Apple,  Football"),))
    job = job_of([story(1), never])
    assert set(job.answers_known) >= {"apple, football", "mary", "went", "the"}
    one, two = job.encode([never, replace(never, answers=(Answer("nobody"), Answer("Mary")))])
    assert job.answers_known[one.number] == "apple, football"
    assert job.answers_known[two.number] == "mary"  # the first that is known
    (unknown,) = job.encode([replace(never, answers=(Answer("nobody"),))])
    assert unknown.number == -1
    batch = job.collate([one, unknown])
    network = job.build_model().eval()
    loss, count = job.loss(network, batch)
    logits = network(batch.memories.sentences, batch.memories.counts, batch.memories.question)
    assert logits.shape == (2, len(job.answers_known))
    want = F.cross_entropy(logits[:1], torch.tensor([one.number]))
    assert (count, loss.item()) == (1, pytest.approx(want.item(), rel=1e-5))


def test_a_job_that_was_saved_answers_alike(tmp_path):
    examples = [story(seed) for seed in range(5)]
    job = job_of(examples)
    job.save(tmp_path)
    again = WordAnswering.load(job.recipe, tmp_path)
    network = job.build_model().eval()
    assert again.predict(network, again.collate(again.encode(examples))) == job.predict(
        network, job.collate(job.encode(examples))
    )


def test_stories_are_read_and_told_of(tmp_path):
    rows = [
        {"question": "Is it?", "context": "It is not.", "answers": ["Yes"]},
        {"question": "Who?", "context": "Ann was. Bob was.", "answers": ["Bob"]},
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    recipe = recipe_from_table({"task": "word_answering", "data": {"train": "q.jsonl"}})
    yes, who = WordAnswering.read(replace(recipe, folder=tmp_path), "train")
    job = TASKS["word_answering"].task.learn(recipe, [yes, who])
    given = [WordAnswer("yes", 0.5), WordAnswer("ann", 0.75)]
    assert job.score(given, [yes, who]) == {"accuracy": 50.0}
    assert [job.example_score(*pair) for pair in zip(given, (yes, who), strict=True)] == [0.5, 0.0]
    assert given[1].text() == "ann\t0.7500"
    assert given[1].to_dict() == {"answer": "ann", "probability": 0.75}
    assert job.show(who, given[1]) == "Who? → ann (0.75; right: bob)"
    assert [answer.word for answer in job.baselines([yes, yes, who], [who])["always yes"]] == [
        "yes"
    ]
    assert job.baselines([yes], [who])["last word"][0].word == "was"
    assert job.tables(given, [yes, who])[1].rows == (("1", 100.0, 1), ("2", 0.0, 1))
    with pytest.raises(
        DataError, match=r"q\.jsonl:1: the text must have 1 to 8 sentences, .*got 9"
    ):
        job_of([story(0)]).encode([story(0, count=9)])
