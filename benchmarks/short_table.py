"""The ten figures of the READMEs, in English and Chinese, each beside a peer at its best."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import ages, quoting
from benchmarks.pages import line


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A line of the short table; texts in English and Chinese."""

    what: tuple[str, str]
    ours: str
    beside: tuple[str, str]
    how: tuple[str, str]  # threads and precision, or what else was the same for both
    compared: tuple[str, str]  # ours and theirs: a row that is no better says so
    less_is_better: bool = False
    level: float = 0.05  # by more than this share, one of them is better


def _by(number: str, precision: str = "float32") -> tuple[str, str]:
    """Threads, and the precision of both sides, in English and Chinese."""
    return f"threads: {{{number}}}, {precision}", f"线程数：{{{number}}}，{precision}"


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
        how=_by("additive.note[2]"),
        compared=("{additive.ours[0]}", "{additive.beside[0]}"),
        less_is_better=True,
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
        how=_by("window.note[3]"),
        compared=("{window.ours[0]}", "{window.beside[0]}"),
        less_is_better=True,
    ),
    Row(
        what=(
            "{documents.what[0]} documents in a row, forward and backward",
            "{documents.what[0]} 篇文档连成一行，前向加反向",
        ),
        ours="{documents.ours[0]} ms",
        beside=(
            "a call of torch's fused kernel for each: {documents.beside[0]} ms",
            "每篇调用一次 torch 的融合内核：{documents.beside[0]} ms",
        ),
        how=_by("documents.note[3]"),
        compared=("{documents.ours[0]}", "{documents.beside[0]}"),
        less_is_better=True,
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
        how=_by("summary.note[4]"),
        compared=("{summary.ours[0]}", "{summary.beside[0]}"),
        less_is_better=True,
    ),
    Row(
        what=(
            "Training a small Transformer, equal dropout and batches, target tokens a second",
            "训练小型 Transformer，dropout 和批次都相同，每秒目标词元数",
        ),
        ours="{torch_modules.ours[1]}",
        beside=(
            "`nn.Transformer`: {torch_modules.beside[0]}",
            "`nn.Transformer`：{torch_modules.beside[0]}",
        ),
        how=_by("torch_modules.note[0]"),
        compared=("{torch_modules.ours[1]}", "{torch_modules.beside[0]}"),
    ),
    Row(
        what=(
            "Translating {beam.what[4]} sentences at once, a beam of {beam.what[5]}, "
            "tokens a second",
            "翻译，一次 {beam.what[4]} 句，束宽 {beam.what[5]}，每秒词元数",
        ),
        ours="{beam.ours[1]}",
        beside=("CTranslate2: {beam.beside[1]}", "CTranslate2：{beam.beside[1]}"),
        how=_by("beam.what[6]", "int8"),
        compared=("{beam.ours[1]}", "{beam.beside[1]}"),
    ),
    Row(
        what=(
            "A language model of GPT-{prompts.what[0]} small's shape, {prompts.what[1]} prompts "
            "at once, tokens a second",
            "GPT-{prompts.what[0]} small 形状的语言模型，一次续写 {prompts.what[1]} 个开头，"
            "每秒词元数",
        ),
        ours="{prompts.ours[1]}",
        beside=("CTranslate2: {prompts.beside[2]}", "CTranslate2：{prompts.beside[2]}"),
        how=_by("prompts.what[2]", "int8"),
        compared=("{prompts.ours[1]}", "{prompts.beside[2]}"),
    ),
    Row(
        what=(
            "Multi30k, English to German, BLEU, by settings of no shipped recipe",
            "Multi30k 英译德，BLEU；所用设置不是自带配方的",
        ),
        ours="{multi30k.ours[0]}",
        beside=(
            "published for this size: {multi30k.beside[0]}",
            "已发表的同规模结果：{multi30k.beside[0]}",
        ),
        how=(
            "one seed, {multi30k.note[0]} M target tokens, float32",
            "一个种子，{multi30k.note[0]} M 目标词元，float32",
        ),
        compared=("{multi30k.ours[0]}", "{multi30k.beside[0]}"),
        level=0.005,
    ),
    Row(
        what=(
            "New combinations of known words, translated right by an RNN with attention",
            "已知词的新组合，带注意力的 RNN 译得完全正确的比例",
        ),
        ours="{attending.ours[1]} %",
        beside=(
            "the same RNN without: {fixed.ours[1]} %",
            "同样的 RNN，不用注意力：{fixed.ours[1]} %",
        ),
        how=(
            "{attending.note[0]} CPU minutes each, float32",
            "各 {attending.note[0]} CPU 分钟，float32",
        ),
        compared=("{attending.ours[1]}", "{fixed.ours[1]}"),
        level=0.005,
    ),
    Row(
        what=("The Brown corpus, bits per byte", "Brown 语料，每字节比特数"),
        ours="{brown.ours[0]}",
        beside=("Kneser-Ney: {brown.beside[1]}", "Kneser-Ney：{brown.beside[1]}"),
        how=("{brown.note[0]} CPU minutes, float32", "{brown.note[0]} CPU 分钟，float32"),
        compared=("{brown.ours[0]}", "{brown.beside[1]}"),
        level=0.005,
        less_is_better=True,
    ),
)
_HEADS = ("| measured | regard | beside it | how |", "| 测什么 | regard | 对照 | 怎么测的 |")
_LEVEL_WORDS, _BEHIND_WORDS = ("level", "持平"), ("behind", "落后")
_OLD = (
    f"{ages.MARK} The code that was measured has changed since, or is in no commit.",
    f"{ages.MARK} 测过之后所测的代码又改过，或者当时的代码没有提交。",
)


def short_table(
    quoted: Mapping[str, quoting.Numbers], language: int, is_old: Callable[[str], bool]
) -> str:
    """The short table, in English (0) or Chinese (1), without what is not measured.

    ``is_old`` says whether a sentence quotes a record that is old.
    """
    lines = [_HEADS[language], "|---|---:|---|---|"]
    for row in ROWS:
        cells = (row.what[language], row.ours, row.beside[language], row.how[language])
        try:
            what, ours, beside, how = (quoting.say(cell, quoted) for cell in cells)
            no_better = word(row, quoted, language)
        except quoting.NotMeasuredError:
            continue
        mark = f" {ages.MARK}" if is_old(row.ours) else ""
        lines.append(line([what, f"{ours}{mark}", beside, f"{how}{no_better}"]))
    if any(ages.MARK in each for each in lines):
        lines += ["", _OLD[language]]
    return "\n".join(lines)


def word(row: Row, quoted: Mapping[str, quoting.Numbers], language: int) -> str:
    """Remark on a row that is no better than the one beside it."""
    ours, theirs = (float(quoting.say(each, quoted).replace(",", "")) for each in row.compared)
    ratio = theirs / ours if row.less_is_better else ours / theirs
    if ratio > 1 + row.level:
        return ""
    words = _LEVEL_WORDS if ratio >= 1 - row.level else _BEHIND_WORDS
    return f"{('; ', '；')[language]}**{words[language]}**"
