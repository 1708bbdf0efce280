"""``dedupe``: adds the verdicts to a frame. The columns of texts cross to Rust through the Arrow C data interface; no Python
object is made per row. The rest of the frame stays where it is."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any, Sequence, TypeVar, overload

from ._core import VerdictColumns, judge_stream, judge_texts

if TYPE_CHECKING:
    from ._core import Shingle

    Settings = tuple[float | None, Shingle | None]

Frame = TypeVar("Frame")

#: The columns that ``dedupe`` adds.
COLUMNS = ("verdict", "match_type", "duplicate_of", "similarity", "confidence", "cluster_id", "content_kind")


@overload
def dedupe(
    data: Sequence[str | None], *, min_confidence: float | None = ..., shingle: Shingle | None = ...
) -> VerdictColumns: ...
@overload
def dedupe(
    data: Frame,
    *,
    text: str = ...,
    id: str | None = ...,
    title: str | None = ...,
    min_confidence: float | None = ...,
    shingle: Shingle | None = ...,
) -> Frame: ...
def dedupe(
    data: Any,
    *,
    text: str = "text",
    id: str | None = None,
    title: str | None = None,
    min_confidence: float | None = None,
    shingle: Shingle | None = None,
) -> Any:
    """Judges the texts of a frame, in its order, and returns the frame with these columns added:

    - ``verdict``: ``unique``, ``near-duplicate`` or ``exact-duplicate``
    - ``match_type``: ``exact``, ``near``, ``rewritten`` or ``partial``; null if the row is unique
    - ``duplicate_of``: the id of the row that it repeats, in the type of the ids; without ``id``, the position of that row
    - ``similarity`` and ``confidence``: from 0 to 1
    - ``cluster_id``: equal for rows that belong together
    - ``content_kind``: ``ordinary``, ``short``, ``list-like`` or ``table-like``

    ``data`` is a DataFrame of pandas or Polars, a Table or RecordBatch of pyarrow, another object with ``__arrow_c_stream__``
    (which then becomes a Table of pyarrow), or a list of texts (which gives :class:`VerdictColumns`, with ``duplicate_row``
    in place of ``duplicate_of``). ``text``, ``id`` and ``title`` name its columns. A title is evidence beside the text.

    A row without a text has no verdict: the columns are null, and a warning counts such rows. Ids may be of any type and may
    repeat, because rows are told apart by their position; an id that is missing is a :class:`ValueError`.

    Args:
        min_confidence: From this confidence on a row is a duplicate (default 0.5). Higher keeps more rows apart.
        shingle: How the shingles of a language are cut, as of :class:`Deduplicator`: ``{"en": {"characters": 5}}``.

    Raises:
        KeyError: There is no such column.
        TypeError: The texts are no texts, or ``data`` is no frame.
        ValueError: An id is missing, the frame has one of the columns already, or a setting cannot be used.
    """
    settings = (min_confidence, shingle)
    if isinstance(data, (list, tuple)):
        columns = judge_texts(list(data), None, *settings)
        _warn(columns)
        return columns
    if isinstance(data, str):
        raise TypeError("dedupe needs a frame or a list of texts; compare(older, newer) compares two texts")
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return _pandas(pandas, data, text, id, title, settings)
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(data, polars.LazyFrame):
        raise TypeError("dedupe needs the rows of the LazyFrame; pass frame.collect()")
    if polars is not None and isinstance(data, polars.DataFrame):
        return _polars(polars, data, text, id, title, settings)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _arrow(data, text, id, title, settings)
    raise TypeError(
        f"dedupe cannot read {type(data).__name__}; pass a DataFrame of pandas or Polars, an Arrow table, or a list of texts"
    )


def _check(names: Sequence[Any], text: str, id: str | None, title: str | None) -> None:
    for name in (text, id, title):
        if name is not None and name not in names:
            raise KeyError(f"no column {name!r}; there are {', '.join(map(str, names))}")
    if title == text:
        raise ValueError("text= and title= name the same column")
    taken = [name for name in COLUMNS if name in names]
    if taken:
        raise ValueError(f"the frame has the column {taken[0]!r} already; drop or rename it first")


def _check_ids(missing: int, first: Any, name: str | None) -> None:
    if missing:
        rows = "row has" if missing == 1 else "rows have"
        raise ValueError(
            f"{missing} {rows} no {name!r} (the first is row {first}); fill or drop them, or leave out id= to name rows by position"
        )


def _warn(columns: VerdictColumns) -> None:
    if columns.missing:
        count, first = len(columns.missing), columns.missing[0]
        rows = "row has" if count == 1 else "rows have"
        warnings.warn(f"{count} {rows} no text and no verdict (the first is row {first})", stacklevel=4)
    if columns.rejected:
        (first, why), count = columns.rejected[0], len(columns.rejected)
        rows = "row was" if count == 1 else "rows were"
        warnings.warn(f"{count} {rows} refused and have no verdict (row {first}: {why})", stacklevel=4)


def _pandas(
    pandas: Any, frame: Any, text: str, id: str | None, title: str | None, settings: Settings
) -> Any:
    _check(list(frame.columns), text, id, title)
    if not frame.columns.is_unique:
        raise ValueError("the frame has two columns of the same name; rename one first")
    if id is not None:
        gaps = frame[id].isna().to_numpy()
        _check_ids(int(gaps.sum()), int(gaps.argmax()) if len(gaps) else 0, id)
    columns = _judge_pandas(pandas, frame, text, title, settings)
    _warn(columns)
    index = frame.index
    added = {name: pandas.Series(columns.column(name), index=index, dtype="object") for name in ("verdict", "match_type")}
    rows = pandas.array(columns.column("duplicate_row"), dtype="Int64")
    if id is None:
        added["duplicate_of"] = pandas.Series(rows, index=index)
    else:
        # -1 takes the missing value.
        taken = pandas.api.extensions.take(_nullable(pandas, frame[id].array), rows.to_numpy(dtype="int64", na_value=-1), allow_fill=True)
        added["duplicate_of"] = pandas.Series(taken, index=index)
    for name in ("similarity", "confidence"):
        added[name] = pandas.Series(columns.column(name), index=index, dtype="float64")
    for name in ("cluster_id", "content_kind"):
        added[name] = pandas.Series(columns.column(name), index=index, dtype="object")
    return frame.assign(**added)


def _nullable(pandas: Any, ids: Any) -> Any:
    """Whole numbers as pandas keeps them beside missing values. Else ``take`` makes floating-point numbers of them, which are
    other ids from 2**53 on."""
    if getattr(ids.dtype, "kind", "") in "iu" and pandas.api.types.is_integer_dtype(ids.dtype):
        return pandas.array(ids, dtype="UInt64" if ids.dtype.kind == "u" else "Int64")
    return ids


def _judge_pandas(
    pandas: Any, frame: Any, text: str, title: str | None, settings: Settings
) -> VerdictColumns:
    names = [text] if title is None else [text, title]

    def by_row() -> VerdictColumns:
        lists = [frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in names]
        return judge_texts(lists[0], lists[1] if title is not None else None, *settings)

    try:
        import pyarrow
    except ImportError:
        # Without pyarrow, pandas has no Arrow interface: its texts are Python objects anyway.
        return by_row()
    try:
        table = pyarrow.Table.from_pandas(frame[names], preserve_index=False)
    except UnicodeEncodeError:
        # A str may hold half a character, and Arrow's UTF-8 may not.
        return by_row()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise TypeError(f"a column of texts holds something else: {error}") from None
    return judge_stream(table, text, title, *settings)


def _polars(
    polars: Any, frame: Any, text: str, id: str | None, title: str | None, settings: Settings
) -> Any:
    _check(frame.columns, text, id, title)
    if id is not None:
        ids = frame[id]
        gaps = ids.is_null() | ids.is_nan().fill_null(False) if ids.dtype.is_float() else ids.is_null()
        _check_ids(int(gaps.sum()), gaps.arg_true()[0] if gaps.any() else 0, id)
    names = [text] if title is None else [text, title]
    texts = frame.select(names)
    # Polars exports a column without a type in a form that others refuse.
    nulls = [polars.col(name).cast(polars.String) for name in names if texts[name].dtype == polars.Null]
    columns = judge_stream(texts.with_columns(nulls), text, title, *settings)
    _warn(columns)
    added = polars.DataFrame(columns)
    rows = added["duplicate_row"]
    of = rows if id is None else frame[id].gather(rows)
    return frame.hstack(
        [
            added["verdict"],
            added["match_type"],
            of.alias("duplicate_of"),
            added["similarity"],
            added["confidence"],
            added["cluster_id"],
            added["content_kind"],
        ]
    )


def _arrow(data: Any, text: str, id: str | None, title: str | None, settings: Settings) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise TypeError("an Arrow table is returned as one of pyarrow, which is not installed: pip install pyarrow") from None
    try:
        table = data if isinstance(data, pyarrow.Table) else pyarrow.table(data)
    except (pyarrow.ArrowInvalid, TypeError):
        raise TypeError(
            f"dedupe cannot read {type(data).__name__}, which is one column; pass the frame, or a list of texts"
        ) from None
    _check(table.column_names, text, id, title)
    if id is not None:
        ids = table[id]
        gaps = ids.is_null(nan_is_null=True)
        missing = gaps.to_pylist().count(True) if ids.null_count or pyarrow.types.is_floating(ids.type) else 0
        _check_ids(missing, gaps.index(True).as_py() if missing else 0, id)
    names = [text] if title is None else [text, title]
    columns = judge_stream(table.select(names), text, title, *settings)
    _warn(columns)
    added = pyarrow.table(columns)
    rows = added["duplicate_row"]
    of = rows if id is None else table[id].take(rows)
    for name in COLUMNS:
        table = table.append_column(name, of if name == "duplicate_of" else added[name])
    return table
