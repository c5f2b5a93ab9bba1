"""The report: everything in one file, safe against what names contain, and alive in a real browser."""

import json
import re
import shutil
from html.parser import HTMLParser

import pytest

from etmdp.analysis import report
from etmdp.analysis.curves import build
from etmdp.grid import Grid

EVIL = "</script><script>document.title='hacked'</script><img src=x onerror=alert(1)>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync"


@pytest.fixture(scope="module")
def evil_grid(full_params):
    params = full_params()
    params["experiments"] = {name: params["experiments"][name] for name in ("mazes", "encoder", "visitation")}
    params["experiments"]["mazes"]["title"] = f"Mazes {EVIL}"
    params["methods"]["cpo"]["label"] = EVIL
    params["scales"] = {"test": params["scales"]["test"] | {"seeds": [0, 1]}}
    return Grid(params)


@pytest.fixture(scope="module")
def page(evil_grid, tmp_path_factory, run_writer):
    """A page with one run damaged, one failed and one gone after the curves were made."""
    tmp_path = tmp_path_factory.mktemp("report")
    runs = tmp_path / "results" / "runs"
    for run in evil_grid.runs():
        run_writer(runs, run)
    curves = {name: build(evil_grid, name, runs) for name in ("mazes", "encoder")}
    first, second, third, *_ = evil_grid.runs("mazes")
    (runs / first.name / "progress.csv").write_text("step\n")
    shutil.rmtree(runs / second.name)
    checkpoint = tmp_path / "results" / "checkpoints" / second.name
    checkpoint.mkdir(parents=True)
    (checkpoint / "failed.txt").write_text("the reward is <i>not</i> finite\n")
    shutil.rmtree(runs / third.name)
    path = tmp_path / "report.html"
    path.write_text(report.build(evil_grid, curves, {}, tmp_path / "results" / "test", runs))
    return path


class Tags(HTMLParser):
    VOID = frozenset({"meta", "link", "input", "img", "br", "hr"})

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.addresses = [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_well_formed_and_asks_for_nothing(page):
    tags = Tags()
    tags.feed(page.read_text())
    assert tags.open == []
    assert tags.seen.count("script") == 3  # what names contain has not become a script
    assert all(address.startswith(("#", "data:")) for address in tags.addresses)
    assert "{{" not in re.sub(r"<script>.*?</script>", "", page.read_text(), flags=re.S)


def test_page_tells_the_state_of_every_run(page):
    text = page.read_text()
    assert "Runs: 41 done, 1 failed, 1 waiting, 1 damaged." in text
    assert "progress.csv has no rows" in text
    assert "the reward is &lt;i&gt;not&lt;/i&gt; finite" in text
    assert "&lt;b&gt;host&lt;/b&gt;" in text
    assert "<b>host" not in text


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.S)[1])


def test_data_are_the_curves(page):
    mazes = next(e for e in data_of(page)["experiments"] if e["name"] == "mazes")
    setting = next(s for s in mazes["settings"] if (s["env"], s["label"]) == ("maze_2", "td3"))
    assert setting["x"]["step"] == list(range(100, 2001, 100))
    assert setting["x"]["seconds"] == pytest.approx([step / 500 for step in range(100, 2001, 100)])
    middle, lower, upper = setting["y"]["et_return"]
    assert middle[-1] == pytest.approx(97.5)  # the seeds end at 100 and 95
    assert (lower[-1], upper[-1]) == (95, 100)
    thresholds, share, *_ = setting["profile"]
    assert thresholds == sorted(thresholds)
    assert (share[0], share[-1]) == (1, 0)


def test_page_without_any_result(evil_grid, tmp_path):
    text = report.build(evil_grid, {}, {}, tmp_path, tmp_path / "runs")
    assert "This experiment has no results yet." in text
    assert "Runs: 44 waiting." in text


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine, so the report is not tried in a browser")
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield browser
        browser.close()


def test_page_works_in_a_browser(page, browser):
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    tab = context.new_page()
    told, asked = [], []
    tab.on("console", lambda message: told.append(message.text))
    tab.on("pageerror", lambda error: told.append(str(error)))
    tab.on("dialog", lambda dialog: told.append(dialog.message))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    assert tab.title().startswith("Safe Exploration")
    assert tab.locator("#charts canvas").count() == 4  # one per maze
    assert EVIL in tab.locator("#methods").inner_text()

    tab.locator("#environments input").first.uncheck()
    assert tab.locator("#charts canvas").count() == 3
    for axis in ("seconds", "train_cost", "step"):
        tab.select_option("#axis", axis)
        assert tab.locator("#charts canvas").count() == 3

    # The value under the pointer, and by keyboard: the last evaluation of TD3 is 97.5 [95, 100].
    tab.locator(".chart").first.focus()
    tab.keyboard.press("ArrowLeft")
    legend = tab.locator(".chart").first.locator(".u-legend")
    assert "97.5 [95, 100]" in legend.inner_text()
    tab.locator(".u-over").first.hover(position={"x": 2, "y": 50})
    assert "0 [0, 0]" in legend.inner_text()

    tab.select_option("#view", "profile")
    assert "Share of runs" in tab.locator("#explained").inner_text()
    assert tab.locator("#metric").is_disabled()
    tab.select_option("#view", "curve")
    tab.select_option("#experiment", "encoder")
    assert tab.locator("#charts canvas").count() == 2
    assert "transformer" in tab.locator("#methods").inner_text()

    tab.fill("#filter", "maze_3/td3")
    assert tab.locator("#run-list .run:visible").count() == 1
    assert told == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("width", [360, 768, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_the_screen(page, browser, width, scheme):
    tab = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()
    tab.goto(page.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", colour)[:3])) < 200) == (scheme == "dark")
