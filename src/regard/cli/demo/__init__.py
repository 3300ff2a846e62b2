"""``regard demo``."""

from pathlib import Path

TRANSLATOR = "tatoeba-zh-en"  # the bundle that comes with the package
SENTENCE = "我爱中国"
# Others on the page; the last two are offered to type too.
SENTENCES = (
    "你吃早饭了吗？",
    "请把窗户打开。",
    "我忘了带钥匙。",
    "他每天坐地铁上班。",
    "如果明天下雨，我们就待在家里。",
    "他昨天去北京了",
    "我们明天在学校看书",
)
PAGE, TYPING_PAGE = "attention.html", "type.html"


def demo(*, train: bool = False, run: Path = Path("regard-demo")) -> None:
    """Translate Chinese into English, and see what the translator looks at.

    Example: `regard demo`

    Example: `regard demo --train`, to see a small one learn

    A translator that comes with regard answers at once. Then try a sentence of your own: `regard
    look tatoeba-zh-en 他昨天去北京了`. With --train a small one learns the built-in phrasebook in a
    minute or two, says how long as it begins, and is tested.

    Args:
        train: Train a small translator on the built-in phrasebook, in a minute or two.
        run: The folder of the pages, and with --train of the run. A finished one is used as it is.
    """
    if train:
        from regard.cli.demo.lesson import teach

        teach(run)
    else:
        from regard.cli.demo.translating import translate

        translate(run)
