//! Languages whose shingles are cut otherwise than the language table says (`languages.<code>.shingle`, `Options::with_shingling`):
//! every way in judges by them alike, and a state with fingerprints of another segmentation is refused by name. And the kind
//! of content, which every way in reports.

use serde_json::{Value, json};

use samestory_engine::{Article, ContentKind, Deduplicator, Options, Shingling, VerdictKind};

use super::folder::{Folder, verdicts};

const STORY: &str = "The ferry between Saltmere and Gull Island will run again from Monday after six weeks of repairs, the \
    operator Northline said on Thursday. Engineers replaced both of the engines and a cracked propeller shaft at the yard in \
    Brackwater, at a cost of two million. Nine hundred islanders depend on the crossing, and many have paid for small boats \
    since the breakdown in September. Season tickets will be extended by six weeks, and the council wants a second vessel \
    before the winter storms return to the northern coast.";

/// The text with a wrong letter in every fourth word or so, as a scan brings it: one run of three words in five is
/// hit twice, but most runs of five characters are whole (Jaccard 0.19 and 0.61).
fn scanned(text: &str) -> String {
    let mut since = 0;
    let words = text.split(' ').map(|word| {
        since += 1;
        let letters = word.trim_end_matches(['.', ',']).chars().count();
        if since < 4 || letters < 4 {
            return word.to_owned();
        }
        since = 0;
        let wrong = |(at, c)| if at == letters / 2 { if c == 'x' { 'z' } else { 'x' } } else { c };
        word.chars().enumerate().map(wrong).collect()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Settings under which the similarity of shingles alone decides.
fn settings(english: &str) -> String {
    format!("[match]\nalgorithm = \"minhash\"\n[languages.en]\n{english}\n")
}

const CHARACTERS: &str = "shingle = { characters = 5 }";

fn articles() -> String {
    let line = |id: &str, body: &str| json!({ "id": id, "body": body }).to_string() + "\n";
    line("a", STORY) + &line("b", &scanned(STORY))
}

#[test]
fn two_texts_in_a_language_cut_by_characters_meet_and_are_judged() {
    let folder = Folder::new("segmentation");
    folder.write("articles.ndjson", articles().as_bytes());
    folder.write("a.txt", STORY.as_bytes());
    folder.write("b.txt", scanned(STORY).as_bytes());
    for (name, english, expected) in [
        ("words.toml", "", "unique"),
        ("characters.toml", CHARACTERS, "near-duplicate"),
        ("graphemes.toml", "shingle = { tokenizer = \"grapheme-uax29\" }", "near-duplicate"),
        ("runs.toml", "shingle = { tokenizer = \"shingle-k=3/word-uax29\" }", "unique"),
    ] {
        folder.write(name, settings(english).as_bytes());
        let found = if expected == "unique" { "b unique -" } else { "b near-duplicate a" };
        // One thread decides in batches of its own; the verdicts are those of any number of threads.
        for threads in ["1", "4"] {
            let run = folder.run(&["--config", name, "file", "articles.ndjson", "--threads", threads]);
            assert_eq!(verdicts(&run.stdout), ["a unique -", found], "{name}: {}", run.stderr);
        }
        let compared = folder.run(&["--config", name, "compare", "a.txt", "b.txt", "--format", "json"]);
        let compared: Value = serde_json::from_str(&compared.stdout).unwrap();
        assert_eq!(compared["verdict"], expected, "{name}: {compared}");
    }
}

#[test]
fn the_library_judges_by_the_shingles_of_its_options() {
    let mut options = Options::default();
    options.settings.default.algorithm = samestory_engine::Algorithm::Minhash;
    let characters = options.clone().with_shingling("en", Shingling::characters(5).unwrap()).unwrap();
    assert_ne!(characters.hash(), options.hash());
    assert!(options.clone().with_shingling("klingon", Shingling::words(2).unwrap()).is_err());
    for (options, expected) in [(options, VerdictKind::Unique), (characters, VerdictKind::NearDuplicate)] {
        let pair = || [Article::new("a", STORY), Article::new("b", scanned(STORY))];
        let mut one_by_one = Deduplicator::in_memory(options.clone());
        let single: Vec<_> = pair().into_iter().map(|article| one_by_one.insert(article).unwrap()).collect();
        let batch: Vec<_> =
            Deduplicator::in_memory(options).insert_batch(pair()).into_iter().map(Result::unwrap).collect();
        assert_eq!(single, batch);
        assert_eq!(single[1].kind, expected);
        assert_eq!(one_by_one.compare(STORY, &scanned(STORY)).unwrap().relation.is_duplicate(), {
            expected == VerdictKind::NearDuplicate
        });
    }
}

// What the stage publishes for the records of a partition, without a broker: fingerprints are computed where it reads.
#[cfg(feature = "kafka")]
#[test]
fn a_replay_of_the_bus_judges_by_the_shingles_of_the_settings() {
    use samestory::config::{Config, Settings};
    use samestory::kafka::tools::replay::{Read, replay};

    for (english, expected) in [("", "samestory.unique"), (CHARACTERS, "samestory.near-duplicate")] {
        let written = settings(english) + "[stage]\nmode = \"direct\"\n";
        let config: Config = toml::from_str::<Settings>(&written).unwrap().try_into().unwrap();
        let articles = articles();
        let records = articles.lines().enumerate().map(|(at, line)| Read {
            offset: at as i64,
            time: Some(1_772_000_000_000),
            key: Some(b"en".to_vec()),
            value: Some(line.as_bytes().to_vec()),
            ..Read::default()
        });
        let (sent, _) = replay(&config, 0, 1, records.collect()).unwrap();
        let copy = sent
            .iter()
            .find(|record| record.value.as_deref().is_some_and(|value| value.starts_with(b"{\"id\":\"b\"")));
        assert_eq!(copy.unwrap().topic, expected);
    }
}

// Nothing refused it: old fingerprints stayed and were compared with new ones, to which no text is similar.
#[cfg(feature = "rocksdb")]
#[test]
fn a_state_built_with_another_segmentation_is_refused_by_name() {
    let folder = Folder::new("segmentation-state");
    folder.write("articles.ndjson", articles().as_bytes());
    folder.write("words.toml", settings("").as_bytes());
    folder.write("same.toml", settings("shingle = { words = 3 }").as_bytes());
    folder.write("characters.toml", settings(CHARACTERS).as_bytes());
    let run = |settings| ["--config", settings, "file", "articles.ndjson", "--state", "state"];
    folder.run(&run("words.toml"));
    folder.run(&run("same.toml"));
    let refused = folder.fail(&run("characters.toml"));
    for part in ["state was created with fingerprints of the settings", "`shingle` of the languages"] {
        assert!(refused.contains(part), "{refused}");
    }
    folder.run(&run("words.toml"));
    let library = |options: Options| Deduplicator::open(folder.path().join("library"), options);
    drop(library(Options::default()).unwrap().insert(Article::new("a", STORY)).unwrap());
    let characters = Options::default().with_shingling("en", Shingling::characters(5).unwrap()).unwrap();
    let refused = library(characters).err().unwrap().to_string();
    assert!(refused.contains("`shingle` of the languages"), "{refused}");
    drop(library(Options::default()).unwrap());
}

/// A list of nine items and a table of nine rows, long enough not to be short.
fn list_and_table() -> [String; 2] {
    let lines = |line: &dyn Fn(usize) -> String| (1..=9).map(|n| line(n) + "\n").collect();
    [
        lines(&|n| format!("{n}. The council decided on item {n} of the agenda that evening")),
        lines(&|n| format!("Wheat\tbushels of number {n}\t4{n}2.5\t+{n}.25\tChicago")),
    ]
}

#[test]
fn the_kind_of_content_is_in_the_verdict_and_survives_an_update_without_a_text() {
    let mut dedup = Deduplicator::in_memory(Options::default());
    let [list, table] = list_and_table();
    for (text, kind) in [
        (STORY, ContentKind::Ordinary),
        ("The ferry runs again.", ContentKind::Short),
        (&list, ContentKind::ListLike),
        (&table, ContentKind::TableLike),
    ] {
        assert_eq!(dedup.check(text).unwrap().content_kind, kind, "{text}");
        let id = kind.as_str();
        assert_eq!(dedup.insert(Article::new(id, text)).unwrap().content_kind, kind);
        assert_eq!(dedup.insert(Article::new(id, text)).unwrap().content_kind, kind, "the same again");
        let kept = dedup.insert(Article::new(id, "").title("Another headline")).unwrap();
        assert_eq!(kept.content_kind, kind, "the stored text stays");
    }
}

#[test]
fn files_say_what_kind_of_content_an_article_is() {
    let folder = Folder::new("content-kind");
    let [list, table] = list_and_table();
    let line = |id: &str, body: &str| json!({ "id": id, "body": body }).to_string() + "\n";
    let input = line("ordinary", STORY)
        + &line("short", "Rain.")
        + &line("list-like", &list)
        + &line("table-like", &table);
    let printed = folder.pipe(&["file", "-", "--no-article"], input.as_bytes());
    let kinds: Vec<[String; 2]> = printed
        .stdout
        .lines()
        .map(|line| {
            let verdict: Value = serde_json::from_str(line).unwrap();
            ["id", "content_kind"].map(|key| verdict[key].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(kinds.len(), 4);
    assert!(kinds.iter().all(|[id, kind]| id == kind), "{kinds:?}");
}
