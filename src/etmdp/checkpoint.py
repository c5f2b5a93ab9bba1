"""Checkpoints: everything a run needs to continue to the same bytes, written so that a crash leaves the last good one.

A folder with two files: `replay.bin`, to which the replay's new rows are appended, and `state.safetensors`, replaced
atomically, which says how many of those rows count. Both carry checksums: a silent error would be believed.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from etmdp.agents.replay import Replay
from etmdp.errors import UserError
from etmdp.files import make_folder, write_atomically

HASH_BYTES = 32


class Checkpoint:
    """The checkpoint of one run in `folder`; `identity` (config digest and seed) must match on loading."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder, self.identity = make_folder(folder), identity
        self.state_path = folder / "state.safetensors"
        # What replay file counts, how many rows the replay had had, and the checksum of the file's bytes.
        self._replay: dict[str, Any] = {"file": "replay.bin", "stored": 0, "checksum": 0}

    def save(self, tensors: dict[str, Tensor], values: dict[str, Any], replay: Replay | None) -> None:
        if replay is not None:
            self._write_replay(replay)
        about = {"identity": self.identity, "replay": self._replay, "values": values}
        text = torch.frombuffer(bytearray(json.dumps(about).encode()), dtype=torch.uint8)
        payload = save({**{k: v.detach().cpu().clone() for k, v in tensors.items()}, "about": text})
        write_atomically(self.state_path, hashlib.sha256(payload).digest() + payload)
        for path in self.folder.glob("replay*.bin"):
            if path.name != self._replay["file"]:
                path.unlink()

    def load(self, replay: Replay | None) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and values as saved, the replay refilled in place; None if there is no checkpoint."""
        try:
            content = self.state_path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"cannot read the checkpoint {self.state_path}: {error.strerror}") from error
        payload = content[HASH_BYTES:]
        if hashlib.sha256(payload).digest() != content[:HASH_BYTES]:
            raise self._damaged(self.state_path)
        try:
            tensors = load(payload)
            about = json.loads(tensors.pop("about").numpy().tobytes())
        except (SafetensorError, KeyError, json.JSONDecodeError) as error:
            raise self._damaged(self.state_path) from error
        if about["identity"] != self.identity:
            raise UserError(
                f"the checkpoint in {self.folder} is of another run ({about['identity']}, not {self.identity}); "
                "choose another folder or delete it"
            )
        self._replay = about["replay"]
        if replay is not None:
            self._read_replay(replay)
        return tensors, about["values"]

    def _write_replay(self, replay: Replay) -> None:
        """Appends the rows that came since the last save; a ring that has wrapped is written whole, to a new file."""
        known = self._replay["stored"]
        if replay.stored > replay.capacity:
            content = _packed(replay, 0, replay.capacity)
            self._replay = {
                "file": f"replay-{replay.stored}.bin",
                "stored": replay.stored,
                "checksum": zlib.crc32(content),
            }
            write_atomically(self.folder / self._replay["file"], content)
            return
        content = _packed(replay, known, replay.stored)
        path = self.folder / self._replay["file"]
        try:
            with path.open("r+b" if known else "wb") as file:
                # Bytes beyond the rows that count are left from a save that was cut short.
                file.seek(known * _row_bytes(replay))
                file.truncate()
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(
                f"cannot write {path}: {error.strerror}; make room or make it writable"
            ) from error
        checksum = zlib.crc32(content, self._replay["checksum"])
        self._replay = {"file": path.name, "stored": replay.stored, "checksum": checksum}

    def _read_replay(self, replay: Replay) -> None:
        path = self.folder / self._replay["file"]
        rows = min(self._replay["stored"], replay.capacity)
        size = rows * _row_bytes(replay)
        try:
            with path.open("rb") as file:
                content = file.read(size)
        except FileNotFoundError as error:
            raise self._damaged(path) from error
        if len(content) != size or zlib.crc32(content) != self._replay["checksum"]:
            raise self._damaged(path)
        if rows:
            packed = torch.frombuffer(bytearray(content), dtype=torch.float32).view(rows, -1)
            replay.rows[:rows] = packed[:, :-1].to(replay.rows.device)
            replay.age[:rows] = packed[:, -1].long().to(replay.rows.device)
        replay.stored = self._replay["stored"]

    def _damaged(self, path: Path) -> UserError:
        return UserError(f"the checkpoint file {path} is damaged; delete {self.folder} to start the run anew")


def _packed(replay: Replay, start: int, end: int) -> bytes:
    """Rows with their ages as a last column; an age is at most a horizon, which a float32 holds exactly."""
    return torch.cat([replay.rows[start:end], replay.age[start:end, None].float()], 1).cpu().numpy().tobytes()


def _row_bytes(replay: Replay) -> int:
    return (replay.rows.shape[1] + 1) * replay.rows.element_size()
