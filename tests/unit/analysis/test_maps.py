"""The figures that need no runs."""

import numpy as np
import pytest

from etmdp.analysis import maps
from etmdp.errors import UserError
from etmdp.grid import Grid


@pytest.fixture
def maze_params(params):
    params["environments"] = {
        "nav_easy": {"family": "any", "id": "etmdp/NavEasy-v0"},
        "same_map": {"family": "any", "id": "etmdp/NavEasy-v0"},
        "maze_1": {"family": "any", "id": "etmdp/Maze1-v0"},
        "broken": {"family": "any", "id": "etmdp/Nowhere-v0"},
    }
    params["explorations"]["white"] = {"correlation": 0.9, "scale": 0.3, "warmup_steps": 10}
    params["experiments"] = {"visitation": {"title": "Visits", "outputs": ["visitation"]}}
    params["scales"] = {"test": params["scales"]["test"]}
    return params


def test_early_termination_keeps_a_random_agent_near_the_start(maze_params, monkeypatch):
    monkeypatch.setattr(maps, "VISITATION_STEPS", 4000)
    figure = maps.visitation(Grid(maze_params), "visitation")
    free, ending = (panel.images[0].get_array() for panel in figure.axes[1:3])
    assert free.sum() == pytest.approx(1)
    assert ending.sum() == pytest.approx(1)
    below = np.s_[:8, :]  # the lowest quarter of the square, behind the closed side of the lava box
    assert ending[below].sum() < 0.3 * free[below].sum()
    assert len(figure.axes[0].collections[0].get_segments()) == 5


def test_visitation_needs_its_map(maze_params):
    del maze_params["environments"]["nav_easy"]
    with pytest.raises(UserError, match="lacks nav_easy"):
        maps.visitation(Grid(maze_params), "visitation")


def test_each_environment_once_and_one_that_cannot_be_drawn_says_so(maze_params):
    figure = maps.environments(Grid(maze_params), "visitation")
    assert [panel.get_title() for panel in figure.axes] == ["nav easy\nsame map", "maze 1", "broken"]
    assert [len(panel.images) for panel in figure.axes] == [1, 1, 0]
    assert "cannot be drawn here" in figure.axes[2].texts[0].get_text()
