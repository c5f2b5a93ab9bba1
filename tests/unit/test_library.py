"""The ten lines of the README, on a user's own environment."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def test_the_readmes_ten_lines_run(tmp_path, monkeypatch, capsys):
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL).group(1)
    monkeypatch.chdir(tmp_path)
    exec(compile(code.replace("20_000", "400"), "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "et_return" in printed
    assert (tmp_path / "policy.safetensors").exists()


def test_importing_the_command_line_does_not_import_torch():
    import subprocess
    import sys

    code = "import sys, etmdp.cli; etmdp.cli.parser(); sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_is_an_attribute_error():
    import etmdp

    with pytest.raises(AttributeError, match="Nonsense"):
        etmdp.Nonsense  # noqa: B018
