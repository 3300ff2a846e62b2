"""Everyday sentences: short ones, of the phrasebook's words, of shapes that people type first."""

import lzma
import re
from collections import Counter
from pathlib import Path

from regard.text.phrasebook import FILE, handwritten, phrases
from tools.phrasebook.chance import Chance
from tools.phrasebook.corpus import plain_key
from tools.phrasebook.held_out import PARTNERS
from tools.phrasebook.lexicon.adjectives import (
    COLORS,
    MOODS,
    PLACE_QUALITIES,
    PLACES_RATED,
    QUALITIES,
    TRAITS,
)
from tools.phrasebook.lexicon.nouns import KINDS, NOUNS, nouns
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS
from tools.phrasebook.lexicon.places import BUILDINGS, CITIES, COUNTRIES, LANDS, ROOMS
from tools.phrasebook.lexicon.scenes import SCENES
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.times import FUTURE, HABIT, LONG_FUTURE, PAST, SEASONS
from tools.phrasebook.lexicon.verbs import (
    ACTIONS,
    DAILY,
    DEALINGS,
    DUTIES,
    FEELINGS,
    LEISURE,
    LIKINGS,
    MILESTONES,
    OUTBURSTS,
    SKILLS,
)
from tools.phrasebook.morphology import article, be, do, have, inflect
from tools.phrasebook.writing import compressed
from tools.phrasebook.noun_phrases import (
    OWNERS,
    RELATIVES,
    ROLES,
    numbered,
    one,
    other,
    owned,
    somebody,
    the,
    this,
)

DOINGS = (*LEISURE, *DUTIES, *DAILY[1:])
ANIMALS = (*KINDS["pet"], *KINDS["farm"], *KINDS["wild"])
PEOPLE = (*KINDS["role"], *KINDS["person"])
FOOD = nouns("fruit vegetable snack egg dish baked")
DRINK = KINDS["drink"]
FOND = select(FEELINGS, "爱 喜欢 想念")
WEAKEN = select(FEELINGS, "爱 喜欢 想念 讨厌 尊敬 相信 支持 关心 佩服")


class G:
    """A generator of one sentence at a time."""

    def __init__(self, chance):
        self.c = chance

    def who(self):
        """Subject as (zh, en, person, object en)."""
        c = self.c
        if c.odds(0.12):
            n = c.deal(PEOPLE)
            u = this(c, n)
            if c.odds(0.2):
                return self.kin()
            return z(u), e(u), u.person, e(u)
        if c.odds(0.08):
            return "你", "you", "plural", "you"
        n = somebody(c)
        return (
            n.zh_words if hasattr(n, "zh_words") else z(n.subject),
            e(n.subject),
            n.person,
            e(n.object),
        )

    def kin(self):
        """小红的爸爸, 我姐姐的儿子."""
        c = self.c
        first = c.deal(NAMES) if c.odds(0.5) else c.deal(RELATIVES)
        rel = c.deal(KINDS["relative"])
        return (
            f"{z(first.subject)} 的 {rel.zh}",
            f"{e(first.subject)} 's {rel.en}",
            "singular",
            f"{e(first.subject)} 's {rel.en}",
        )

    def whom(self, subject):
        """Object: (zh, en)."""
        c = self.c
        while True:
            w = ("你", "you", "plural", "you") if c.odds(0.2) else self.who()
            a, b = subject.replace("们", ""), w[0].replace("们", "")
            if a.split()[0] != b.split()[0]:
                return w[0], w[3]

    def activity(self):
        return self.c.deal(DOINGS)

    def act(self):
        """(zh, base form, verb object) of something with a bare object: 吃 苹果 / eat apples."""
        v = self.c.deal(ACTIONS)
        o = self.c.deal(v.objects).many
        return v, o

    def doing(self):
        """(zh, {form: en}) of something one does."""
        c = self.c
        if c.odds(0.45):
            v = self.activity()
            return v.zh, {f: e(u) for f, u in v.forms.items()}
        v, o = self.act()
        return f"{v.zh} {z(o)}", {f: f"{e(u)} {e(o)}" for f, u in v.forms.items()}

    def thing(self):
        """Something particular, this one or somebody's."""
        c = self.c
        n = c.deal(THINGS)
        u = this(c, n) if c.odds(0.5) else owned(c.deal(OWNERS), n)
        return n, u


THINGS = nouns(
    "book clothing accessory furniture machine container carried ridden car household 房子 狗 猫"
)
BARE_THE = nouns("opening 冰箱 洗衣机 空调 灯 电脑 盒子 箱子 书包 袋子 柜子")
LOSE = nouns("手机 钥匙 雨伞 钱包 护照 票 地图 手表 戒指 书包")


def z(u):
    return " ".join(u.zh)


def e(u):
    return " ".join(u.en)


def pres(v_en, person):
    return inflect(v_en, "third") if person == "singular" else v_en


def place_at(p):
    art = "the " if p.has_article else ""
    return f"{p.preposition} {art}{p.en}"


def place_to(p):
    return f"to {'the ' if p.has_article else ''}{p.en}"


def place_name(p):
    return p.en if p.is_land else f"the {p.en}"


ON = [
    ("桌子 上", "on the table"),
    ("椅子 上", "on the chair"),
    ("床 上", "on the bed"),
    ("沙发 上", "on the sofa"),
    ("书架 上", "on the bookshelf"),
    ("冰箱 里", "in the refrigerator"),
    ("柜子 里", "in the cupboard"),
    ("箱子 里", "in the suitcase"),
    ("盒子 里", "in the box"),
    ("书包 里", "in the schoolbag"),
    ("篮子 里", "in the basket"),
    ("袋子 里", "in the bag"),
]
PUT = nouns("fruit book tableware carried 帽子 眼镜 玩具 猫 饼干 包子 鸡蛋")
P = {}


def pattern(weight):
    def add(f):
        P[f.__name__] = (f, weight)
        return f

    return add


@pattern(5)
def feel(g):
    w = g.who()
    v = g.c.deal(FEELINGS)
    o = g.whom(w[0])
    d = g.c.below(100)
    if d < 45:
        return f"{w[0]} {v.zh} {o[0]} 。", f"{w[1]} {pres(v.en, w[2])} {o[1]} ."
    if d < 65:
        return f"{w[0]} 不 {v.zh} {o[0]} 。", f"{w[1]} {do(w[2])} not {v.en} {o[1]} ."
    if d < 85 and w[0] not in ("我", "我们"):
        return f"{w[0]} {v.zh} {o[0]} 吗 ？", f"{do(w[2])} {w[1]} {v.en} {o[1]} ?"
    v = g.c.pick(select(FEELINGS, "爱 喜欢 想念"))
    return f"{w[0]} 很 {v.zh} {o[0]} 。", f"{w[1]} {pres(v.en, w[2])} {o[1]} very much ."


@pattern(3)
def land_feels(g):
    p = g.c.deal(LANDS)
    v = g.c.deal(WEAKEN)
    o = g.who() if g.c.odds(0.6) else (g.c.deal(LANDS),)
    o = (o[0], o[3]) if len(o) > 1 else (o[0].zh, o[0].en)
    if o[0] == p.zh:
        return None
    if g.c.odds(0.15):
        return f"{p.zh} 不 {v.zh} {o[0]} 。", f"{p.en} does not {v.en} {o[1]} ."
    if g.c.odds(0.15):
        return f"{p.zh} {v.zh} {o[0]} 吗 ？", f"does {p.en} {v.en} {o[1]} ?"
    return f"{p.zh} {v.zh} {o[0]} 。", f"{p.en} {inflect(v.en, 'third')} {o[1]} ."


@pattern(2)
def likes_land(g):
    w = g.who()
    p = g.c.deal((*LANDS, *BUILDINGS))
    v = g.c.pick(FOND)
    d = g.c.below(3)
    n = place_name(p)
    if d == 0:
        return f"{w[0]} 不 {v.zh} {p.zh} 。", f"{w[1]} {do(w[2])} not {v.en} {n} ."
    if d == 1:
        return f"{w[0]} 很 {v.zh} {p.zh} 。", f"{w[1]} {pres(v.en, w[2])} {n} very much ."
    return f"{w[0]} 最 喜欢 {p.zh} 。", f"{w[1]} {pres('like', w[2])} {n} the most ."


LIKABLE = (
    *FOOD,
    *DRINK,
    *ANIMALS,
    *KINDS["sport"],
    *KINDS["subject"],
    *KINDS["language"],
    *KINDS["taste"],
    *KINDS["flower"],
    *nouns("书 小说 电影"),
)


