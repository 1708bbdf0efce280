"""The notebook, the guide and the help run as they are written."""

import doctest
import json
import re
from pathlib import Path

import pandas as pd
import polars as pl

import samestory
from articles import FERRY, FERRY_EDITED, HARVEST

ROOT = Path(__file__).resolve().parents[2]


def test_the_notebook_runs():
    notebook = json.loads((ROOT / "python/examples/dedupe.ipynb").read_text())
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, "clear the outputs before a commit"
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert names["answer"].duplicate_of == "coast-1"


def test_the_guide_runs(tmp_path, monkeypatch):
    """Blocks that begin with `# needs` want a package that the tests do not have."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"id": [1, 2, 3], "title": ["a", "b", "c"], "text": [FERRY, HARVEST, FERRY_EDITED]})
    frame.to_parquet("articles.parquet")
    samestory.dedupe(pl.from_pandas(frame), id="id").write_parquet("tagged.parquet")
    guides = ["docs/python.md", "python/README.md"]
    blocks = [block for name in guides for block in re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.S)]
    assert len(blocks) > 5
    names = {"text": FERRY, "older": FERRY, "newer": FERRY_EDITED}
    for block in blocks:
        if not block.startswith("# needs"):
            exec(compile(block, block, "exec"), names)


def test_the_help_runs_and_nothing_is_without_it():
    assert doctest.testmod(samestory, raise_on_error=True).attempted == 4
    for name in samestory.__all__:
        value = getattr(samestory, name)
        assert isinstance(value, bool) or value.__doc__, name


def test_the_stubs_name_what_the_module_has():
    stubs = (ROOT / "python/samestory/_core.pyi").read_text()
    for name in dir(samestory._core):
        if not name.startswith("_"):
            assert re.search(rf"^(class|def) {name}\b|^{name}:", stubs, re.M), name
            for part in dir(getattr(samestory._core, name)) if isinstance(getattr(samestory._core, name), type) else []:
                if not part.startswith("_") and not hasattr(Exception, part):
                    assert re.search(rf"^    (def )?{part}\b", stubs, re.M), f"{name}.{part}"
