"""Dead links of a built site are found."""

from tools.website.built import problems


def test_dead_links_and_what_is_loaded_from_elsewhere_are_named(tmp_path):
    (tmp_path / "zh").mkdir()
    (tmp_path / "a.html").write_text(
        '<h2 id="here"></h2><a href="#here">1</a><a href="#gone">2</a>'
        '<a href="zh/b.html#注意">3</a>'
        '<a href="zh/b.html#no">4</a><a href="c.html">5</a><a href="https://x.org/y">6</a>'
        '<script src="https://cdn.org/s.js"></script><img src="//cdn.org/i.png">'
        '<link rel="canonical" href="https://me.org"><link rel="stylesheet" href="s.css">',
        "utf-8",
    )
    (tmp_path / "zh" / "b.html").write_text('<p id="注意"></p><a href="../a.html">1</a>', "utf-8")
    assert problems(tmp_path) == [
        "a.html: loads https://cdn.org/s.js",
        "a.html: loads //cdn.org/i.png",
        "a.html: leads to #gone",
        "a.html: leads to zh/b.html#no",
        "a.html: leads to c.html",
    ]
