"""The figures of README.md, README.zh.md, docs/measured.md and `regard recipes`, of the records.

python -m benchmarks.tables           write them
python -m benchmarks.tables --check   fail, and show why, if they are not what is there
"""

import argparse
import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import measuring, quoting, shipped

BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
MEASURED = "docs/measured.md"


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The figures of one job, and what they show; sentences are those of ``benchmarks.quoting``."""

    title: str  # the heading
    figures: tuple[str, ...]  # the places of its figures: records, or figures with certain words
    # what they show, and where they are short of a goal or of a trivial baseline; broken into lines
    # at will
    says: str
    holds: tuple[str, ...] = ()  # what must be so for that to be true
    picture: str = ""  # a drawing of them, in Markdown


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A line of the short table; texts in English and Chinese."""

    what: tuple[str, str]
    ours: str
    beside: tuple[str, str]


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
    "general": "attention_mechanisms: Luong general",
    "location": "attention_mechanisms: Luong location",
    "local_m": "attention_mechanisms: local-m",
    "local_p": "attention_mechanisms: local-p",
    "best": "attention_mechanisms: Transformer |",
    "batch_norm": "attention_mechanisms: batch norm",
    "long": "long_sentences: Tatoeba",
    "multi30k": "multi30k: tokenised lower-cased",
    "joey": "training_speed: sorted by length | Joey",
    "torch_modules": "training_speed: sorted by length | `nn",
    "own_batches": "training_speed: its own batches",
    "greedily": "decoding_speed: 6 + 6 layers & 32 sentences at once, greedy & threads: 1",
    "beam": "decoding_speed: 6 + 6 layers & 32 sentences at once, a beam & threads: 1",
    "nanogpt": "language_modelling: nanoGPT's CPU recipe",
    "shakespeare": "language_modelling: our own recipe",
    "books": "language_modelling: gutenberg",
    "brown": "language_modelling: brown",
    "sst2": "classification: sst2",
    "hotels": "classification: chnsenticorp",
    "shops": "classification: characters and pairs",
    "shops_aspect": "classification: convolution",
    "few_sst2": "pretraining: sst2",
    "few_hotels": "pretraining: chnsenticorp",
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
    "hops": "question_answering: 3 hops",
    "hop": "question_answering: one hop",
    "written": "documents: RNN, copying",
    "not_copied": "documents: no copying",
    "written_transformer": "documents: Transformer",
    "titles": "summarisation: ACL Anthology & Transformer, copying",
    "chinese_titles": "summarisation: CSL & Transformer, copying",
    "chinese_masked": "summarisation: CSL & masked words",
    "gpu_additive": "gpu_attention: Additive",
    "gpu_dot": "gpu_attention: Dot product",
    "gpu_window": "gpu_attention: Window",
    "gpu_documents": "gpu_attention: 64 documents",
    "dialogues": "summarisation: DialogSum & Transformer, copying",
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
            "{best.ours[1]} > {fixed.ours[1]}",
        ),
    ),
    Group(
        title="Translation",
        figures=(
            "multi30k",
            "long_sentences",
        ),
        picture="![BLEU by length of the source, three models](figures/long_sentences.svg)",
        says="""
        Attention is what long sentences need: {long.ours[1]} BLEU at {long.what[4]}
        characters and more, {long.beside[1]} without. Multi30k ends at
        {multi30k.ours[0]}, a little below the {multi30k.beside[0]} published for this
        size.
        """,
        holds=("{multi30k.ours[0]} < {multi30k.beside[0]}",),
    ),
    Group(
        title="Language modelling",
        figures=("language_modelling",),
        says="""
        On tiny Shakespeare our recipe is better than nanoGPT in {shakespeare.ours[1]}
        times its training time (loss {shakespeare.ours[0]} beside
        {shakespeare.beside[0]}); nanoGPT's own recipe ends slightly worse
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
        figures=("classification", "pretraining"),
        says="""
        On Chinese reviews every recipe is better than naive Bayes, of shops a little
        ({shops.ours[1]} beside {shops.beside[1]}), of hotels more ({hotels.ours[1]}
        beside {hotels.beside[1]}), and masked words learned first help most where
        examples are few ({few_hotels.ours[0]} with {few_hotels.what[0]};
        {few_hotels.beside[0]} from scratch). On sst2 little is gained: a Transformer
        alone has {sst2.ours[1]}, below naive Bayes' {sst2.beside[0]}, and begun with
        masked words {few_sst2.ours[3]}.
        """,
        holds=(
            "{hotels.ours[1]} > {hotels.beside[1]}",
            "{shops.ours[1]} > {shops.beside[1]}",
            "{shops_aspect.ours[1]} > {shops_aspect.beside[1]}",
            "{few_hotels.ours[0]} > {few_hotels.beside[0]}",
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
        holds=("{speech.ours[1]} > {speech.beside[1]}", "{msra.ours[1]} > {msra.beside[1]}"),
    ),
    Group(
        title="Questions",
        figures=("question_answering",),
        says="""
        Answers in English texts gain much from masked words learned first (exact match
        {pretrained_spans.ours[0]}; {spans.ours[0]} without, {spans.beside[0]} by a
        sliding window). Beside a count of shared words three recipes lose: ESIM
        ({esim.ours[0]} beside {esim.beside[1]}) and memory networks ({hops.ours[0]} and
        {hop.ours[0]} beside {hops.beside[2]}); and answers in Chinese texts are hardly
        exact more often than the sliding window's ({chinese_spans.ours[0]} beside
        {chinese_spans.beside[0]}).
        """,
        holds=(
            "{pretrained_spans.ours[0]} > {spans.ours[0]}",
            "{spans.ours[0]} > {spans.beside[0]}",
            "{esim.ours[0]} < {esim.beside[1]}",
            "{side_by_side.ours[0]} > {side_by_side.beside[1]}",
            "{hops.ours[0]} < {hops.beside[2]}",
            "{hop.ours[0]} < {hop.beside[2]}",
            "{choices.ours[0]} > {choices.beside[1]}",
        ),
    ),
    Group(
        title="Answers and summaries written from a document",
        figures=("documents", "summarisation"),
        says="""
        Copying is what makes answers ({written.ours[0]} ROUGE-L; {not_copied.ours[0]}
        without); yet from scratch they are no better than the story's sentence that
        shares most words with the question ({written.beside[1]}), and the Transformer's
        are worse ({written_transformer.ours[0]}). Titles of papers and summaries of
        dialogues are better than any sentences of the text ({titles.ours[0]} ROUGE-L
        beside {titles.beside[0]}, {dialogues.ours[0]} beside {dialogues.beside[0]});
        Chinese titles, learned from few, are better than whole sentences, and no better
        than the first words ({chinese_titles.ours[0]} beside {chinese_titles.beside[0]}),
        unless the encoder has guessed masked words of the same documents first: then they
        have {chinese_masked.ours[0]}.
        """,
        holds=(
            "{written.ours[0]} > {not_copied.ours[0]}",
            "{written_transformer.ours[0]} < {written.beside[1]}",
            "{titles.ours[0]} > {titles.beside[0]}",
            "{dialogues.ours[0]} > {dialogues.beside[0]}",
            "{chinese_titles.ours[0]} < {chinese_titles.beside[0]}",
            "{chinese_masked.ours[0]} > {chinese_masked.beside[0]}",
        ),
    ),
    Group(
        title="Speed of training and translating",
        figures=(
            "training_speed",
            "decoding_speed",
            "generation_speed",
            "start_up",
        ),
        says="""
        On identical batches, in float32 and with equal dropout, a small Transformer
        trains {torch_modules.ours[0]} times as fast as `nn.Transformer` and
        {joey.ours[0]} times as fast as in Joey NMT, which also drops inside its
        feed-forward layers; with the batches that each program makes itself it is
        {own_batches.ours[0]} times, and the difference is sorting by length.
        A base Transformer, {beam.what[4]} sentences at once, decodes
        {greedily.note[0]} times as fast as CTranslate2 in float32 and {greedily.note[6]}
        times in int8; with a beam of {beam.what[5]}, {beam.note[0]} and {beam.note[6]}
        times.
        """,
        holds=(
            "{own_batches.ours[0]} > {joey.ours[0]}",
            "{greedily.note[0]} > 1",
            "{greedily.note[6]} > 1",
            "{beam.note[0]} > 1",
            "{beam.note[6]} > 1",
        ),
    ),
)

# The ten that matter most.
ROWS = (
    Row(
        what=(
            "Additive attention, {additive.what[1]} × {additive.what[2]}, forward and backward",
            "加性注意力，{additive.what[1]} × {additive.what[2]}，前向加反向",
        ),
        ours="{additive.ours[0]} s, {additive_memory.ours[0]} MiB",
        beside=(
            "its formula in torch: {additive.beside[0]} s, {additive_memory.beside[0]} MiB",
            "在 torch 里照公式写：{additive.beside[0]} s, {additive_memory.beside[0]} MiB",
        ),
    ),
    Row(
        what=(
            "A window of {window.what[0]} over {window.what[1]} tokens, forward and backward",
            "{window.what[1]} 个词元、窗口 {window.what[0]}，前向加反向",
        ),
        ours="{window.ours[0]} ms",
        beside=(
            "torch's fused kernel over blocks: {window.beside[0]} ms",
            "torch 的融合内核，分块计算：{window.beside[0]} ms",
        ),
    ),
    Row(
        what=(
            "What {summary.what[4]} heads look at in {summary.what[3]} tokens",
            "{summary.what[4]} 个头在 {summary.what[3]} 个词元上各看哪里",
        ),
        ours="{summary.ours[0]} s, {summary.ours[1]} GB",
        beside=(
            "torch's kernel, which shows nothing: {summary.beside[0]} s",
            "torch 的内核（只算不看）：{summary.beside[0]} s",
        ),
    ),
    Row(
        what=(
            "Training a small Transformer, float32, equal dropout, target tokens a second",
            "训练小型 Transformer，float32、相同的 dropout，每秒目标词元数",
        ),
        ours="{joey.ours[1]}",
        beside=(
            "`nn.Transformer`: {torch_modules.beside[0]}; Joey NMT: {joey.beside[0]}",
            "`nn.Transformer`：{torch_modules.beside[0]}；Joey NMT：{joey.beside[0]}",
        ),
    ),
    Row(
        what=(
            "Decoding in int8, {beam.what[4]} sentences, a beam of {beam.what[5]}, tokens a second",
            "int8 解码，一次 {beam.what[4]} 句，束宽 {beam.what[5]}，每秒词元数",
        ),
        ours="{beam.ours[1]}",
        beside=("CTranslate2: {beam.beside[1]}", "CTranslate2：{beam.beside[1]}"),
    ),
    Row(
        what=("Multi30k, English to German, BLEU", "Multi30k 英译德，BLEU"),
        ours="{multi30k.ours[0]}",
        beside=(
            "published for this size: {multi30k.beside[0]}",
            "已发表的同规模结果：{multi30k.beside[0]}",
        ),
    ),
    Row(
        what=(
            "Chinese sentences, joined to {long.what[4]} characters and more, BLEU",
            "汉语句子拼接到 {long.what[4]} 字以上，译成英语，BLEU",
        ),
        ours="{long.ours[1]}",
        beside=(
            "the same RNN without attention: {long.beside[1]}",
            "同样的 RNN，不用注意力：{long.beside[1]}",
        ),
    ),
    Row(
        what=("Tiny Shakespeare, loss and training time", "Tiny Shakespeare，损失与训练时间"),
        ours="{shakespeare.ours[0]}, {shakespeare.ours[1]} ×",
        beside=(
            "nanoGPT: {shakespeare.beside[0]}, {shakespeare.beside[1]} ×",
            "nanoGPT：{shakespeare.beside[0]}，{shakespeare.beside[1]} ×",
        ),
    ),
    Row(
        what=("Entities in Chinese news (MSRA), F1", "中文新闻实体识别（MSRA），F1"),
        ours="{msra.ours[1]}",
        beside=(
            "entities remembered from training: {msra.beside[1]}",
            "只记住训练集里的实体：{msra.beside[1]}",
        ),
    ),
    Row(
        what=(
            "Answers found in English texts, exact match / F1",
            "在英文文章里找答案，完全匹配 / F1",
        ),
        ours="{pretrained_spans.ours[0]} / {pretrained_spans.ours[1]}",
        beside=(
            "a sliding window: {pretrained_spans.beside[0]} / {pretrained_spans.beside[1]}",
            "滑动窗口：{pretrained_spans.beside[0]} / {pretrained_spans.beside[1]}",
        ),
    ),
)
_HEAD = "| measured | regard | beside it | how | script |\n|---|---:|---|---|---|"
_HEADS = ("| measured | regard | beside it |", "| 测什么 | regard | 对照 |")
_READMES = {"README.md": 0, "README.zh.md": 1}

_MEASURED = """\
# What was measured

