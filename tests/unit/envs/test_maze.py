"""The mazes: geometry, rewards, costs, maps as data."""

import itertools
from collections import deque

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import etmdp.envs  # noqa: F401 (registers the ids)
from etmdp.envs.maze import MAPS, Maze, MazeMap, _touch
from etmdp.errors import UserError

IDS = [
    f"etmdp/{name}-v0"
    for name in ("Maze1", "Maze2", "Maze3", "Maze4", "NavEasy", "NavHard", "Counterexample")
]


@pytest.mark.parametrize("env_id", IDS)
def test_passes_gymnasiums_checker(env_id):
    check_env(gym.make(env_id, render_mode="rgb_array", disable_env_checker=True).unwrapped)


@pytest.mark.parametrize(
    ("path", "wall", "touches"),
    [
        ((0, 0, 2, 0), (1, -1, 1, 1), True),  # crosses
        ((0, 0, 2, 0), (1, 0.5, 1, 1), False),  # passes below its end
        ((0, 0, 1, 0), (1, -1, 1, 1), True),  # ends on it
        ((1, 0, 2, 0), (1, -1, 1, 1), True),  # starts on it
        ((0, 0, 2, 0), (1, 0, 3, 0), True),  # overlaps on one line
        ((0, 0, 2, 0), (2.5, 0, 3, 0), False),  # on one line, apart
        ((0, 0, 2, 0), (0, 1, 2, 1), False),  # parallel
        ((0, 0, 2, 2), (0, 2, 2, 0), True),  # diagonal
        ((0.5, 0, 0.5, 0), (0, 0, 1, 0), True),  # standing on it
        ((0.5, 1, 0.5, 1), (0, 0, 1, 0), False),  # standing beside it
    ],
)
def test_touch(path, wall, touches):
    assert _touch(*path, *wall) is touches
    assert _touch(*wall, *path) is touches


def walk(env, *moves):
    """Rewards, costs and the last observation of a walk from the start."""
    env.reset(seed=0)
    steps = [env.step(np.array(move, dtype=np.float32)) for move in moves]
    return [s[1] for s in steps], [s[4]["cost"] for s in steps], steps[-1][0]


def test_straight_to_the_goal_crosses_the_wall_once_and_is_paid_for_each_step_at_the_goal():
    rewards, costs, last = walk(Maze("maze_1"), *[(1, 0)] * 10)
    assert last.tolist() == [16, 8]
    assert rewards == [-0.1] * 7 + [30.0] * 3  # x = 16 is reached in the eighth step, 15 is no goal yet
    assert costs == [0, 1, 1] + [0] * 7  # the second step ends on the wall x = 10, the third leaves it


def shortest_safe_walk(env):
    """Moves of a shortest path to the goal that touches no lava, by breadth-first search on a grid of 0.5."""
    size, (x0, y0, x1, y1) = env.map.size, env.map.goal
    halves = (-1, -0.5, 0, 0.5, 1)
    before = {env.map.start: None}
    queue = deque(before)
    while queue:
        x, y = place = queue.popleft()
        if x0 <= x <= x1 and y0 <= y <= y1:
            break
        for dx, dy in itertools.product(halves, halves):
            new = (min(max(x + dx, 0.0), size), min(max(y + dy, 0.0), size))
            if new not in before and not any(
                _touch(x, y, *new, *segment.ravel()) for segment in env.map.lava
            ):
                before[new] = place
                queue.append(new)
    moves = []
    while (earlier := before[place]) is not None:
        moves.insert(0, (place[0] - earlier[0], place[1] - earlier[1]))
        place = earlier
    return moves


@pytest.mark.parametrize(("name", "steps", "best"), [("maze_3", 13, 598.8), ("maze_4", 18, 448.3)])
def test_the_best_safe_return_is_the_known_one(name, steps, best):
    """Touching the tip of a wall counts; if it did not, maze_4 would take 17 steps and corners would leak."""
    env = Maze(name)
    moves = shortest_safe_walk(env)
    assert len(moves) == steps
    rewards, costs, _ = walk(env, *moves, *[(0, 0)] * (32 - steps))
    assert sum(costs) == 0
    assert sum(rewards) == pytest.approx(best)


