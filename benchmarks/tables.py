"""The figures of README.md, README.zh.md, docs/measured.md and `regard recipes`, of the records.

python -m benchmarks.tables           write them
python -m benchmarks.tables --check   fail, and show why, if they are not what is there
"""

import argparse
import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import ages, measuring, occasion, quoting, shipped
from benchmarks.pages import Group, measured
from benchmarks.short_table import short_table

BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
MEASURED = "docs/measured.md"


# The figures that sentences take numbers from: a record, and words that one of its figures has,
# with one thread where they were measured with several.
QUOTED = {
    "additive": "additive_attention: forward + backward & threads: 1",
    "additive_memory": "additive_attention: peak memory & threads: 1",
    "window": "attention: Window of 256 & threads: 1",
    "documents": "attention: 64 documents & threads: 1",
    "documents_by_two": "attention: 64 documents & threads: 2",
    "gaussian": "attention: Gaussian kernel & threads: 1",
    "own_softmax": "attention: own softmax & threads: 1",
    "sparsemax": "attention: Sparsemax & threads: 1",
    "entmax": "attention: Entmax-1.5 & threads: 1",
    "masked_call": "attention: N 8, under & threads: 1",
    "summary": "inspection: N = 8,192, H 8 & threads: 1",
    "causal_summary": "inspection: N = 8,192, causal & threads: 1",
    "watched": "inspection: N = 16,384 & threads: 1",
    "fixed": "attention_mechanisms: RNN, fixed context",
    "attending": "attention_mechanisms: RNN, additive",
    "general": "attention_mechanisms: Luong general",
    "location": "attention_mechanisms: Luong location",
    "local_m": "attention_mechanisms: local-m",
    "local_p": "attention_mechanisms: local-p",
    "best": "attention_mechanisms: Transformer |",
    "batch_norm": "attention_mechanisms: batch norm",
    "coverage": "attention_mechanisms: RNN, coverage",
    "restricted": "attention_mechanisms: Transformer, restricted",
    "multi30k": "multi30k: tokenised lower-cased",
    "torch_modules": "training_speed: sorted by length | `nn & 2 threads",
    "beam": "decoding_speed: 6 + 6 layers & 32 sentences at once, a beam & threads: 1",
    "beam_by_two": "decoding_speed: 6 + 6 layers & 32 sentences at once, a beam & threads: 2",
    "trained": "decoding_speed: trained & 32 sentences at once, a beam & threads: 1",
    "trained_by_two": "decoding_speed: trained & 32 sentences at once, a beam & threads: 2",
    "prompts": "generation_speed: 16 prompts, greedy & threads: 1",
    "prompts_by_two": "generation_speed: 16 prompts, greedy & threads: 2",
    "prompt": "generation_speed: one prompt, greedy & threads: 1",
    "nanogpt": "language_modelling: nanoGPT's CPU recipe",
    "shakespeare": "language_modelling: our own recipe",
    "books": "language_modelling: gutenberg",
    "brown": "language_modelling: brown",
    "sst2": "classification: sst2",
    "hotels": "classification: chnsenticorp",
    "shops": "classification: characters and pairs",
    "shops_aspect": "classification: convolution",
    "phrases_hotels": "phrases: chnsenticorp",
    "phrases_goods": "phrases: online-shopping",
    "few_sst2": "pretraining: sst2",
    "few_hotels": "pretraining: chnsenticorp",
    "few_shops": "pretraining: online-shopping",
    "speech": "tagging: Parts of speech",
    "wnut": "tagging: Entities, WNUT",
    "msra": "tagging: Entities, MSRA",
    "crf": "tagging: Training step",
    "spans": "question_answering: Answers in English",
    "pretrained_spans": "question_answering: begins with a masked",
    "chinese_spans": "question_answering: Answers in Chinese",
    "choices": "question_answering: Multiple choice",
    "esim": "question_answering: ESIM",
    "side_by_side": "question_answering: read side by side",
    "hop": "question_answering: one hop",
    "written": "documents: RNN, copying",
    "not_copied": "documents: no copying",
    "written_transformer": "documents: Transformer",
    "titles": "summarisation: ACL Anthology & Transformer, copying",
    "chinese_titles": "summarisation: CSL & Transformer, copying",
    "chinese_masked": "summarisation: CSL & masked words",
    "demo": "demo: training / all around",
    "demo_right": "demo: right outputs",
    "help": "start_up: --help",
    "predict": "start_up: regard predict",
    "gpu_additive": "gpu_attention: Additive",
    "gpu_dot": "gpu_attention: Dot product",
    "gpu_window": "gpu_attention: Window",
    "gpu_documents": "gpu_attention: 64 documents",
    "dialogues": "summarisation: DialogSum & Transformer, copying",
    "abstracts": "summarisation: SciTLDR & Transformer, copying",
    "pointer": "summarisation: SciTLDR & pointer-generator",
    "taken_out": "summarisation: SciTLDR & sentences taken out",
}

