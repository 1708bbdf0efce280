//! Random histories of articles that are copies, parts, versions, templates of each other, or unrelated.

use std::sync::Arc;

use samestory_engine::engine::compare::Rules;
use samestory_engine::engine::compare::evidence::Weights;
use samestory_engine::engine::{
    Algorithm, Bond, CanonicalPolicy, Constraints, EmptyUpdate, Incoming, Item, LanguageSettings, Notice,
    Preparer, Settings,
};
use samestory_engine::fingerprint::LANES;
use samestory_engine::index::{IndexScheme, IndexSchemes, OutputTopic, Retention, SimHashBands};
use samestory_engine::lsh::Banding;
use samestory_engine::model::{BoundedStr, EventTime, Fraction, Lang, Position, TopicId};
use samestory_engine::model::{DeadLetter, DeadLetterReason, RawArticle};
use samestory_engine::text::language::find;

use crate::engine_fixture::{Dice, article, id, line, rewrite, trust_declared, window};

pub(super) const LANGUAGES: [&str; 2] = ["en", "de"];
const RETENTION: u64 = 1_000;
const SKEW: u64 = 300;
/// Times start here, so that there is a past to be late from.
const START: i64 = 100_000;

/// A position in a partition of the raw topic.
fn raw(partition: u64, offset: u64) -> Position {
    let (partition, offset) = (partition as i32, offset as i64);
    Position::Topic { topic: BoundedStr::new("articles.raw"), partition, offset }
}

pub(super) fn language(code: &str) -> Lang {
    find(code).unwrap().lang
}

fn body(dice: &mut Dice, name: u64) -> String {
    let family = dice.below(3);
    match dice.below(24) {
        0 | 23 => String::new(),
        1 | 2 => window(family, 0, 6, 0, 0),
        // The usual text of this article: it is resent unchanged, and others carry it too.
        3..10 => window(name % 3, 0, 40, 0, 0),
        _ => {
            let from = dice.one_of(&[0, 0, 0, 4, 13, 26, 39]);
            let words = dice.one_of(&[20, 40, 40, 40, 60, 120]);
            let edition = dice.one_of(&[0, 0, 0, 1, 2]);
            let edit = dice.one_of(&[0, 0, 0, 9, 20]);
            let text = window(family, from, words, edition, edit);
            if dice.below(4) == 0 { rewrite(&text, dice.below(50)) } else { text }
        }
    }
}

pub(super) struct History {
    pub(super) settings: Settings,
    pub(super) postings: IndexSchemes,
    pub(super) items: Vec<Item>,
    /// As in a routed partition.
    pub(super) relocates: bool,
}

impl History {
    pub(super) fn new(seed: u64) -> History {
        let mut dice = Dice(seed);
        let settings = settings(&mut dice);
        // One row per band, and every sampled shingle: anything similar at all becomes a candidate.
        let posting = IndexScheme {
            minhash: Some(Banding::new(LANES as u16, 1, LANES).unwrap()),
            simhash: SimHashBands::None,
            samples: 64,
            shortest: Rules::SHORTEST,
        };
        let (mut now, length) = (START, 40 + dice.below(40));
        let items = (1..=length).map(|at| item(&mut dice, at, &mut now)).collect();
        History { settings, postings: IndexSchemes::new(posting), items, relocates: !seed.is_multiple_of(4) }
    }

    /// The same, but long enough that a batch is read in pieces.
    pub(super) fn long(seed: u64) -> History {
        let (mut dice, mut now) = (Dice(seed), START);
        let items = (1..=1_800).map(|at| item(&mut dice, at, &mut now)).collect();
        History { items, ..History::new(seed) }
    }

    /// The same with small limits, so that buckets soon become hot. The oracle does not model that.
    pub(super) fn crowded(seed: u64) -> History {
        let mut history = History::new(seed);
        history.settings.max_bucket = 1 + seed as usize % 3;
        history
    }
}

fn settings(dice: &mut Dice) -> Settings {
    let algorithms = [
        Algorithm::Combined,
        Algorithm::Combined,
        Algorithm::Minhash,
        Algorithm::Simhash128,
        Algorithm::Simhash64,
    ];
    let policies = [
        CanonicalPolicy::FirstSeen,
        CanonicalPolicy::FirstPublished,
        CanonicalPolicy::Newest,
        CanonicalPolicy::Longest,
    ];
    let language = LanguageSettings {
        // A lower threshold in some: rewritten copies are rare among invented words.
        rules: Rules {
            min_tokens: 10,
            wall_tokens: 24,
            min_confidence: dice.one_of(&[0.5, 0.25]),
            ..Rules::default()
        },
        algorithm: dice.one_of(&algorithms),
        weights: Weights::FITTED,
        hamming: 14,
        cluster_threshold: 0.3,
        retention: Retention::Millis(RETENTION),
    };
    let mut settings = Settings {
        default: language,
        canonical: dice.one_of(&policies),
        max_bucket: 1_000,
        review: Some((Fraction::new(0.5), Fraction::new(0.9))),
        max_clock_skew_millis: SKEW,
        publish_from: dice.one_of(&[None, None, None, Some(EventTime::from_millis(START + 400))]),
        config: 0x9f2c_41d0,
        ..Settings::default()
    };
    settings.published_within = dice.one_of(&[Retention::Forever, Retention::Millis(45_000)]);
    settings.empty_update = dice.one_of(&[EmptyUpdate::Keep, EmptyUpdate::Keep, EmptyUpdate::Refuse]);
    if dice.below(3) == 0 {
        let mut constraints = Constraints::default();
        for _ in 0..8 {
            let [a, b] = [0; 2].map(|_| id(&format!("a{}", dice.below(18))));
            let bond = dice.one_of(&[Bond::Same, Bond::Different]);
            if a != b && constraints.between(&a, &b).is_none() {
                constraints.insert(&a, &b, bond).unwrap();
            }
        }
        settings.constraints = Arc::new(constraints);
    }
    if dice.below(4) == 0 {
        let forever = LanguageSettings { retention: Retention::Forever, ..language };
        settings.languages.insert(self::language("de"), forever);
    }
    settings
}

