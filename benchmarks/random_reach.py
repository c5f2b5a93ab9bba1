"""How often a random agent reaches the goal before any lava: why exploration is correlated and wide.

python benchmarks/random_reach.py [EPISODES]    writes benchmarks/results/random_reach.md
"""

import sys
from pathlib import Path

from etmdp.envs.maze import Maze
from etmdp.exploration import Exploration

MAPS = ("maze_1", "maze_2", "maze_3", "maze_4", "nav_easy", "nav_hard")
NOISES = {  # correlation, scale
    "uniform": (0.0, 1.0),
    "correlated 0.9": (0.9, 1.0),
    "correlated 0.9, twice as wide (ours)": (0.9, 2.0),
    "correlated 0.9, four times as wide": (0.9, 4.0),
    "correlated 0.8, twice as wide": (0.8, 2.0),
    "correlated 0.95, twice as wide": (0.95, 2.0),
}
HORIZON = 32


def reach(map_name: str, correlation: float, scale: float, episodes: int) -> float:
    env = Maze(map_name)
    noise = Exploration(2, correlation, scale=0.0, warmup_steps=0, warmup_scale=scale, seed=0)
    hits = 0
    for _ in range(episodes):
        env.reset()
        noise.start()
        for _ in range(HORIZON):
            info = env.step(noise.warmup_action())[4]
            if info["cost"] or info["success"]:
                hits += not info["cost"]
                break
    return hits / episodes


def main() -> None:
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    lines = [
        f"Share of episodes, of {episodes}, in which a random agent reaches the goal before any lava.",
        "",
        "| noise | " + " | ".join(MAPS) + " |",
        "|---|" + "---|" * len(MAPS),
    ]
    for name, (correlation, scale) in NOISES.items():
        shares = [reach(map_name, correlation, scale, episodes) for map_name in MAPS]
        lines.append(f"| {name} | " + " | ".join(f"{share:.2%}" for share in shares) + " |")
        print(lines[-1], flush=True)
    out = Path(__file__).parent / "results" / "random_reach.md"
    out.parent.mkdir(exist_ok=True)
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
