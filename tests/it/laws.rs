//! Properties of every text: random ones in many scripts, and the demo's articles.

use std::borrow::Cow;
use std::sync::LazyLock;

use icu_normalizer::{ComposingNormalizer, DecomposingNormalizer};
use proptest::prelude::*;
use samestory_engine::engine::compare::{Relation, Rules, compare};
use samestory_engine::fingerprint::{
    Fingerprint, FingerprintError, LONG_SAMPLE, MAX_BYTES, NAMES, NUMBERS, OPENING, TITLE, fingerprint,
    minhash, of_text, simhash, sketch,
};
use samestory_engine::text::Text;
use samestory_engine::text::language::{LANGUAGES, Language, Segmentation, row};
use samestory_engine::text::normalize::normalize;
use samestory_engine::text::passages::common_passages;
use samestory_engine::text::shingle::{Shingles, shingles};
use unicode_segmentation::UnicodeSegmentation;

use crate::fuzz_checks::{fuzz_fingerprint_decode, fuzz_normalize};
use crate::texts::{any_script, demo, touchy};

/// The demo's articles that have a text.
static DEMO: LazyLock<Vec<Text>> = LazyLock::new(|| {
    demo().iter().map(|article| article.text()).filter(|text| !text.normalized.is_empty()).collect()
});

fn normalized(text: &str) -> String {
    normalize(text, usize::MAX).unwrap()
}

fn language(text: &Text) -> &'static Language {
    row(text.language.lang)
}

/// Any row of the table.
fn any_language() -> impl Strategy<Value = &'static Language> {
    prop::sample::select(LANGUAGES)
        .prop_map(|language| LANGUAGES.iter().find(|row| row.lang == language.lang).unwrap())
}

/// Random text in many scripts, or a stretch of a demo article.
fn some_text() -> impl Strategy<Value = String> {
    let stretch = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let stretch = stretch.prop_map(|(article, from, to)| {
        let characters: Vec<char> = article.get(&DEMO[..]).normalized.chars().collect();
        let (from, to) = (from.index(characters.len()), to.index(characters.len()));
        characters[from.min(to)..=from.max(to)].iter().collect()
    });
    prop_oneof![any_script(), stretch]
}

/// The same characters in full width, where they exist.
fn full_width(text: &str) -> String {
    let wide = |c: char| match c {
        '!'..='~' => char::from_u32(c as u32 - '!' as u32 + '！' as u32).unwrap(),
        ' ' => '\u{3000}',
        c => c,
    };
    text.chars().map(wide).collect()
}

/// NFC, NFD, NFKC and NFKD of a text.
fn normal_forms(text: &str) -> [String; 4] {
    let (composed, decomposed) = (ComposingNormalizer::new_nfc(), DecomposingNormalizer::new_nfd());
    let (compatible, apart) = (ComposingNormalizer::new_nfkc(), DecomposingNormalizer::new_nfkd());
    [composed.normalize(text), decomposed.normalize(text), compatible.normalize(text), apart.normalize(text)]
        .map(Cow::into_owned)
}

