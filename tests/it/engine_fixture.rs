//! An engine with its state, and articles to feed it: shared by the tests of verdicts.

use samestory_engine::Deduplicator;
use samestory_engine::engine::compare::Rules;
use samestory_engine::engine::{Batch, Engine, Incoming, Item, Output, Plan, Settings};
use samestory_engine::fingerprint::LANES;
use samestory_engine::index::{IndexScheme, IndexSchemes, Memory, SimHashBands, Store};
use samestory_engine::lsh::Banding;
use samestory_engine::model::{ArticleId, BoundedStr, EventTime, Position};
use samestory_engine::model::{ClusterRecord, RawArticle, Verdict};
use samestory_engine::text::Options;
use samestory_engine::text::language::{Trust, find};

/// The default index schemes.
pub(crate) fn index_schemes(threshold: f64, shortest: u32) -> IndexSchemes {
    let banding = Banding::for_recall(threshold, 0.99, LANES).unwrap();
    IndexSchemes::new(IndexScheme {
        minhash: Some(banding),
        simhash: SimHashBands::None,
        samples: Engine::POSTED_SAMPLES,
        shortest,
    })
}

/// Invented words belong to no language, so the declared one is trusted.
pub(crate) fn trust_declared() -> Options {
    Options { trust: Trust::Declared, ..Options::default() }
}

pub(crate) fn id(id: &str) -> ArticleId {
    ArticleId::new(id).unwrap()
}

pub(crate) fn at(millis: i64) -> Option<EventTime> {
    Some(EventTime::from_millis(millis))
}

pub(crate) fn line(line: u64) -> Position {
    Position::File { file: BoundedStr::new("test.ndjson"), line }
}

pub(crate) fn article(name: &str, body: &str) -> RawArticle {
    RawArticle {
        id: id(name),
        body: body.to_owned(),
        title: Some(format!("About {name}")),
        url: Some(format!("https://{name}.example/news")),
        host: None,
        language: Some("en".to_owned()),
        content_type: Some("text/plain".to_owned()),
        published_at: None,
        fetched_at: None,
    }
}

/// The front door with settings for invented words: every batch is planned and applied.
pub(crate) struct EngineFixture {
    pub(crate) dedup: Deduplicator,
    schemes: IndexSchemes,
    next: u64,
}

impl EngineFixture {
    pub(crate) fn new(settings: Settings) -> EngineFixture {
        let rules = settings.default.rules;
        EngineFixture::with(settings, index_schemes(rules.threshold, Rules::SHORTEST))
    }

    pub(crate) fn with(settings: Settings, schemes: IndexSchemes) -> EngineFixture {
        let options = samestory_engine::Options::with_schemes(trust_declared(), settings, schemes.clone());
        EngineFixture { dedup: Deduplicator::in_memory(options), schemes, next: 1 }
    }

    /// The same index under other settings, as after a restart.
    pub(crate) fn restart(&mut self, settings: Settings) {
        let schemes = self.schemes.clone();
        let options = samestory_engine::Options::with_schemes(trust_declared(), settings, schemes);
        self.dedup = Deduplicator::with_store(options, self.store().clone());
    }

    pub(crate) fn store(&self) -> &Memory {
        self.dedup.store()
    }

    pub(crate) fn item(&mut self, time: Option<EventTime>, incoming: Incoming) -> Item {
        let position = line(self.next);
        self.next += 1;
        Item { position, time, log_time: None, incoming }
    }

    pub(crate) fn run(&mut self, items: Vec<Item>) -> Plan {
        // Applied change by change, as a restore applies the changelog.
        let plan = self.dedup.plan(Batch { items, ..Batch::default() }).unwrap().0;
        self.dedup.store_mut().apply_own_changes(&plan.changes).unwrap();
        plan
    }

    /// All outputs for one input.
    pub(crate) fn submit(&mut self, time: Option<EventTime>, incoming: Incoming) -> Vec<Output> {
        let item = self.item(time, incoming);
        self.run(vec![item]).decided.remove(0).outputs
    }

