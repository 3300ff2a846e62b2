"""CTranslate2's model folder."""

from pathlib import Path

from regard.export.ctranslate2_spec import language_model_spec, translator_spec, unheld
from regard.export.form import ExportForm
from regard.inference import Predictor
from regard.models import Decoder, Transformer
from regard.runs import Run
from regard.runs.files import fill_file, new_folder
from regard.tasks import SequenceTask
from regard.tasks.language_modelling import LanguageModelling

_USAGE = """\
    pip install "ctranslate2==4.8.*" sentencepiece

The weights are for CTranslate2's `Translator`, or its `Generator` if they are of a language model.
The tokenizer lies in `tokenizer`; one of subwords is read by sentencepiece:

    import ctranslate2, sentencepiece

    translator = ctranslate2.Translator("THIS")
    cutter = sentencepiece.SentencePieceProcessor("THIS/tokenizer/shared/tokenizer.model")
    pieces = cutter.encode(" I love China.", out_type=str)
    found = translator.translate_batch([pieces], beam_size=5, length_penalty=0.6)
    print(cutter.decode(found[0].hypotheses[0]).strip())

A sentence that begins with a letter or a digit has a space before it, unless it is in Chinese or
Japanese. Of tokenizers of words and characters, the vocabulary says what a piece is called."""


class CTranslate2(ExportForm):
    """A Transformer that translates or continues texts, for CTranslate2."""

    purpose = "a CTranslate2 model folder, for Transformers that translate or continue texts"
    usage = _USAGE
    precisions = ("float32", "float16", "int8")

    def refuse(self, predictor: Predictor) -> str | None:
        """The option of the recipe that CTranslate2 has no place for."""
        model, recipe = predictor.model, predictor.recipe
        if not isinstance(model, Transformer | Decoder):
            return (
                "CTranslate2 is for Transformers that write, model.type = 'transformer' or "
                f"'decoder', and it is {recipe.model_type!r} of {recipe.task}"
            )
        option = unheld(model.config)
        return None if option is None else f"CTranslate2 has no place for {option}"

    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        """Write the folder: CTranslate2's files, the tokenizer's in ``tokenizer``, the README."""
        model, task = predictor.model, predictor.task
        if isinstance(model, Transformer):
            assert isinstance(task, SequenceTask)
            source, target = task.tokenizer.source.names, task.tokenizer.target.names
            spec = translator_spec(model, source, target, source_end=task.data.source_end)
        else:
            assert isinstance(model, Decoder)
            assert isinstance(task, LanguageModelling)
            spec = language_model_spec(model, task.tokenizer.names)
        spec.validate()
        spec.optimize(quantization=self.precision)
        with new_folder(out) as folder:
            spec.save(str(folder))
            task.save(folder / "tokenizer")
            fill_file(folder / "README.md", readme.encode())