fn item(dice: &mut Dice, at: u64, now: &mut i64) -> Item {
    *now += match dice.below(40) {
        0 => 2 * RETENTION as i64,
        _ => dice.below(40) as i64,
    };
    let article_number = dice.below(18);
    let name = format!("a{article_number}");
    // The record's clock is sometimes wrong; the log has a clock, has none, or has an impossible one.
    let time = match dice.below(30) {
        0 | 1 => None,
        2 => Some(*now + 50 * RETENTION as i64),
        3 => Some(dice.one_of(&[i64::MAX, -1])),
        _ => Some(*now),
    };
    let time = time.map(EventTime::from_millis);
    let log_time = match dice.below(6) {
        0 | 1 => Some(*now),
        2 => Some(dice.one_of(&[*now - 50, *now + 50, i64::MAX, -1])),
        _ => None,
    };
    let log_time = log_time.map(EventTime::from_millis);
    // Forgets and notices are sometimes repeated, and come from a raw partition that lags behind.
    let mut position = match dice.below(8) {
        0 => line(at),
        _ => raw(dice.below(2), at),
    };
    let outlet = dice.one_of(&[OutputTopic::Unique, OutputTopic::NearDuplicate, OutputTopic::Both]);
    let incoming = match dice.below(30) {
        21..=23 | 26.. => {
            position = raw(dice.below(2), at - dice.below(at.min(20)));
            let detours = dice.one_of(&[0, 0, 8]);
            Incoming::Notice(Notice { id: id(&name), outlet, raw: TopicId::UNKNOWN, detours })
        }
        24 => Incoming::Undelivered {
            id: id(&name),
            language: language(dice.one_of(&LANGUAGES)),
            letter: DeadLetter {
                position: line(at),
                reason: DeadLetterReason::TooLarge,
                message: "too large".to_owned(),
            },
        },
        20 => Incoming::SetStreamTime {
            language: language(dice.one_of(&LANGUAGES)),
            at: EventTime::from_millis(*now - dice.one_of(&[0, 200, 3 * RETENTION as i64])),
        },
        0 => Incoming::Delete(id(&name)),
        1 | 25 => {
            position = raw(dice.below(2), at - dice.below(at.min(6)));
            Incoming::Forget {
                ids: (0..dice.below(4)).map(|_| id(&format!("a{}", dice.below(18)))).collect(),
                to: dice.one_of(&[1, 2]),
                raw: TopicId::UNKNOWN,
            }
        }
        2 => Incoming::DeadLetter(DeadLetter {
            position: line(at),
            reason: DeadLetterReason::NoBody,
            message: "no body".to_owned(),
        }),
        _ => {
            let fetched_at = match dice.below(12) {
                0..6 => None,
                // Late, very late, ahead, far ahead, before all times.
                6 | 7 => Some(*now - dice.below(500) as i64),
                8 => Some(*now - 1_200),
                9 => Some(*now + dice.below(600) as i64),
                10 => Some(dice.one_of(&[253_370_764_800_000, i64::MAX])),
                _ => Some(dice.one_of(&[*now, *now, -1, i64::MIN])),
            };
            let published = [None, Some(-7), Some(50_000), Some(60_000), Some(70_000), Some(i64::MAX)];
            let article = RawArticle {
                language: Some(
                    LANGUAGES[usize::from(article_number.is_multiple_of(5) != (dice.below(15) == 0))]
                        .to_owned(),
                ),
                fetched_at: fetched_at.map(EventTime::from_millis),
                published_at: dice.one_of(&published).map(EventTime::from_millis),
                host: dice.one_of(&[None, Some("wire.example")]).map(str::to_owned),
                ..article(&name, &body(dice, article_number))
            };
            let prepared = Preparer::new(trust_declared()).prepare(&article, &line(at)).unwrap();
            let prepared = Box::new(prepared);
            if article.body.is_empty() && dice.below(2) == 0 {
                let (reason, message) = (DeadLetterReason::NoBody, "no body".to_owned());
                let refusal = DeadLetter { position: line(at), reason, message };
                Incoming::Bodiless { article: prepared, refusal }
            } else {
                Incoming::Article(prepared)
            }
        }
    };
    Item { position, time, log_time, incoming }
}
