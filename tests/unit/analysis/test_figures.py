"""Figures: what is drawn, what is told about it, and that the bytes are the same each time."""

import matplotlib.colors
import numpy as np
import pytest

from etmdp.analysis import figures, stats, style
from etmdp.analysis.curves import Curves
from etmdp.errors import UserError
from etmdp.grid import Grid


def lines(panel):
    return {line.get_label(): line for line in panel.get_lines() if not line.get_label().startswith("_")}


def test_a_panel_per_environment_a_row_per_metric(grid, synthetic):
    figure = figures.learning_curves(grid, "budget", Curves(synthetic(grid, "budget")))
    panels = figure.axes
    assert [panel.get_title() for panel in panels] == ["point goal", "car goal", "point gather", "", "", ""]
    assert "Return" in panels[0].get_ylabel()
    assert "cost per episode" in panels[3].get_ylabel()
    assert all("steps" in panel.get_xlabel() for panel in panels[3:])
    assert len(lines(panels[0])) == 5
    assert len(lines(panels[1])) == 6  # car_goal has the cost-aware variant too


def test_the_line_is_the_iqm_and_the_band_its_interval(grid, synthetic):
    data = Curves(synthetic(grid, "encoder", seed_noise=0.3))
    panel = figures.learning_curves(grid, "encoder", data).axes[0]
    values = data.values(("maze_1", "context_td3", "main"), "et_return")
    x, y = lines(panel)["context td3"].get_data()
    assert list(x) == list(range(100, 2001, 100))
    assert y == pytest.approx(stats.iqm(values))
    corners = panel.collections[0].get_paths()[0].vertices
    lower, upper = stats.iqm_interval(values)
    assert corners[:, 1].min() == pytest.approx(lower.min())
    assert corners[:, 1].max() == pytest.approx(upper.max())


def test_one_seed_has_no_band_and_the_caption_says_so(few_seeds, synthetic):
    grid = few_seeds(1)
    data = Curves(synthetic(grid, "encoder"))
    figure = figures.learning_curves(grid, "encoder", data)
    assert not figure.axes[0].collections
    assert "one run, no interval" in figures.caption(grid, "encoder", data)[0]


def test_too_few_seeds_are_told(few_seeds, synthetic):
    for seeds, told in ((3, True), (4, False)):
        grid = few_seeds(seeds)
        text = figures.caption(grid, "encoder", Curves(synthetic(grid, "encoder")))[0]
        assert ("no evidence" in text) == told


def test_caption_tells_scale_seeds_steps_and_what_is_left_out(params, synthetic):
    grid = Grid(params, "part")
    told = figures.caption(grid, "mazes", Curves(synthetic(grid, "mazes")))
    assert told[0].startswith("Scale part · 5 seeds (full experiment: 10) · 2 000 steps")
    assert told[1] == "not run at this scale: maze 3, maze 4"


def test_missing_seeds_and_settings_are_marked(grid, synthetic):
    table = synthetic(grid, "encoder", keep=lambda cell: cell != ("x",))
    table = table[~((table["variant"] == "transformer") & (table["seed"] > 2))]
    table = table[~((table["variant"] == "transformer") & (table["env"] == "maze_2"))]
    data = Curves(table)
    figure = figures.learning_curves(grid, "encoder", data)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "context td3, transformer (3 of 5 seeds)" in legend
    told = figures.caption(grid, "encoder", data)
    assert "0 to 5 seeds" in told[0]
    assert told[1] == "missing: maze_2/context td3, transformer"


def test_many_environments_wrap(grid, synthetic):
    figure = figures.learning_curves(grid, "control", Curves(synthetic(grid, "control")))
    assert len(figure.axes) == 16
    assert figure.get_size_inches()[0] < 13


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_same_bytes_each_time(grid, synthetic, kind):
    data = Curves(synthetic(grid, "encoder"))
    first, second = (figures.save(figures.learning_curves(grid, "encoder", data), kind) for _ in range(2))
    assert first == second
    assert first.startswith({"png": b"\x89PNG", "pdf": b"%PDF"}[kind])
    for word in (b"CreationDate", b"Matplotlib", b"Software"):
        assert word not in first


def test_the_caption_stays_within_a_narrow_figure(grid, synthetic):
    figure = figures.learning_curves(grid, "counterexample", Curves(synthetic(grid, "counterexample")))
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_other_formats_are_refused(grid, synthetic):
    figure = figures.learning_curves(grid, "encoder", Curves(synthetic(grid, "encoder")))
    with pytest.raises(UserError, match="pdf or png"):
        figures.save(figure, "bmp")


def test_methods_differ_in_colour_line_and_marker(params):
    methods = [style.style(name, "main", params) for name in params["methods"]]
    for field in ("colour", "dashes", "marker"):
        assert len({getattr(look, field) for look in methods}) == len(methods)


@pytest.mark.parametrize(
    "experiment", ["context_length", "context_size", "end_reward", "encoder", "counterexample"]
)
def test_variants_of_a_figure_can_be_told_apart(params, experiment):
    (block,) = params["experiments"][experiment]["runs"]
    looks = [style.style(m, v, params) for m in block["methods"] for v in block["variants"]]
    colours = [np.array(matplotlib.colors.to_rgb(look.colour)) for look in looks]
    for i, first in enumerate(colours):
        for second in colours[:i]:
            assert np.abs(first - second).max() > 0.1
    per_method = len(block["variants"])
    assert len({(look.dashes, look.marker) for look in looks[:per_method]}) == per_method


def test_a_users_own_method_and_metric_have_a_look(params):
    params["methods"]["mine"] = {"label": "Mine"}
    assert style.style("mine", "main", params).colour.startswith("#")
    assert style.metric_name("random_start_et_return") == "Safe return, random starts"
    assert style.metric_name("my_metric") == "My metric"
    assert style.lower_is_better("random_start_cost")
