//! Compares our txtfp-compatible functions with txtfp itself on the same texts.

use proptest::prelude::*;
use samestory_compat::tlsh;
use samestory_compat::txtfp as ours;
use txtfp::{
    Canonicalizer, Fingerprint, Fingerprinter, GraphemeTokenizer, HashFamily, IdfTable, LshIndex,
    LshIndexBuilder, MinHashFingerprinter, MinHashSig, ShingleTokenizer, SimHash64, SimHashFingerprinter,
    StreamingFingerprinter, Tokenizer, Weighting, WordTokenizer,
};

use crate::scripts::any_script as text;
use crate::shared_data::bodies;

/// `make test` runs the release build and thus everything; the debug build must finish in seconds.
const CASES: u32 = if cfg!(debug_assertions) { 128 } else { 4096 };

/// Code points are tested in blocks; one step covers this many blocks.
const STRIDE: usize = if cfg!(debug_assertions) { 32 } else { 1 };

fn tokens(tokenizer: impl Tokenizer, text: &str) -> Vec<String> {
    tokenizer.tokens(text).into_string_iter().collect()
}

fn words_and_graphemes_agree(text: &str) {
    assert_eq!(ours::words(text).collect::<Vec<_>>(), tokens(WordTokenizer, text), "{text:?}");
    assert_eq!(ours::graphemes(text).collect::<Vec<_>>(), tokens(GraphemeTokenizer, text), "{text:?}");
}

fn shingles_agree(text: &str, k: usize) {
    let of_words = ours::Shingles::new(ours::words(text), k);
    let theirs = tokens(ShingleTokenizer { k, inner: WordTokenizer }, text);
    assert_eq!(of_words.iter().collect::<Vec<_>>(), theirs, "k = {k}, {text:?}");
    let of_graphemes = ours::Shingles::new(ours::graphemes(text), k);
    let theirs = tokens(ShingleTokenizer { k, inner: GraphemeTokenizer }, text);
    assert_eq!(of_graphemes.iter().collect::<Vec<_>>(), theirs, "k = {k}, {text:?}");
}

type Words = ShingleTokenizer<WordTokenizer>;

fn their_words() -> Words {
    ShingleTokenizer { k: ours::SHINGLE_WORDS, inner: WordTokenizer }
}

fn our_words() -> ours::ShingleTokenizer<ours::WordTokenizer> {
    ours::ShingleTokenizer { k: ours::SHINGLE_WORDS, inner: ours::WordTokenizer }
}

fn their_minhash(text: &str) -> Option<MinHashSig<128>> {
    MinHashFingerprinter::<_, 128>::new(Canonicalizer::default(), their_words()).fingerprint(text).ok()
}

fn signatures_agree(text: &str) {
    let minhash = ours::minhash(text).map(|hash| hash.to_bytes());
    assert_eq!(minhash, their_minhash(text).map(|sig| sig.as_bytes().to_vec()), "{text:?}");
    let simhash = ours::simhash(text).map(|hash| hash.to_bytes().to_vec());
    let theirs = SimHashFingerprinter::new(Canonicalizer::default(), WordTokenizer).fingerprint(text).ok();
    assert_eq!(simhash, theirs.map(|sig| sig.as_bytes().to_vec()), "{text:?}");
}

const FAMILIES: [(ours::HashFamily, HashFamily); 2] = [
    (ours::HashFamily::Xxh3, HashFamily::Xxh3_64),
    (ours::HashFamily::Murmur3, HashFamily::MurmurHash3_x64_128),
];

