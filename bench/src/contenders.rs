//! The contenders of the store benchmark: samestory with each of its stores, and the indexes of peer
//! libraries.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32};
use samestory::config::{Config, Settings};
use samestory_engine::engine::{Batch, Incoming, Item, Prepared};
use samestory_engine::index::{Attestor, Memory, Store};
use samestory_engine::model::{BoundedStr, RawArticle};
use samestory_engine::{ArticleId, Deduplicator, EventTime, Options, Position};
use txtfp::{
    Canonicalizer, Fingerprinter, LshIndex, LshIndexBuilder, MinHashFingerprinter, MinHashSig,
    ShingleTokenizer, WordTokenizer,
};

use crate::feed::Prepare;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// The similarity threshold given to the peers: our own default.
const THRESHOLD: f64 = 0.5;

/// The counts of a batch.
#[derive(Clone, Copy, Default)]
pub struct Taken {
    /// Candidates that articles were compared with; 0 where a peer does not report them.
    pub candidates: u64,
    /// Articles judged to be copies.
    pub copies: u64,
}

/// An index that checks articles against all earlier ones, and inserts them.
pub trait Contender {
    /// A fingerprinted article.
    type Ready: Clone + Send + 'static;
    /// The function that fingerprints an article; called on all cores.
    fn prepare(&self) -> Prepare<Self::Ready>;
    /// Checks and inserts a batch, in order.
    fn take(&mut self, batch: Vec<Self::Ready>) -> Outcome<Taken>;
    /// Checks without inserting, and returns the number of matches or candidates.
    fn look_up(&self, article: &Self::Ready) -> Outcome<u64>;
    /// The number of articles that it holds at the start.
    fn held(&self) -> Outcome<u64> {
        Ok(0)
    }
    /// Flushes everything to disk.
    fn flush(&mut self) -> Outcome<()> {
        Ok(())
    }
    /// The directory of the index, if it is on disk.
    fn directory(&self) -> Option<&Path> {
        None
    }
}

/// samestory, with one of its stores.
pub struct Ours<S> {
    dedup: Deduplicator<S>,
    /// Where the store follows a changelog.
    attestor: Option<Attestor>,
    directory: Option<PathBuf>,
}

/// The stage's default settings: what it remembers is forgotten after a week.
pub fn options() -> Outcome<Options> {
    Ok(Config::try_from(Settings::default())?.options())
}

impl<S: Store> Ours<S> {
    fn new(mut dedup: Deduplicator<S>, directory: Option<PathBuf>) -> Ours<S> {
        let attestor = dedup.store_mut().attestor();
        Ours { dedup, attestor, directory }
    }

    #[cfg(feature = "disk")]
    pub fn store(&self) -> &S {
        self.dedup.store()
    }
}

pub fn memory() -> Outcome<Ours<Memory>> {
    Ok(Ours::new(Deduplicator::in_memory(options()?), None))
}

/// RocksDB with the changelog as its log, as in the Kafka stage, or with its own WAL, as for files.
#[cfg(feature = "disk")]
pub fn rocks(
    directory: &Path,
    durability: samestory_engine::index::Durability,
) -> Outcome<Ours<samestory_engine::Rocks>> {
    use samestory_engine::index::{Budget, Rocks, RocksOptions};
    let options = options()?;
    let mut store =
        Rocks::open(directory, &RocksOptions::new(options.schemes.clone(), durability, Budget::default()))?;
    store.wait_for_filter();
    Ok(Ours::new(Deduplicator::with_store(options, store), Some(directory.to_owned())))
}

impl<S: Store> Contender for Ours<S> {
    type Ready = Item;

    fn prepare(&self) -> Prepare<Item> {
        let preparer = self.dedup.preparer();
        Arc::new(move |n, text| {
            // Ten articles per second: a million span 28 hours, so none expires.
            let time = Some(EventTime::from_millis(1_772_000_000_000 + 100 * n as i64));
            let article = RawArticle {
                id: ArticleId::new(&format!("site-{}/article-{n:08}", n % 7)).expect("short"),
                body: text.to_owned(),
                title: Some(text.chars().take(60).collect()),
                url: Some(format!("https://site-{}.example/article-{n:08}", n % 7)),
                host: None,
                language: Some("en".to_owned()),
                content_type: None,
                published_at: time,
                fetched_at: time,
            };
            let position =
                Position::Topic { topic: BoundedStr::new("articles"), partition: 0, offset: n as i64 };
            let incoming = match preparer.prepare(&article, &position) {
                Ok(prepared) => Incoming::Article(Box::new(prepared)),
                Err(letter) => Incoming::DeadLetter(letter),
            };
            Item { position, time, log_time: None, incoming }
        })
    }

