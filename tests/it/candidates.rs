//! Counts which earlier documents become candidates: the cost of a shared bucket is work, which verdicts do
//! not show.

use samestory_engine::engine::{Incoming, Prepared, Preparer, Settings};
use samestory_engine::fingerprint::{Fingerprint, sketch};
use samestory_engine::text::shingle::Shingles;

use super::engine_fixture::{EngineFixture, article, line, trust_declared};

/// A fingerprint of a hundred shingles: the given ones, and others that no other document has. The given ones
/// are the smallest, so all of them are among the sixteen that are indexed.
fn fingerprint_sharing(document: u64, shared: &[u64]) -> Fingerprint {
    let own = shared.len() as u64..100;
    // The high half orders shingles, and MinHash reads the low half.
    let own = own.map(|at| {
        let mixed = (document * 1000 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed | 1 << 63) ^ mixed >> 31
    });
    let shared = shared.iter().map(|shared| shared << 32 | shared.wrapping_mul(0x85eb_ca6b) & 0xffff_ffff);
    let shingles: Vec<u64> = shared.chain(own).collect();
    let cut = Shingles { tokens: 102, words: shingles.clone(), shingles, numerals: Vec::new() };
    // Content hashes are random bits: a bucket of equal contents reads only some of them.
    sketch(u128::from(document).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835), &cut, 0)
}

fn prepared(name: &str, fingerprint: Fingerprint) -> Prepared {
    let prepared = Preparer::new(trust_declared()).prepare(&article(name, "A text."), &line(1)).unwrap();
    Prepared { fingerprint, ..prepared }
}

#[test]
fn one_rare_phrase_or_two_common_ones_make_a_candidate() {
    let mut fixture = EngineFixture::new(Settings::default());
    // Groups by what their documents share with the newcomer; the size of a group makes a phrase rare or
    // common.
    let groups: [(&str, usize, &[u64], bool); 4] = [
        ("rare", 2, &[1], true),
        ("common", 3, &[2], false),
        ("twice", 9, &[3, 4], true),
        ("often", 9, &[5, 6, 7], true),
    ];
    let mut number = 0;
    for (name, size, shared, _) in groups {
        for at in 0..size {
            number += 1;
            let document = prepared(&format!("{name}-{at}"), fingerprint_sharing(number, shared));
            fixture.submit(None, Incoming::Article(Box::new(document)));
        }
    }
    let newcomer = prepared("newcomer", fingerprint_sharing(999, &[1, 2, 3, 4, 5, 6, 7]));
    let candidates = fixture.dedup.candidates(&newcomer).unwrap();
    for (name, size, _, enough) in groups {
        let ids = candidates.all.iter().map(|candidate| candidate.document.id.as_str());
        let examined: Vec<&str> = ids.filter(|id| id.starts_with(name)).collect();
        // The newest three of those that share the same phrases.
        let newest: Vec<String> = (size.max(3) - 3..size).map(|at| format!("{name}-{at}")).collect();
        assert_eq!(examined, if enough { newest } else { Vec::new() }, "{name}");
    }
    assert_eq!((candidates.all.len(), candidates.capped), (8, false));
}