@pattern(4)
def likes_thing(g):
    w = g.who()
    n = g.c.deal(LIKABLE)
    v = g.c.pick(select(FEELINGS, "爱 喜欢 喜欢 讨厌"))
    t = e(n.many)
    d = g.c.below(6)
    if d == 0:
        return f"{w[0]} 最 喜欢 {n.zh} 。", f"{w[1]} {pres('like', w[2])} {t} the most ."
    if d == 1:
        return f"{w[0]} 很 喜欢 {n.zh} 。", f"{w[1]} {pres('like', w[2])} {t} very much ."
    if d == 2:
        return f"{w[0]} {v.zh} {n.zh} 吗 ？", f"{do(w[2])} {w[1]} {v.en} {t} ?"
    if d == 3:
        return f"{w[0]} 不 {v.zh} {n.zh} 。", f"{w[1]} {do(w[2])} not {v.en} {t} ."
    if d == 4:
        m = g.c.deal(LIKABLE)
        if m is n:
            return None
        return (
            f"{w[0]} {v.zh} {n.zh} 和 {m.zh} 。",
            f"{w[1]} {pres(v.en, w[2])} {t} and {e(m.many)} .",
        )
    s = g.c.deal(SEASONS)
    return f"{w[0]} 最 喜欢 {z(s)} 。", f"{w[1]} {pres('like', w[2])} {e(s)} the most ."


@pattern(4)
def likes_doing(g):
    w = g.who()
    zh, f = g.doing()
    v = g.c.pick(select(FEELINGS, "喜欢 喜欢 喜欢 爱 讨厌"))
    d = g.c.below(4)
    if d == 0:
        return f"{w[0]} 不 {v.zh} {zh} 。", f"{w[1]} {do(w[2])} not {v.en} {f['ing']} ."
    if d == 1:
        return f"{w[0]} {v.zh} {zh} 吗 ？", f"{do(w[2])} {w[1]} {v.en} {f['ing']} ?"
    return f"{w[0]} {v.zh} {zh} 。", f"{w[1]} {pres(v.en, w[2])} {f['ing']} ."


@pattern(5)
def wants_doing(g):
    w = g.who()
    zh, f = g.doing()
    d = g.c.below(5)
    if d == 0:
        return f"{w[0]} 想 {zh} 吗 ？", f"{do(w[2])} {w[1]} want to {f['base']} ?"
    if d == 1:
        return f"谁 想 {zh} ？", f"who wants to {f['base']} ?"
    if d == 2:
        p = g.c.deal((*LANDS, *BUILDINGS))
        if g.c.odds(0.5):
            return f"{w[0]} 想 去 {p.zh} 。", f"{w[1]} {pres('want', w[2])} to go {place_to(p)} ."
        return (
            f"{w[0]} 想 去 {p.zh} {zh} 。",
            f"{w[1]} {pres('want', w[2])} to go {place_to(p)} to {f['base']} .",
        )
    if d == 3:
        return f"{w[0]} 不 想 {zh} 。", f"{w[1]} {do(w[2])} not want to {f['base']} ."
    return f"{w[0]} 想 {zh} 。", f"{w[1]} {pres('want', w[2])} to {f['base']} ."


@pattern(8)
def please_bare(g):
    c = g.c
    pz, pe = c.pick((("请 ", "please "), ("请 ", "please "), ("", ""), ("别 ", "do not ")))
    end = "."
    d = c.below(100)
    if d < 30:
        n = c.deal(BARE_THE)
        vz, ve = c.pick((("打开", "open"), ("关上", "close")))
        return f"{pz}{vz} {n.zh} 。", f"{pe}{ve} {e(the(n))} ."
    if d < 45:
        n = c.deal(BARE_THE)
        vz, ve = c.pick((("打开", "open"), ("关上", "close")))
        u = this(c, n) if c.odds(0.5) else owned(c.deal(OWNERS), n)
        return f"{pz}{vz} {z(u)} 。", f"{pe}{ve} {e(u)} ."
    if d < 62:
        zh, f = g.doing()
        return f"{pz}{zh} 。", f"{pe}{f['base']} ."
    if d < 82:
        v = c.deal((*DEALINGS, *select(FEELINGS, "相信 理解 支持 关心")))
        o = g.whom("你")
        o = ("我", "me") if c.odds(0.35) else o
        return f"{pz}{v.zh} {o[0]} 。", f"{pe}{v.en} {o[1]} ."
    if d < 90:
        v = c.pick(select(OUTBURSTS, "哭 笑 迟到"))
        return f"别 {v.zh} 。", f"do not {v.en} ."
    p = c.deal((*BUILDINGS, *LANDS))
    return f"{pz}去 {p.zh} 。", f"{pe}go {place_to(p)} ."


GIVEN = nouns("book carried drink fruit 毛巾 杯子 勺子 毯子 帽子 玫瑰 蛋糕")


@pattern(2)
def give(g):
    c = g.c
    n = c.deal(GIVEN)
    u = one(n) if c.odds(0.6) else numbered(c, n)
    o = g.whom("你")
    o = ("我", "me") if c.odds(0.4) else o
    if c.odds(0.4):
        w = g.who()
        if w[0].split()[0] == o[0].split()[0]:
            return None
        return f"{w[0]} 给 了 {o[0]} {z(u)} 。", f"{w[1]} gave {o[1]} {e(u)} ."
    pz, pe = c.pick((("请 ", "please "), ("", "")))
    return f"{pz}给 {o[0]} {z(u)} 。", f"{pe}give {o[1]} {e(u)} ."


@pattern(5)
def progressive(g):
    w = g.who()
    zh, f = g.doing()
    c = g.c
    x = c.pick(("在", "在", "在", "正在"))
    d = c.below(5)
    if c.odds(0.12):
        v = c.pick(OUTBURSTS[:2])
        zh, f = v.zh, {k: e(u) for k, u in v.forms.items()}
    if d == 0:
        return f"谁 {x} {zh} ？", f"who is {f['ing']} ?"
    if d == 1:
        return f"{w[0]} {x} {zh} 吗 ？", f"{be(w[2])} {w[1]} {f['ing']} ?"
    if d == 2 and w[0] != "我":
        v, o = g.act()
        return f"{w[0]} {x} {v.zh} 什么 ？", f"what {be(w[2])} {w[1]} {e(v.forms['ing'])} ?"
    return f"{w[0]} {x} {zh} 。", f"{w[1]} {be(w[2])} {f['ing']} ."


@pattern(2)
def waits(g):
    w = g.who()
    o = g.whom(w[0])
    c = g.c
    if c.odds(0.4):
        n = c.deal((*KINDS["car"][1:3], *KINDS["vessel"]))
        o = (n.zh, f"the {n.en}")
        return f"{w[0]} 在 等 {o[0]} 。", f"{w[1]} {be(w[2])} waiting for {o[1]} ."
    v = c.deal(DEALINGS)
    return f"{w[0]} 在 {v.zh} {o[0]} 。", f"{w[1]} {be(w[2])} {e(v.forms['ing'])} {o[1]} ."


def scene(g):
    place, deeds = g.c.deal(SCENES)
    verb, objects = g.c.pick(deeds)
    if objects:
        o = g.c.pick(objects).many
        return place, f"{verb.zh} {z(o)}", {k: f"{e(u)} {e(o)}" for k, u in verb.forms.items()}
    return place, verb.zh, {k: e(u) for k, u in verb.forms.items()}


LASTING = ("工作", "学习", "住", "教", "学", "卖")


@pattern(5)
def in_place(g):
    w = g.who()
    p, zh, f = scene(g)
    c = g.c
    at = place_at(p)
    d = c.below(5)
    if d == 0:
        return f"谁 在 {p.zh} {zh} ？", f"who is {f['ing']} {at} ?"
    if d == 1:
        return f"{w[0]} 在 {p.zh} {zh} 吗 ？", f"{be(w[2])} {w[1]} {f['ing']} {at} ?"
    if d == 2:
        return f"{w[0]} 昨天 在 {p.zh} {zh} 了 。", f"{w[1]} {f['past']} {at} yesterday ."
    if zh == "工作" or c.odds(0.12):
        q = c.deal((*LANDS, *BUILDINGS))
        return f"{w[0]} 在 {q.zh} 工作 。", f"{w[1]} {pres('work', w[2])} {place_at(q)} ."
    return f"{w[0]} 在 {p.zh} {zh} 。", f"{w[1]} {be(w[2])} {f['ing']} {at} ."


