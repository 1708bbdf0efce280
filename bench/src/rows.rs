//! The rows of the step table: our steps, the complete fingerprint, the peer libraries, and two upper limits.

use gaoya::minhash::{MinHasher, MinHasher32};
use samestory_engine::fingerprint;
use samestory_engine::fingerprint::{minhash, simhash};
use samestory_engine::text::Options;
use samestory_engine::text::language::{LANGUAGES, Language};
use samestory_engine::text::markup::ContentType;
use samestory_engine::text::normalize::normalize;
use samestory_engine::text::shingle::shingles;
use txtfp::{
    Canonicalizer, Fingerprinter, MinHashFingerprinter, ShingleTokenizer, SimHashFingerprinter, WordTokenizer,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::harness::Row;
use crate::texts::Set;

const LIMIT: usize = 1 << 20;

fn row(name: &str, set: &Set, work: impl Fn(&str) -> u64 + 'static) -> Row {
    Row { name: format!("{name} {}", set.language), work: Box::new(work) }
}

pub fn rows(set: &Set) -> Vec<Row> {
    let code = set.language.split('-').next().unwrap_or("und");
    let language: &'static Language =
        LANGUAGES.iter().find(|row| row.lang.code() == code).unwrap_or(&LANGUAGES[0]);
    let normalize = |text: &str| normalize(text, LIMIT).unwrap_or_default();
    let prepared: Vec<_> = set.texts.iter().map(|text| shingles(&normalize(text), language)).collect();
    let (one, two) = (prepared.clone(), prepared);
    let turn = std::cell::Cell::new(0);
    let other_turn = std::cell::Cell::new(0);
    let txtfp_minhash = MinHashFingerprinter::<_, 128>::new(
        Canonicalizer::default(),
        ShingleTokenizer { k: 3, inner: WordTokenizer },
    );
    let txtfp_simhash = SimHashFingerprinter::new(Canonicalizer::default(), WordTokenizer);
    let txtfp_canonical = Canonicalizer::default();
    let gaoya = MinHasher32::new(128);
    vec![
        row("limit: xxh3 over the bytes", set, |text| xxh3_64(text.as_bytes())),
        row("limit: split and xxh3 per word", set, |text| {
            text.split_ascii_whitespace().fold(0, |sum, word| sum ^ xxh3_64(word.as_bytes()))
        }),
        row("samestory canonical", set, move |text| normalize(text).len() as u64),
        row("samestory shingles", set, move |text| shingles(text, language).shingles.len() as u64),
        row("samestory minhash lanes", set, move |_| {
            turn.set((turn.get() + 1) % one.len());
            u64::from(minhash::signature(&one[turn.get()].shingles)[0])
        }),
        row("samestory simhash", set, move |_| {
            other_turn.set((other_turn.get() + 1) % two.len());
            simhash::simhash(&two[other_turn.get()].words) as u64
        }),
        row("samestory fingerprint", set, move |text| {
            u64::from(fingerprint::fingerprint(&normalize(text), language, 0).minhash[0])
        }),
        row("samestory fingerprint with language", set, move |text| {
            let prepared =
                samestory_engine::text::prepare(text, Some(ContentType::Plain), None, &Options::default());
            prepared.map_or(0, |text| u64::from(fingerprint::of_text(&text, 0).minhash[0]))
        }),
        row("txtfp canonical", set, move |text| txtfp_canonical.canonicalize(text).len() as u64),
        row("txtfp minhash", set, move |text| {
            txtfp_minhash.fingerprint(text).map_or(0, |signature| signature.hashes[0])
        }),
        row("txtfp simhash", set, move |text| txtfp_simhash.fingerprint(text).map_or(0, |hash| hash.0)),
        row("gaoya minhash", set, move |text| {
            let words: Vec<&str> = gaoya::text::whitespace_split(text).collect();
            u64::from(gaoya.create_signature(words.windows(3))[0])
        }),
    ]
}
