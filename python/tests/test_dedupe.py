"""``dedupe`` over frames of pandas, Polars and pyarrow: the same verdicts, whatever holds the texts."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import samestory
from articles import FERRY, FERRY_EDITED, HARVEST, story

IDS = [30, 10, 20, 40]
TEXTS = [FERRY, HARVEST, FERRY_EDITED, FERRY]
VERDICTS = ["unique", "unique", "near-duplicate", "exact-duplicate"]
OF = [None, None, 30, 30]
ADDED = ["verdict", "match_type", "duplicate_of", "similarity", "confidence", "cluster_id", "content_kind"]


def test_pandas_gets_columns_beside_its_own_and_keeps_its_index():
    frame = pd.DataFrame({"id": IDS, "text": TEXTS, "extra": [object()] * 4}, index=list("wxyz"))
    judged = samestory.dedupe(frame, id="id")
    assert list(judged.columns) == ["id", "text", "extra", *ADDED] and list(judged.index) == list("wxyz")
    assert list(judged["verdict"]) == VERDICTS
    assert [None if pd.isna(of) else int(of) for of in judged["duplicate_of"]] == OF
    assert judged["cluster_id"].nunique() == 2 and judged["similarity"].dtype == "float64"
    assert "verdict" not in frame.columns


def test_polars_keeps_the_type_of_the_ids():
    frame = pl.DataFrame({"id": IDS, "text": TEXTS}, schema_overrides={"id": pl.UInt16})
    judged = samestory.dedupe(frame, id="id")
    assert judged.columns == ["id", "text", *ADDED] and judged["duplicate_of"].dtype == pl.UInt16
    assert judged["verdict"].to_list() == VERDICTS and judged["duplicate_of"].to_list() == OF
    with pytest.raises(TypeError, match="collect"):
        samestory.dedupe(frame.lazy())


def test_arrow_gives_a_table_whatever_the_text_is_stored_as():
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        texts = pa.array(TEXTS).cast(kind) if not pa.types.is_dictionary(kind) else pa.array(TEXTS).dictionary_encode()
        table = pa.table({"id": IDS, "body": texts})
        judged = samestory.dedupe(table, text="body", id="id")
        assert judged.column_names == ["id", "body", *ADDED]
        assert judged["verdict"].to_pylist() == VERDICTS and judged["duplicate_of"].to_pylist() == OF
    chunked = pa.table({"id": pa.chunked_array([[30], [10, 20, 40]]), "text": pa.chunked_array([TEXTS[:3], TEXTS[3:]])})
    assert samestory.dedupe(chunked, id="id")["duplicate_of"].to_pylist() == OF
    batch = pa.record_batch({"text": TEXTS})
    assert samestory.dedupe(batch)["duplicate_of"].to_pylist() == [None, None, 0, 0]


class Stream:
    """What is no library's own frame: it has only the interface."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.table({"text": TEXTS}).__arrow_c_stream__(requested_schema)


def test_any_arrow_stream_and_a_list_are_read():
    assert samestory.dedupe(Stream())["verdict"].to_pylist() == VERDICTS
    columns = samestory.dedupe(TEXTS)
    assert columns.column("verdict") == VERDICTS and columns.column("duplicate_row") == [None, None, 0, 0]
    assert len(columns) == 4 and pl.DataFrame(columns)["verdict"].to_list() == VERDICTS
    with pytest.raises(KeyError):
        columns.column("of")


def test_a_long_frame_gives_what_single_inserts_give():
    texts = [story(n * n % 1700) for n in range(5000)]
    dedup = samestory.Deduplicator()
    expected = [dedup.insert(str(n), text) for n, text in enumerate(texts)]
    judged = samestory.dedupe(pl.DataFrame({"text": texts}))
    assert judged["verdict"].to_list() == [one.verdict for one in expected]
    assert judged["duplicate_of"].to_list() == [one.duplicate_of and int(one.duplicate_of) for one in expected]
    assert judged["cluster_id"].to_list() == [one.cluster_id for one in expected]


def test_a_row_without_a_text_has_no_verdict_and_is_counted():
    texts = [FERRY, None, FERRY]
    with pytest.warns(UserWarning, match=r"1 row has no text and no verdict \(the first is row 1\)"):
        judged = samestory.dedupe(pd.DataFrame({"text": [FERRY, float("nan"), FERRY]}, dtype=object))
    assert list(judged["verdict"]) == ["unique", None, "exact-duplicate"]
    for frame in (pl.DataFrame({"text": texts}), pa.table({"text": texts}), pd.DataFrame({"text": texts})):
        with pytest.warns(UserWarning, match="1 row has no text"):
            samestory.dedupe(frame)
    with pytest.warns(UserWarning, match=r"1 row was refused .*row 1: "):
        samestory.dedupe(pl.DataFrame({"text": [FERRY, "x" * 5_000_000]}))


def test_ids_may_repeat_and_may_be_of_any_type():
    mixed = pd.DataFrame({"id": ["a", 1, "a", 2.5], "text": TEXTS})
    assert list(samestory.dedupe(mixed, id="id")["duplicate_of"])[2:] == ["a", "a"]
    strings = pl.DataFrame({"id": ["b", "b", "b", "b"], "text": TEXTS})
    assert samestory.dedupe(strings, id="id")["duplicate_of"].to_list() == [None, None, "b", "b"]