@pattern(3)
def lives(g):
    w = g.who()
    p = g.c.deal(LANDS)
    d = g.c.below(5)
    if d == 0:
        return f"{w[0]} 住 在 哪儿 ？", f"where {do(w[2])} {w[1]} live ?"
    if d == 1:
        return f"{w[0]} 住 在 {p.zh} 吗 ？", f"{do(w[2])} {w[1]} live in {p.en} ?"
    if d == 2:
        return f"{w[0]} 不 住 在 {p.zh} 。", f"{w[1]} {do(w[2])} not live in {p.en} ."
    return f"{w[0]} 住 在 {p.zh} 。", f"{w[1]} {pres('live', w[2])} in {p.en} ."


@pattern(5)
def is_in(g):
    c = g.c
    d = c.below(8)
    if d < 4:
        w = g.who()
        p = c.deal((*BUILDINGS, *ROOMS, *LANDS))
        at = place_at(p)
        if p.zh == "院子里":
            return None
        d = c.below(6)
        if d == 0:
            return f"{w[0]} 不 在 {p.zh} 。", f"{w[1]} {be(w[2])} not {at} ."
        if d == 1:
            return f"{w[0]} 在 {p.zh} 吗 ？", f"{be(w[2])} {w[1]} {at} ?"
        if d == 2:
            return f"谁 在 {p.zh} ？", f"who is {at} ?"
        if d == 3:
            return f"{w[0]} 在 哪儿 ？", f"where {be(w[2])} {w[1]} ?"
        return f"{w[0]} 在 {p.zh} 。", f"{w[1]} {be(w[2])} {at} ."
    zz, ee = c.deal(ON)
    n = c.deal(PUT)
    u = the(n)
    if d == 4:
        return f"{zz} 没有 {n.zh} 。", f"there {be(n.many.person)} no {e(n.many)} {ee} ."
    if d == 5:
        return f"{z(u)} 在 {zz} 。", f"{e(u)} {be(u.person)} {ee} ."
    if d == 6:
        return f"{zz} 有 {n.zh} 吗 ？", f"{be(n.many.person)} there {e(n.many)} {ee} ?"
    n, u = g.thing()
    if c.odds(0.3):
        u = the(n)
    return f"{z(u)} 在 哪儿 ？", f"where {be(u.person)} {e(u)} ?"


@pattern(2)
def liquid_in(g):
    n = g.c.deal((*DRINK, *KINDS["dish"]))
    zz, ee = g.c.pick(
        (
            ("冰箱 里", "in the refrigerator"),
            ("桌子 上", "on the table"),
            ("柜子 里", "in the cupboard"),
        )
    )
    d = g.c.below(3)
    if d == 0:
        return f"{zz} 有 {n.zh} 。", f"there is {n.en} {ee} ."
    if d == 1:
        return f"{zz} 有 {n.zh} 吗 ？", f"is there {n.en} {ee} ?"
    return f"{zz} 没有 {n.zh} 。", f"there is no {n.en} {ee} ."


@pattern(4)
def many_in(g):
    c = g.c
    p = c.deal((*BUILDINGS, *LANDS))
    n = c.deal((*PEOPLE, *ANIMALS))
    if c.odds(0.4):
        zz, ee = c.pick(
            (("我们班", "our class"), ("他们班", "their class"), ("我们学校", "our school"))
        )
        u = numbered(c, c.pick(nouns("学生 老师 女孩 男孩")))
        return f"{zz} 有 {z(u)} 。", f"there are {e(u)} in {ee} ."
    return f"{p.zh} 有 很多 {n.zh} 。", f"there are many {e(n.many)} {place_at(p)} ."


@pattern(5)
def copula(g):
    w = g.who()
    c = g.c
    n = c.deal(KINDS["role"])
    d = c.below(8)
    pl = w[2] == "plural" and w[0] not in ("你",)
    t = e(n.many) if pl else f"a {n.en}"
    if d == 0:
        return f"{w[0]} 不 是 {n.zh} 。", f"{w[1]} {be(w[2])} not {t} ."
    if d == 1:
        return f"{w[0]} 是 {n.zh} 吗 ？", f"{be(w[2])} {w[1]} {t} ?"
    if d == 2:
        return f"{w[0]} 也 是 {n.zh} 。", f"{w[1]} {be(w[2])} {t} too ."
    if d == 3:
        x = c.pick((("他们", "they"), ("我们", "we")))
        return f"{x[0]} 都 是 {n.zh} 。", f"{x[1]} are all {e(n.many)} ."
    if d == 4:
        return f"谁 是 {n.zh} ？", f"who is the {n.en} ?"
    if d == 5:
        a = c.pick([x for x in TRAITS if not x.zh.startswith("有")])
        return f"{w[0]} 是 一 {n.measure} 很 {a.zh} 的 {n.zh} 。", (
            f"{w[1]} are very {a.en} {e(n.many)} ."
            if pl
            else f"{w[1]} {be(w[2])} a very {a.en} {n.en} ."
        )
    return f"{w[0]} 是 {n.zh} 。", f"{w[1]} {be(w[2])} {t} ."


@pattern(6)
def relation(g):
    c = g.c
    r = c.deal((*KINDS["relative"], *select(KINDS["role"], "老师 学生 医生 司机 秘书 经理 律师")))
    o = c.deal((*PRONOUNS, *NAMES))
    w = g.who()
    de = c.odds(0.4) or o.owner is None or r in KINDS["role"]
    zz = f"{z(o.subject)} {'的 ' if de else ''}{r.zh}"
    ee = f"{e(o.owner)} {r.en}" if o.owner else f"{e(o.subject)} 's {r.en}"
    d = c.below(9)
    if d == 0:
        return f"谁 是 {zz} ？", f"who is {ee} ?"
    if d == 1:
        return f"{zz} 是 谁 ？", f"who is {ee} ?"
    if d == 2:
        x = c.pick((("他", "he"), ("她", "she")))
        return f"{x[0]} 是 谁 ？" if c.odds(
            0.1
        ) else f"{x[0]} 是 {zz} 吗 ？", f"who is {x[1]} ?" if False else f"is {x[1]} {ee} ?"
    if d == 3 and w[2] != "plural" and w[0].split()[0] != zz.split()[0]:
        return f"{w[0]} 不 是 {zz} 。", f"{w[1]} {be(w[2])} not {ee} ."
    if d == 4:
        k = c.deal(KINDS["role"])
        return f"{zz} 是 {k.zh} 。", f"{ee} is a {k.en} ."
    if d == 5:
        k = c.deal(KINDS["role"])
        return f"{zz} 是 {k.zh} 吗 ？", f"is {ee} a {k.en} ?"
    if d == 6:
        x = c.pick((("这", "this"), ("那", "that")))
        return f"{x[0]} 是 {zz} 。", f"{x[1]} is {ee} ."
    if w[2] != "plural" and w[0].split()[0] != zz.split()[0]:
        return f"{w[0]} 是 {zz} 。", f"{w[1]} {be(w[2])} {ee} ."
    return None


@pattern(2)
def who_is(g):
    w = g.who()
    x = g.c.pick((("这", "this"), ("那", "that"), ("他", "he"), ("她", "she"), ("他们", "they")))
    if g.c.odds(0.35):
        return f"{x[0]} 是 谁 ？", f"who {'are' if x[1] == 'they' else 'is'} {x[1]} ?"
    if g.c.odds(0.15):
        return f"{x[0]} 是 什么 ？", f"what is {x[1]} ?" if x[1] in ("this", "that") else None
    n = g.c.deal(NAMES)
    o = g.c.deal(PRONOUNS)
    if o.person == "plural" and o.zh != "你":
        return None
    if g.c.odds(0.3):
        return f"{z(o.subject)} 的 名字 是 什么 ？", f"what is {e(o.owner)} name ?"
    return f"{z(o.subject)} 的 名字 是 {n.zh} 。", f"{e(o.owner)} name is {e(n.subject)} ."


@pattern(4)
def this_is(g):
    c = g.c
    n, u = g.thing()
    x = c.pick((("这", "this"), ("那", "that")))
    d = c.below(5)
    u = owned(c.deal(OWNERS), n)
    isare = (
        f"{x[1]} is" if u.person == "singular" else ("these are" if x[1] == "this" else "those are")
    )
    if d == 0:
        v, s = isare.split()
        return f"{x[0]} 是 {z(u)} 吗 ？", f"{s} {v} {e(u)} ?"
    if d == 1:
        return f"{x[0]} 不 是 {z(u)} 。", f"{isare} not {e(u)} ."
    if d == 2:
        o = one(c.deal((*THINGS, *ANIMALS, *FOOD)))
        return f"{x[0]} 是 {z(o)} 。", f"{x[1]} is {e(o)} ."
    if d == 3:
        t = this(c, n)
        if t.person == "plural" or n.is_pair:
            return None
        return f"{z(t)} 是 谁 的 ？", f"whose {n.en} is {t.en[0]} ?"
    return f"{x[0]} 是 {z(u)} 。", f"{isare} {e(u)} ."


