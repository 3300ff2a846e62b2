"""One page of an experiment: translators of the same sentences, their losses, outputs, weights."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from regard.viewer.example import Example
from regard.viewer.plain_page import plain_page

_COLORS = ("var(--first)", "var(--second)")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 560, 220, 36, 26
_STYLE = """:root { --first: #00796b; --second: #e65100; }
@media (prefers-color-scheme: dark) { :root { --first: #4db6ac; --second: #ffb74d; } }
svg { max-width: 100%; height: auto; } svg text { fill: CanvasText; font-size: 12px; }
h3 { margin: 1.2rem 0 .3rem; } table { margin: .8rem 0; }
.text th, .text td { text-align: left; white-space: normal; }"""
_INTRO = """<p>Two recurrent translators, trained alike on the same pairs. One writes every word \
from one vector, the last state of what it has read; the other weighs all characters anew for \
every word, and gets the mean of their embeddings besides. BLEU counts the runs of one to four \
words that a translation shares with the right one; 100 is the same text.</p>
<p lang=zh>两个循环网络翻译器，用同样的句对、同样的办法训练。\
一个写每个词都用同一个向量，即读完时的状态；\
另一个每写一个词，都重新给所有的字分配权重，另外得到字向量的加权平均。\
BLEU 统计译文与参考译文共有的一至四个词的片段，100 表示完全相同。</p>"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedArm:
    """One translator of an experiment.

    Attributes:
        name: Its name in English and in Chinese.
        losses: Updates so far and the loss of training then, in nats a token, in order.
        examples: Sentences that it translates, with its output and its attention, if it has any.
        scores: BLEU of each of these.
        bleu: BLEU on all test sentences together.
    """

    name: tuple[str, str]
    losses: Sequence[tuple[int, float]]
    examples: Sequence[Example]
    scores: Sequence[float]
    bleu: float


def experiment_page(arms: Sequence[TrainedArm], answers: Sequence[str], *, tested: int) -> str:
    """One HTML page that needs nothing else: loss curves, outputs with BLEU, heat maps.

    Args:
        arms: The translators, at most two; all have the same sentences as examples.
        answers: The right translation of each of these sentences.
        tested: Sentences that the BLEU of all is of.

    Example:
        >>> one = Example(source="我走", output="I go", source_tokens=[], output_tokens=[])
        >>> arm = TrainedArm(name=("plain", "没有"), losses=[(1, 2.0), (2, 1.0)], examples=[one],
        ...                  scores=[100.0], bleu=50.0)
        >>> "<td>I go <b>100</b></td>" in experiment_page([arm], ["I go"], tested=9)
        True
    """
    heads = "".join(f"<th scope=col>{_both(arm.name)}, BLEU</th>" for arm in arms)
    rows = []
    for number, answer in enumerate(answers):
        cells = "".join(
            f"<td>{html.escape(arm.examples[number].output)} <b>{arm.scores[number]:.0f}</b></td>"
            for arm in arms
        )
        source = html.escape(arms[0].examples[number].source)
        rows.append(f"<tr><th scope=row>{source}</th><td>{html.escape(answer)}</td>{cells}</tr>")
    sums = "".join(f"<td><b>{arm.bleu:.1f}</b></td>" for arm in arms)
    all_of_them = _both((f"all {tested} test sentences", f"全部 {tested} 个测试句"))
    right = _both(("right", "参考译文"))
    head = f"<tr><td></td><th scope=col>{right}</th>{heads}</tr>"
    foot = f"<tr><th scope=row>{all_of_them}</th><td></td>{sums}</tr>"
    body = [
        _INTRO,
        f"<h2>{_both(('Loss', '损失'))}</h2>",
        _curves(arms),
        f"<h2>{_both(('Sentences that were not trained on', '没有训练过的句子'))}</h2>",
        f"<div class=wide><table class=text>{head}{''.join(rows)}{foot}</table></div>",
        f"<h2>{_both(('What each word looks at', '每个词看哪里'))}</h2>",
    ]
    for arm in arms:
        maps = [_heat_map(example) for example in arm.examples if example.maps]
        body.append(f"<h3>{_both(arm.name)}</h3>")
        body += maps or [
            "<p>Every word is written from the same vector: there are no weights to draw.</p>"
            "<p lang=zh>每个词都用同一个向量写出，没有权重可画。</p>"
        ]
    title = _both(("One context, or many: an experiment", "一个上下文，还是许多个：一次实验"))
    return plain_page(title, "\n".join(body), style=_STYLE)


def _both(words: tuple[str, str]) -> str:
    return f"{html.escape(words[0])} · {html.escape(words[1])}"


def _curves(arms: Sequence[TrainedArm]) -> str:
    """The loss of each arm against the update, as SVG."""
    last = max(update for arm in arms for update, _ in arm.losses)
    top = max(loss for arm in arms for _, loss in arm.losses)
    right, low = _WIDTH - _LEFT - 10, _HEIGHT - _BOTTOM - 10
    parts = [
        f'<path d="M{_LEFT} 10V{10 + low}H{_LEFT + right}" fill="none" stroke="currentColor"/>',
        f'<text x="{_LEFT - 6}" y="16" text-anchor="end">{top:.1f}</text>',
        f'<text x="{_LEFT - 6}" y="{10 + low}" text-anchor="end">0</text>',
        f'<text x="{_LEFT + right}" y="{_HEIGHT - 6}" text-anchor="end">'
        f"{_both((f'{last} updates', f'{last} 次更新'))}</text>",
    ]
    for number, (arm, color) in enumerate(zip(arms, _COLORS, strict=False)):
        points = " ".join(
            f"{_LEFT + right * update / last:.1f},{10 + low * (1 - loss / top):.1f}"
            for update, loss in arm.losses
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        y, end = 24 + 18 * number, _LEFT + right
        words = f"{_both(arm.name)}: {arm.losses[-1][1]:.2f}"
        parts.append(
            f'<text x="{end}" y="{y}" text-anchor="end" style="fill:{color}">{words}</text>'
        )
    label = "The loss of training against the update · 训练损失随更新次数的变化"
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return f'<svg {size} role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _heat_map(example: Example) -> str:
    """Weights of the first map as a table: a row for each word of the output."""
    heads = "".join(
        f"<th scope=col>{html.escape(token.text)}</th>" for token in example.source_tokens
    )
    rows = []
    for token, weights in zip(example.output_tokens, example.maps[0].rows, strict=True):
        cells = "".join(f'<td style="--w:{100 * w:.0f}%">{w:.2f}</td>' for w in weights)
        rows.append(f"<tr><th scope=row>{html.escape(token.text)}</th>{cells}</tr>")
    return f"<div class=wide><table><tr><td></td>{heads}</tr>{''.join(rows)}</table></div>"
