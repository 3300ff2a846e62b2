"""A text encoded before it is trained on."""

from regard.config import build
from regard.tasks import TASKS, Recipe
from regard.tasks.streaming import Stored
from regard.training.corpora.place import is_on_disk
from regard.training.corpora.stored_text import StoredText, Watch, unwatched
from regard.training.pretrained import begin_with
from regard.training.settings import TrainingConfig


def encode_ahead(
    recipe: Recipe, *, processes: int | None = None, watch: Watch = unwatched
) -> tuple[StoredText, Stored[object]]:
    """The training text of a recipe, encoded into the cache unless it is there already.

    Args:
        recipe: As it will be trained; its text is taken to disk however large it is.
        processes: How many encode; None takes as many as there are processors.
        watch: Shows how reading and encoding go.

    Raises:
        DataError: The text cannot be used.
        RunError: The cache cannot be written.
        SettingError: The task's text is held in memory only.
    """
    config = build(TrainingConfig, recipe.training, where="training")
    recipe, pretrained = begin_with(recipe, None)
    is_on_disk(recipe, "disk")  # or it says why not
    text = StoredText.of(recipe, cache=config.cache, watch=watch)
    recipe = TASKS[recipe.task].task.settled(recipe, None, text.parts().train)
    kept = pretrained.vocabularies(recipe) if pretrained is not None else None
    task = text.learned(recipe) if kept is None else TASKS[recipe.task].task.load(recipe, kept)
    return text, text.encoded(task, processes=processes)
