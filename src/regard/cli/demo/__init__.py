"""``regard demo``."""

from pathlib import Path

from regard.errors import SettingError

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
PAGE, TYPING_PAGE, SMALL_PAGE = "attention.html", "type.html", "experiment.html"


def demo(*, train: bool = False, small: bool = False, run: Path = Path("regard-demo")) -> None:
    """Translate Chinese into English, and see the translator's attention.

    Example: `regard demo`

    Example: `regard demo --train`, to see a small one learn

    Example: `regard demo --small`, the experiment of the textbooks

    A translator that comes with regard answers at once. Then try a sentence of your own: `regard
    look tatoeba-zh-en 他昨天去北京了`. With --train a small one learns the built-in phrasebook in a
    minute or two, says how long as it begins, and is tested. With --small two recurrent ones learn
    600 of its pairs, without attention and with it, and one page compares them.

    Args:
        train: Train a small translator on the built-in phrasebook, in a minute or two.
        small: Train two recurrent translators on 600 pairs, without attention and with it, in a
            minute or two; one page has their losses, outputs with BLEU, and heat maps.
        run: The folder of the pages, and of the runs that are trained. A finished one is used as it
            is.
    """
    if train and small:
        raise SettingError("--train and --small must not be given together; got both.")
    if small:
        from regard.cli.demo.small import experiment

        experiment(run)
    elif train:
        from regard.cli.demo.lesson import teach

        teach(run)
    else:
        from regard.cli.demo.translating import translate

        translate(run)