COLORED = nouns(
    "clothing accessory car ridden 手机 雨伞 书包 钱包 杯子 门 花 房子 毯子 毛巾 沙发 椅子"
)


@pattern(2)
def colored(g):
    c = g.c
    n = c.deal(COLORED)
    u = this(c, n) if c.odds(0.5) else owned(c.deal(OWNERS), n)
    k = c.deal(COLORS)
    d = c.below(4)
    if d == 0:
        return f"{z(u)} 不 是 {k.zh} 的 。", f"{e(u)} {be(u.person)} not {k.en} ."
    if d == 1:
        return f"{z(u)} 是 {k.zh} 的 吗 ？", f"{be(u.person)} {e(u)} {k.en} ?"
    if d == 2:
        w = g.who()
        o = one(n)
        if n.is_pair:
            return None
        return (
            f"{w[0]} 有 一 {n.measure} {k.zh} 的 {n.zh} 。",
            f"{w[1]} {have(w[2])} a {k.en} {n.en} .",
        )
    return f"{z(u)} 是 {k.zh} 的 。", f"{e(u)} {be(u.person)} {k.en} ."


@pattern(9)
def quality(g):
    c = g.c
    d = c.below(10)
    if d < 4:
        w = g.who()
        a = c.deal((*TRAITS, *MOODS))
    elif d < 6:
        p = c.deal((*LANDS, *LANDS, *BUILDINGS))
        w = (p.zh, place_name(p), "singular")
        a = c.pick((*PLACE_QUALITIES, *select(QUALITIES, "大 小 漂亮 安全 干净 有意思")))
    elif d < 8:
        a = c.deal(QUALITIES)
        n = c.deal(a.things)
        u = this(c, n) if c.odds(0.5) else owned(c.deal(OWNERS), n)
        w = (z(u), e(u), u.person)
    else:
        a = c.deal(QUALITIES)
        n = c.deal(a.things)
        if (
            n in ANIMALS
            or n in FOOD
            or n in DRINK
            or n in KINDS["subject"]
            or n in KINDS["language"]
        ):
            w = (n.zh, e(n.many), n.many.person)
        else:
            x = c.pick((*ANIMALS, *KINDS["flower"]))
            a = c.pick(
                (*select(QUALITIES, "大 小 漂亮 可怕 危险 快"), *select(TRAITS, "可爱 聪明 胖 懒"))
            )
            w = (x.zh, e(x.many), "plural")
    if c.odds(0.12):
        sz, se = c.pick(
            (
                ("我们学校", "our school"),
                ("我们 的 学校", "our school"),
                ("他们 的 学校", "their school"),
                ("我们 公司", "our company"),
                ("我 的 房子", "my house"),
                ("我们 的 房子", "our house"),
                ("我 的 办公室", "my office"),
            )
        )
        a = c.pick((*PLACE_QUALITIES, *select(QUALITIES, "大 小 漂亮 新 旧")))
        w = (sz, se, "singular")
    elif c.odds(0.12):
        x = c.deal((*KINDS["sport"], *KINDS["taste"], *KINDS["subject"], *KINDS["language"]))
        a = c.pick(select(QUALITIES, "有意思 难 容易 重要 有用"))
        w = (x.zh, x.en, "singular")
    elif c.odds(0.1):
        x = c.deal((*KINDS["fruit"], *KINDS["vegetable"], *KINDS["snack"]))
        a = c.pick([q for q in QUALITIES if x in q.things])
        u = this(c, x)
        w = (z(u), e(u), u.person)
    d = c.below(10)
    neg = not a.zh.startswith("有")
    if d == 0:
        return f"{w[0]} 太 {a.zh} 了 。", f"{w[1]} {be(w[2])} too {a.en} ."
    if d == 1:
        return f"{w[0]} 很 {a.zh} 吗 ？", f"{be(w[2])} {w[1]} very {a.en} ?"
    if d == 2:
        return f"{w[0]} {a.zh} 吗 ？", f"{be(w[2])} {w[1]} {a.en} ?"
    if d == 3 and neg:
        return f"{w[0]} 不 {a.zh} 。", f"{w[1]} {be(w[2])} not {a.en} ."
    if d == 4:
        return f"{w[0]} 也 很 {a.zh} 。", f"{w[1]} {be(w[2])} very {a.en} too ."
    if d == 5:
        return (
            f"{w[0]} 今天 很 {a.zh} 。" if a in MOODS else f"{w[0]} 非常 {a.zh} 。",
            f"{w[1]} {be(w[2])} very {a.en} today ."
            if a in MOODS
            else f"{w[1]} {be(w[2])} extremely {a.en} .",
        )
    if d == 6 and a in MOODS:
        return f"{w[0]} {a.zh} 了 。", f"{w[1]} {be(w[2])} {a.en} ."
    if d == 7 and a in MOODS:
        return f"{w[0]} 为什么 {a.zh} ？", f"why {be(w[2])} {w[1]} {a.en} ?"
    return f"{w[0]} 很 {a.zh} 。", f"{w[1]} {be(w[2])} very {a.en} ."


@pattern(3)
def all_quality(g):
    c = g.c
    x = c.pick((("他们", "they"), ("我们", "we")))
    a = c.deal((*TRAITS, *MOODS))
    d = c.below(4)
    if d == 0:
        return f"{x[0]} 都 很 {a.zh} 。", f"{x[1]} are all very {a.en} ."
    w = g.who()
    o = g.whom(w[0])
    if w[2] == "plural":
        return None
    if d == 1:
        return (
            f"{w[0]} 又 {a.zh} 又 {(b := c.deal(TRAITS)).zh} 。",
            f"{w[1]} {be(w[2])} both {a.en} and {b.en} .",
        )
    a = c.deal(TRAITS)
    if d == 2:
        return f"{w[0]} 和 {o[0]} 一样 {a.zh} 。", f"{w[1]} {be(w[2])} as {a.en} as {o[1]} ."
    s = c.deal(KINDS["fruit"])
    t = c.deal(KINDS["fruit"])
    q = c.pick(select(QUALITIES, "便宜 贵 新鲜 好吃 甜"))
    if s is t:
        return None
    return (
        f"{s.zh} 和 {t.zh} 都 很 {q.zh} 。",
        f"both {e(s.many)} and {e(t.many)} are very {q.en} .",
    )


@pattern(6)
def compare(g):
    c = g.c
    d = c.below(4)
    if d == 0:
        w = g.who()
        o = g.whom(w[0])
        a = c.deal((*TRAITS, *MOODS))
        x = (w[0], w[1], w[2], o[0], o[1])
    elif d == 1:
        p, q = c.deal(LANDS), c.deal(LANDS)
        a = c.pick((*PLACE_QUALITIES, *select(QUALITIES, "大 小 漂亮 安全 干净")))
        x = (p.zh, p.en, "singular", q.zh, q.en)
    elif d == 2:
        p, q = c.deal(ANIMALS), c.deal(ANIMALS)
        a = c.pick(
            (*select(QUALITIES, "大 小 快 漂亮 可怕 危险"), *select(TRAITS, "聪明 可爱 胖 勇敢"))
        )
        x = (p.zh, e(p.many), "plural", q.zh, e(q.many))
    else:
        kind = c.pick(("fruit", "snack", "dish", "drink", "subject", "language", "clothing"))
        p, q = c.pick(KINDS[kind]), c.pick(KINDS[kind])
        a = c.pick(
            select(
                QUALITIES,
                {
                    "fruit": "便宜 贵 甜 好吃 酸",
                    "snack": "便宜 贵 好吃",
                    "dish": "便宜 贵 好吃",
                    "drink": "便宜 贵 好喝",
                    "subject": "难 容易 有意思 重要",
                    "language": "难 容易 有意思 重要",
                    "clothing": "便宜 贵",
                }[kind],
            )
        )
        x = (p.zh, e(p.many), p.many.person, q.zh, e(q.many))
    if x[0] == x[3]:
        return None
    more = e(a.more)
    if c.odds(0.2):
        return f"{x[0]} 比 {x[3]} {a.zh} 吗 ？", f"{be(x[2])} {x[1]} {more} than {x[4]} ?"
    return f"{x[0]} 比 {x[3]} {a.zh} 。", f"{x[1]} {be(x[2])} {more} than {x[4]} ."


