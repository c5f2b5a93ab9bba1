"""Checkpoints: whole or refused, never half believed."""

import numpy as np
import pytest
import torch

from etmdp.agents.replay import Replay
from etmdp.checkpoint import Checkpoint
from etmdp.errors import UserError


def replay_with(rows, capacity=50):
    replay = Replay(capacity, 2, 1, 3)
    add(replay, rows)
    return replay


def add(replay, rows):
    rng = np.random.default_rng(replay.stored)
    for _ in range(rows):
        replay.add(
            rng.standard_normal(2),
            rng.standard_normal(1),
            1.0,
            rng.standard_normal(2),
            1.0,
            replay.stored % 9,
        )


def same(one, two):
    n = len(one)
    return (
        one.stored == two.stored
        and torch.equal(one.rows[:n], two.rows[:n])
        and torch.equal(one.age[:n], two.age[:n])
    )


TENSORS = {"w": torch.arange(5.0), "generator": torch.arange(4, dtype=torch.uint8)}
VALUES = {"counts": {"step": 7}, "big": 2**100, "nan": float("nan")}


@pytest.mark.parametrize("capacity", [50, 12])  # 12: the ring wraps
def test_saves_append_and_all_comes_back(tmp_path, capacity):
    replay = replay_with(10, capacity)
    checkpoint = Checkpoint(tmp_path, "me")
    for _ in range(3):
        checkpoint.save(TENSORS, VALUES, replay)
        loaded = Replay(capacity, 2, 1, 3)
        tensors, values = Checkpoint(tmp_path, "me").load(loaded)
        assert same(replay, loaded)
        assert all(torch.equal(tensors[k], v) for k, v in TENSORS.items())
        assert values["big"] == 2**100
        add(replay, 5)
    assert len(list(tmp_path.glob("replay*.bin"))) == 1


def test_no_checkpoint_is_none(tmp_path):
    assert Checkpoint(tmp_path, "me").load(None) is None


def test_rows_of_a_save_that_was_cut_short_do_not_count(tmp_path):
    replay = replay_with(10)
    Checkpoint(tmp_path, "me").save(TENSORS, VALUES, replay)
    with (tmp_path / "replay.bin").open("ab") as file:
        file.write(b"half a row")
    loaded = Replay(50, 2, 1, 3)
    checkpoint = Checkpoint(tmp_path, "me")
    checkpoint.load(loaded)
    assert same(replay, loaded)
    add(loaded, 4)
    checkpoint.save(TENSORS, VALUES, loaded)
    again = Replay(50, 2, 1, 3)
    Checkpoint(tmp_path, "me").load(again)
    assert same(loaded, again)


@pytest.mark.parametrize("name", ["state.safetensors", "replay.bin"])
def test_truncation_at_any_byte_is_told(tmp_path, name):
    Checkpoint(tmp_path, "me").save(TENSORS, VALUES, replay_with(6))
    path = tmp_path / name
    content = path.read_bytes()
    for end in range(max(0, len(content) - 1024), len(content)):
        path.write_bytes(content[:end])
        with pytest.raises(UserError, match=f"{name} is damaged; delete"):
            Checkpoint(tmp_path, "me").load(Replay(50, 2, 1, 3))


@pytest.mark.parametrize("name", ["state.safetensors", "replay.bin"])
def test_a_flipped_bit_is_told(tmp_path, name):
    Checkpoint(tmp_path, "me").save(TENSORS, VALUES, replay_with(6))
    path = tmp_path / name
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(UserError, match="damaged"):
            Checkpoint(tmp_path, "me").load(Replay(50, 2, 1, 3))


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    Checkpoint(tmp_path, "me").save(TENSORS, VALUES, None)
    with pytest.raises(UserError, match="another run"):
        Checkpoint(tmp_path, "you").load(None)


def test_a_crash_while_writing_leaves_the_last_one(tmp_path, monkeypatch):
    checkpoint, replay = Checkpoint(tmp_path, "me"), replay_with(10)
    checkpoint.save(TENSORS, VALUES, replay)
    before = Replay(50, 2, 1, 3)
    Checkpoint(tmp_path, "me").load(before)
    add(replay, 5)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match="No space left on device; make room"):
        checkpoint.save(TENSORS, VALUES, replay)
    after = Replay(50, 2, 1, 3)
    Checkpoint(tmp_path, "me").load(after)
    assert same(before, after)
    assert not list(tmp_path.glob("*.tmp"))
