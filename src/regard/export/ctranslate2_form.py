"""CTranslate2's model folder."""

from pathlib import Path

from regard.export.ctranslate2_spec import language_model_spec, translator_spec, unheld
from regard.export.form import ExportForm
from regard.export.programs import program, reading, sides
from regard.inference import Predictor
from regard.models import Decoder, Transformer
from regard.runs import Run
from regard.runs.files import fill_file, new_folder
from regard.tasks import SequenceTask
from regard.tasks.language_modelling import LanguageModelling
from regard.text import EOS_ID, PAD_ID

_NEEDS = '"ctranslate2==4.8.*" sentencepiece'
_TRANSLATE = """

def vocabulary(side):
    shared = Path("shared_vocabulary.json")
    file = shared if shared.exists() else Path(f"{{side}}_vocabulary.json")
    return json.loads(file.read_text("utf-8"))


def score(found):
    tokens, log_prob = found
    return log_prob / ((6 + len(tokens)) / 6) ** {penalty}


import ctranslate2

(encode, _), (_, decode) = reader("{source}"), reader("{target}")
source, target = vocabulary("source"), vocabulary("target")
numbers = {{name: number for number, name in enumerate(target)}}
translator = ctranslate2.Translator(".")
answers = translator.translate_batch(
    [[source[number] for number in encode(line)] for line in sys.stdin],
    beam_size={beam},
    num_hypotheses={beam},
    min_decoding_length=0,
    length_penalty=1e-9,
    return_scores=True,
    disable_unk=True,
    max_batch_size=32,
)
for answer in answers:
    tokens, _ = max(zip(answer.hypotheses, answer.scores), key=score)
    print(decode([numbers[token] for token in tokens]))
"""
_CONTINUE = """

import ctranslate2

encode, decode = reader("text")
names = json.loads(Path("vocabulary.json").read_text("utf-8"))
generator = ctranslate2.Generator(".")
for line in sys.stdin:
    lines = [encode(line)]
    (found,) = generator.generate_batch(
        [[names[3], *(names[number] for number in lines[0])]],
        max_length={longest},
        sampling_topk=1,
        end_token=names[{end}],
        include_prompt_in_result=False,
    )
    for number in found.sequences_ids[0]:  # 3 ends a line
        lines.append([]) if number == 3 else lines[-1].append(number)
    print("\\n".join(map(decode, lines)))
"""
_TRAINED = "; train it with --set model.type=transformer"


class CTranslate2(ExportForm):
    """A Transformer that translates or continues texts, for CTranslate2."""

    purpose = "a CTranslate2 model folder, for Transformers that translate or continue texts"
    precisions = ("float32", "float16", "int8")

    def refuse(self, predictor: Predictor) -> str | None:
        """The option of the recipe that CTranslate2 has no place for."""
        model, recipe = predictor.model, predictor.recipe
        if not isinstance(model, Transformer | Decoder):
            return (
                "CTranslate2 is for Transformers that write, model.type = 'transformer' or "
                f"'decoder', and it is {recipe.model_type!r} of {recipe.task}"
                f"{_TRAINED * predictor.is_seq2seq}"
            )
        option = unheld(model.config)
        return None if option is None else f"CTranslate2 has no place for {option}"

    def usage(self, predictor: Predictor, name: str) -> str:
        """A program that translates lines, or goes on with them."""
        task, decoding = predictor.task, predictor.decoding
        if isinstance(task, LanguageModelling):
            main = _CONTINUE.format(
                longest=min(decoding.max_tokens, task.data.context // 2),
                end=EOS_ID if decoding.one_line else PAD_ID,
            )
            return program(reading(task.tokenizer) + main, needs=_NEEDS)
        assert isinstance(task, SequenceTask)
        source, target = sides(task.tokenizer)
        main = _TRANSLATE.format(
            source=source,
            target=target,
            beam=decoding.beam_size if decoding.method == "beam" else 1,
            penalty=decoding.length_penalty,
        )
        return program(reading(task.tokenizer.source) + main, needs=_NEEDS)

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
