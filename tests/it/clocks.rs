//! Wrong clocks, sparse archives and dates in every notation do not stop deduplication.

use samestory_engine::engine::{Batch, Incoming, Item, Preparer, Settings};
use samestory_engine::index::{Change, Durability, Memory, Store, View};
use samestory_engine::model::{EventTime, Lang, VerdictKind};
use samestory_engine::model::{Flag, RawArticle, Verdict};
use samestory_engine::text::language::find;

use super::engine_fixture::{EngineFixture, article, at, id, line, tagged, trust_declared, window};
use super::folder::{Folder, story as long_story, verdicts};
use super::history::compacted;

const DAY: i64 = 24 * 60 * 60 * 1000;
const MARCH_2026: i64 = 1_772_431_800_000;
const YEAR_2031: i64 = 1_924_992_000_000;

fn english() -> Lang {
    find("en").unwrap().lang
}

fn story(number: u64) -> String {
    window(number, 100, 80, 0, 0)
}

/// An article whose record has this time, and which has no `fetched_at`.
fn recorded(fixture: &mut EngineFixture, name: &str, body: &str, record: i64) -> Verdict {
    let prepared = Preparer::new(trust_declared()).prepare(&article(name, body), &line(1)).unwrap();
    tagged(&fixture.submit(at(record), Incoming::Article(Box::new(prepared)))).cloned().unwrap()
}

fn stream_time(store: &Memory) -> Option<i64> {
    store.counters(english()).unwrap().stream_time.map(EventTime::millis)
}

// A single record time in 2031 became the stream time of its language: everything before it expired, and
// nothing was stored until 2031. Every copy was `unique` from then on.
#[test]
fn one_wrong_clock_does_not_end_deduplication_of_its_language() {
    for wrong_at in [0, 3, 50] {
        let mut fixture = EngineFixture::new(Settings::default());
        for n in 0..100 {
            if n == wrong_at {
                let ahead = recorded(&mut fixture, "wrong", &story(1_000), YEAR_2031);
                assert_eq!(ahead.kind, VerdictKind::Unique);
                // Before the fifth article there is no stream time to be ahead of.
                assert_eq!(ahead.flags.contains(&Flag::AheadOfStream), n > 0, "{:?}", ahead.flags);
            }
            let now = MARCH_2026 + n as i64 * 60_000;
            assert_eq!(recorded(&mut fixture, &format!("a{n}"), &story(n), now).flags, []);
            let copy = recorded(&mut fixture, &format!("copy{n}"), &story(n), now);
            assert_eq!((copy.duplicate_of, &copy.flags[..]), (Some(id(&format!("a{n}"))), &[][..]));
        }
        let late = MARCH_2026 + 6_000_000;
        let copy = recorded(&mut fixture, "late", &story(1_000), late);
        assert_eq!(copy.duplicate_of, Some(id("wrong")), "an article ahead of stream time is stored");
        assert!(stream_time(fixture.store()).unwrap() < late);
    }
}

#[test]
fn four_wrong_clocks_do_nothing_and_an_operator_corrects_five() {
    let mut fixture = EngineFixture::new(Settings::default());
    for n in 0..10 {
        recorded(&mut fixture, &format!("a{n}"), &story(n), MARCH_2026);
    }
    for n in 0..4 {
        recorded(&mut fixture, &format!("w{n}"), &story(100 + n), YEAR_2031);
        // The same article again counts as the same clock.
        recorded(&mut fixture, &format!("w{n}"), &story(100 + n), YEAR_2031 + n as i64);
    }
    assert_eq!(stream_time(fixture.store()), Some(MARCH_2026));
    recorded(&mut fixture, "w4", &story(104), YEAR_2031);
    assert_eq!(stream_time(fixture.store()), Some(YEAR_2031), "five articles agree");
    let lost = recorded(&mut fixture, "lost", &story(9), MARCH_2026 + DAY);
    assert_eq!((lost.kind, &lost.flags[..]), (VerdictKind::Unique, &[Flag::Expired][..]));
    let set = |language, millis| Incoming::SetStreamTime { language, at: EventTime::from_millis(millis) };
    let item = fixture.item(None, set(english(), MARCH_2026 + DAY));
    let plan = fixture.run(vec![item]);
    assert_eq!((plan.stats.stream_times_set, plan.outputs().count()), (1, 0));
    let found = recorded(&mut fixture, "found", &story(9), MARCH_2026 + DAY);
    assert_eq!(
        (found.duplicate_of, &found.flags[..]),
        (Some(id("a9")), &[][..]),
        "what is left is live again"
    );
    // It does not create a language that never occurred: the record may go to every partition.
    let german = find("de").unwrap().lang;
    let item = fixture.item(None, set(german, MARCH_2026));
    assert_eq!(fixture.run(vec![item]).stats.stream_times_set, 0);
    assert!(!fixture.store().progress().unwrap().languages.contains_key(&german));
}

