"""progress.csv: one row per evaluation, in steps, with the same bytes for the same run."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from etmdp.errors import UserError
from etmdp.files import write_atomically

Row = dict[str, Any]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a table whose columns are all keys in order of first appearance; missing values are empty."""
    rows = list(rows)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _text(value) for key, value in row.items()} for row in rows)
    write_atomically(path, text.getvalue().encode())


def read_rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    return str(value)
