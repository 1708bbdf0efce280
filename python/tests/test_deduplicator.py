"""Single texts, and the index that grows."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import samestory
from articles import FERRY, FERRY_EDITED, HARVEST, story


def test_compare_says_what_the_newer_text_is_to_the_older():
    copy = samestory.compare(FERRY, FERRY_EDITED)
    assert copy.is_duplicate and copy.relation == "near" and copy.confidence > 0.5
    other = samestory.compare(FERRY, HARVEST)
    assert not other.is_duplicate and other.similarity < 0.2
    assert "relation='near'" in repr(copy).replace('"', "'")


def test_equal_texts_have_equal_fingerprints_whatever_their_case_and_spaces():
    one, other = samestory.fingerprint(FERRY), samestory.fingerprint("  " + FERRY.upper().replace(" ", "\n"))
    assert one.content_hash == other.content_hash and one.minhash == other.minhash
    assert len(one.minhash) == 128 and len(one.simhash128) == 32 and one.language == "en"
    assert samestory.fingerprint(HARVEST).content_hash != one.content_hash


def test_an_edited_copy_is_a_near_duplicate_of_the_first():
    dedup = samestory.Deduplicator()
    first = dedup.insert("a1", FERRY, title="Ferry runs again", url="https://news.example/a1")
    assert (first.verdict, first.duplicate_of, first.is_duplicate) == ("unique", None, False)
    copy = dedup.insert("a2", FERRY_EDITED)
    assert (copy.verdict, copy.match_type, copy.duplicate_of) == ("near-duplicate", "near", "a1")
    assert copy.is_duplicate and copy.cluster_id == first.cluster_id and copy.canonical_id == "a1"
    assert dedup.insert(3, HARVEST).id == "3"
    similar = dedup.similar(FERRY, limit=5)
    assert [one.id for one in similar] == ["a1", "a2"] and similar[0].similarity == 1
    assert (similar[0].title, similar[0].host) == ("Ferry runs again", "news.example")


def test_a_check_stores_nothing_and_a_removed_article_is_no_match():
    dedup = samestory.Deduplicator()
    assert dedup.check(FERRY).verdict == "unique" and dedup.check(FERRY).verdict == "unique"
    dedup.insert("a1", FERRY)
    assert dedup.check(FERRY).duplicate_of == "a1" and "a1" in dedup and 5 not in dedup
    assert dedup.remove("a1") and not dedup.remove("a1")
    assert not dedup.check(FERRY).is_duplicate and "a1" not in dedup


def test_a_batch_gives_what_one_insert_after_the_other_gives():
    articles = [(n, story(n % 30)) for n in range(60)]
    alone = samestory.Deduplicator()
    expected = [repr(alone.insert(*article)) for article in articles]
    assert [repr(one) for one in samestory.Deduplicator().insert_batch(articles)] == expected
    mappings = ({"id": n, "text": text, "title": None} for n, text in articles)
    assert [repr(one) for one in samestory.Deduplicator().insert_batch(mappings)] == expected


def test_an_article_that_cannot_be_judged_has_an_error_of_its_own():
    dedup = samestory.Deduplicator()
    results = dedup.insert_batch([("a", FERRY), ("", FERRY), ("b", "x" * 5_000_000), ("c", FERRY)])
    assert [type(one) for one in results] == [
        samestory.Verdict,
        samestory.RejectedError,
        samestory.RejectedError,
        samestory.Verdict,
    ]
    assert results[3].duplicate_of == "a"
    with pytest.raises(samestory.RejectedError, match="limit|bytes"):
        dedup.insert("d", "x" * 5_000_000)
    assert issubclass(samestory.RejectedError, samestory.SamestoryError)


@pytest.mark.parametrize("wrong", [float("nan"), None, 1.5, True, b"a1"])
def test_an_id_of_another_type_is_a_type_error_that_says_so(wrong):
    dedup = samestory.Deduplicator()
    with pytest.raises(TypeError, match="an id is a str or an int"):
        dedup.insert(wrong, FERRY)
    with pytest.raises(TypeError, match="article 1: an id is a str or an int"):
        dedup.insert_batch([("a", FERRY), (wrong, FERRY)])
    # Nothing of the batch was stored.
    assert "a" not in dedup


def test_wrong_arguments_are_refused_with_the_fix():
    with pytest.raises(TypeError, match=r"article 0: .*pass \(id, text\) or a dict"):
        samestory.Deduplicator().insert_batch(["abc"])
    with pytest.raises(TypeError):
        samestory.Deduplicator().insert("a", None)
    with pytest.raises(ValueError, match="from 0 to 1"):
        samestory.Deduplicator(min_confidence=1.5)


def test_a_higher_confidence_keeps_more_apart():
    strict = samestory.Deduplicator(min_confidence=1.0)
    strict.insert("a1", FERRY)
    assert not strict.insert("a2", FERRY_EDITED).is_duplicate


def test_a_closed_index_says_so():
    with samestory.Deduplicator() as dedup:
        dedup.insert("a1", FERRY)
    for call in (lambda: dedup.check(FERRY), lambda: dedup.insert("a2", FERRY)):
        with pytest.raises(ValueError, match="closed"):
            call()
    dedup.close()


def test_many_threads_share_an_index():
    dedup = samestory.Deduplicator()
    with ThreadPoolExecutor(16) as pool:
        inserted = list(pool.map(lambda n: dedup.insert(n, story(n % 50)), range(400)))
        checked = list(pool.map(lambda n: dedup.check(story(n)), range(100)))
    # Whatever the order: of every text, one came first.
    assert sum(not one.is_duplicate for one in inserted) == 50
    assert [one.is_duplicate for one in checked] == [True] * 50 + [False] * 50


def test_other_threads_run_while_texts_are_compared():
    """A call that held the interpreter lock would let the counter stand still."""
    count, stop = 0, threading.Event()

    def counting():
        nonlocal count
        while not stop.is_set():
            count += 1

    texts = [story(n) * 20 for n in range(300)]
    thread = threading.Thread(target=counting)
    thread.start()
    try:
        before = count
        samestory.dedupe(texts)
        during = count - before
    finally:
        stop.set()
        thread.join()
    assert during > 1000


def test_an_index_on_disk_remembers(tmp_path):
    if not samestory.HAS_ROCKSDB:
        with pytest.raises(NotImplementedError, match="built without RocksDB"):
            samestory.Deduplicator(tmp_path / "state")
        return
    with samestory.Deduplicator(tmp_path / "state") as dedup:
        dedup.insert("a1", FERRY)
        with pytest.raises(samestory.StoreError):
            samestory.Deduplicator(tmp_path / "state")
    with samestory.Deduplicator(str(tmp_path / "state")) as again:
        assert again.insert("a2", FERRY_EDITED).duplicate_of == "a1"
    with pytest.raises(samestory.StoreError):
        samestory.Deduplicator(tmp_path / "state", shingle={"en": {"characters": 5}})


ROWS = "\n".join(f"| team {n} | {n} | {3 * n} | {n % 7} | 0.{n} |" for n in range(10, 40))
ITEMS = "\n".join(f"- {word} from the market" for word in ["apples", "pears", "plums", "leeks"] * 6)


@pytest.mark.parametrize(
    ("text", "kind"),
    [(FERRY, "ordinary"), ("Ferry runs again.", "short"), (ITEMS, "list-like"), (ROWS, "table-like")],
)
def test_a_verdict_names_the_kind_of_content(text, kind):
    dedup = samestory.Deduplicator()
    assert dedup.check(text).content_kind == kind and dedup.insert("a1", text).content_kind == kind
    assert samestory.dedupe([text]).column("content_kind") == [kind]


def test_shingles_of_a_language_are_those_of_the_setting():
    def similarity(**settings):
        dedup = samestory.Deduplicator(**settings)
        dedup.insert("a1", FERRY)
        return dedup.insert("a2", FERRY_EDITED).similarity

    usual = similarity()
    characters = similarity(shingle={"en": {"characters": 5}})
    assert characters > usual, "an edited word has fewer of the runs of characters than of words"
    assert similarity(shingle={"en": {"words": 3}, "und": {"characters": 5}}) == usual
    assert similarity(shingle={"en": {"tokenizer": "shingle-k=5/grapheme-uax29"}}) not in (usual, characters)
    assert similarity(shingle={"fr": {"characters": 5}}) == similarity(shingle={}) == usual
    frames = samestory.dedupe([FERRY, FERRY_EDITED], shingle={"en": {"characters": 5}})
    assert frames.column("similarity")[1] == characters


@pytest.mark.parametrize(
    ("shingle", "message"),
    [
        ({"en": {"characters": 0}}, r"^shingle=\{'en': \{'characters': 0\}\}: 0 tokens per shingle; use 1 to 64$"),
        ({"xx": {"words": 3}}, "'xx'.*not a language of the table"),
        ({"en": {"tokenizer": "words"}}, "not a tokeniser; use word-uax29"),
        ({"en": {"tokenizer": "cjk-jieba"}}, "feature jieba"),
        ({"en": {"words": 3, "characters": 5}}, r"are \{'words': n\}, \{'characters': n\} or \{'tokenizer': name\}$"),
        ({"en": {"letters": 5}}, r"are \{'words': n\}"),
        ({"en": {"words": -1}}, r"are \{'words': n\}"),
        ({"en": {"words": True}}, r"are \{'words': n\}"),
        ({"en": {"tokenizer": 5}}, r"are \{'words': n\}"),
        ({"en": 5}, r"are \{'words': n\}"),
        ({5: {"words": 3}}, "a language is a str"),
    ],
)
def test_shingles_that_cannot_be_cut_are_refused_by_name(shingle, message):
    for call in (lambda: samestory.Deduplicator(shingle=shingle), lambda: samestory.dedupe([FERRY], shingle=shingle)):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="shingle"):
        samestory.Deduplicator(shingle=5)