/// Ten years of an archive with months between two articles and a copy of each on the same day; then a live
/// stream of one article per minute.
fn decade_then_live() -> Vec<(String, u64, i64)> {
    let mut articles = Vec::new();
    let mut now = MARCH_2026 - 3_650 * DAY;
    for n in 0..60 {
        now += DAY * (20 + n as i64 * 13 % 80);
        articles.push((format!("old{n}"), n, now));
        articles.push((format!("old{n}-copy"), n, now + DAY / 24));
    }
    assert!(now < MARCH_2026);
    for n in 100..140 {
        let live = MARCH_2026 + n as i64 * 60_000;
        articles.push((format!("live{n}"), n, live));
        articles.push((format!("live{n}-copy"), n, live));
    }
    articles
}

fn items(articles: &[(String, u64, i64)]) -> Vec<Item> {
    let item = |(n, (name, number, time)): (usize, &(String, u64, i64))| {
        let position = line(n as u64 + 1);
        let fetched = RawArticle { fetched_at: at(*time), ..article(name, &story(*number)) };
        let prepared = Preparer::new(trust_declared()).prepare(&fetched, &position).unwrap();
        Item { position, time: at(*time), log_time: None, incoming: Incoming::Article(Box::new(prepared)) }
    };
    articles.iter().enumerate().map(item).collect()
}

#[test]
fn ten_years_of_backfill_with_gaps_advance_stream_time_until_it_is_live() {
    let articles = decade_then_live();
    let mut fixture = EngineFixture::new(Settings::default());
    let plan = fixture.run(items(&articles));
    for ((name, number, _), decided) in articles.iter().zip(&plan.decided) {
        let tagged = tagged(&decided.outputs).unwrap();
        let original = name.strip_suffix("-copy").map(id);
        assert_eq!(tagged.duplicate_of, original, "{name}: {tagged:?}");
        assert!(!tagged.flags.contains(&Flag::Expired), "{name} of story {number}");
    }
    let last = articles.last().unwrap().2;
    let behind = last - stream_time(fixture.store()).unwrap();
    assert!((0..DAY).contains(&behind), "stream time is {behind} ms behind");
    // The archive has expired, and the live stream removes it step by step.
    assert!(plan.stats.expired > 100, "{:?}", plan.stats);
}

#[test]
fn an_archive_that_follows_a_live_stream_arrives_expired() {
    let mut articles = decade_then_live();
    articles.rotate_left(120);
    let mut fixture = EngineFixture::new(Settings::default());
    let plan = fixture.run(items(&articles));
    let flags = |at: usize| &tagged(&plan.decided[at].outputs).unwrap().flags;
    assert!((0..80).all(|at| flags(at).is_empty()));
    assert!(
        (80..200).all(|at| flags(at).contains(&Flag::Expired)),
        "an archive does not turn the clock back"
    );
    let copy = fixture.run(items(&[("again".to_owned(), 139, MARCH_2026 + 140 * 60_000)]));
    assert_eq!(tagged(&copy.decided[0].outputs).unwrap().duplicate_of, Some(id("live139")));
}

#[test]
fn any_batching_and_a_restore_from_the_compacted_log_give_the_same_state() {
    let mut articles = decade_then_live();
    // They include wrong clocks, one of which votes until the end.
    for at in [0, 31, 77, 150, 199] {
        articles[at].2 = YEAR_2031 + at as i64;
    }
    let mut items = items(&articles);
    let set = Incoming::SetStreamTime { language: english(), at: EventTime::from_millis(MARCH_2026) };
    items.insert(160, Item { position: line(1_000), time: None, log_time: None, incoming: set });
    let mut whole = EngineFixture::new(Settings::default());
    let at_once = whole.run(items.clone());
    assert!(!whole.store().counters(english()).unwrap().votes.is_empty());
    for size in [1, 7, 64] {
        let mut fixture = EngineFixture::new(Settings::default());
        let (mut decided, mut log) = (Vec::new(), Vec::new());
        for piece in items.chunks(size) {
            let batch = Batch { items: piece.to_vec(), ..Batch::default() };
            let plan = fixture.dedup.plan(batch).unwrap().0;
            fixture.dedup.store_mut().apply_own_changes(&plan.changes).unwrap();
            decided.extend(plan.decided);
            log.extend(plan.changes);
        }
        assert_eq!(decided, at_once.decided, "batches of {size}");
        assert_eq!(fixture.store().dump().unwrap(), whole.store().dump().unwrap(), "batches of {size}");
        let mut restored = Memory::new(fixture.store().postings().clone(), Durability::OwnWal);
        for change in compacted(&log) {
            let (key, value) = change.encode();
            let read = Change::decode(&key, value.as_deref()).unwrap();
            restored.apply_own_changes(&[read]).unwrap();
        }
        assert_eq!(
            restored.dump().unwrap(),
            fixture.store().dump().unwrap(),
            "restored from the compacted log"
        );
    }
}