@pattern(4)
def animal_does(g):
    c = g.c
    n = c.deal(ANIMALS)
    d = c.below(3)
    if d == 0:
        w = (n.zh, e(n.many), "plural")
    elif d == 1:
        u = owned(c.deal(OWNERS), n)
        w = (z(u), e(u), u.person)
    else:
        u = this(c, n)
        w = (z(u), e(u), u.person)
    o = c.pick((*FOOD, *DRINK, *ANIMALS))
    d = c.below(6)
    oe = e(o.many)
    if o is n:
        return None
    if d == 0:
        return f"{w[0]} 不 喜欢 {o.zh} 。", f"{w[1]} {do(w[2])} not like {oe} ."
    if d == 1:
        return f"{w[0]} 喜欢 {o.zh} 。", f"{w[1]} {pres('like', w[2])} {oe} ."
    if d == 2:
        v = c.pick(
            (("睡觉", "sleeping"), ("跑步", "running"), ("游泳", "swimming"), ("吃饭", "eating"))
        )
        return f"{w[0]} 喜欢 {v[0]} 。", f"{w[1]} {pres('like', w[2])} {v[1]} ."
    if d == 3 and o not in DRINK:
        return f"{w[0]} 吃 {o.zh} 。", f"{w[1]} {pres('eat', w[2])} {oe} ."
    if d == 4 and o not in DRINK:
        return f"{w[0]} 不 吃 {o.zh} 。", f"{w[1]} {do(w[2])} not eat {oe} ."
    if w[2] == "singular":
        zz, ee = c.pick(ON[:5])
        v = c.pick((("睡觉", "sleeping"),))
        return f"{w[0]} 在 {v[0]} 。", f"{w[1]} is {v[1]} ."
    return f"{w[0]} 会 游泳 吗 ？", f"can {w[1]} swim ?"


HAVABLE = nouns(
    "carried accessory clothing book ridden car instrument pet machine furniture 房子 哥哥 弟弟 姐姐 妹妹 儿子 女儿 朋友 同学 同事 叔叔 阿姨 邻居"
)


@pattern(7)
def has(g):
    c = g.c
    w = g.who()
    n = c.deal(HAVABLE)
    o = one(n)
    d = c.below(9)
    s = f"a {n.en}" if not n.is_pair else e(n.many)
    if d == 0:
        return f"{w[0]} 没有 {n.zh} 。", f"{w[1]} {do(w[2])} not have {s} ."
    if d == 1:
        return f"{w[0]} 有 {n.zh} 吗 ？", f"{do(w[2])} {w[1]} have {s} ?"
    if d == 2:
        return f"{w[0]} 有 没有 {n.zh} ？", f"{do(w[2])} {w[1]} have {s} ?"
    if d == 3:
        u = numbered(c, n)
        return f"{w[0]} 有 {z(u)} 。", f"{w[1]} {have(w[2])} {e(u)} ."
    if d == 4:
        return f"{w[0]} 没有 钱 。", f"{w[1]} {do(w[2])} not have money ."
    if d == 5:
        if c.odds(0.3):
            return f"{w[0]} 有 多少 钱 ？", f"how much money {do(w[2])} {w[1]} have ?"
        if n.is_pair:
            return None
        return (
            f"{w[0]} 有 几 {n.measure} {n.zh} ？",
            f"how many {e(n.many)} {do(w[2])} {w[1]} have ?",
        )
    if d == 6:
        return f"谁 有 {n.zh} ？", f"who has {s} ?"
    if n.is_pair:
        return None
    return f"{w[0]} 有 一 {n.measure} {n.zh} 。", f"{w[1]} {have(w[2])} a {n.en} ."


@pattern(5)
def habit(g):
    c = g.c
    w = g.who()
    zh, f = g.doing()
    d = c.below(5)
    t = c.deal(HABIT)
    third = f["third"] if w[2] == "singular" else f["base"]
    if d == 0:
        return f"{w[0]} {z(t)} {zh} 。", f"{w[1]} {third} {e(t)} ."
    if d == 1:
        return f"谁 {zh} ？", f"who {f['third']} ?"
    if d == 2:
        return f"{w[0]} {zh} 吗 ？", f"{do(w[2])} {w[1]} {f['base']} ?"
    if d == 3:
        n = c.deal((*DRINK, *KINDS["dish"]))
        if n.portion is None:
            return None
        u = one(n)
        v = ("喝", "drink") if n in DRINK else ("吃", "eat")
        return f"{w[0]} {z(t)} {v[0]} {z(u)} 。", f"{w[1]} {pres(v[1], w[2])} {e(u)} {e(t)} ."
    return f"{w[0]} {zh} 。", f"{w[1]} {third} ."


@pattern(4)
def evening(g):
    c = g.c
    w = g.who()
    zh, f = g.doing()
    tz, te = c.pick(
        (
            ("晚上", "in the evening"),
            ("早上", "in the morning"),
            ("下午", "in the afternoon"),
            ("春天", "in spring"),
            ("夏天", "in summer"),
            ("秋天", "in fall"),
            ("冬天", "in winter"),
        )
    )
    third = f["third"] if w[2] == "singular" else f["base"]
    d = c.below(4)
    if d == 0:
        return f"{tz} {w[0]} {zh} 。", f"{w[1]} {third} {te} ."
    if d == 1:
        return f"{tz} {w[0]} 喜欢 {zh} 。", f"{w[1]} {pres('like', w[2])} {f['ing']} {te} ."
    if d == 2:
        return f"{w[0]} {tz} {zh} 。", f"{w[1]} {third} {te} ."
    t = c.deal(HABIT)
    return f"{z(t)} {w[0]} {zh} 。", f"{w[1]} {third} {e(t)} ."


@pattern(6)
def past(g):
    c = g.c
    w = g.who()
    t = c.deal(PAST)
    d = c.below(8)
    v = c.deal((*LEISURE, *DUTIES, *DAILY[1:], *OUTBURSTS[:2]))
    f = {k: e(u) for k, u in v.forms.items()}
    if d == 0:
        return f"{z(t)} {w[0]} {v.zh} 了 。", f"{w[1]} {f['past']} {e(t)} ."
    if d == 1:
        return f"{z(t)} {w[0]} 没 {v.zh} 。", f"{w[1]} did not {f['base']} {e(t)} ."
    if d == 2:
        return f"{w[0]} {z(t)} 没 {v.zh} 。", f"{w[1]} did not {f['base']} {e(t)} ."
    if d == 3:
        return f"{w[0]} {v.zh} 了 吗 ？", f"did {w[1]} {f['base']} ?"
    if d == 4:
        p = c.deal((*BUILDINGS, *LANDS))
        return f"{z(t)} {w[0]} 去 了 {p.zh} 。", f"{w[1]} went {place_to(p)} {e(t)} ."
    if d == 5:
        return f"{w[0]} {z(t)} 去 哪儿 了 ？", f"where did {w[1]} go {e(t)} ?"
    if d == 6:
        n = c.deal((*DRINK, *FOOD))
        vv = ("喝", "drank") if n in DRINK else ("吃", "ate")
        return f"{w[0]} {z(t)} {vv[0]} 了 {n.zh} 。", f"{w[1]} {vv[1]} {e(n.many)} {e(t)} ."
    return f"{w[0]} 已经 {v.zh} 了 。", f"{w[1]} {have(w[2])} already {f['participle']} ."


@pattern(3)
def past_object(g):
    c = g.c
    w = g.who()
    d = c.below(8)
    t = c.deal(PAST)
    if d == 0:
        n = c.deal(LOSE)
        return f"{w[0]} 丢 了 {n.zh} 。", f"{w[1]} lost the {n.en} ."
    if d == 1:
        n = c.deal(BARE_THE)
        return f"{w[0]} 打开 了 {n.zh} 。", f"{w[1]} opened the {n.en} ."
    if d == 2:
        n = c.deal(LOSE)
        return f"{w[0]} 忘 了 带 {n.zh} 。", f"{w[1]} forgot to bring the {n.en} ."
    if d == 3:
        n = c.deal((*FOOD, *DRINK))
        return f"{w[0]} 买 了 {n.zh} 。", f"{w[1]} bought {e(n.many)} ."
    if d == 4:
        p = c.deal(BUILDINGS)
        o = g.whom(w[0])
        return (
            f"{w[0]} {z(t)} 在 {p.zh} 看见 了 {o[0]} 。",
            f"{w[1]} saw {o[1]} {place_at(p)} {e(t)} .",
        )
    if d == 5:
        o = g.whom(w[0])
        return f"{w[0]} {z(t)} 看见 了 {o[0]} 。", f"{w[1]} saw {o[1]} {e(t)} ."
    if d == 6:
        n = c.deal(LOSE)
        o = owned(c.deal(OWNERS), n)
        return f"小偷 偷走 了 {z(o)} 。", f"a thief stole {e(o)} ."
    n = c.deal(LOSE)
    o = owned(c.deal(OWNERS), n)
    return f"{w[0]} {c.pick(('丢', '找到'))} 了 {z(o)} 。", None