/// Bytes, metadata, JSON and errors of a MinHash with `H` lanes.
fn minhash_agrees<const H: usize>(text: &str, seed: u64) {
    for (family, their_family) in FAMILIES {
        let our = ours::MinHashFingerprinter::<_, H>::new(our_words()).with_hasher(family).with_seed(seed);
        let their = MinHashFingerprinter::<_, H>::new(Canonicalizer::default(), their_words())
            .with_hasher(their_family)
            .with_seed(seed);
        assert_eq!(our.config_hash(), their.config_hash());
        match (our.fingerprint(text), their.fingerprint(text)) {
            (Ok(our), Ok(their)) => {
                assert_eq!(our.to_bytes(), their.as_bytes(), "{text:?}");
                assert_eq!(ours::MinHashSig::<H>::BYTES, 8 + 8 * H);
                let json = serde_json::to_string(&our).unwrap();
                assert_eq!(
                    json,
                    format!(r#"{{"schema":{},"hashes":{:?}}}"#, their.schema, their.hashes)
                        .replace(", ", ",")
                );
                assert_eq!(serde_json::from_str::<ours::MinHashSig<H>>(&json).unwrap(), our);
            }
            (our, their) => assert_eq!(our.unwrap_err().to_string(), their.unwrap_err().to_string()),
        }
    }
}

fn simhash_agrees(text: &str, seed: u64, pairs: &[(String, f32)]) {
    let table = pairs.iter().cloned();
    let weightings = [
        (ours::Weighting::Tf, Weighting::Tf),
        (ours::Weighting::Uniform, Weighting::Uniform),
        (
            ours::Weighting::IdfWeighted(ours::IdfTable::from_pairs(table.clone())),
            Weighting::IdfWeighted(IdfTable::from_pairs(table)),
        ),
    ];
    for (weighting, their_weighting) in weightings {
        for (family, their_family) in FAMILIES {
            let our = ours::SimHashFingerprinter::new(ours::WordTokenizer)
                .with_weighting(weighting.clone())
                .with_hasher(family)
                .with_seed(seed);
            let their = SimHashFingerprinter::new(Canonicalizer::default(), WordTokenizer)
                .with_weighting(their_weighting.clone())
                .with_hasher(their_family)
                .with_seed(seed);
            assert_eq!(our.config_hash(), their.config_hash());
            let hash = our.fingerprint(text).map(ours::SimHash64::bits).map_err(|error| error.to_string());
            let theirs = their.fingerprint(text).map(SimHash64::bits).map_err(|error| error.to_string());
            assert_eq!(hash, theirs, "{weighting:?} {text:?}");
        }
    }
}

/// Feeds both streams the same pieces and compares every answer and the result.
fn streams_agree(pieces: &[Vec<u8>], max_bytes: usize) {
    let mut our =
        ours::SimHashFingerprinter::new(ours::WordTokenizer).into_streaming().with_max_bytes(max_bytes);
    let their = SimHashFingerprinter::new(Canonicalizer::default(), WordTokenizer);
    let mut their = their.into_streaming().with_max_bytes(max_bytes);
    for piece in pieces {
        let answers = (our.update(piece), their.update(piece));
        assert_eq!(answers.0.map_err(|e| e.to_string()), answers.1.map_err(|e| e.to_string()));
        assert_eq!(our.buffered_bytes(), their.buffered_bytes());
    }
    let (our, their) = (our.finalize(), their.finalize());
    assert_eq!(
        our.map(ours::SimHash64::bits).map_err(|e| e.to_string()),
        their.map(SimHash64::bits).map_err(|e| e.to_string())
    );
}

/// An operation on an index.
#[derive(Clone, Debug)]
enum IndexOp {
    Insert(u64, u64),
    Extend(Vec<(u64, u64)>),
    Remove(u64),
}

fn index_op() -> impl Strategy<Value = IndexOp> {
    let document = || (0..8_u64, 0..6_u64);
    prop_oneof![
        3 => document().prop_map(|(id, kind)| IndexOp::Insert(id, kind)),
        2 => prop::collection::vec(document(), 0..6).prop_map(IndexOp::Extend),
        1 => (0..8_u64).prop_map(IndexOp::Remove),
    ]
}

/// Signatures of six kinds that agree on some bands.
fn lanes(kind: u64) -> [u64; 16] {
    std::array::from_fn(|lane| if lane < 4 * kind as usize % 16 { kind / 2 } else { 100 + kind % 3 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_text_is_txtfps_and_stays_put(text in text()) {
        let canonical = ours::canonicalize(&text);
        prop_assert_eq!(&canonical, &txtfp::canonicalize(&text));
        prop_assert_eq!(&ours::canonicalize(&canonical), &canonical);
    }

    #[test]
    fn tokens_are_txtfps(text in text(), k in 0..7_usize) {
        words_and_graphemes_agree(&text);
        shingles_agree(&text, k);
    }

    #[test]
    fn signatures_are_txtfps(text in text()) {
        signatures_agree(&text);
    }

    #[test]
    fn similarity_is_txtfps(a in "[a-d ]{5,60}", b in "[a-d ]{5,60}") {
        let theirs = their_minhash(&a).zip(their_minhash(&b)).map(|(a, b)| f64::from(txtfp::jaccard(&a, &b)));
        let ours = ours::minhash(&a).zip(ours::minhash(&b)).map(|(a, b)| a.similarity(&b));
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn every_length_family_and_seed_is_txtfps(text in text(), seed: u64) {
        minhash_agrees::<64>(&text, seed);
        minhash_agrees::<128>(&text, seed);
        minhash_agrees::<256>(&text, seed);
    }

    #[test]
    fn every_weighting_is_txtfps(
        text in "[a-c ]{0,40}", seed: u64,
        pairs in prop::collection::vec(("[a-c]{1,2}", prop_oneof![prop::num::f32::ANY, -3.0..9.0_f32]), 0..6),
    ) {
        simhash_agrees(&text, seed, &pairs);
    }

    #[test]
    fn distances_are_txtfps(a: u64, b: u64) {
        let (our, their) = ((ours::SimHash64(a), ours::SimHash64(b)), (SimHash64(a), SimHash64(b)));
        prop_assert_eq!(ours::hamming(our.0, our.1), txtfp::hamming(their.0, their.1));
        let cosines = (ours::cosine_estimate(our.0, our.1), txtfp::cosine_estimate(their.0, their.1));
        prop_assert_eq!(cosines.0.to_bits(), cosines.1.to_bits());
        prop_assert_eq!(our.0.to_string(), their.0.to_string());
        prop_assert_eq!(serde_json::to_string(&our.0).unwrap(), a.to_string());
    }

    #[test]
    fn a_stream_is_the_whole_text_however_it_is_cut(
        text in text(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let fingerprinter = ours::MinHashFingerprinter::<_, 64>::new(our_words());
        let mut stream = fingerprinter.clone().into_streaming();
        for cut in cuts.windows(2) {
            stream.update(&text.as_bytes()[cut[0]..cut[1]]).unwrap();
        }
        prop_assert_eq!(stream.finalize(), fingerprinter.fingerprint(&text));
    }

    #[test]
    fn streams_of_any_bytes_are_txtfps(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..4),
                "[aé渡👍 ]{0,3}".prop_map(String::into_bytes),
                Just(vec![0xf0, 0x9f]), Just(vec![0x91, 0x8d]), Just(vec![0xc3]), Just(vec![0xa9]),
            ],
            0..12,
        ),
        max_bytes in 0..60_usize,
    ) {
        streams_agree(&pieces, max_bytes);
    }

    #[test]
    fn an_index_answers_as_txtfps(steps in prop::collection::vec(index_op(), 0..20), threshold in -0.2..1.2_f32) {
        let mut our = ours::LshIndex::<16>::with_bands_rows(4, 4).unwrap();
        let mut their = LshIndex::<16>::with_bands_rows(4, 4).unwrap();
        let signature = |kind| MinHashSig { hashes: lanes(kind), ..MinHashSig::empty() };
        for step in steps {
            match step {
                IndexOp::Insert(id, kind) => {
                    our.insert(id, ours::MinHashSig::from_lanes(lanes(kind)));
                    their.insert(id, signature(kind));
                }
                // txtfp must not see an id twice here, so it gets them one by one, which ours promises to
                // equal.
                IndexOp::Extend(documents) => {
                    our.extend_parallel(
                        documents.iter().map(|(id, kind)| (*id, ours::MinHashSig::from_lanes(lanes(*kind)))),
                    );
                    documents.iter().for_each(|(id, kind)| their.insert(*id, signature(*kind)));
                }
                IndexOp::Remove(id) => prop_assert_eq!(our.remove(id).is_some(), their.remove(id).is_some()),
            }
            prop_assert_eq!(our.len(), their.len());
            for kind in 0..6 {
                let (mine, yours) = (ours::MinHashSig::from_lanes(lanes(kind)), signature(kind));
                prop_assert_eq!(our.query(&mine), their.query(&yours));
                let answers =
                    (our.query_with_threshold(&mine, threshold), their.query_with_threshold(&yours, threshold));
                prop_assert_eq!(answers.0, answers.1);
            }
            for id in 0..8 {
                prop_assert_eq!(our.get(id).map(|sig| *sig.lanes()), their.get(id).map(|sig| sig.hashes));
            }
        }
    }

    #[test]
    fn tlsh_of_normalised_text_is_txtfps(text in "[ -~é]{0,300}") {
        let their = txtfp::TlshFingerprinter::default().fingerprint(&text).ok().map(|digest| digest.hex);
        prop_assert_eq!(tlsh::digest_text(&text).ok(), their);
    }
}

#[test]
fn metadata_is_txtfps() {
    let text = "the quick brown fox";
    let our = ours::MinHashFingerprinter::<_, 128>::new(our_words());
    let their = MinHashFingerprinter::<_, 128>::new(Canonicalizer::default(), their_words());
    let minhash = Fingerprint::MinHash(their.fingerprint(text).unwrap())
        .metadata()
        .with_config_hash(their.config_hash());
    let our_sim = ours::SimHashFingerprinter::new(ours::WordTokenizer);
    let their_sim = SimHashFingerprinter::new(Canonicalizer::default(), WordTokenizer);
    let simhash = Fingerprint::SimHash(their_sim.fingerprint(text).unwrap())
        .metadata()
        .with_config_hash(their_sim.config_hash());
    for (our, their) in [(our.metadata(), minhash), (our_sim.metadata(), simhash)] {
        assert_eq!(our.algorithm, their.algorithm);
        assert_eq!(our.config_hash, their.config_hash);
        assert_eq!((our.schema_version, our.byte_size), (their.schema_version, their.byte_size));
    }
    assert_eq!(our.metadata().algorithm, "minhash-h128");
    assert_eq!(ours::config_hash("tlsh", "tlsh-128-1"), txtfp::TlshFingerprinter::default().config_hash());
}

#[test]
fn tokenisers_have_txtfps_names() {
    let names = [
        (ours::Tokenizer::name(&ours::WordTokenizer), WordTokenizer.name()),
        (ours::Tokenizer::name(&ours::GraphemeTokenizer), GraphemeTokenizer.name()),
        (ours::Tokenizer::name(&our_words()), their_words().name()),
    ];
    for (our, their) in names {
        assert_eq!(our, their);
    }
}

/// The two sides use tables of different Unicode versions. If this fails after updating a dependency, the
/// message names the code points to look at in `src/txtfp/canonical.rs`.
#[test]
fn every_code_point_is_canonical_as_in_txtfp() {
    // Alone; before marks it could compose with or sort among; after a letter; between jamo.
    let contexts: [fn(char) -> String; 4] = [
        |c| format!(" {c} "),
        |c| format!("{c}\u{328}\u{301}\u{345}\u{3099}"),
        |c| format!("a\u{308}{c}\u{5b0}\u{94d}\u{e48}"),
        |c| format!("\u{1100}{c}\u{11a8}"),
    ];
    let all: Vec<char> = ('\0'..=char::MAX).collect();
    for context in contexts {
        for block in all.chunks(256).step_by(STRIDE) {
            let text: String = block.iter().copied().map(context).collect();
            if ours::canonicalize(&text) != txtfp::canonicalize(&text) {
                for text in block.iter().copied().map(context) {
                    assert_eq!(
                        ours::canonicalize(&text),
                        txtfp::canonicalize(&text),
                        "{}",
                        text.escape_unicode()
                    );
                }
                panic!("only together: {}", text.escape_unicode());
            }
        }
    }
}

#[test]
fn long_runs_of_marks_sort_as_in_txtfp() {
    let run = "\u{301}\u{328}\u{5b0}\u{345}\u{94d}".repeat(2_000);
    for text in [run.clone(), format!("e{run}"), format!("{run}\u{200d}{run}İ{run}")] {
        assert_eq!(ours::canonicalize(&text), txtfp::canonicalize(&text));
    }
}

#[test]
fn bands_for_a_threshold_are_txtfps() {
    for thousandth in (1_u16..1000).step_by(if cfg!(debug_assertions) { 25 } else { 1 }) {
        for lanes in [64, 100, 128, 256] {
            let threshold = f32::from(thousandth) / 1000.0;
            let theirs = LshIndexBuilder::for_threshold(threshold, lanes).unwrap();
            let ours = ours::LshIndexBuilder::for_threshold(threshold, lanes).unwrap();
            assert_eq!((ours.bands, ours.rows), (theirs.bands, theirs.rows), "{threshold}, {lanes} lanes");
        }
    }
}

#[test]
fn real_articles_of_every_script_come_out_as_in_txtfp() {
    for body in bodies() {
        let canonical = ours::canonicalize(&body);
        assert_eq!(canonical, txtfp::canonicalize(&body));
        words_and_graphemes_agree(&canonical);
        signatures_agree(&body);
    }
}