fn timed_line(name: &str, number: usize, time: &str) -> String {
    format!(
        "{{\"id\":\"{name}\",\"lang\":\"en\",\"text\":{:?},\"crawl_date\":{time}}}\n",
        long_story(number, "")
    )
}

// One line with a `fetched_at` in 2100 expired every line before it, and no line after it was stored.
#[test]
fn one_line_of_the_year_2100_does_not_end_deduplication_in_a_file() {
    let folder = Folder::new("line-of-2100");
    let mut lines = String::new();
    for n in 0..20 {
        if n == 10 {
            lines += &timed_line("wrong", 999, "\"2099-12-31T23:59:59Z\"");
        }
        let time = format!("\"2026-03-02T06:{n:02}:00Z\"");
        lines += &timed_line(&format!("a{n}"), n, &time);
        lines += &timed_line(&format!("b{n}"), n, &time);
    }
    folder.write("in.ndjson", lines.as_bytes());
    let printed = folder.run(&["file", "in.ndjson", "--quiet", "--retention", "7d"]).stdout;
    let copies = verdicts(&printed).iter().filter(|line| line.contains("exact-duplicate")).count();
    assert_eq!(copies, 20, "{printed}");
}

// `"crawl_date":"20260303"` was read as seconds since 1970, which is August 1970: among articles with a time
// of day the article arrived expired, and its byte-identical copy was `unique`.
#[test]
fn compact_dates_and_warc_timestamps_are_dates() {
    let folder = Folder::new("compact-dates");
    let mut lines = String::new();
    for n in 0..8 {
        lines += &timed_line(&format!("a{n}"), n, "\"2026-03-03T06:10:00Z\"");
    }
    let dates = ["\"20260303\"", "20260303", "\"20260303061000\"", "20260303061000", "\"20260303T061000Z\""];
    for (n, date) in dates.iter().enumerate() {
        lines += &timed_line(&format!("c{n}"), 100 + n, date);
        lines += &timed_line(&format!("d{n}"), 100 + n, date);
    }
    folder.write("in.ndjson", lines.as_bytes());
    let printed = folder.run(&["file", "in.ndjson", "--quiet", "--retention", "7d"]).stdout;
    assert!(!printed.contains("expired"), "{printed}");
    let found = verdicts(&printed);
    for (n, date) in dates.iter().enumerate() {
        let copy = format!("d{n} exact-duplicate c{n}");
        assert!(found.contains(&copy), "{date} is not found: {found:?}");
    }
}

// If the settings named an id column that the table lacked, every row silently became a separate article
// named after its line.
#[test]
fn a_missing_id_column_makes_dead_letters() {
    let folder = Folder::new("no-such-column");
    folder.write("in.csv", b"uid,text\n1,one text\n2,another text\n");
    let (_, printed) = folder.start(&["file", "in.csv", "--field", "id=uuid", "--quiet"], b"");
    assert!(printed.stderr.contains("missing field \"uuid\""), "{}", printed.stderr);
    assert_eq!(verdicts(&printed.stdout), [""; 0]);
    // On request, file and line replace it.
    let printed = folder.run(&["file", "in.csv", "--field", "id=uuid", "--id", "line", "--quiet"]);
    assert_eq!(printed.stdout.lines().count(), 2);
    assert_eq!(folder.run(&["file", "in.csv", "--field", "id=uid", "--quiet"]).stdout.lines().count(), 2);
}

#[cfg(feature = "rocksdb")]
#[test]
fn the_stream_time_of_a_file_state_can_be_set() {
    let folder = Folder::trust_declared("file-stream-time");
    let lines: String = (0..6).map(|n| timed_line(&format!("a{n}"), n, "\"2031-01-01\"")).collect();
    folder.write("in.ndjson", lines.as_bytes());
    folder.run(&["file", "in.ndjson", "--retention", "7d", "--state", "state", "-o", "out", "--quiet"]);
    let inspect = || folder.run(&["state", "inspect", "state", "--json"]).stdout;
    assert!(inspect().contains("2031-01-01T00:00:00Z"), "{}", inspect());
    let set = |time: &str| ["state", "set-stream-time", "en", time, "--state", "state"].map(str::to_owned);
    let printed = folder.run(&set("2026-03-02").each_ref().map(String::as_str)).stdout;
    assert!(printed.contains("stream time of en is 2026-03-02T00:00:00Z"), "{printed}");
    assert!(inspect().contains("2026-03-02T00:00:00Z") && !inspect().contains("2031"), "{}", inspect());
    let future = folder.fail(&set("2099-01-01").each_ref().map(String::as_str));
    assert!(future.contains("in the future"), "{future}");
    let wrong = folder.fail(&set("soon").each_ref().map(String::as_str));
    assert!(wrong.contains("\"soon\" is not a time"), "{wrong}");
}