@pattern(5)
def future(g):
    c = g.c
    w = g.who()
    t = c.deal((*FUTURE, *LONG_FUTURE))
    zh, f = g.doing()
    d = c.below(7)
    p = c.deal((*BUILDINGS, *LANDS))
    if d == 0:
        return f"{w[0]} {z(t)} 去 {p.zh} 。", f"{w[1]} will go {place_to(p)} {e(t)} ."
    if d == 1:
        return f"{w[0]} {z(t)} 不 去 {p.zh} 。", f"{w[1]} will not go {place_to(p)} {e(t)} ."
    if d == 2:
        return f"{z(t)} {w[0]} 去 {p.zh} 。", f"{w[1]} will go {place_to(p)} {e(t)} ."
    if d == 3:
        return f"{w[0]} {z(t)} 去 哪儿 ？", f"where will {w[1]} go {e(t)} ?"
    if d == 4:
        return f"{z(t)} {w[0]} 会 {zh} 。", f"{w[1]} will {f['base']} {e(t)} ."
    if d == 5:
        return f"{w[0]} {z(t)} 不 {zh} 。", f"{w[1]} will not {f['base']} {e(t)} ."
    return f"{w[0]} {z(t)} {zh} 吗 ？", f"will {w[1]} {f['base']} {e(t)} ?"


@pattern(4)
def travel(g):
    c = g.c
    w = g.who()
    p = c.deal((*BUILDINGS, *LANDS))
    d = c.below(6)
    vz, ve = c.pick(
        (
            ("坐 火车", "by train"),
            ("坐 飞机", "by plane"),
            ("坐 船", "by boat"),
            ("坐 公共汽车", "by bus"),
            ("坐 出租车", "by taxi"),
            ("坐 地铁", "by subway"),
            ("骑自行车", "by bicycle"),
            ("开车", "by car"),
        )
    )
    if d == 0:
        return f"{w[0]} {vz} 去 {p.zh} 。", f"{w[1]} {pres('go', w[2])} {place_to(p)} {ve} ."
    if d == 1:
        t = c.deal(HABIT)
        return (
            f"{w[0]} {z(t)} {vz} 去 {p.zh} 。",
            f"{w[1]} {pres('go', w[2])} {place_to(p)} {ve} {e(t)} .",
        )
    if d == 2:
        t = c.deal(HABIT)
        return f"{w[0]} {z(t)} 去 {p.zh} 。", f"{w[1]} {pres('go', w[2])} {place_to(p)} {e(t)} ."
    if d == 3:
        return f"{w[0]} 是 {vz} 来 的 。", f"{w[1]} came {ve} ."
    if d == 4:
        n = c.pick((("一次", "once"), ("两次", "twice")))
        l = c.deal(LANDS)
        return f"{w[0]} 去 过 {l.zh} {n[0]} 。", f"{w[1]} {have(w[2])} been to {l.en} {n[1]} ."
    l = c.deal(LANDS)
    return f"{w[0]} 去 过 {l.zh} 吗 ？", f"{have(w[2])} {w[1]} ever been to {l.en} ?"


@pattern(5)
def asks(g):
    c = g.c
    w = g.who()
    zh, f = g.doing()
    d = c.below(9)
    v, o = g.act()
    b = v.en
    if w[0] in ("我", "我们"):
        return None
    dd = c.deal((*DAILY, *LEISURE, *DUTIES, *MILESTONES))
    if d == 0:
        return f"{w[0]} 为什么 {zh} ？", f"why {do(w[2])} {w[1]} {f['base']} ?"
    if d == 1:
        return f"{w[0]} 什么时候 {dd.zh} ？", f"when {do(w[2])} {w[1]} {dd.en} ?"
    if d == 2:
        return f"{w[0]} 想 {v.zh} 什么 ？", f"what {do(w[2])} {w[1]} want to {b} ?"
    if d == 3:
        return f"{w[0]} 喜欢 {v.zh} 什么 ？", f"what {do(w[2])} {w[1]} like {e(v.forms['ing'])} ?"
    if d == 4:
        return f"{w[0]} 喜欢 {c.pick((('什么', 'what'), ('谁', 'who')))[0]} ？", None
    if d == 5:
        return (
            f"{w[0]} 在 哪儿 {c.pick((('工作', 'work'),))[0]} ？",
            f"where {do(w[2])} {w[1]} work ?",
        )
    if d == 6:
        x = c.pick((("哭", "crying"), ("笑", "laughing")))
        return f"{w[0]} 为什么 {x[0]} ？", f"why {be(w[2])} {w[1]} {x[1]} ?"
    if d == 7:
        a, q = c.deal(DRINK), c.deal(DRINK)
        if a is q:
            return None
        return (
            f"{w[0]} 想 喝 {a.zh} 还是 {q.zh} ？",
            f"{do(w[2])} {w[1]} want to drink {a.en} or {q.en} ?",
        )
    o = c.deal(PRONOUNS[1:4])
    return f"{z(o.subject)} 的 生日 是 什么时候 ？", f"when is {e(o.owner)} birthday ?"


@pattern(2)
def love_what(g):
    w = g.who()
    v = g.c.pick(select(FEELINGS, "爱 喜欢 想念 讨厌 相信"))
    x = g.c.pick((("什么", "what"), ("谁", "who")))
    if g.c.odds(0.4):
        o = g.whom("谁")
        return f"谁 {v.zh} {o[0]} ？", f"who {inflect(v.en, 'third')} {o[1]} ?"
    if w[0] in ("我", "我们"):
        return None
    return f"{w[0]} {v.zh} {x[0]} ？", f"{x[1]} {do(w[2])} {w[1]} {v.en} ?"


@pattern(4)
def can(g):
    c = g.c
    w = g.who()
    v = c.deal(SKILLS)
    d = c.below(7)
    l = c.deal(KINDS["language"])
    if d == 0:
        return f"{w[0]} 会 {v.zh} 吗 ？", f"can {w[1]} {v.en} ?"
    if d == 1:
        return f"{w[0]} 不 会 {v.zh} 。".replace("不 会", "不会"), f"{w[1]} cannot {v.en} ."
    if d == 2:
        return f"{w[0]} 不 懂 {l.zh} 。", f"{w[1]} {do(w[2])} not understand {l.en} ."
    if d == 3:
        return f"{w[0]} 懂 {l.zh} 。", f"{w[1]} {pres('understand', w[2])} {l.en} ."
    if d == 4:
        return f"{w[0]} 懂 {l.zh} 吗 ？", f"{do(w[2])} {w[1]} understand {l.en} ?"
    zh, f = g.doing()
    if d == 5:
        return f"{w[0]} 可以 {zh} 吗 ？", f"can {w[1]} {f['base']} ?"
    return f"谁 会 {v.zh} ？", f"who can {v.en} ?"


PAIR = ((NAMES, "subject"),)


@pattern(6)
def two(g):
    c = g.c
    a = g.who()
    b = g.who()
    d = c.below(8)
    if (
        a[0].split()[0] == b[0].split()[0]
        or a[2] == "plural"
        and a[0] != "你"
        or b[2] == "plural"
        and b[0] != "你"
    ):
        return None
    if a[1] == "I":
        a, b = b, a
    zz = c.pick((f"{a[0]} 和 {b[0]}", f"{b[0]} 和 {a[0]}"))
    ee = f"{a[1]} and {b[1]}"
    n = c.pick((*KINDS["role"], *select(KINDS["relative"], "朋友 同学 同事 邻居") * 5))
    zh, f = g.doing()
    if not zz.startswith(a[0]) and b[1] != "I":
        ee = f"{b[1]} and {a[1]}"
    if d == 0:
        v = c.pick(MILESTONES)
        return f"{zz} {v.zh} 了 。", f"{ee} {e(v.forms['past'])} ."
    if d == 1:
        return f"{zz} 是 {n.zh} 吗 ？", f"are {ee} {e(n.many)} ?"
    if d == 2:
        return f"{zz} 都 是 {n.zh} 。", f"both {ee} are {e(n.many)} ."
    if d == 3:
        p = c.deal(BUILDINGS)
        return f"{zz} 在 {p.zh} 。", f"{ee} are {place_at(p)} ."
    if d == 4:
        return f"{zz} 在 {zh} 。", f"{ee} are {f['ing']} ."
    if d == 5:
        t = c.pick((("一起", "together"),))
        return f"{zz} 一起 {zh} 。", f"{ee} {f['base']} together ."
    if d == 6:
        x = c.pick((("我们", "we"), ("他们", "they")))
        return f"{x[0]} 是 {n.zh} 。", f"{x[1]} are {e(n.many)} ."
    return f"{zz} 是 {n.zh} 。", f"{ee} are {e(n.many)} ."