/// Vietnamese of the 1990s has composed vowels and separate tones: `ê` and a dot below for `ệ`.
#[test]
fn a_mark_is_ordered_among_those_of_a_composed_letter() {
    assert_eq!(normalized("Viê\u{323}t Nam"), "việt nam");
    // One mark of every combining class that letters compose with, and some that they do not compose with.
    let marks = "\u{334}\u{338}\u{93c}\u{3099}\u{94d}\u{5b0}\u{64b}\u{f71}\u{321}\u{327}\u{328}\u{31b}\u{323}\u{331}\u{302}\u{307}\u{345}";
    let syllables = '가'..='힣';
    for letter in ('\u{80}'..=char::MAX).filter(|letter| !syllables.contains(letter)) {
        let text: String = marks.chars().flat_map(|mark| [letter, mark, ' ']).collect();
        let decomposed = DecomposingNormalizer::new_nfd().normalize(&text).into_owned();
        if decomposed != text {
            assert_eq!(normalized(&text), normalized(&decomposed), "{letter} U+{:04X}", letter as u32);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn normalized_text_passes_the_fuzz_check(control: u8, raw in any_script()) {
        fuzz_normalize(&[&[control], raw.as_bytes()].concat());
    }

    #[test]
    fn normalized_text_of_any_bytes_passes_the_fuzz_check(data in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_normalize(&data);
    }

    #[test]
    fn normalized_text_of_touchy_neighbours_passes_the_fuzz_check(control: u8, raw in touchy()) {
        fuzz_normalize(&[&[control], raw.as_bytes()].concat());
    }

    #[test]
    fn the_unicode_normal_form_of_the_input_does_not_matter(raw in prop_oneof![any_script(), touchy()]) {
        let expected = normalized(&raw);
        for form in normal_forms(&raw) {
            prop_assert_eq!(&normalized(&form), &expected, "{:?}", form);
        }
    }

    #[test]
    fn case_and_width_of_ascii_do_not_matter(raw in prop_oneof![any_script(), touchy()]) {
        // Except for the dot of a Turkish capital with a rarer mark between it and the letter.
        let raw = raw.replace('\u{307}', "");
        let expected = normalized(&raw);
        prop_assert_eq!(&normalized(&raw.to_ascii_uppercase()), &expected);
        prop_assert_eq!(&normalized(&raw.to_ascii_lowercase()), &expected);
        prop_assert_eq!(&normalized(&full_width(&raw)), &expected);
    }

    #[test]
    fn any_bytes_decode_to_themselves_or_are_refused(data in prop::collection::vec(any::<u8>(), 0..1200)) {
        fuzz_fingerprint_decode(&data);
    }

    #[test]
    fn a_short_edit_of_a_fingerprint_decodes_to_itself_or_is_refused(data in prop::collection::vec(any::<u8>(), 0..24)) {
        fuzz_fingerprint_decode(&data);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_fingerprint_survives_encoding(raw in some_text(), language in any_language(), config: u32) {
        let print = fingerprint(&normalized(&raw), language, config);
        let bytes = print.encode();
        prop_assert!(bytes.len() <= MAX_BYTES && MAX_BYTES <= 2048);
        prop_assert_eq!(Fingerprint::decode(&bytes), Ok(print));
    }

    #[test]
    fn neither_order_nor_repeats_change_the_samples(
        (first, second) in shuffled_twice(), tokens: u32, content: u128, config: u32,
    ) {
        let [a, b] = [(first, 0), (second, tokens)].map(|(cut, tokens)| {
            let mut print = sketch(content, &Shingles { tokens, ..cut }, config);
            assert_eq!(std::mem::take(&mut print.tokens), tokens);
            // An opening depends on the order.
            print.opening = sketch(content, &Shingles::default(), config).opening;
            print.encode()
        });
        prop_assert_eq!(a, b);
    }

    #[test]
    fn the_fast_versions_equal_the_plain_ones_on_real_shingles(raw in some_text(), language in any_language()) {
        let cut = shingles(&normalized(&raw), language);
        prop_assert_eq!(minhash::lanes(&cut.shingles), minhash::plain(&cut.shingles));
        prop_assert_eq!(simhash::simhash(&cut.words), simhash::plain(&cut.words));
        // A fingerprint consists of them; each occurrence of a word votes.
        let print = fingerprint(&normalized(&raw), language, 0);
        prop_assert_eq!(*print.minhash, minhash::fold(&minhash::plain(&cut.shingles)));
        prop_assert_eq!(print.simhash, simhash::plain(&cut.words));
    }

    #[test]
    fn a_text_is_an_exact_copy_of_itself(raw in some_text(), language in any_language()) {
        let print = fingerprint(&normalized(&raw), language, 0);
        let pair = compare(&print, &print, &Rules::default());
        if print.tokens == 0 {
            prop_assert_eq!(pair.relation, Relation::Different, "an empty text is never matched");
        } else {
            prop_assert_eq!(pair.relation, Relation::Exact);
            prop_assert_eq!((pair.similarity, pair.containment, pair.containment_of_old, pair.distance), (1.0, 1.0, 1.0, 0));
        }
    }

    #[test]
    fn every_measure_is_a_fraction_whatever_the_texts(a in some_text(), b in some_text(), language in any_language()) {
        let [a, b] = [a, b].map(|raw| fingerprint(&normalized(&raw), language, 0));
        let pair = compare(&a, &b, &Rules::default());
        for share in [Some(pair.similarity), Some(pair.containment), Some(pair.containment_of_old), pair.numerals].into_iter().flatten() {
            prop_assert!((0.0..=1.0).contains(&share), "{:?}", pair);
        }
        prop_assert!(pair.distance <= 128);
        let back = compare(&b, &a, &Rules::default());
        prop_assert_eq!((back.similarity, back.containment, back.containment_of_old), (pair.similarity, pair.containment_of_old, pair.containment));
    }

    #[test]
    fn passages_occur_in_both_texts(a in some_text(), b in some_text(), common in some_text(), language in any_language()) {
        let (a, b) = (format!("{a} {common} {b}"), format!("{b} {common} {a}"));
        let passages = common_passages(&a, &b, language);
        let mut end = 0;
        for passage in &passages {
            prop_assert!(passage.b.start >= end, "in the order of the second text, without overlap");
            end = passage.b.end;
            let tokens = tokens(&a[passage.a.clone()], language.segment);
            prop_assert_eq!(&tokens, &self::tokens(&b[passage.b.clone()], language.segment));
            prop_assert_eq!(tokens.len(), passage.tokens);
            prop_assert!(passage.tokens > language.shingle, "shorter passages are chance");
        }
        if self::tokens(&common, language.segment).len() > language.shingle + 2 {
            prop_assert!(!passages.is_empty());
        }
    }
}

/// Two arrangements of one set of pieces: each in some order and with repeats.
fn shuffled_twice() -> impl Strategy<Value = (Shingles, Shingles)> {
    // Colliding ones too, which the table of distinct hashes handles separately.
    let hash = prop_oneof![9 => any::<u64>(), 1 => (0u64..200).prop_map(|n| n << 3)];
    let sets = (
        prop::collection::vec(hash.clone(), 0..300),
        prop::collection::vec(hash, 0..100),
        prop::collection::vec(any::<u32>(), 0..50),
    );
    sets.prop_flat_map(|(shingles, words, numerals)| {
        // Each occurrence of a word votes, so words are reordered but not repeated.
        let words = (Just(words.clone()).prop_shuffle(), Just(words).prop_shuffle());
        let arranged = (arranged(shingles), words.prop_map(|(a, b)| [a, b]), arranged(numerals));
        arranged.prop_map(|(shingles, words, numerals)| {
            let cut = |n: usize| Shingles {
                tokens: 0,
                shingles: shingles[n].clone(),
                words: words[n].clone(),
                numerals: numerals[n].clone(),
            };
            (cut(0), cut(1))
        })
    })
}

fn arranged<T: Clone + std::fmt::Debug + 'static>(set: Vec<T>) -> impl Strategy<Value = [Vec<T>; 2]> {
    let one = move || {
        let set = set.clone();
        let repeats = prop::collection::vec(any::<prop::sample::Index>(), 0..set.len() + 1);
        repeats.prop_flat_map(move |repeats| {
            let mut all = set.clone();
            all.extend(repeats.iter().filter(|_| !set.is_empty()).map(|at| at.get(&set).clone()));
            Just(all).prop_shuffle()
        })
    };
    (one(), one()).prop_map(|(a, b)| [a, b])
}

/// The normalised tokens of a raw text.
fn tokens(text: &str, segment: Segmentation) -> Vec<String> {
    let tokens: Vec<String> = match segment {
        Segmentation::Words => text.unicode_words().map(normalized).collect(),
        Segmentation::Characters => {
            text.chars().filter(|c| c.is_alphanumeric()).map(|c| normalized(&c.to_string())).collect()
        }
    };
    tokens.into_iter().filter(|token| !token.is_empty()).collect()
}

/// Every stretch of `text` between word boundaries, in `steps` of its length.
fn stretches(text: &Text, steps: usize) -> Vec<&str> {
    let normalized = &text.normalized;
    let edges: Vec<usize> = match language(text).segment {
        Segmentation::Words => {
            normalized.split_word_bound_indices().map(|(at, _)| at).chain([normalized.len()]).collect()
        }
        Segmentation::Characters => {
            normalized.char_indices().map(|(at, _)| at).chain([normalized.len()]).collect()
        }
    };
    let edge = |step: usize| edges[(edges.len() - 1) * step / steps];
    (0..steps)
        .flat_map(|from| (from + 1..=steps).map(move |to| (from, to)))
        .map(|(from, to)| &normalized[edge(from)..edge(to)])
        .collect()
}

#[test]
fn a_stretch_of_a_text_is_fully_contained_in_it() {
    let (mut sure, mut all) = (0, 0);
    for text in DEMO.iter() {
        let language = language(text);
        let whole = fingerprint(&text.normalized, language, 0);
        for stretch in stretches(text, 12) {
            let part = fingerprint(stretch, language, 0);
            if (part.tokens as usize) < language.shingle {
                continue;
            }
            let found = part.sample.found_in(&whole.sample);
            assert_eq!(found.found, found.of, "{stretch:?}");
            all += 1;
            sure += u32::from(found.of > 0);
        }
    }
    assert!(all > 2000 && sure * 100 > all * 95, "{sure} of {all} had anything to look for");
}

#[test]
fn half_a_text_or_more_is_a_copy_of_it() {
    let (mut copies, mut all) = (0, 0);
    for text in DEMO.iter() {
        let whole = of_text(text, 0);
        for stretch in stretches(text, 12) {
            let part = fingerprint(stretch, language(text), 0);
            if part.tokens * 2 < whole.tokens || part.tokens < Rules::default().min_tokens {
                continue;
            }
            all += 1;
            let pair = compare(&whole, &part, &Rules::default());
            copies += u32::from(pair.relation.is_duplicate());
            // The numbers of a part are numbers of the whole.
            assert_ne!(pair.relation, Relation::SameTemplate, "{stretch:?}");
        }
    }
    assert!(all > 500 && copies * 100 >= all * 99, "{copies} of {all} were recognised");
}

#[test]
fn every_truncation_of_a_fingerprint_is_refused_by_its_length() {
    for text in DEMO.iter().step_by(5) {
        let bytes = of_text(text, 7).encode();
        for len in 0..bytes.len() {
            assert_eq!(Fingerprint::decode(&bytes[..len]), Err(FingerprintError::Length(len)));
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(Fingerprint::decode(&longer), Err(FingerprintError::Length(longer.len())));
    }
}

#[test]
fn every_flipped_bit_of_a_fingerprint_changes_it_or_is_refused() {
    for text in DEMO.iter().step_by(9) {
        let print = of_text(text, 7);
        let bytes = print.encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match Fingerprint::decode(&flipped) {
                Ok(other) => {
                    assert_ne!(other, print, "bit {bit} was not looked at");
                    assert_eq!(other.encode(), flipped);
                }
                Err(FingerprintError::Layout(found)) => assert_eq!((bit / 8, found), (0, flipped[0])),
                Err(FingerprintError::Scheme(found)) => assert_eq!((bit / 8, found), (1, flipped[1])),
                Err(FingerprintError::Length(found)) => {
                    assert!((52..58).contains(&(bit / 8)) && found == flipped.len(), "bit {bit}");
                }
                Err(FingerprintError::Order) => assert!(bit / 8 >= 42, "bit {bit}"),
            }
        }
    }
}

#[test]
fn lists_that_are_too_long_are_refused() {
    // More items than a fingerprint keeps, in order and with enough bytes.
    struct List {
        /// Offsets of its length and of the size of the whole set.
        length: usize,
        set: Option<usize>,
        most: usize,
        width: usize,
    }
    let list = |length, set, most, width| List { length, set, most, width };
    let print = fingerprint("", &LANGUAGES[0], 0).encode();
    for list in [
        list(52, Some(42), LONG_SAMPLE, 4),
        list(54, Some(46), OPENING, 4),
        list(55, Some(48), NUMBERS, 4),
        list(56, Some(50), NAMES, 2),
        list(57, None, TITLE, 2),
    ] {
        for kept in [list.most, list.most + 1] {
            let mut bytes = print.clone();
            let length_bytes = if list.length == 52 { 2 } else { 1 };
            bytes[list.length..][..length_bytes].copy_from_slice(&kept.to_le_bytes()[..length_bytes]);
            if let Some(set) = list.set {
                bytes[set..][..2].copy_from_slice(&999u16.to_le_bytes());
            }
            bytes.extend((0..kept as u32).flat_map(|value| value.to_le_bytes()[..list.width].to_vec()));
            assert_eq!(Fingerprint::decode(&bytes).is_ok(), kept == list.most, "{kept} of {}", list.most);
        }
    }
}

#[test]
fn the_fingerprint_of_a_typical_article_has_at_most_800_bytes() {
    let typical = DEMO.iter().map(|text| of_text(text, 0)).filter(|print| print.tokens >= 100);
    let sizes: Vec<usize> = typical.map(|print| print.with_title((0..9).collect()).encode().len()).collect();
    let mean = sizes.iter().sum::<usize>() / sizes.len();
    assert!(sizes.len() > 20 && mean <= 800, "{mean} bytes on average: {sizes:?}");
}

#[test]
fn fingerprints_of_scheme_1_are_refused_by_name() {
    // Layout 1 and scheme 1, with as many bytes as an empty text had.
    let mut bytes = vec![1, 1];
    bytes.resize(562, 0);
    let error = Fingerprint::decode(&bytes).unwrap_err();
    assert_eq!(error, FingerprintError::Scheme(1));
    assert_eq!(error.to_string(), "unknown fingerprint scheme 1; this version writes scheme 2");
}

#[test]
fn the_fast_versions_equal_the_plain_ones_on_every_demo_article() {
    for text in DEMO.iter() {
        for language in [language(text), &LANGUAGES[0]] {
            let cut = shingles(&text.normalized, language);
            assert_eq!(minhash::lanes(&cut.shingles), minhash::plain(&cut.shingles));
            assert_eq!(simhash::simhash(&cut.words), simhash::plain(&cut.words));
        }
    }
}