    /// All outputs for one article.
    pub(crate) fn article(&mut self, article: &RawArticle) -> Vec<Output> {
        let prepared = self.dedup.prepare(article).unwrap();
        self.submit(article.fetched_at, Incoming::Article(Box::new(prepared)))
    }

    /// The verdict on one article.
    pub(crate) fn tag(&mut self, article: &RawArticle) -> Verdict {
        tagged(&self.article(article)).cloned().unwrap()
    }

    /// Sets the stream time of English, without the articles that it would otherwise take.
    pub(crate) fn set_stream_time(&mut self, millis: i64) {
        let (language, at) = (find("en").unwrap().lang, EventTime::from_millis(millis));
        assert_eq!(self.submit(None, Incoming::SetStreamTime { language, at }), []);
    }

    pub(crate) fn delete(&mut self, name: &str) -> Vec<Output> {
        self.submit(None, Incoming::Delete(id(name)))
    }
}

pub(crate) fn tagged(outputs: &[Output]) -> Option<&Verdict> {
    outputs.iter().find_map(|output| match output {
        Output::Tagged(tagged) => Some(&**tagged),
        _ => None,
    })
}

pub(crate) fn clusters(outputs: &[Output]) -> Vec<&ClusterRecord> {
    let clusters = outputs.iter().filter_map(|output| match output {
        Output::Cluster(cluster) => Some(&**cluster),
        _ => None,
    });
    clusters.collect()
}

/// Our own random generator, so that a seed gives the same history on every machine.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A word of letters only, different for different seeds.
pub(crate) fn word(seed: u64) -> String {
    let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    (0..7).map(|_| char::from(b'a' + dice.below(26) as u8)).collect()
}

/// A window on an endless text. Overlapping windows are versions and parts of each other. Another `edition`
/// changes every number, and a non-zero `edit` replaces one word.
pub(crate) fn window(family: u64, from: u64, words: u64, edition: u64, edit: u64) -> String {
    let at = |index: u64| {
        if index % 12 == 5 {
            return (1_000 + family * 100_000 + index * 10 + edition).to_string();
        }
        if edit > 0 && index == from + edit { word(edit << 40 | index) } else { word(family << 20 | index) }
    };
    (from..from + words).map(at).collect::<Vec<_>>().join(" ")
}

/// A text with every fifth word replaced by a unique one: two fifths of the phrases remain.
pub(crate) fn rewrite(text: &str, own: u64) -> String {
    let words = text.split(' ').enumerate();
    let rewritten =
        words.map(|(at, old)| match at % 5 == 1 && !old.starts_with(|c: char| c.is_ascii_digit()) {
            true => word(own << 40 | at as u64),
            false => old.to_owned(),
        });
    rewritten.collect::<Vec<_>>().join(" ")
}

/// A news story: sentences of fourteen words with two names and a number in each, none of which occur in
/// another story.
pub(crate) fn news(story: u64, words: u64) -> String {
    edited_news(story, words, 0, 0)
}

/// The same story with `edits` of its words replaced, different ones in every copy. Names and numbers stay.
pub(crate) fn edited_news(story: u64, words: u64, copy: u64, edits: u64) -> String {
    let mut dice = Dice(copy << 20 | story);
    let replaced: Vec<u64> = (0..edits).map(|_| dice.below(words / 14) * 14 + 6 + dice.below(3)).collect();
    let at = |place: u64| {
        let plain = match replaced.contains(&place) {
            true => word(copy << 40 | place),
            false => word(story << 20 | place),
        };
        match place % 14 {
            0 | 4 | 5 => plain[..1].to_uppercase() + &plain[1..],
            9 => (1_000 + story * 100_000 + place).to_string(),
            13 => plain + ".",
            _ => plain,
        }
    };
    (0..words).map(at).collect::<Vec<_>>().join(" ")
}

/// A headline that shares no word with another.
pub(crate) fn headline(number: u64) -> String {
    let words: Vec<String> = (0..6).map(|at| word(u64::MAX - (number << 8 | at))).collect();
    words.join(" ")
}
