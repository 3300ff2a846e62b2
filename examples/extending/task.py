"""A task in one pass: which letter a text has most of. ``letters.tsv`` has texts and letters.

    python examples/extending/task.py train examples/extending/task.toml letters.tsv --run runs/abc
    echo "aabac" | python examples/extending/task.py predict runs/abc
    python examples/extending/task.py evaluate runs/abc --split valid
    python examples/extending/task.py look runs/abc "aab"

``LabelTask`` reads and checks files and requests, saves the labels, and scores answers.
"""

from dataclasses import dataclass

from torch import nn

from regard.cli import main
from regard.models import Architecture
from regard.tasks import LabelledData, LabelTask, TaskEntry, register_task


@dataclass(frozen=True, kw_only=True)
class CounterConfig:
    """Settings of the model: how wide its hidden layer is."""

    hidden_dim: int = 8


class MostFrequentLetter(LabelTask):
    """Texts to letters.

    >>> MostFrequentLetter.fields["text"].read(" a  b")
    'a b'
    """

    def build_model(self):
        width = self.recipe.model.hidden_dim
        return nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, len(self.labels)))

    def encode_one(self, example, too_long):
        counts = [float(example.text.count(letter)) for letter in "abc"]
        return {"counts": counts, "label": self.number(example)}

    def logits(self, model, batch):
        return model(batch["counts"]), None


models = {"counter": Architecture(CounterConfig, lambda: nn.Sequential)}
entry = TaskEntry(data=LabelledData, tokenizer=None, models=models, load=lambda: MostFrequentLetter)
register_task("most_frequent_letter", entry)
if __name__ == "__main__":
    main()
