"""Files that are either whole or not there."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from etmdp.errors import UserError

log = logging.getLogger("etmdp")


def write_atomically(path: Path, content: bytes) -> None:
    """Writes under a temporary name in the same folder, flushes to the disk and renames."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserError(
            f"cannot write {path}: {error.strerror}; make room or make the folder writable"
        ) from error


def make_folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot make the folder {path}: {error.strerror}; make room or make it writable"
        ) from error
    return path


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Holds a lock file, waiting for whoever has it; the system frees it when a process dies, however it dies."""
    while True:
        make_folder(path.parent)
        try:
            file = path.open("a+")
        except OSError as error:
            raise UserError(f"cannot open the lock {path}: {error.strerror}; make it writable") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                log.warning("another process (%s) is working on %s; waiting for it", holder, path.parent)
                fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_still(path, file.fileno()):
                continue  # its holder finished and removed it: this lock is nobody's any more
            file.truncate(0)
            file.write(f"pid {os.getpid()}")
            file.flush()
            yield
            return


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