def test_corners_do_not_leak():
    _, costs, _ = walk(
        Maze("maze_3"), *[(1, -1)] * 3
    )  # whole steps along the diagonal, exactly through a corner
    assert costs == [0, 1, 1]


def test_edges_stop_the_agent():
    _, costs, last = walk(Maze("nav_easy"), *[(0, 1)] * 12, *[(-1, 0)] * 12)
    assert last.tolist() == [0, 16]
    assert sum(costs) == 0  # straight up through the opening


def test_actions_beyond_the_box_are_clipped():
    _, _, last = walk(Maze("maze_1"), (-5, 3))
    assert last.tolist() == [7, 9]


def test_the_counterexample_cannot_be_left_without_cost():
    rng = np.random.default_rng(0)
    env = Maze("counterexample")
    for _ in range(200):
        env.reset()
        inside = True
        for _ in range(32):
            observation, _, _, _, info = env.step(rng.uniform(-1, 1, 2))
            now_inside = bool((observation > 5).all() and (observation < 11).all())
            assert now_inside == inside or info["cost"] == 1
            inside = now_inside


def test_random_starts_are_seeded_and_cover_the_square():
    env = Maze("nav_easy", start="random")
    starts = np.array([env.reset(seed=seed)[0] for seed in range(300)])
    again = np.array([Maze("nav_easy", start="random").reset(seed=seed)[0] for seed in range(300)])
    assert (starts == again).all()
    assert starts.min() < 1
    assert starts.max() > 15
    assert len(np.unique(starts[:, 0] // 4 * 4 + starts[:, 1] // 4)) == 16  # every sixteenth of the square


def random_success(map_name, episodes, seed=0):
    """Share of episodes in which correlated noise reaches the goal before any lava."""
    rng = np.random.default_rng(seed)
    env, hits = Maze(map_name), 0
    for _ in range(episodes):
        env.reset()
        noise = rng.standard_normal(2)
        for _ in range(32):
            noise = 0.9 * noise + np.sqrt(1 - 0.81) * rng.standard_normal(2)
            info = env.step(np.clip(noise, -1, 1))[4]
            if info["cost"] or info["success"]:
                hits += info["success"] and not info["cost"]
                break
    return hits / episodes


def test_the_ladder_gets_harder():
    """By chance the goal is reached in 3.6 % of episodes, 1.1 % and 0.84 %: within 4 standard errors."""
    for name, share in (("maze_1", 0.036), ("maze_2", 0.011), ("nav_easy", 0.0084)):
        episodes = 3000
        assert abs(random_success(name, episodes) - share) < 4 * np.sqrt(share / episodes)


def test_a_users_map(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("size: 4\nstart: [1, 1]\ngoal: [3, 0, 4, 4]\nlava: [[2, 0, 2, 1.5]]\n")
    rewards, costs, _ = walk(Maze(str(path)), (0, 1), (1, 0), (1, 0))
    assert (rewards, costs) == ([-0.1, -0.1, 30.0], [0, 0, 0])


@pytest.mark.parametrize(
    "text", ["", "size: 4", "[1, 2]", "size: 4\nstart: [1]\ngoal: [1]\nlava: [[1, 2, 3]]", "{"]
)
def test_a_bad_map_is_told_in_one_sentence(tmp_path, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"bad\.yaml is not right"):
        Maze(str(path))


def test_an_unknown_map_names_the_known_ones():
    with pytest.raises(UserError, match="maze_1"):
        Maze("maze_9")


def test_the_picture_shows_lava_goal_agent_and_path():
    env = Maze("maze_3", render_mode="rgb_array")
    env.reset()
    env.step([-1, 0])
    colours = {tuple(c) for c in env.render().reshape(-1, 3)}
    assert {(232, 130, 12), (42, 157, 92), (193, 18, 31), (127, 143, 166)} <= colours


def test_every_map_of_the_package_is_registered():
    assert {
        f"etmdp/{''.join(p.capitalize() for p in path.stem.split('_'))}-v0" for path in MAPS.glob("*.yaml")
    } == set(IDS)
    assert MazeMap.load("maze_4").lava.shape == (3, 2, 2)
