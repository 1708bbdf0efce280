//! Generates the records that crawlers write: groups of near-duplicates in several languages, updates,
//! changes of language, deletes, boilerplate, and poison. All follow from a seed, and each record comes with
//! its expected outcome.

use apache_avro::Schema;
use apache_avro::types::Value;
use samestory::formats::PANIC_MARKER;

use crate::avro::encode;
use crate::kafka::bus::Record;

use super::random::Random;

/// The outcome that a record must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Exactly one tagged article.
    Tagged,
    /// Exactly one dead letter.
    Dead,
    /// Either exactly one tagged article or exactly one dead letter.
    TaggedOrDead,
    /// No article; a tombstone wherever it was published.
    Delete,
    /// One tagged article, or a dead letter from match while the limits of the output topics are lowered.
    Large,
}

/// The languages, in the order that spreads them over partitions, each with the syllables of its words.
pub(crate) const LANGUAGES: [(&str, &[&str]); 6] = [
    (
        "en",
        &["sto", "ver", "ing", "har", "bour", "tow", "ned", "ri", "lan", "wes", "ther", "mo", "cal", "per"],
    ),
    (
        "de",
        &["haf", "ten", "stad", "ver", "wol", "gen", "schu", "ler", "rat", "haus", "brü", "cken", "un", "ge"],
    ),
    (
        "fr",
        &["mai", "rie", "pon", "té", "vil", "lage", "ri", "vière", "cons", "eil", "ou", "vert", "se", "ma"],
    ),
    ("es", &["ciu", "dad", "puer", "to", "al", "cal", "de", "llu", "via", "ni", "ño", "ca", "rre", "te"]),
    ("hi", &["शह", "नगर", "पुल", "बारि", "सड़", "सर", "कार", "गाँ", "व", "नदी", "मौस", "म", "खब", "र"]),
    (
        "ja",
        &[
            "まち",
            "かわ",
            "みなと",
            "あめ",
            "はし",
            "やま",
            "しん",
            "ぶん",
            "がっ",
            "こう",
            "えき",
            "うみ",
            "そら",
            "みち",
        ],
    ),
];

/// An article that may be copied, changed or deleted later.
#[derive(Clone)]
struct Known {
    id: String,
    language: usize,
    words: Vec<String>,
}

/// Generates records, one after the other.
pub(crate) struct Articles {
    random: Random,
    made: u64,
    /// Event time of the first record, in milliseconds.
    began: i64,
    known: Vec<Known>,
    /// Direct mode: each language has its partition, and deletes are JSON events instead of tombstones.
    by_language: bool,
    /// Some crawlers have clocks that run ahead, and some records make a parser panic.
    wild: bool,
    /// Every fourth article is Avro, with this schema id.
    avro: Option<u32>,
}

/// The partitions that languages are spread over in direct mode.
pub(crate) const PARTITIONS: usize = 3;

/// Articles remembered for copies, changes and deletes: more than live within the retention.
const KNOWN: usize = 900;

impl Articles {
    pub(crate) fn new(seed: u64, began: i64, by_language: bool, wild: bool, avro: Option<u32>) -> Articles {
        Articles { random: Random::new(seed), made: 0, began, known: Vec::new(), by_language, wild, avro }
    }

    /// Boilerplate with a few words of its own, so that all of them share a bucket.
    pub(crate) fn flood(&mut self) -> (Record, Fate) {
        self.made += 1;
        let mut words = words_of(&mut Random::new(7), 0, 70);
        words.extend(self.words(0, 2));
        let (record, fate) = self.fresh(0, words);
        (self.dressed(record), fate)
    }

    /// An ordinary text with 400 kB of noise in an unused field, which no codec compresses well.
    pub(crate) fn large(&mut self) -> (Record, Fate) {
        self.made += 1;
        let words = self.words(0, 70).join(" ");
        let id = format!("large-{}", self.made);
        let noise: String =
            (0..400_000).map(|_| char::from(b'!' + (self.random.next() % 90) as u8)).collect();
        let mut value: serde_json::Value =
            serde_json::from_str(&article(&id, LANGUAGES[0].0, &words, self.time())).unwrap();
        value["noise"] = noise.into();
        let record = Record { partition: self.home(0), ..Record::new(&id, &value.to_string()) };
        (self.dressed(record), Fate::Large)
    }

