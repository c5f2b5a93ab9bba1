"""What a result was made with: versions, commit, machine, times. Kept in each run's config.json."""

from __future__ import annotations

import datetime
import json
import platform
import subprocess
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from etmdp.config import RunConfig

PACKAGES = ("etmdp", "torch", "numpy", "numba", "gymnasium", "mujoco", "safety-gymnasium", "dm_control")


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def source() -> dict[str, Any]:
    """The code that this process has loaded. To be asked at a run's start: a checkout may change meanwhile."""
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no", "--", "src", "params.yaml")),
    }


def of_run(agent: Any, source: dict[str, Any], started: str, resumed: int) -> dict[str, Any]:
    """The record of a run that ends now."""
    import torch

    return source | {
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES},
        "host": platform.node(),
        "machine": platform.machine(),
        "device": agent.device,
        "update_path": agent.update_path,
        "threads": torch.get_num_threads(),
        "started": started,
        "finished": now(),
        "resumed": resumed,
    }


def to_json(config: RunConfig, record: dict[str, Any]) -> bytes:
    return (
        json.dumps({"config": asdict(config), "record": record}, indent=1, sort_keys=True) + "\n"
    ).encode()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """None outside a git checkout."""
    try:
        root = Path(__file__).resolve().parents[2]
        result = subprocess.run(
            ["git", "-C", root, *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