Every figure comes from a script in [benchmarks/](../benchmarks/README.md) that leaves a record
beside it; peers run in the same minutes on the same machine. `python -m benchmarks.tables` writes
this page. ▼ marks what is no better than what needs no model: the baseline beside it.
"""


def main() -> None:
    """Write the pages, or check those that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if out of date")
    parser.add_argument("--pages", type=Path, default=measuring.ROOT, help="where the READMEs lie")
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
    """Each page as the records want it."""
    quoted = quoting.numbers(records, QUOTED)
    wanted = {
        folder / MEASURED: measured(records, quoted),
        folder / shipped.FIGURES: shipped.recipe_figures(quoted),
    }
    for name, language in _READMES.items():
        text = _there(folder / name)
        wanted[folder / name] = insert(text, short(quoted, language), name=name)
    return wanted


def short(quoted: Mapping[str, quoting.Numbers], language: int) -> str:
    """The short table, in English (0) or Chinese (1)."""
    rows = ((row.what[language], row.ours, row.beside[language]) for row in ROWS)
    lines = [line(quoting.say(cell, quoted) for cell in row) for row in rows]
    return "\n".join([_HEADS[language], "|---|---:|---|", *lines])


def measured(records: Sequence[Mapping[str, Any]], quoted: Mapping[str, quoting.Numbers]) -> str:
    """The page of all figures, group by group."""
    parts, left = [_MEASURED], [figure for record in records for figure in record["figures"]]
    marked = shipped.no_better(records)
    for group in GROUPS:
        lines = []
        for place in group.figures:
            name = place.partition(":")[0]
            for figure in quoting.find(records, place):
                left.remove(figure)
                script = f"[`{name}`](../benchmarks/{name}.py)"
                lines.append(line([*shipped.cells(figure, marked), script]))
        said = quoting.say(group.says, quoted, holds=group.holds)
        table = "\n".join([_HEAD, *lines])
        blocks = (f"## {group.title}", said, group.picture, table)
        parts.append("\n\n".join(filter(None, blocks)) + "\n")
    if left:
        raise quoting.QuoteError(f"no group has {left[0]['what']!r}.")
    return "\n".join([*parts, _where(records)])


def insert(text: str, table: str, *, name: str) -> str:
    """The text with the table between its two markers, in the place of what was there."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"{name} must have one {BEGIN} and, after it, one {END}")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def line(cells: Iterable[str]) -> str:
    """A row of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _where(records: Sequence[Mapping[str, Any]]) -> str:
    machines = " and ".join(sorted({_machine(record["machine"]) for record in records}))
    dates = sorted(record["date"] for record in records)
    return (
        f"Measured on {machines}, {dates[0]} to {dates[-1]}. Samples and versions: "
        "[benchmarks/records/](../benchmarks/records/).\n"
    )


def _machine(machine: Mapping[str, Any]) -> str:
    device = machine.get("gpu")
    return device or f"{machine['cpu']} ({machine['cores']} cores)"


def _there(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _difference(path: Path, page: str) -> str:
    old, new = _there(path).splitlines(), page.splitlines()
    return "\n".join(difflib.unified_diff(old, new, path.name, "benchmarks/records", lineterm=""))


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the module docstring's lines as they are."""


if __name__ == "__main__":
    main()