    fn dressed(&self, mut record: Record) -> Record {
        record.timestamp.get_or_insert(self.time());
        record.headers.push(("traceparent".into(), Some(format!("00-{:032x}", self.made).into_bytes())));
        record
    }

    pub(crate) fn next(&mut self) -> (Record, Fate) {
        self.made += 1;
        let (record, fate) =
            if self.wild && self.random.below(120) == 0 { self.wild() } else { self.record() };
        (self.dressed(record), fate)
    }

    /// A record that makes a parser panic, or an article of a crawler whose clock is two days ahead.
    fn wild(&mut self) -> (Record, Fate) {
        // Rare enough that five of the last 256 articles of a language never agree. If they did, stream time would follow them,
        // all other articles would arrive expired, and the rest of the run would test no duplicates.
        if self.random.below(20) > 0 {
            let key = format!("panic-{}", self.made);
            let record = Record::new(&key, &article(&key, "en", PANIC_MARKER, self.time()));
            return (Record { partition: self.home(0), ..record }, Fate::Dead);
        }
        let language = self.random.below(LANGUAGES.len());
        let id = format!("{}-ahead-{}", LANGUAGES[language].0, self.made);
        let time = self.time() + 2 * 24 * 3600 * 1000;
        let words = self.words(language, 80).join(" ");
        let record = Record::new(&id, &article(&id, LANGUAGES[language].0, &words, time));
        (Record { partition: self.home(language), timestamp: Some(time), ..record }, Fate::Tagged)
    }

    /// Event time advances by one second per record.
    fn time(&self) -> i64 {
        self.began + i64::try_from(self.made).unwrap() * 1000
    }

    fn record(&mut self) -> (Record, Fate) {
        let roll = self.random.below(1000);
        if self.known.len() < 20 || roll < 330 {
            let language = self.random.below(LANGUAGES.len());
            let length = if roll < 30 { 12 } else { 60 + self.random.below(60) };
            let words = self.words(language, length);
            return self.fresh(language, words);
        }
        let at = self.recent();
        let Known { id, language, words } = self.known[at].clone();
        match roll {
            330..580 => {
                let words = self.edited(words, language, 4);
                self.fresh(language, words)
            }
            580..640 => self.fresh(language, words),
            640..740 => {
                let words = self.edited(words, language, 20);
                self.again(at, id, language, words)
            }
            // Not in direct mode, where no forget would reach the former partition.
            740..790 if !self.by_language => {
                // Another language: the former partition must forget the article.
                let language = (language + 1 + self.random.below(LANGUAGES.len() - 1)) % LANGUAGES.len();
                let words = self.words(language, 80);
                self.again(at, id, language, words)
            }
            740..840 => self.again(at, id, language, words),
            840..890 => {
                self.known.swap_remove(at);
                self.delete(id, language)
            }
            890..900 => self.delete(format!("never-{}", self.made), language),
            900..960 => {
                let mut boilerplate = Random::new(7);
                let words = words_of(&mut boilerplate, 0, 70);
                self.fresh(0, words)
            }
            _ => self.poison(),
        }
    }

    fn delete(&self, id: String, language: usize) -> (Record, Fate) {
        let event = serde_json::json!({"id": id, "removed": true}).to_string();
        let record = Record {
            partition: self.home(language),
            key: Some(id.into_bytes()),
            value: self.by_language.then(|| event.into_bytes()),
            ..Record::default()
        };
        (record, Fate::Delete)
    }

    fn home(&self, language: usize) -> Option<i32> {
        self.by_language.then(|| i32::try_from(language % PARTITIONS).unwrap())
    }

