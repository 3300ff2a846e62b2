"""Words for time, each a unit that stands before the verb in Chinese and at the end in English."""

from dataclasses import replace

from tools.phrasebook.grammar import Unit, word


def _time(line: str) -> Unit:
    zh, en = line.split(maxsplit=1)
    return word(zh, en)


def _times(table: str, name: str | None = None) -> tuple[Unit, ...]:
    units = tuple(_time(line) for line in table.strip().splitlines())
    return tuple(replace(unit, constructions=(name,)) for unit in units) if name else units


# By the day, and longer spans that suit only what takes time.
PAST = _times(
    """
    昨天 yesterday
    前天 the day before yesterday
    上个星期 last week
    今天早上 this morning
    昨天晚上 last night
    昨天下午 yesterday afternoon
    上个周末 last weekend
    """,
    "time_past",
)
LONG_PAST = _times(
    """
    上个月 last month
    去年 last year
    前年 the year before last
    """,
    "time_past",
)

FUTURE = _times(
    """
    明天 tomorrow
    后天 the day after tomorrow
    下个星期 next week
    今天晚上 tonight
    明天早上 tomorrow morning
    明天下午 tomorrow afternoon
    这个周末 this weekend
    明天晚上 tomorrow evening
    """,
    "time_future",
)
LONG_FUTURE = _times(
    """
    下个月 next month
    明年 next year
    后年 the year after next
    """,
    "time_future",
)

HABIT = _times(
    """
    每天 every day
    每个星期 every week
    每天早上 every morning
    每天晚上 every evening
    每个周末 every weekend
    每天下午 every afternoon
    """,
    "time_habit",
)
LONG_HABIT = _times(
    """
    每个月 every month
    每年 every year
    """,
    "time_habit",
)

# Before the verb in both languages.
OFTEN = _times("""
    常常 often
    总是 always
    有时候 sometimes
    平时 usually
    很少 seldom
""")

WEEKDAYS = _times("""
    星期一 Monday
    星期二 Tuesday
    星期三 Wednesday
    星期四 Thursday
    星期五 Friday
    星期六 Saturday
    星期天 Sunday
""")

MONTHS = _times("""
    一月 January
    二月 February
    三月 March
    四月 April
    五月 May
    六月 June
    七月 July
    八月 August
    九月 September
    十月 October
    十一月 November
    十二月 December
""")

SEASONS = _times("""
    春天 spring
    夏天 summer
    秋天 fall
    冬天 winter
""")