GROUPS = (
    Group(
        title="The engine",
        figures=("additive_attention", "attention"),
        says="""
        Additive scores are {additive.note[0]} times as fast as their formula in torch, in
        memory that grows with the length. Beside the plainest ways with torch's kernel,
        windows are {window.note[0]} times as fast as blocks with the block before them, and
        rows of documents as fast as a call for each ({documents.note[0]} ×) by one
        thread, slower by two. Sparsemax and entmax are {sparsemax.note[0]} and
        {entmax.note[0]} times as fast as the package of their authors
        ({sparsemax.note[2]} asked for). On plain dot products the engine's own softmax
        takes as long as torch's kernel ({own_softmax.note[0]} ×), Gaussian kernels
        {gaussian.note[0]} times as long. Short of their goals are additive scores with
        one thread ({additive.note[1]} times asked for) and calls on tiny tensors: with a
        mask and gradients, one takes {masked_call.note[0]} µs more than torch's kernel
        (at most {masked_call.note[1]} asked for).
        """,
        holds=(
            "{additive.note[0]} < {additive.note[1]}",
            "{entmax.note[0]} > {entmax.note[2]}",
            "{window.note[0]} > {window.note[2]}",
            "{documents.note[0]} > 0.95",
            "{documents_by_two.note[0]} > 1",
            "{masked_call.note[0]} > {masked_call.note[1]}",
            "{own_softmax.note[0]} < {own_softmax.note[2]}",
            "{gaussian.note[0]} < {gaussian.note[2]}",
            "{sparsemax.note[0]} > {sparsemax.note[2]}",
        ),
    ),
    Group(
        title="The engine on a GPU",
        figures=("gpu_attention",),
        says="""
        In bfloat16, rows of documents take {gpu_documents.note[0]} times as long as in a
        compiled flex_attention. Short of their goals are windows ({gpu_window.note[0]}
        times flex_attention's time), plain dot products ({gpu_dot.note[0]} times torch's
        kernel, since a call's own cost shows beside so little work) and additive scores
        ({gpu_additive.ours[0]} ms forward).
        """,
        holds=(
            "{gpu_documents.note[0]} < {gpu_documents.note[2]}",
            "{gpu_window.note[0]} > {gpu_window.note[2]}",
            "{gpu_dot.note[0]} > {gpu_dot.note[2]}",
        ),
    ),
    Group(
        title="Looking inside",
        figures=("inspection",),
        says="""
        What every head looks at, in numbers and a map, takes {summary.note[0]} times as
        long as torch's kernel alone ({causal_summary.note[0]} times under a causal mask),
        and never the memory of the weights. A watched model takes
        {watched.note[0]} times its plain forward at {watched.what[3]} tokens
        ({watched.note[2]} asked for, which older processors miss).
        """,
        holds=(
            "{summary.note[0]} < {summary.note[2]}",
            "{causal_summary.note[0]} < {causal_summary.note[2]}",
            "{watched.note[0]} < {watched.note[2]}",
        ),
    ),
    Group(
        title="Ways of attention on one task",
        figures=("attention_mechanisms",),
        says="""
        In equal CPU time most ways of attention generalise better to new combinations
        than a fixed context ({fixed.ours[1]} % right), the Transformer best
        ({best.ours[1]} %). Worse than the fixed context are Luong's general
        ({general.ours[1]} %) and location ({location.ours[1]} %), local-m
        ({local_m.ours[1]} %), local-p ({local_p.ours[1]} %) and batch norm
        ({batch_norm.ours[1]} %).
        """,
        holds=(
            "{general.ours[1]} < {fixed.ours[1]}",
            "{location.ours[1]} < {fixed.ours[1]}",
            "{local_m.ours[1]} < {fixed.ours[1]}",
            "{local_p.ours[1]} < {fixed.ours[1]}",
            "{batch_norm.ours[1]} < {fixed.ours[1]}",
            "{best.ours[1]} > {restricted.ours[1]}",
            "{best.ours[1]} > {coverage.ours[1]}",
        ),
    ),
    Group(
        title="Translation",
        figures=("multi30k",),
        says="""
        Multi30k ends at {multi30k.ours[0]}, below the {multi30k.beside[0]} published for this
        size; the settings are those of the script, which no recipe that comes with regard has.
        """,
        holds=("{multi30k.ours[0]} < {multi30k.beside[0]}",),
    ),
    Group(
        title="Language modelling",
        figures=("language_modelling",),
        says="""
        On tiny Shakespeare our recipe is better than nanoGPT in {shakespeare.ours[1]}
        times its training time (loss {shakespeare.ours[0]} beside
        {shakespeare.beside[0]}); with nanoGPT's own recipe it ends slightly worse
        ({nanogpt.ours[0]}) in {nanogpt.ours[1]} times. After three CPU minutes a
        Transformer is better than Kneser-Ney on books and worse on the Brown corpus
        ({brown.ours[0]} bits per byte; {brown.beside[1]}); the LSTM is worse on both.
        """,
        holds=(
            "{shakespeare.ours[0]} < {shakespeare.beside[0]}",
            "{nanogpt.ours[0]} > {nanogpt.beside[0]}",
            "{books.ours[0]} < {books.beside[1]}",
            "{books.ours[1]} > {books.beside[1]}",
            "{brown.ours[0]} > {brown.beside[1]}",
            "{brown.ours[1]} > {brown.beside[1]}",
        ),
    ),
    Group(
        title="Classification",
        figures=("classification", "phrases", "pretraining"),
        says="""
        Of Chinese reviews, the recipes for characters are better than naive Bayes on
        shops a little ({shops.ours[1]} beside {shops.beside[1]}) and on hotels more
        ({hotels.ours[1]} beside {hotels.beside[1]}). Scores of phrases are better still
        ({phrases_goods.ours[1]} and {phrases_hotels.ours[1]}), and a linear SVM of the same
        phrases is better than they are ({phrases_goods.beside[7]} and
        {phrases_hotels.beside[5]}): a good label needs no attention. A Transformer from
        scratch is worse on shops ({few_shops.beside[3]}), and begun with masked words better
        ({few_shops.ours[3]}). Those help most where examples are few: {few_hotels.ours[2]}
        with {few_hotels.what[0]} reviews of hotels, {few_hotels.beside[2]} from scratch;
        with all of them {few_hotels.ours[3]} and {few_hotels.beside[3]}. On sst2 a GRU has
        {sst2.ours[0]} beside naive Bayes' {sst2.beside[0]}; a Transformer is worse
        ({sst2.ours[1]}), also begun with masked words ({few_sst2.ours[3]}).
        """,
        holds=(
            "{hotels.ours[1]} > {hotels.beside[1]}",
            "{shops.ours[1]} > {shops.beside[1]}",
            "{shops_aspect.ours[1]} > {shops_aspect.beside[1]}",
            "{shops.ours[1]} < {phrases_goods.ours[1]}",
            "{hotels.ours[1]} < {phrases_hotels.ours[1]}",
            "{phrases_goods.ours[1]} < {phrases_goods.beside[7]}",
            "{phrases_hotels.ours[1]} < {phrases_hotels.beside[5]}",
            "{few_shops.beside[3]} < {few_shops.beside[7]}",
            "{few_shops.ours[3]} > {few_shops.beside[7]}",
            "{few_hotels.ours[2]} > {few_hotels.beside[2]}",
            "{few_hotels.ours[3]} > {few_hotels.beside[3]}",
            "{sst2.ours[0]} > {sst2.beside[0]}",
            "{sst2.ours[1]} < {sst2.beside[0]}",
            "{few_sst2.ours[3]} < {sst2.beside[0]}",
        ),
    ),
    Group(
        title="Tagging",
        figures=("tagging",),
        says="""
        Parts of speech and Chinese entities are far above what remembering the training
        text gives ({speech.ours[1]} beside {speech.beside[1]}, and F1 {msra.ours[1]}
        beside {msra.beside[1]}). On the noisy English of WNUT remembering finds nothing
        and the recipe little: F1 {wnut.ours[1]} on the test part.
        """,
        holds=(
            "{speech.ours[1]} > {speech.beside[1]}",
            "{msra.ours[1]} > {msra.beside[1]}",
            "{wnut.ours[1]} > {wnut.beside[1]}",
        ),
    ),
    Group(
        title="Questions",
        figures=("question_answering",),
        says="""
        Answers in English texts gain much from masked words learned first (exact match
        {pretrained_spans.ours[0]}; {spans.ours[0]} without, {spans.beside[0]} by a
        sliding window). Of pairs, ESIM is worse ({esim.ours[0]}) than logistic regression
        on what both texts share ({esim.beside[2]}), and the Transformer hardly better
        ({side_by_side.ours[0]}). A memory network that sees what is shared finds the right
        sentence ({hop.ours[0]}) more often than rare words do alone ({hop.beside[3]});
        answers in Chinese texts are hardly exact more often than the sliding window's
        ({chinese_spans.ours[0]} beside {chinese_spans.beside[0]}).
        """,
        holds=(
            "{pretrained_spans.ours[0]} > {spans.ours[0]}",
            "{spans.ours[0]} > {spans.beside[0]}",
            "{chinese_spans.ours[0]} > {chinese_spans.beside[0]}",
            "{esim.ours[0]} < {esim.beside[2]}",
            "{side_by_side.ours[0]} > {side_by_side.beside[2]}",
            "{hop.ours[0]} > {hop.beside[3]}",
            "{choices.ours[0]} > {choices.beside[1]}",
        ),
    ),
    Group(
        title="Answers and summaries written from a document",
        figures=("documents", "summarisation"),
        says="""
        Copying is what makes answers ({written.ours[0]} ROUGE-L; {not_copied.ours[0]}
        without); yet from scratch they are hardly better than the story's sentence that
        shares most words with the question ({written.beside[1]}), and the Transformer's
        are worse ({written_transformer.ours[0]}). Titles of papers and summaries of
        dialogues are better than what the baselines take from the text ({titles.ours[0]}
        ROUGE-L beside {titles.beside[0]}, {dialogues.ours[0]} beside
        {dialogues.beside[0]}). Abstracts in one sentence are worse than TextRank's where a
        Transformer writes them ({abstracts.ours[0]} beside {abstracts.beside[0]}), better by
        a pointer-generator ({pointer.ours[0]}) and by a model that takes sentences out
        ({taken_out.ours[0]}). Chinese titles, learned from few, are better than whole
        sentences, and no better than the first words ({chinese_titles.ours[0]} beside
        {chinese_titles.beside[0]}), unless the encoder has predicted masked words of the
        same documents first: then they have {chinese_masked.ours[0]}.
        """,
        holds=(
            "{written.ours[0]} > {not_copied.ours[0]}",
            "{written.ours[0]} > {written.beside[1]}",
            "{abstracts.ours[0]} < {abstracts.beside[0]}",
            "{pointer.ours[0]} > {pointer.beside[0]}",
            "{taken_out.ours[0]} > {taken_out.beside[0]}",
            "{chinese_titles.ours[0]} > {chinese_titles.beside[3]}",
            "{written_transformer.ours[0]} < {written.beside[1]}",
            "{titles.ours[0]} > {titles.beside[0]}",
            "{dialogues.ours[0]} > {dialogues.beside[0]}",
            "{chinese_titles.ours[0]} < {chinese_titles.beside[0]}",
            "{chinese_masked.ours[0]} > {chinese_masked.beside[0]}",
        ),
    ),
    Group(
        title="Speed of training",
        figures=("training_speed",),
        says="""
        On identical batches, in float32 and with equal dropout, a small Transformer
        trains {torch_modules.ours[0]} times as fast as `nn.Transformer` by two threads.
        Layers compiled by `torch.compile` are not measured.
        """,
        holds=("{torch_modules.ours[0]} > 1",),
    ),
    Group(
        title="Speed of translating",
        figures=("decoding_speed",),
        says="""
        Beside CTranslate2 with the same weights and precision, at the fastest of its
        settings of threads: a base Transformer, {beam.what[4]} sentences at once with a
        beam of {beam.what[5]}, decodes {beam.note[0]} times as fast in float32 and
        {beam.note[2]} times in int8 by one thread, by two {beam_by_two.note[0]} and
        {beam_by_two.note[2]}. Random weights write outputs of one length; a small trained
        model, whose outputs end where it ends them, is {trained.note[0]} and
        {trained.note[2]} times as fast by one thread, by two {trained_by_two.note[0]} and
        {trained_by_two.note[2]}.
        """,
    ),
    Group(
        title="Speed of writing on",
        figures=("generation_speed",),
        says="""
        A language model of GPT-{prompts.what[0]} small's shape, {prompts.what[1]} prompts at
        once, greedy, writes {prompts.note[0]} times as fast as transformers in float32. Beside
        CTranslate2's generator with the same precision, at the fastest of its settings of
        threads, it is {prompts.note[2]} times as fast in float32 and {prompts.note[4]}
        times in int8 by one thread, by two {prompts_by_two.note[2]} and
        {prompts_by_two.note[4]}; with one prompt {prompt.note[2]} and {prompt.note[4]}
        times.
        """,
    ),
    Group(
        title="From a command to its end",
        figures=("demo", "start_up"),
        says="""
        The demo trains for {demo.ours[0]} s ({demo.beside[0]} asked for), and takes
        {demo.ours[1]} s around that. Within the phrasebook's grammar {demo_right.ours[0]} %
        of its test part come out right, of new combinations {demo_right.ours[1]} %, of forty
        sentences written by hand {demo_right.ours[2]} % ({demo_right.beside[2]} asked for).
        A command without a model takes {help.ours[0]} s ({help.beside[0]} asked for), a line
        through `regard predict` {predict.ours[0]} s ({predict.beside[0]} asked for), of
        which importing torch alone takes {predict.note[1]}.
        """,
    ),
)