    fn poison(&mut self) -> (Record, Fate) {
        let key = format!("poison-{}", self.made);
        let words = self.words(0, 60).join(" ");
        let (value, fate) = match self.random.below(60) {
            0..15 => (format!("{{\"id\":\"{key}\",\"body\":\"{words}"), Fate::Dead),
            15..25 => (format!("{{\"id\":\"{key}\",\"headline\":\"{words}\"}}"), Fate::Dead),
            25..30 => (format!("[{}", "[".repeat(5000)), Fate::Dead),
            30..32 => (article(&key, "en", &words.repeat(5_000_000 / words.len()), 0), Fate::Dead),
            32..40 => (article(&key, "en", &"<div>".repeat(20_000), 0), Fate::TaggedOrDead),
            40..45 => (article(&key, "ar", &"\u{FDFA}".repeat(9000), 0), Fate::TaggedOrDead),
            45..50 => (article(&key, "x-klingon", &words, i64::MAX / 2_000_000), Fate::Tagged),
            _ => {
                // No id at all.
                let value = format!("{{\"body\":\"{words}\"}}").into_bytes();
                return (Record { value: Some(value), ..Record::default() }, Fate::Dead);
            }
        };
        (Record::new(&key, &value), fate)
    }

    fn fresh(&mut self, language: usize, words: Vec<String>) -> (Record, Fate) {
        let id = format!("{}-{}", LANGUAGES[language].0, self.made);
        if self.known.len() == KNOWN {
            self.known.remove(0);
        }
        self.known.push(Known { id, language, words });
        self.written(self.known.len() - 1)
    }

    fn again(&mut self, at: usize, id: String, language: usize, words: Vec<String>) -> (Record, Fate) {
        self.known[at] = Known { id, language, words };
        self.written(at)
    }

    fn written(&self, at: usize) -> (Record, Fate) {
        let Known { id, language, words } = &self.known[at];
        let (code, space) = (LANGUAGES[*language].0, if LANGUAGES[*language].0 == "ja" { "" } else { " " });
        let mut record = Record::new(id, &article(id, code, &words.join(space), self.time()));
        if let Some(schema) = self.avro.filter(|_| self.made.is_multiple_of(4)) {
            record.value = Some(avro_article(schema, id, code, &words.join(space), self.time()));
        }
        (Record { partition: self.home(*language), ..record }, Fate::Tagged)
    }

    /// Mostly a recent article, so that copies fall into the same batch or the next ones; sometimes any.
    fn recent(&mut self) -> usize {
        let known = self.known.len();
        let among = if self.random.below(4) > 0 { known.min(25) } else { known };
        known - 1 - self.random.below(among)
    }

    fn words(&mut self, language: usize, count: usize) -> Vec<String> {
        words_of(&mut self.random, language, count)
    }

    /// Replaces `percent` of the words.
    fn edited(&mut self, mut words: Vec<String>, language: usize, percent: usize) -> Vec<String> {
        for word in &mut words {
            if self.random.below(100) < percent {
                *word = words_of(&mut self.random, language, 1).remove(0);
            }
        }
        words
    }
}

fn words_of(random: &mut Random, language: usize, count: usize) -> Vec<String> {
    let pieces = LANGUAGES[language].1;
    let mut word = || (0..2 + random.below(2)).map(|_| *random.pick(pieces)).collect::<String>();
    (0..count).map(|_| word()).collect()
}

/// The schema of Avro articles.
pub(crate) const SCHEMA: &str = r#"{"type":"record","name":"Article","fields":[{"name":"id","type":"string"},
    {"name":"title","type":"string"},{"name":"url","type":"string"},{"name":"language","type":"string"},
    {"name":"fetched_at","type":{"type":"long","logicalType":"timestamp-millis"}},{"name":"body","type":"string"}]}"#;

/// The same as [`article`] in Avro, framed with the id of its schema.
fn avro_article(schema: u32, id: &str, language: &str, body: &str, time: i64) -> Vec<u8> {
    let text = |name: &str, value: String| (name.to_owned(), Value::String(value));
    let fields = vec![
        text("id", id.into()),
        text("title", format!("About {id}")),
        text("url", format!("https://{language}.example/{id}")),
        text("language", language.into()),
        ("fetched_at".to_owned(), Value::TimestampMillis(time)),
        text("body", body.into()),
    ];
    let datum = encode(&Schema::parse_str(SCHEMA).unwrap(), Value::Record(fields));
    [&[0][..], &schema.to_be_bytes(), &datum].concat()
}

fn article(id: &str, language: &str, body: &str, time: i64) -> String {
    serde_json::json!({
        "id": id, "title": format!("About {id}"), "url": format!("https://{language}.example/{id}"),
        "language": language, "fetched_at": time, "body": body,
    })
    .to_string()
}
