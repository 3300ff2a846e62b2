"""The table of docs/literature.tsv names only what is there, and leaves no part of a text out."""

import re
from pathlib import Path

import pytest
from tools.website import literature

ROOT = Path(__file__).parents[3]
SOURCES = ROOT.parent / "shared" / "sources"
ROWS = literature.rows(ROOT / "docs")

# The texts' parts, by what we call them: their own headings, abbreviated, or mended where they are
# misspelt. Summaries repeat what is above them.
_PARTS = {
    "000": """
    注意力提示 | 生物学中的注意力提示 | 查询、键和值 | 生成数据集 | 平均汇聚
    | 非参数注意力汇聚 | 带参数注意力汇聚 | 批量矩阵乘法 | 定义模型 | 训练 | 注意力评分函数
    | 掩蔽softmax操作 | 加性注意力 | 缩放点积注意力 | Bahdanau = Bahdanau 注意力 | 多头注意力
    | 自注意力 | 比较 = 比较卷积神经网络、循环神经网络和自注意力 | 位置编码 | 绝对位置信息
    | 相对位置信息 | Transformer | 模型 | 基于位置的前馈网络 | 残差连接和层规范化
    """,
    "001": """
    RNN回顾 | 注意力 | 键值对注意力 | 多头注意力 | 自注意力
    """,
    "002": """
    引言 | CNN | memory networks | Encoder-Decoder | Encoder | Layer Norm | Decoder
    | Attention | Scaled Dot-Product = Scaled Dot-Product Attention | 缩放因子
    | Masked = Msasked | Multi-Head = Multi-Head Attention | Self-Attention
    | Encoder-Decoder传递Attention | FFN = Feed Forward NetWorks | Embeddings and Softmax
    | Positional Encoding | 优点
    """,
    "003": """
    1 = 1.简介 | 2 = 2.Background and History of Attention Mechanisms
    | 2.1 = 2.1 Introduction to Attention Mechanisms
    | 2.1.1 = 2.1.1 Basics of Attention Mechanisms
    | 2.1.2 = 2.1.2 Limitations of Previous Methods | 2.2 = 2.2 Types of Attention Mechanisms
    | 2.3 = 2.3 Applications of Attention Mechanisms in NLP
    | 3 = 3. General Models of Attention Mechanisms
    | 4 = 4. Code Implementations and Explanations of Scaled Dot-Product Attention
    | 5.1 = 5.1 Sentence Classification with Attention-based CNNs
    | 5.2 = 5.2 Language Modeling with Self-Attention | 5.3 = 5.3 Sentiment Analysis with BERT
    """,
    "004": """
    一 = 一、语言模型实例 | 二 = 二、一般模型 | 三 = 三、自注意力模型(Self-Attention)
    | 四 = 四、Self-Attention模型的复杂度分析
    """,
}
PARTS = {
    source: {
        key: heading or key
        for key, _, heading in (part.strip().partition(" = ") for part in text.split("|"))
    }
    for source, text in _PARTS.items()
}
# Headings that hold no more than the parts below them, summaries, and what ends a text.
_NO_PARTS = {
    "000": ["总结", "注意力汇聚", "自注意力和位置编码"],
    "001": [],
    "002": ["背景", "方法"],
    "003": ["Scaled Dot-Product Attention", "5. Application in NLP Tasks"],
    "004": ["（1）时间复杂度", "（2）空间复杂度", "参考资料"],
}


def _cited():
    cited = set()
    for row in ROWS:
        source = ""
        for item in row["source"].split("; "):
            number = re.match(r"(00\d) ", item)
            if number is None and not source:  # a paper
                continue
            if number is None and re.search(r"et al\.|[A-Z]\w+ \d{4}", item):
                continue
            source = number[1] if number else source
            parts = item[number.end() :] if number else item
            cited |= {(source, part) for part in parts.split(", ")}
    return cited


@pytest.mark.parametrize("source", PARTS)
def test_every_part_of_a_text_is_cited(source):
    cited = {part for text, part in _cited() if text == source}
    assert [part for part in PARTS[source] if part not in cited] == []


def test_only_parts_that_are_there_are_cited():
    there = {(source, part) for source, parts in PARTS.items() for part in parts}
    assert _cited() - there == set()


@pytest.mark.skipif(not SOURCES.is_dir(), reason="the texts are not part of the repository")
@pytest.mark.parametrize("source", PARTS)
def test_parts_are_the_headings_of_the_text(source):
    (path,) = SOURCES.glob(f"{source}_*.txt")
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = [line.strip().strip("*") for line in text.splitlines()]
    headings = [line.lstrip("# ") for line in lines if re.match(r"#+ ", line)]
    for heading in PARTS[source].values():
        # 001 and a part of 002 and of 003 have headings without marks.
        assert any(line.startswith(heading) for line in (*headings, *lines)), heading
    known = [*PARTS[source].values(), *_NO_PARTS[source]]
    assert [each for each in headings if not any(map(each.startswith, known))] == []


def test_every_test_named_is_in_its_file():
    named = {test for row in ROWS for test in row["tests"].split()}
    absent = [
        f"{file}::{name}"
        for file, name in sorted(test.split("::") for test in named)
        if not re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(named) > 150
    assert absent == []


def test_every_item_is_in_both_languages_and_has_its_chapter():
    for row in ROWS:
        assert row["item"], row
        assert row["条目"], row
        assert bool(row["note"]) == bool(row["说明"]), row
        assert row["chapter"] in ("", *literature.CHAPTERS), row
        assert bool(row["code"]) == bool(row["tests"]), row
        for file in row["code"].split():
            assert file.startswith(("src/", "examples/")), file
            assert (ROOT / file).is_file(), file


def test_the_page_has_a_row_for_each_item():
    for page in literature.pages(ROOT / "docs").values():
        assert page.count("\n| ") >= len(ROWS)
        assert literature.MARK not in page
