"""A task that writes: a text for a text, found by a search.

``SequenceTask`` has the batches, the loss and the search; the task says what it reads and how
outputs are judged.

    python examples/extending/writer.py train examples/extending/writer.toml --run runs/r
    echo "aabac" | python examples/extending/writer.py predict runs/r
    python examples/extending/writer.py evaluate runs/r --split valid
    python examples/extending/writer.py look runs/r "aab"

In the package: ``tasks/sequences/NAME.py``, a line of TASKS in ``tasks/registry.py``, and a recipe.
"""

from regard.cli import main
from regard.metrics import exact_match
from regard.models import MODELS
from regard.tasks import DataConfig, DecodingConfig, Parts, SequenceTask, TaskEntry, register_task
from regard.text import Pair, read_lines
from regard.text.reading.lines import readable


class Reversal(SequenceTask):
    """A line of letters, and the same from its end."""

    metrics = {"exact match": 1}

    @classmethod
    def read(cls, recipe, split, *, bad_lines=None):
        lines = [line for file in recipe.files(split) for line in read_lines(file)]
        texts = [(readable(line), line.where) for line in lines]
        return [Pair(text, text[::-1], (text[::-1],), where) for text, where in texts]

    @classmethod
    def read_parts(cls, recipe, *, bad_lines=None):
        return Parts(cls.read(recipe, "train"), cls.read(recipe, "valid"))

    @classmethod
    def baselines(cls, recipe, split):
        """The source itself."""

    def request(self, record, where):
        return Pair(record if isinstance(record, str) else record["source"], "", (), where)

    def parse_line(self, line, ending):
        return self.request(readable(line), line.where)

    def parse_pair(self, line, ending):
        source, _, target = readable(line).partition("\t")
        return Pair(source, target, (target,), line.where)

    def parts(self, text):
        return [text]

    def describe_reading(self):
        return ["lines are read whole"]

    def shortened(self, pair, too_long):
        return pair

    def score(self, answers, examples):
        outputs, right = [one.best.text for one in answers], [one.references for one in examples]
        return {"exact match": exact_match(outputs, right).value}


entry = TaskEntry(data=DataConfig, models=MODELS, decoding=DecodingConfig, load=lambda: Reversal)
register_task("reversal", entry)


if __name__ == "__main__":
    main()
