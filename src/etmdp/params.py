"""Reads params.yaml and tells each mistake in it as one sentence: the key, what is wrong, what is allowed."""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from etmdp.errors import UserError

SCHEMA = "workflow/schemas/params.schema.yaml"


class _Loader(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys, DVC refuses the file: refuse it here too."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"the key {key.value!r} stands twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return node


def read_params(path: str | Path = "params.yaml", schema: str | Path = SCHEMA) -> dict[str, Any]:
    """Reads a params file and checks it against the schema.

    Raises:
        UserError: the file cannot be read, or breaks the schema; the message tells the first mistake.
    """
    params = _read(path)
    if not isinstance(params, dict):
        kind = "empty" if params is None else f"one {type(params).__name__}"
        raise UserError(f"{path} is {kind}; it must be a mapping with the keys described in {schema}")
    import jsonschema  # here, since it is slow to import

    types = jsonschema.Draft202012Validator.TYPE_CHECKER
    # JSON Schema takes 2.0 for an integer and NaN for a number; a run can use neither.
    types = types.redefine("integer", lambda _, x: isinstance(x, int) and not isinstance(x, bool))
    types = types.redefine(
        "number", lambda _, x: isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
    )
    validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=types)
    error = jsonschema.exceptions.best_match(validator(_read(schema)).iter_errors(params))
    if error is not None:
        raise UserError(f"{path}: {_explain(error)}")
    return params


def hint(name: object, allowed: Iterable[object]) -> str:
    """The end of a sentence about an unknown name: the nearest allowed one, or all of them."""
    names = [str(each) for each in allowed]
    near = difflib.get_close_matches(str(name), names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; allowed: {', '.join(names)}"


def _read(path: str | Path) -> Any:
    try:
        return yaml.load(Path(path).read_bytes().decode("utf-8"), _Loader)
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}; run this in the project's root folder"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text file: byte {error.start} is not UTF-8") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UserError(f"{path}{place} is no valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{path} is no valid YAML: {' '.join(str(error).split())}") from error


def _explain(error: Any) -> str:
    """One sentence for one violation of the schema."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    key = path.removeprefix(".") or "the top level"
    value, rule = error.instance, error.validator_value
    about = f" ({error.schema['description'].strip()})" if "description" in error.schema else ""
    if "propertyNames" in error.absolute_schema_path:
        return f"{key} has the key {value!r}, which should be {error.schema.get('description', 'a text')}"
    match error.validator:
        case "additionalProperties":
            known = error.schema.get("properties", {})
            unknown = next(name for name in value if name not in known)
            return f"{key} has the unknown key {unknown!r}{hint(unknown, known)}"
        case "required":
            return f"{key} lacks the key {next(name for name in rule if name not in value)!r}{about}"
        case "enum":
            return f"{key} is {reprlib.repr(value)}{about}{hint(value, rule)}"
        case "type":
            wants_number = isinstance(value, str) and rule in ("number", "integer")
            plainly = "; write numbers plainly, 0.0003 and not 3e-4" if wants_number else ""
            names = rule if isinstance(rule, str) else " or ".join(rule)
            return f"{key} is {reprlib.repr(value)}, which is no {names}{about}{plainly}"
        case "pattern":
            return (
                f"{key} is {reprlib.repr(value)}, which is not {error.schema.get('description', 'allowed')}"
            )
        case "uniqueItems":
            twice = next(item for item in value if value.count(item) > 1)
            return f"{key} has {twice!r} more than once{about}"
        case "minItems" | "minProperties" | "minLength":
            return f"{key} is empty{about}"
    return f"{key}: {error.message}{about}"