@pattern(5)
def persons(g):
    c = g.c
    n = c.deal(PEOPLE)
    u = numbered(c, n) if c.odds(0.6) else one(n)
    zh, f = g.doing()
    p, zh2, f2 = scene(g)
    d = c.below(3)
    if d == 0:
        return f"{z(u)} 在 {zh} 。", f"{e(u)} {be(u.person)} {f['ing']} ."
    if d == 1:
        return f"{z(u)} 在 {p.zh} {zh2} 。", f"{e(u)} {be(u.person)} {f2['ing']} {place_at(p)} ."
    w = g.who()
    x = c.pick((("认识", "know"), ("喜欢", "like")))
    t = this(c, n)
    return f"{w[0]} {x[0]} {z(t)} 。", f"{w[1]} {pres(x[1], w[2])} {e(t)} ."


@pattern(2)
def person_is(g):
    c = g.c
    n = c.pick(KINDS["person"][1:5])
    x = c.pick((("这", "this"), ("那", "that")))
    r = c.deal(KINDS["relative"])
    o = c.deal(PRONOUNS[:4])
    if r.zh not in {"朋友", "同学", "同事", "邻居"} and (n.zh in {"女孩", "女人"}) != (
        r.zh in {"妈妈", "姐姐", "妹妹", "奶奶", "阿姨", "女儿"}
    ):
        return None
    if c.odds(0.3):
        return f"{x[0]} 个 {n.zh} 是 谁 ？", f"who is {x[1]} {n.en} ?"
    return (
        f"{x[0]} 个 {n.zh} 是 {z(o.subject)} {r.zh} 。",
        f"{x[1]} {n.en} is {e(o.owner)} {r.en} .",
    )


@pattern(4)
def tells(g):
    c = g.c
    w = g.who()
    o = g.whom(w[0])
    zh, f = g.doing()
    d = c.below(4)
    if d < 2:
        return (
            f"{w[0]} {c.pick(('让', '叫'))} {o[0]} {zh} 。",
            f"{w[1]} told {o[1]} to {f['base']} .",
        )
    if d == 2:
        return f"{w[0]} 请 {o[0]} {zh} 。", f"{w[1]} asked {o[1]} to {f['base']} ."
    return (
        f"{w[0]} 和 {o[0]} 一起 {zh} 。",
        f"{w[1]} {f['third'] if w[2] == 'singular' else f['base']} with {o[1]} .",
    )


@pattern(7)
def weather(g):
    c = g.c
    a = c.pick((("冷", "cold"), ("热", "hot"), ("暖和", "warm"), ("凉快", "cool")))
    r = c.pick((("下雨", "rain"), ("下雪", "snow")))
    d = c.below(9)
    t = c.deal(FUTURE)
    s = c.deal(SEASONS)
    if d == 0:
        x = c.pick((("今天", "today"),))
        y = c.pick((("很", "is very"), ("不", "is not"), ("非常", "is extremely")))
        return f"今天 {y[0]} {a[0]} 。", f"it {y[1]} {a[1]} today ."
    if d == 1:
        p = c.pick((*PAST, PAST[0]))
        l = c.deal(CITIES)
        if c.odds(0.4):
            return f"{l.zh} {z(p)} {r[0]} 了 。", f"it {inflect(r[1], 'past')} in {l.en} {e(p)} ."
        if c.odds(0.3):
            return f"{z(p)} 没 {r[0]} 。", f"it did not {r[1]} {e(p)} ."
        if c.odds(0.3):
            return f"{z(p)} {r[0]} 了 吗 ？", f"did it {r[1]} {e(p)} ?"
        return f"{z(p)} {r[0]} 了 。", f"it {inflect(r[1], 'past')} {e(p)} ."
    if d == 2:
        return f"{z(t)} 会 {r[0]} 吗 ？", f"will it {r[1]} {e(t)} ?"
    if d == 3:
        return f"{z(t)} 会 {r[0]} 。", f"it will {r[1]} {e(t)} ."
    if d == 4:
        y = c.pick(
            (
                ("很", "is very", ""),
                ("不", "is not", ""),
                ("非常", "is extremely", ""),
                ("太", "is too", " 了"),
            )
        )
        return f"{z(s)} {y[0]} {a[0]}{y[2]} 。", f"{e(s)} {y[1]} {a[1]} ."
    if d == 5:
        l = c.deal(LANDS)
        return f"{l.zh} 的 {z(s)} 很 {a[0]} 。", f"{e(s)} in {l.en} is very {a[1]} ."
    if d == 6:
        return f"在 {r[0]} 。" if c.odds(0.3) else f"今天 会 {r[0]} 吗 ？", None
    if d == 7:
        return f"{z(s)} {c.pick(('来',))} 了 。", f"{e(s)} has come ."
    x = c.pick(
        (("很 好", "is very good"), ("不 好", "is not good"), ("很 " + a[0], "is very " + a[1]))
    )
    return f"今天 天气 {x[0]} 。", f"the weather {x[1]} today ."


@pattern(5)
def clauses(g):
    c = g.c
    w = g.who()
    zh, f = g.doing()
    r = c.pick((("下雨", "rains", "rained"), ("下雪", "snows", "snowed")))
    d = c.below(6)
    p = c.deal(BUILDINGS)
    if d == 0:
        return (
            f"因为 {r[0]} ， 所以 {w[0]} 没 {zh} 。",
            f"{w[1]} did not {f['base']} because it {r[2]} .",
        )
    if d == 1:
        return (
            f"因为 {r[0]} ， 所以 {w[0]} 没 去 {p.zh} 。",
            f"{w[1]} did not go {place_to(p)} because it {r[2]} .",
        )
    if d == 2:
        t = c.deal(FUTURE)
        return (
            f"如果 {z(t)} {r[0]} ， {w[0]} 就 不 去 {p.zh} 。",
            f"if it {r[1]} {e(t)} , {w[1]} will not go {place_to(p)} .",
        )
    if d == 3:
        t = c.deal(FUTURE)
        return (
            f"如果 {z(t)} {r[0]} ， {w[0]} 就 不 {zh} 。",
            f"if it {r[1]} {e(t)} , {w[1]} will not {f['base']} .",
        )
    o = g.whom(w[0])
    if d == 4:
        per = "plural" if o[1] in ("you", "us", "them") else "singular"
        sub = {"him": "he", "her": "she", "us": "we", "them": "they", "me": "I"}.get(o[1], o[1])
        per = "first" if sub == "I" else per
        return (
            f"{w[0]} 知道 {o[0]} 在 哪儿 。",
            f"{w[1]} {pres('know', w[2])} where {sub} {be(per)} .",
        )
    l = c.deal((*KINDS["language"], *KINDS["subject"]))
    a = c.pick(select(QUALITIES, "难 容易 有意思 重要"))
    return (
        f"{w[0]} 觉得 {l.zh} 很 {a.zh} 。",
        f"{w[1]} {pres('think', w[2])} {l.en} is very {a.en} .",
    )


@pattern(3)
def come(g):
    c = g.c
    w = g.who()
    d = c.below(6)
    v = c.pick(
        (
            ("来", "came", "come"),
            ("走", "left", "leave"),
            ("哭", "cried", "cry"),
            ("笑", "laughed", "laugh"),
            ("生病", "got sick", "get sick"),
            ("迟到", "was late" if w[2] != "plural" else "were late", "be late"),
            ("回来", "came back", "come back"),
        )
    )
    if d < 3:
        return f"{w[0]} {v[0]} 了 。", f"{w[1]} {v[1]} ."
    if d == 3:
        return f"{w[0]} {v[0]} 了 吗 ？", f"did {w[1]} {v[2]} ?" if v[
            0
        ] != "迟到" else f"{'was' if w[2] != 'plural' else 'were'} {w[1]} late ?"
    if d == 4:
        return f"谁 {v[0]} 了 ？", f"who {v[1]} ?" if v[0] != "迟到" else "who was late ?"
    return f"{w[0]} 没 {v[0]} 。", f"{w[1]} did not {v[2]} ." if v[
        0
    ] != "迟到" else f"{w[1]} {'was' if w[2] != 'plural' else 'were'} not late ."