def test_missing_ids_are_refused_with_their_count_and_place():
    message = r"2 rows have no 'id' \(the first is row 1\); fill or drop them"
    ids = [1.0, np.nan, 3.0, np.nan]
    frames = (
        pd.DataFrame({"id": ids, "text": TEXTS}),
        pd.DataFrame({"id": ["a", None, "b", None], "text": TEXTS}),
        pl.DataFrame({"id": ids, "text": TEXTS}),
        pl.DataFrame({"id": ["a", None, "b", None], "text": TEXTS}),
        pa.table({"id": ids, "text": TEXTS}),
        pa.table({"id": ["a", None, "b", None], "text": TEXTS}),
    )
    for frame in frames:
        with pytest.raises(ValueError, match=message):
            samestory.dedupe(frame, id="id")


def test_what_is_no_frame_of_texts_is_refused_with_the_fix():
    frame = pd.DataFrame({"id": IDS, "text": TEXTS})
    for data, options, error, message in (
        (frame, {"text": "body"}, KeyError, "no column 'body'; there are id, text"),
        (pl.DataFrame(frame.to_dict("list")), {"title": "x"}, KeyError, "no column 'x'; there are id, text"),
        (frame, {"text": "id"}, TypeError, "not text but Int64"),
        (frame.assign(text=[1, "a", None, "b"]), {}, TypeError, "holds something else"),
        (frame.assign(verdict=1), {}, ValueError, "has the column 'verdict' already"),
        (["a", 1], {}, TypeError, "row 1 is not a str but int"),
        ("a text", {}, TypeError, "compare"),
        ({"a": 1}, {}, TypeError, "cannot read dict"),
        (frame, {"min_confidence": 2}, ValueError, "from 0 to 1"),
    ):
        with pytest.raises(error, match=message):
            samestory.dedupe(data, **options)


def test_an_empty_frame_has_the_columns():
    assert list(samestory.dedupe(pd.DataFrame({"id": [], "text": pd.Series([], dtype="str")}), id="id").columns)[2:] == ADDED
    assert samestory.dedupe(pl.DataFrame({"id": [], "text": pl.Series([], dtype=pl.String)}), id="id").columns[2:] == ADDED


def test_pandas_without_pyarrow_gives_the_same():
    """pandas has no Arrow interface of its own, so its texts are read as Python objects."""
    script = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import pandas as pd, samestory, articles\n"
        "texts = [articles.FERRY, None, articles.FERRY_EDITED]\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "judged = samestory.dedupe(pd.DataFrame({'id': [7, 8, 9], 'text': texts}), id='id')\n"
        "print(judged['verdict'].tolist(), judged['duplicate_of'].tolist()[2])\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], cwd=__file__.rsplit("/", 1)[0], capture_output=True, text=True, check=True
    ).stdout
    assert printed.startswith("['unique', None, 'near-duplicate'] 7"), printed


def test_whole_numbers_of_any_size_stay_the_ids_that_they_are():
    """As floating-point numbers, ids above 2**53 became those of other articles."""
    for kind, first in (("int64", 2**62 + 1), ("uint64", 2**63 + 1), ("int64", -(2**60) - 1), ("Int64", 2**62 + 1)):
        ids = pd.array([first, 2, 3, 4], dtype=kind) if kind == "Int64" else np.array([first, 2, 3, 4], dtype=kind)
        frame = pd.DataFrame({"id": ids, "text": TEXTS})
        found = samestory.dedupe(frame, id="id")["duplicate_of"]
        assert list(found[2:]) == [first, first] and found[:2].isna().all(), kind
        assert found.dtype == ("UInt64" if kind == "uint64" else "Int64")


def test_half_a_character_does_not_refuse_the_frame():
    """json.loads reads such a str from an escape that was cut."""
    frame = pd.DataFrame({"text": pd.Series([FERRY, "\ud83d " + FERRY, None], dtype=object)})
    with pytest.warns(UserWarning, match="1 row has no text"):
        assert list(samestory.dedupe(frame)["verdict"]) == ["unique", "near-duplicate", None]


def test_a_column_of_nulls_is_one_of_missing_texts():
    nulls = [None, None]
    for frame in (pl.DataFrame({"text": nulls}), pa.table({"text": pa.nulls(2)}), pd.DataFrame({"text": nulls})):
        with pytest.warns(UserWarning, match="2 rows have no text"):
            samestory.dedupe(frame)
    untitled = pl.DataFrame({"text": [FERRY, FERRY], "title": nulls})
    assert samestory.dedupe(untitled, title="title")["verdict"].to_list() == ["unique", "exact-duplicate"]


def test_a_series_is_refused_with_the_fix():
    for series in (pd.Series(TEXTS), pl.Series("text", TEXTS), pa.array(TEXTS)):
        with pytest.raises(TypeError, match="one column.*pass the frame, or a list of texts"):
            samestory.dedupe(series)
    with pytest.raises(ValueError, match="text= and title= name the same column"):
        samestory.dedupe(pl.DataFrame({"text": TEXTS}), title="text")
