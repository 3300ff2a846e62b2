"""The frame of pages without a script: tables of numbers, shaded, in both languages at once."""


def plain_page(title: str, body: str, *, style: str = "") -> str:
    """One HTML page that needs nothing else and runs nothing.

    A cell with ``--w`` in its style is shaded by that percentage.

    Args:
        title: The heading, as markup.
        body: Content below it, as markup.
        style: Rules over those of the frame.

    Example:
        >>> "<h1>A &amp; B</h1>" in plain_page("A &amp; B", "<p>text</p>")
        True
    """
    return _PAGE.replace("{title}", title).replace("{style}", style).replace("{body}", body)


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: .4rem .6rem; text-align: center; white-space: nowrap; }
td[style] { background: color-mix(in srgb, #00897b calc(var(--w) * .6), Canvas);
  border: 2px solid Canvas; }
{style}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""
