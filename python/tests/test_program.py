"""``samestory file`` on Parquet and Arrow files of pyarrow and Polars, and their readers on its output."""

import json
import os
import subprocess
from datetime import datetime, timezone

import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from articles import FERRY, FERRY_EDITED, HARVEST

PROGRAM = os.environ.get("SAMESTORY_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SAMESTORY_PROGRAM names no program")

IDS = ["a", "b", "c"]
TEXTS = [FERRY, HARVEST, FERRY_EDITED]
EXPECTED = [("a", "unique", None), ("b", "unique", None), ("c", "near-duplicate", "a")]


def judge(folder, *arguments):
    return subprocess.run([PROGRAM, "file", *arguments], cwd=folder, capture_output=True, text=True)


def verdicts(printed):
    lines = map(json.loads, printed.stdout.splitlines())
    return [(line["id"], line["verdict"], line["duplicate_of"]) for line in lines]


def rich():
    """A table with the types that crawls have."""
    time = datetime(2026, 3, 2, 6, 10, tzinfo=timezone.utc)
    return pa.table(
        {
            "id": pa.array(IDS, pa.large_string()),
            "content": pa.array([{"text": text, "words": [1, 2]} for text in TEXTS]),
            "published_at": pa.array([time, None, time], pa.timestamp("ns", tz="Europe/Berlin")),
            "naive": pa.array([datetime(2026, 3, 2)] * 3, pa.timestamp("ms")),
            "day": pa.array([20000] * 3, pa.int32()).cast(pa.date32()),
            "tags": pa.array([["x", None], [], None]),
            "section": pa.array(["news", None, "news"]).dictionary_encode(),
            "price": pa.array([1, 2, 3], pa.decimal128(10, 2)),
            "thumbnail": pa.array([b"\x89PNG", None, b"plain"]),
            "none": pa.nulls(3),
        }
    )


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_parquet_of_pyarrow(tmp_path, compression, version):
    pq.write_table(rich(), tmp_path / "a.parquet", compression=compression, data_page_version=version, row_group_size=2)
    printed = judge(tmp_path, "a.parquet")
    assert verdicts(printed) == EXPECTED, printed.stderr
    assert "a.parquet is Parquet; id, body = content.text, published_at" in printed.stderr
    article = json.loads(printed.stdout.splitlines()[0])["article"]
    assert article["published_at"] == "2026-03-02T06:10:00Z" and article["day"] == "2024-10-04"
    assert article["section"] == "news" and article["tags"] == ["x", None] and "thumbnail" not in article


def test_brotli_is_refused_by_name(tmp_path):
    pq.write_table(rich(), tmp_path / "a.parquet", compression="brotli")
    printed = judge(tmp_path, "a.parquet")
    assert printed.returncode == 1 and "brotli" in printed.stderr.lower(), printed.stderr


def test_feather_and_arrow_streams_of_pyarrow(tmp_path):
    for compression in ("uncompressed", "lz4", "zstd"):
        feather.write_feather(rich(), tmp_path / "a.feather", compression=compression)
        printed = judge(tmp_path, "a.feather")
        assert verdicts(printed) == EXPECTED, printed.stderr
    with pa.ipc.new_stream(tmp_path / "a.arrows", rich().schema) as writer:
        writer.write_table(rich())
    assert verdicts(judge(tmp_path, "a.arrows")) == EXPECTED


def test_files_of_polars(tmp_path):
    frame = pl.DataFrame({"id": IDS, "text": TEXTS, "kind": pl.Series(["n", None, "n"], dtype=pl.Categorical)})
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_ipc(tmp_path / "a.arrow")
    for name in ("a.parquet", "a.arrow"):
        printed = judge(tmp_path, name)
        assert verdicts(printed) == EXPECTED, printed.stderr


def test_parquet_output_is_read_by_pyarrow_and_polars(tmp_path):
    pl.DataFrame({"id": [7, 8, 9], "text": TEXTS, "paid": [True, None, False]}).write_parquet(tmp_path / "a.parquet")
    printed = judge(tmp_path, "a.parquet", "--output", "out.parquet", "--clusters", "groups.parquet", "--quiet")
    assert printed.returncode == 0, printed.stderr
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["id"].to_pylist() == [7, 8, 9] and table["paid"].to_pylist() == [True, None, False]
    assert table["verdict"].to_pylist() == [verdict for _, verdict, _ in EXPECTED]
    assert pl.read_parquet(tmp_path / "out.parquet")["duplicate_of"].to_list() == [None, None, "7"]
    assert pl.read_parquet(tmp_path / "groups.parquet")["size"].to_list() == [2, 2]