    fn take(&mut self, batch: Vec<Item>) -> Outcome<Taken> {
        let batch = Batch { items: batch, ..Batch::default() };
        let plan = match &self.attestor {
            Some(attestor) => {
                let (plan, write_set) = self.dedup.plan(batch)?;
                self.dedup.store_mut().apply(write_set, &attestor.attest(0))?;
                plan
            }
            None => self.dedup.run(batch)?,
        };
        let copies = plan.outputs().filter(|output| is_copy(output)).count() as u64;
        Ok(Taken { candidates: plan.stats.candidates, copies })
    }

    fn look_up(&self, article: &Item) -> Outcome<u64> {
        let Incoming::Article(article) = &article.incoming else { return Ok(0) };
        Ok(self.dedup.judge(article as &Prepared)?.candidates)
    }

    fn held(&self) -> Outcome<u64> {
        // Every article of the stream gets its own document number, and all are of one language.
        Ok(self.dedup.store().progress()?.languages.values().map(|counters| counters.next_number).sum())
    }

    fn flush(&mut self) -> Outcome<()> {
        Ok(self.dedup.store_mut().flush()?)
    }

    fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }
}

fn is_copy(output: &samestory_engine::engine::Output) -> bool {
    use samestory_engine::model::VerdictKind;
    matches!(output, samestory_engine::engine::Output::Tagged(tagged) if tagged.kind != VerdictKind::Unique)
}

/// txtfp's MinHash and its index in memory.
pub struct Txtfp {
    index: LshIndex<128>,
}

impl Txtfp {
    pub fn new() -> Outcome<Txtfp> {
        Ok(Txtfp { index: LshIndexBuilder::for_threshold(THRESHOLD as f32, 128)?.build() })
    }
}

impl Contender for Txtfp {
    type Ready = (u64, MinHashSig<128>);

    fn prepare(&self) -> Prepare<Self::Ready> {
        let tokenizer = ShingleTokenizer { k: 3, inner: WordTokenizer };
        let hasher = MinHashFingerprinter::<_, 128>::new(Canonicalizer::default(), tokenizer);
        Arc::new(move |n, text| (n, hasher.fingerprint(text).expect("there is text")))
    }

    fn take(&mut self, batch: Vec<Self::Ready>) -> Outcome<Taken> {
        let mut taken = Taken::default();
        for (n, signature) in batch {
            taken.copies +=
                u64::from(!self.index.query_with_threshold(&signature, THRESHOLD as f32).is_empty());
            self.index.insert(n, signature);
        }
        Ok(taken)
    }

    fn look_up(&self, (_, signature): &Self::Ready) -> Outcome<u64> {
        Ok(self.index.query_with_threshold(signature, THRESHOLD as f32).len() as u64)
    }
}

/// gaoya's MinHash and its index in memory, with the same bands and rows as txtfp's.
pub struct Gaoya {
    index: MinHashIndex<u32, u64>,
}

impl Gaoya {
    pub fn new() -> Outcome<Gaoya> {
        let lsh = samestory::compat::txtfp::LshIndexBuilder::for_threshold(THRESHOLD as f32, 128)?;
        Ok(Gaoya { index: MinHashIndex::new(lsh.bands, lsh.rows, THRESHOLD) })
    }
}

impl Contender for Gaoya {
    type Ready = (u64, Vec<u32>);

    fn prepare(&self) -> Prepare<Self::Ready> {
        let hasher = MinHasher32::new(128);
        Arc::new(move |n, text| {
            let words: Vec<&str> = gaoya::text::whitespace_split(text).collect();
            (n, hasher.create_signature(words.windows(3)))
        })
    }

    fn take(&mut self, batch: Vec<Self::Ready>) -> Outcome<Taken> {
        let mut taken = Taken::default();
        for (n, signature) in batch {
            taken.copies += u64::from(!self.index.query_owned_return_similarity(&signature).is_empty());
            self.index.insert(n, signature);
        }
        Ok(taken)
    }

    fn look_up(&self, (_, signature): &Self::Ready) -> Outcome<u64> {
        Ok(self.index.query_owned_return_similarity(signature).len() as u64)
    }
}
