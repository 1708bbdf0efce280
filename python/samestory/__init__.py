"""Finds articles whose text has been seen before: word for word, lightly edited, re-headlined, truncated, or wrapped in
another site's boilerplate.

    >>> import samestory
    >>> dedup = samestory.Deduplicator()
    >>> dedup.insert("a1", "The ferry runs again from Monday, the operator said on Thursday.").verdict
    'unique'
    >>> dedup.insert("a2", "The ferry runs again from Monday, the operator said on Thursday.").duplicate_of
    'a1'

``dedupe`` judges a whole frame of pandas, Polars or Arrow. A verdict is a function of the articles before it: the same articles
in the same order give the same verdicts on every machine, and they are those of the ``samestory`` program.
"""

from ._core import (
    HAS_ROCKSDB,
    Answer,
    Comparison,
    Deduplicator,
    Fingerprint,
    RejectedError,
    SamestoryError,
    Similar,
    StoreError,
    Verdict,
    VerdictColumns,
    compare,
    fingerprint,
)
from ._frames import dedupe

__all__ = [
    "HAS_ROCKSDB",
    "Answer",
    "Comparison",
    "Deduplicator",
    "Fingerprint",
    "RejectedError",
    "SamestoryError",
    "Similar",
    "StoreError",
    "Verdict",
    "VerdictColumns",
    "compare",
    "dedupe",
    "fingerprint",
]
