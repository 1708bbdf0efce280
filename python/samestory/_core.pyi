"""The types of the compiled module."""

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal

VerdictKind = Literal["unique", "near-duplicate", "exact-duplicate"]
ContentKind = Literal["ordinary", "short", "list-like", "table-like"]
Shingle = Mapping[str, Mapping[str, int | str]]

HAS_ROCKSDB: bool
"""Whether this build keeps an index on disk: ``Deduplicator(path)``."""

class SamestoryError(Exception):
    """The base of the errors that samestory raises."""

class RejectedError(SamestoryError):
    """An article cannot be judged, for example because its text is over the limit of 1 MiB. Nothing was stored."""

class StoreError(SamestoryError):
    """An index cannot be read or written. Open it again."""

class Verdict:
    """The verdict on an article that was inserted."""

    id: str
    verdict: VerdictKind
    match_type: str | None
    """How a duplicate matches: exact, near, rewritten or partial."""
    duplicate_of: str | None
    """The best match."""
    similarity: float
    containment: float
    """Share of the text that lies in the best match."""
    confidence: float
    """Probability that an editor would agree."""
    cluster_id: str
    canonical_id: str
    """The article that represents the cluster."""
    revision: int
    """How often the text of this id has changed."""
    language: str
    content_kind: ContentKind
    """What the text is: running text, fewer than fifty words, mostly items, or mostly rows of cells. No verdict depends on it."""
    flags: list[str]
    @property
    def is_duplicate(self) -> bool: ...

class Answer:
    """The verdict that a text would get if it were inserted now."""

    verdict: VerdictKind
    match_type: str | None
    duplicate_of: str | None
    similarity: float
    containment: float
    confidence: float
    content_kind: ContentKind
    @property
    def is_duplicate(self) -> bool: ...

class Similar:
    """An indexed article that resembles a text."""

    id: str
    title: str | None
    host: str | None
    similarity: float
    relation: str

class Comparison:
    """How two texts are related."""

    relation: str
    """exact, near, rewritten, partial, extends, same-template, follow-up, same-furniture or different."""
    is_duplicate: bool
    similarity: float
    containment: float
    confidence: float

class Fingerprint:
    """The parts of a text that are compared."""

    language: str
    content_hash: str
    """XXH3-128 of the normalised text, as hex digits."""
    simhash128: str
    simhash64: str
    minhash: list[int]
    """128 lanes of 16 bits."""
    tokens: int
    shingles: int

class Deduplicator:
    """Finds articles whose text was seen before. Threads may share one: calls that read run side by side.

    >>> with Deduplicator() as dedup:
    ...     first = dedup.insert("a1", "some text")
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        min_confidence: float | None = None,
        shingle: Shingle | None = None,
    ) -> None:
        """An empty index in memory, or the one in a directory, which is created if there is none.

        Args:
            min_confidence: From this confidence on an article is a duplicate (default 0.5).
            shingle: How the shingles of a language are cut, in place of the language table: ``{"en": {"characters": 5}}``,
                ``{"words": 3}`` or ``{"tokenizer": "grapheme-uax29"}``. ``und`` is for texts in no known language. Related
                languages, such as Danish and Norwegian, share the setting.

        Raises:
            ValueError: A setting cannot be used.
            StoreError: The directory is in use, or was written with other settings.
            NotImplementedError: This build has no RocksDB (:data:`HAS_ROCKSDB`).
        """

    def insert(
        self,
        id: str | int,
        text: str,
        *,
        title: str | None = None,
        url: str | None = None,
        host: str | None = None,
        language: str | None = None,
        content_type: str | None = None,
    ) -> Verdict:
        """Judges an article and stores it. A known id is an update: its old text leaves the index first.

        Raises:
            RejectedError: The id is empty or longer than 512 bytes, or the text is over the limit.
            TypeError: The id is neither a str nor an int.
        """

    def insert_batch(
        self, articles: Iterable[tuple[str | int, str] | Mapping[str, Any]]
    ) -> list[Verdict | RejectedError]:
        """Judges and stores articles in their order; fingerprints are made on all cores. An article is ``(id, text)`` or a
        mapping with the parameters of :meth:`insert`. One result for each: an article that cannot be judged gives its
        error, and the others are stored.
        """

    def check(self, text: str) -> Answer:
        """The verdict that a text would get if it were inserted now. Stores nothing."""

    def similar(self, text: str, limit: int = 10) -> list[Similar]:
        """The indexed articles that resemble a text most, the most similar first."""

    def remove(self, id: str | int) -> bool:
        """Removes an article. False if the id is not known."""

    def close(self) -> None:
        """Closes the index, so that its directory can be opened again. Later calls are a ValueError."""

    def __contains__(self, id: str | int) -> bool: ...
    def __enter__(self) -> Deduplicator: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

class VerdictColumns:
    """The verdicts of many texts, as columns: verdict, match_type, duplicate_row, similarity, confidence, cluster_id,
    content_kind. An Arrow stream to any library: ``polars.DataFrame(columns)``, ``pyarrow.table(columns)``."""

    missing: list[int]
    """Rows without a text."""
    rejected: list[tuple[int, str]]
    """Rows whose text cannot be judged, and why."""
    columns: list[str]
    def column(self, name: str) -> list[Any]:
        """A column as a list; None where a row has no verdict."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

def compare(older: str, newer: str) -> Comparison:
    """Compares two texts under default settings. The second one counts as the newer."""

def fingerprint(text: str) -> Fingerprint:
    """Computes what is compared of a text. Equal texts up to case, spaces and Unicode forms have equal hashes."""

def judge_stream(
    data: Any,
    text: str,
    title: str | None = None,
    min_confidence: float | None = None,
    shingle: Shingle | None = None,
) -> VerdictColumns: ...
def judge_texts(
    texts: list[str | None],
    titles: list[str | None] | None = None,
    min_confidence: float | None = None,
    shingle: Shingle | None = None,
) -> VerdictColumns: ...