_READMES = {"README.md": 0, "README.zh.md": 1}


def main() -> None:
    """Write the pages, or check those that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if out of date")
    parser.add_argument("--pages", type=Path, default=occasion.ROOT, help="where the READMEs lie")
    parser.add_argument("--records", type=Path, default=measuring.RECORDS)
    arguments = parser.parse_args()
    try:
        wanted = pages(measuring.read_records(arguments.records), arguments.pages)
    except quoting.QuoteError as problem:
        sys.exit(f"benchmarks/tables.py and the records differ: {problem}")
    stale = {path: page for path, page in wanted.items() if _there(path) != page}
    for path, page in stale.items():
        if arguments.check:
            print(_difference(path, page))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page, "utf-8")
    if arguments.check and stale:
        names = ", ".join(path.name for path in stale)
        sys.exit(f"{names} and the records differ. Run: python -m benchmarks.tables")


def pages(records: Sequence[Mapping[str, Any]], folder: Path) -> dict[Path, str]:
    """Each page as the records want it, and the list of those that are old."""
    quoted, old = quoting.numbers(records, QUOTED), ages.old_records(records)
    wanted = {
        folder / ages.NAMES: "".join(f"{name}\n" for name in old),
        folder / MEASURED: measured(records, quoted, GROUPS, old),
        folder / shipped.FIGURES: shipped.recipe_figures(quoted),
    }

    def is_old(sentence: str) -> bool:
        return not set(old).isdisjoint(_names(sentence))

    for name, language in _READMES.items():
        text = _there(folder / name)
        wanted[folder / name] = insert(text, short_table(quoted, language, is_old), name=name)
    return wanted


def _names(sentence: str) -> set[str]:
    """The records that a sentence quotes."""
    return {QUOTED[name].partition(":")[0] for name in re.findall(r"{(\w+)\.", sentence)}


def insert(text: str, table: str, *, name: str) -> str:
    """The text with the table between its two markers, in the place of what was there."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"{name} must have one {BEGIN} and, after it, one {END}")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def _there(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _difference(path: Path, page: str) -> str:
    old, new = _there(path).splitlines(), page.splitlines()
    return "\n".join(difflib.unified_diff(old, new, path.name, "benchmarks/records", lineterm=""))


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the module docstring's lines as they are."""


if __name__ == "__main__":
    main()
