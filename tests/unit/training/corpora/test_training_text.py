from regard.tasks import Parts, recipe_from_table
from regard.text import BadLines
from regard.training.corpora.training_text import TrainingText


def test_all_that_is_left_out_of_training_is_counted():
    recipe = recipe_from_table({"data": {"test": "held out"}})
    parts = Parts(["a"], ["b"], ["c", "d"], overlap=22, references=3)
    assert TrainingText(recipe, parts, None, BadLines()).describe() == [
        "2 pairs held out to test on, chosen by hash and not trained on, 5 with their further "
        "references; data.test names others",
        "pairs left out, since a side of theirs is held out: 22",
    ]


def test_nothing_left_out_is_not_mentioned():
    recipe = recipe_from_table({"data": {"test": "held out"}})
    assert TrainingText(recipe, Parts(["a"], ["b"], ["c"]), None, BadLines()).describe() == [
        "1 pair held out to test on, chosen by hash and not trained on; data.test names others"
    ]
