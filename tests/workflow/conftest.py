"""A small copy of the project in a temporary folder: two short runs, and all of the workflow around them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("workflow", "src", "dvc.yaml", ".dvcignore", ".gitignore")


class Project:
    """A project folder, and commands in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *command: str, ok: bool = True, **environment: str) -> str:
        """Runs a command of the environment; returns what it printed. `ok` is what its exit code must say."""
        bin_folder = Path(sys.executable).parent
        env = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        result = subprocess.run(
            command,
            cwd=self.root,
            env=env | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert (result.returncode == 0) == ok, result.stdout
        return result.stdout

    def snakemake(self, *arguments: str, ok: bool = True) -> str:
        return self.run("snakemake", "--cores", "2", *arguments, ok=ok)

    def change(self, path: str, value: Any) -> None:
        """Sets the key at a dotted path of params.yaml."""
        file = self.root / "params.yaml"
        params = yaml.safe_load(file.read_text())
        *parents, last = path.split(".")
        place = params
        for part in parents:
            place = place[part]
        place[last] = value
        file.write_text(yaml.safe_dump(params, sort_keys=False))

    def finished(self) -> dict[str, int]:
        """Finished runs, with the time at which they were written."""
        runs = self.root / "results/runs"
        return {
            str(f.parent.relative_to(runs)): f.stat().st_mtime_ns for f in runs.glob("*/*/*/*/progress.csv")
        }

    def results(self) -> dict[str, bytes]:
        """All small results."""
        folder = self.root / "results/smoke"
        return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}

    def copy(self, root: Path) -> Project:
        shutil.copytree(self.root, root, symlinks=True)  # keeps times, and what Snakemake remembers
        return Project(root)


def make_project(root: Path) -> Project:
    root.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, root / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy2(source, root / part)
    (root / ".dvc").mkdir()
    shutil.copytree(ROOT / ".dvc/plots", root / ".dvc/plots")
    for name in ("config", ".gitignore"):
        shutil.copy2(ROOT / ".dvc" / name, root / ".dvc")

    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    params["scale"] = "smoke"
    params["evaluations"] = 4
    params["scales"] = {
        "smoke": {
            "steps": {"short": 160, "long": 160},
            "seeds": [0],
            "experiments": ["visitation", "success_rate", "mazes"],
            "environments": ["maze_1", "nav_easy"],
        }
    }
    params["algorithms"]["td3"] |= {"hidden_sizes": [8, 8], "batch_size": 16, "fast_update": False}
    for name, env in (("success_rate", "nav_easy"), ("mazes", "maze_1")):
        params["experiments"][name]["runs"] = [{"environments": [env], "methods": ["td3"]}]
    (root / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    return Project(root)


@pytest.fixture
def fresh(tmp_path: Path) -> Project:
    """A project in which nothing has run."""
    return make_project(tmp_path / "project")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("made") / "project")
    project.snakemake()
    return project


@pytest.fixture
def made(made_once: Project, tmp_path: Path) -> Project:
    """A project in which everything has been made."""
    return made_once.copy(tmp_path / "project")