@pattern(6)
def simply(g):
    """Relatives of one's own, friends, and the shortest of sentences."""
    c = g.c
    d = c.below(6)
    w = g.who()
    r = c.deal(KINDS["relative"])
    if d == 0:
        r = c.pick(select(KINDS["relative"], "哥哥 姐姐 弟弟 妹妹 阿姨 叔叔"))
        if c.odds(0.3):
            return f"{w[0]} 有 {r.zh} 吗 ？", f"{do(w[2])} {w[1]} have a {r.en} ?"
        if c.odds(0.3):
            return f"{w[0]} 没有 {r.zh} 。", f"{w[1]} {do(w[2])} not have a {r.en} ."
        return f"{w[0]} 有 一 个 {r.zh} 。", f"{w[1]} {have(w[2])} a {r.en} ."
    if r.zh in {"爸爸", "妈妈", "爷爷", "奶奶"} and d < 2:
        return None
    if d == 1:
        u = numbered(c, r)
        return f"{w[0]} 有 {z(u)} 。", f"{w[1]} {have(w[2])} {e(u)} ."
    if d == 2:
        x = c.pick((("我们", "we"), ("他们", "they")))
        n = c.pick(select(KINDS["relative"], "朋友 同学 同事 邻居"))
        k = c.below(4)
        if k == 0:
            return f"{x[0]} 是 好 {n.zh} 。", f"{x[1]} are good {e(n.many)} ."
        if k == 1:
            return f"{x[0]} 不 是 {n.zh} 。", f"{x[1]} are not {e(n.many)} ."
        if k == 2:
            return f"{x[0]} 是 {n.zh} 吗 ？", f"are {x[1]} {e(n.many)} ?"
        return f"{x[0]} 都 是 {w[0]} 的 {n.zh} 。", (
            f"{x[1]} are all {e(o.owner)} {e(n.many)} ."
            if (o := c.pick(PRONOUNS)) and w[0] == z(o.subject)
            else None
        )
    if d == 3:
        v = c.pick((*LEISURE, *DUTIES, *DAILY))
        pz, pe = c.pick((("别 ", "do not "), ("请 ", "please "), ("请 别 ", "please do not ")))
        return f"{pz}{v.zh} 。", f"{pe}{v.en} ."
    if d == 4:
        p = c.deal((*LANDS, *BUILDINGS))
        zh, f = g.doing()
        x = c.pick((("去", "goes", "go", "to go"),))
        k = c.below(3)
        if k == 0:
            return (
                f"{w[0]} 去 {p.zh} {zh} 。",
                f"{w[1]} {pres('go', w[2])} {place_to(p)} to {f['base']} .",
            )
        if k == 1:
            return (
                f"{w[0]} 打算 去 {p.zh} {zh} 。",
                f"{w[1]} {pres('plan', w[2])} to go {place_to(p)} to {f['base']} .",
            )
        return (
            f"{w[0]} 想 去 {p.zh} {zh} 。",
            f"{w[1]} {pres('want', w[2])} to go {place_to(p)} to {f['base']} .",
        )
    t = c.deal((*FUTURE, *LONG_FUTURE))
    q = c.pick((("下雨", "rains"), ("下雪", "snows")))
    return (
        f"如果 {z(t)} {q[0]} ， {w[0]} 就 不 去 了 。",
        f"if it {q[1]} {e(t)} , {w[1]} will not go .",
    )


@pattern(3)
def two_things(g):
    """猫和狗, as a subject and as an object."""
    c = g.c
    k = c.pick(
        (ANIMALS, ANIMALS, KINDS["fruit"], KINDS["vegetable"], KINDS["drink"], KINDS["sport"])
    )
    a, b = c.pick(k), c.pick(k)
    d = c.below(4)
    w = g.who()
    if a is b:
        return None
    ee = f"{e(a.many)} and {e(b.many)}"
    zz = f"{a.zh} 和 {b.zh}"
    if d < 2 and k is ANIMALS:
        n = c.pick(select(KINDS["relative"], "朋友 邻居 朋友"))
        return f"{zz} 是 {n.zh} 。", f"{ee} are {e(n.many)} ."
    if d == 2:
        q = c.pick(
            select(
                QUALITIES,
                "大 小 漂亮"
                if k is ANIMALS
                else "有意思"
                if k is KINDS["sport"]
                else "好喝"
                if k is KINDS["drink"]
                else "便宜 贵 新鲜 好吃",
            )
        )
        return f"{zz} 都 很 {q.zh} 。", f"both {ee} are very {q.en} ."
    v = c.pick((("喜欢", "like"), ("喜欢", "like"), ("讨厌", "hate")))
    return f"{w[0]} {v[0]} {zz} 。", f"{w[1]} {pres(v[1], w[2])} {ee} ."


@pattern(1)
def lets(g):
    c = g.c
    zh, f = g.doing()
    d = c.below(2)
    if d:
        p = c.deal((*BUILDINGS, *LANDS))
        return f"我们 去 {p.zh} {zh} 吧 。", f"let's go {place_to(p)} to {f['base']} ."
    return f"我们 {zh} 吧 。", f"let's {f['base']} ."


NO_SPACE = {".", "?", "!", ",", "'s"}


def spell(en):
    words = en.split()
    out = ""
    for i, w in enumerate(words):
        if w == "a" and i + 1 < len(words):
            w = article(words[i + 1])
        if i == 0:
            w = w[0].upper() + w[1:]
        out += w if not out or w in NO_SPACE else " " + w
    return out


_BY_NAME = re.compile("(" + "|".join(z(p.subject) for p in (*NAMES, *RELATIVES)) + ") 的 ")


def is_held_out(name, zh):
    """Whether it joins two constructions that only the split "new" joins."""
    has_possessor = bool(_BY_NAME.search(zh))
    return (
        (name in ("please_bare", "give") and bool(re.search("[这那]", zh)))
        or (has_possessor and " 没 " in zh)
        or (has_possessor and name == "is_in")
        or (name == "give" and " 了 " in zh and not re.search(" 一 ", zh))
        or (name == "travel" and " 每" in zh and bool(re.search("坐|骑|开车", zh)))
    )


def draw(size, seed, avoid):
    chance = Chance(seed)
    g = G(chance)
    names = [n for n, (_, w) in P.items() for _ in range(w)]
    seen = set(avoid)
    rows = []
    counts = Counter()
    tries = 0
    known_zh, known_en = set(), set()
    while len(rows) < size:
        tries += 1
        n = chance.pick(names)
        made = P[n][0](g)
        if made is None or made[1] is None:
            continue
        if (
            made[0].endswith("？")
            and made[0].split()[0] in ("我", "我们")
            and "可以" not in made[0]
            and chance.odds(0.8)
        ):
            continue
        zh, en = made
        if is_held_out(n, zh):
            continue
        words = frozenset(zh.split())
        if any(not words.isdisjoint(PARTNERS[w]) for w in words & PARTNERS.keys()):
            continue
        text = zh.replace(" ", "")
        english = spell(en)
        if text.endswith("。") and chance.odds(0.15):
            zh = zh[:-2]
        keys = {plain_key(text), plain_key(english)}
        if plain_key(text) in seen:
            continue
        seen.add(plain_key(text))
        rows.append((zh, english, n))
        counts[n] += 1
    return rows, counts


def everyday() -> list[str]:
    """The lines of the split, without a sentence of another, or of those that it is judged by."""
    splits = ("train", "valid", "test", "new")
    known = {plain_key(phrase.source) for split in splits for phrase in phrases(split)}
    written = [phrase.source for phrase in handwritten()]
    developed = Path(__file__).with_name("developed.tsv").read_text("utf-8").splitlines()
    known |= {plain_key(text) for text in (*written, *(line.split("\t")[0] for line in developed))}
    rows, _ = draw(10_000, 20260, known)
    lines = []
    for zh, en, name in rows:
        for mark in ".,?!":
            en = en.replace(mark, f"|{mark}")
        lines.append("\t".join(("everyday", "|".join(zh.split()), en, "", "", name)))
    return lines


if __name__ == "__main__":
    kept = [line for line in lzma.decompress(FILE.read_bytes()).decode().splitlines()]
    kept = [line for line in kept if not line.startswith("everyday\t")]
    FILE.write_bytes(compressed("".join(f"{line}\n" for line in (*kept, *everyday())).encode()))
