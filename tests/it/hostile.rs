//! Hostile articles: each has a defined outcome, and work grows no worse than linearly.

use std::hint::black_box;

use samestory_engine::engine::compare::{Relation, Rules, compare};
use samestory_engine::fingerprint::{Fingerprint, MAX_BYTES, fingerprint, of_text, sketch};
use samestory_engine::model::{Lang, LanguageSource};
use samestory_engine::text::language::{LANGUAGES, Language, Segmentation, Tag, Trust, choose};
use samestory_engine::text::markup::ContentType;
use samestory_engine::text::normalize::{normalize, skeleton};
use samestory_engine::text::passages::common_passages;
use samestory_engine::text::shingle::{Shingles, shingles};
use samestory_engine::text::{Options, Oversized, Text, TooLarge, prepare};

use crate::growth::assert_linear;

/// Limits that admit everything here.
const AMPLE: Options = {
    let mut ample = Options::DEFAULT;
    (ample.max_raw_bytes, ample.max_bytes) = (64 << 20, 64 << 20);
    ample
};

fn text(body: &str) -> Text {
    prepare(body, None, None, &AMPLE).unwrap()
}

fn print(body: &str) -> Fingerprint {
    let print = of_text(&text(body), 0);
    let bytes = print.encode();
    assert!(bytes.len() <= MAX_BYTES);
    assert_eq!(Fingerprint::decode(&bytes).as_ref(), Ok(&print));
    print
}

fn relation(old: &str, new: &str) -> Relation {
    compare(&print(old), &print(new), &Rules::default()).relation
}

/// Bodies without text, whatever they consist of.
#[rustfmt::skip]
const NO_TEXT: &[&str] = &[
    "", " ", "\n\t\r\n", "\u{a0}\u{2003}\u{3000}", "\u{200b}\u{feff}\u{ad}", "\0\0\0", "...", "—“”…", "🎉🔥😂👍🏽",
    "👨\u{200d}👩\u{200d}👧🇮🇳", "\u{301}", "\u{301}\u{308}\u{93c}", "\u{202e}\u{202c}", "\u{fffd}\u{fffd}", "<p></p>",
    "<p><script>x()</script></p>", "\u{e000}\u{f8ff}\u{10ffff}",
];

#[test]
fn a_body_without_text_is_never_matched_not_even_with_itself() {
    for body in NO_TEXT {
        let chosen = text(body).language;
        assert_eq!((chosen.lang, chosen.source), (Lang::UND, LanguageSource::None), "{body:?}");
        let print = print(body);
        assert_eq!((print.tokens, print.shingles, print.simhash), (0, 0, 0), "{body:?}");
        assert_eq!((print.sample.values(), print.numerals.values()), (&[][..], &[][..]), "{body:?}");
        for other in NO_TEXT {
            assert_eq!(relation(body, other), Relation::Different, "{body:?} {other:?}");
        }
        assert_eq!(relation(body, "one"), Relation::Different, "{body:?}");
        assert_eq!(relation("one", body), Relation::Different, "{body:?}");
    }
}

#[test]
fn one_token_is_matched_word_for_word_only() {
    let one = print("Ferry");
    assert_eq!((one.tokens, one.shingles), (1, 1));
    assert_eq!(relation("Ferry", " FERRY\n"), Relation::Exact);
    assert_eq!(relation("ferry", "ferry ferry"), Relation::Different);
    assert_eq!(relation("ferry", "ferries"), Relation::Different);
}

#[test]
fn one_repeated_word_is_one_shingle_and_has_the_simhash_of_the_word() {
    let once = print("ferry");
    for times in [3, 50, 100_000] {
        let repeated = print(&"Ferry ".repeat(times));
        assert_eq!((repeated.tokens, repeated.shingles), (times as u32, 1));
        assert_eq!(repeated.sample.values().len(), 1);
        assert_eq!(repeated.simhash, once.simhash, "every vote is the same");
    }
}

#[test]
fn ten_megabytes_in_one_word_are_too_large_or_one_token() {
    let word = "Ab".repeat(5 << 20);
    let refused = prepare(&word, None, None, &Options::default()).unwrap_err();
    assert_eq!(refused, Oversized::Raw { length: 10 << 20, limit: 4 << 20 });
    assert_eq!(text(&word).normalized, "ab".repeat(5 << 20));
    let print = print(&word);
    assert_eq!((print.tokens, print.shingles), (1, 1));
    let accented = "é".repeat(5 << 20);
    assert_eq!(text(&accented).normalized, accented);
    assert_eq!(self::print(&accented).tokens, 1);
    // In a script without spaces it has as many tokens as characters, and one distinct shingle.
    let unspaced = self::print(&"字".repeat(3 << 20));
    assert_eq!((unspaced.tokens, unspaced.shingles), (3 << 20, 1));
}

#[test]
fn a_character_that_becomes_eighteen_is_bounded_by_what_it_becomes() {
    let bomb = "\u{fdfa}".repeat(100_000);
    assert!(bomb.len() < Options::default().max_bytes);
    let refused = prepare(&bomb, None, None, &Options::default()).unwrap_err();
    assert_eq!(refused, Oversized::Text(TooLarge { limit: 1 << 20 }));
    let spelled_out = "صلي الله عليه وسلم".repeat(100_000);
    assert_eq!(text(&bomb).normalized, spelled_out);
    let print = print(&bomb);
    assert_eq!((print.tokens, print.shingles), (300_001, 5));
    let limit = spelled_out.len();
    assert_eq!(normalize(&bomb, limit).map(|text| text.len()), Ok(limit));
    assert_eq!(normalize(&bomb, limit - 1), Err(TooLarge { limit: limit - 1 }));
}

#[test]
fn marks_without_a_letter_stay_and_are_ordered() {
    let marks = "\u{301}".repeat(1 << 19);
    assert_eq!(text(&marks).normalized, marks);
    assert_eq!(print(&marks).tokens, 0);
    // No letter separates them, so all marks below come first.
    let mixed = "\u{301}\u{323}".repeat(1 << 18);
    assert_eq!(text(&mixed).normalized, "\u{323}".repeat(1 << 18) + &"\u{301}".repeat(1 << 18));
    // The first mark composes with the letter, the rest do not.
    assert_eq!(text(&format!("e{marks}")).normalized, format!("é{}", &marks[2..]));
    assert_eq!(print(&format!("e{marks}")).tokens, 1);
}

#[test]
fn mixed_scripts_have_words_and_no_language() {
    let body = "word слово λέξη كلمة מילה शब्द শব্দ คำ 単語 낱말 ቃል ".repeat(1000);
    let chosen = text(&body).language;
    assert_eq!((chosen.lang, chosen.source), (Lang::UND, LanguageSource::None));
    let once = print(&body);
    assert!(once.tokens > 10_000 && once.shingles < 30, "{} {}", once.tokens, once.shingles);
    assert_eq!(relation(&body, &body.to_uppercase()), Relation::Exact);
}

#[test]
fn a_language_tag_of_four_kilobytes_is_no_language() {
    let body = "the old bridge was closed on monday and the buses will take the other road for a year";
    for tag in
        ["x".repeat(4096), "hi-".repeat(1365), format!("hi{}", " ".repeat(4094)), "\u{202e}".repeat(1365)]
    {
        let chosen = prepare(body, None, Some(&tag), &AMPLE).unwrap().language;
        let known = tag.trim_ascii() == "hi";
        let expected = if known { Tag::Contradicted } else { Tag::Unknown };
        assert_eq!((chosen.lang.code(), chosen.tag), ("en", expected), "{}", &tag[..6]);
    }
    let chosen = prepare(body, None, Some("x-klingon"), &AMPLE).unwrap().language;
    assert_eq!((chosen.lang.code(), chosen.source, chosen.tag), ("en", LanguageSource::Text, Tag::Unknown));
}

#[test]
fn html_a_hundred_thousand_deep_is_the_text_at_its_bottom() {
    for open in ["<div>", "<table><tr><td>", "<blockquote>", "<ul><li>"] {
        let body = open.repeat(100_000) + "The Deep";
        for content_type in [None, Some(ContentType::Html)] {
            let text = prepare(&body, content_type, None, &AMPLE).unwrap();
            assert_eq!(text.normalized, "the deep", "{open}");
        }
    }
    let bold = prepare(&("<b>".repeat(100_000) + "The Deep"), Some(ContentType::Html), None, &AMPLE);
    assert_eq!(bold.unwrap().normalized, "the deep");
}

#[test]
fn direction_overrides_and_other_invisible_characters_hide_nothing() {
    let plain = "the ferry from gannetsay was late again on tuesday, and 12 people waited";
    let invisible =
        "\u{202e}\u{202c}\u{2066}\u{2069}\u{200f}\u{200b}\u{ad}\u{2060}\u{feff}\u{34f}\u{fe0f}\u{e0041}";
    let mut hidden = String::new();
    for (n, c) in plain.chars().enumerate() {
        hidden.push(c);
        hidden.extend(invisible.chars().skip(n % 6).take(3));
    }
    assert_eq!(text(&hidden).normalized, plain);
    assert_eq!(print(&hidden), print(plain));
    assert_eq!(common_passages(plain, &format!("\u{202e}{plain}\u{202c}"), &LANGUAGES[0]).len(), 1);
}

#[test]
fn with_skeleton_a_look_alike_counts_as_what_it_looks_like() {
    let merged = |body| prepare(body, None, None, &Options { skeleton: true, ..AMPLE }).unwrap().normalized;
    assert_eq!(merged("ѕсоре"), merged("scope"));
    assert_ne!(text("ѕсоре").normalized, text("scope").normalized);
}

#[test]
fn words_that_mix_scripts_are_read_in_the_script_of_their_text() {
    let plain =
        "The old bridge is closed so she has a copy of the 2020 map, says Ms Jones of the port council.";
    // Every letter that passes for a Latin one, as an attacker swaps them; some words have no Latin letter
    // left.
    let disguised: String = plain
        .chars()
        .map(|c| match c {
            'a' => 'а',
            'c' => 'с',
            'e' => 'е',
            'i' => 'і',
            'o' => 'о',
            'p' => 'р',
            's' => 'ѕ',
            'x' => 'х',
            'y' => 'у',
            'h' => 'һ',
            'T' => 'Т',
            'M' => 'М',
            _ => c,
        })
        .collect();
    assert_ne!(disguised, plain);
    assert_eq!(text(&disguised).normalized, text(plain).normalized);
    assert_eq!(text(&disguised).language, text(plain).language);
    let [shown, meant] = [disguised.as_str(), plain].map(print);
    assert_eq!((shown.content, shown.minhash, shown.simhash), (meant.content, meant.minhash, meant.simhash));
    // The other way round, as bad optical recognition does it.
    let russian = "Старый мост закрыли на ремонт, и автобусы пойдут в объезд.";
    assert_eq!(
        text(&russian.replace('о', "o").replace('а', "a").replace('М', "M")).normalized,
        text(russian).normalized
    );
    // Words that one script cannot spell stay, and so do words in one script.
    let names = "Диктор сказал: 5 μm, SMSка, BBC и СССР";
    assert_eq!(text(names).normalized, names.to_lowercase());
}

/// Pieces that are repeated to make slow texts.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "a", "a ", "late again ", "A", " ", "é", "é ", "e\u{301}", "e\u{301} ", "\u{301}", "\u{301}\u{323}", "ê\u{323}", "a\u{301}\u{323}\u{327} ",
    "\u{fdfa}", "ﬁ", "\u{3000}", "\u{a0}é", "\u{ad}", "a\u{ad}\u{301}", "\u{200b}", "İ", "ΐ", "i\u{307}", "Σ", "ß", "가", "\u{1100}\u{1161}\u{11a8}",
    "\u{1161}", "ｶﾞ", "字", "字 ", "𐐀", "𐐀 ", "क्ष", "क़", "\u{f71}\u{f72}\u{f74}", "<\u{338}", "🎉", "👨\u{200d}👩\u{200d}", "🇮", "1\u{fe0f}\u{20e3}", "a.",
    "a'", "a'\u{301}", "a:\u{200d}", "1,", "1,000", "1,000 ", "1.\u{301}", "א\"", "א\"\u{301}", "א'", "_", "a_", "ア", "ア_", "\0", "\r\n", "ー", "\u{9c7}\u{9be}",
    "\u{e33}", "ａ", "０", "٣", "—", "…", "pаypаl ", "㍿", "\u{1d165}", "\u{110ba}",
];

fn repeated(piece: &str, size: usize) -> String {
    piece.repeat(size / piece.len())
}

/// One language for each way of cutting.
fn languages() -> [Language; 2] {
    [Segmentation::Words, Segmentation::Characters]
        .map(|segment| *LANGUAGES.iter().find(|language| language.segment == segment).unwrap())
}

#[test]
fn normalized_text_is_linear_work() {
    for piece in PIECES {
        assert_linear(
            &format!("normalize {piece:?}"),
            8_000,
            |size| repeated(piece, size),
            |text| {
                black_box(normalize(text, usize::MAX)).unwrap();
            },
        );
        // Refusing must not cost more than accepting.
        assert_linear(
            &format!("refused {piece:?}"),
            8_000,
            |size| repeated(piece, size),
            |text| {
                black_box(normalize(text, text.len() / 2).is_ok());
            },
        );
    }
    // Marks that must all be reordered.
    let stairs = |size: usize| "\u{301}".repeat(size / 4) + &"\u{323}".repeat(size / 4);
    assert_linear("normalize marks, the lower last", 8_000, stairs, |text| {
        black_box(normalize(text, usize::MAX)).unwrap();
    });
}

#[test]
fn a_skeleton_is_linear_work() {
    for piece in PIECES {
        assert_linear(
            &format!("skeleton {piece:?}"),
            2_000,
            |size| repeated(piece, size),
            |text| {
                black_box(skeleton(text, usize::MAX)).unwrap();
            },
        );
    }
}

#[test]
fn a_fingerprint_is_linear_work() {
    for language in &languages() {
        for piece in PIECES {
            let input = |size| {
                let text = normalize(&repeated(piece, size), usize::MAX).unwrap();
                text.char_indices().take_while(|(at, _)| *at < size).map(|(_, c)| c).collect::<String>()
            };
            assert_linear(&format!("shingles {:?} {piece:?}", language.segment), 8_000, input, |text| {
                black_box(shingles(text, language));
            });
            assert_linear(&format!("fingerprint {:?} {piece:?}", language.segment), 8_000, input, |text| {
                black_box(fingerprint(text, language, 0));
            });
        }
        let distinct = |size: usize| (0..size / 6).map(|n| format!("{n:x} ")).collect::<String>();
        assert_linear("fingerprint of words all different", 8_000, distinct, |text| {
            black_box(fingerprint(text, language, 0));
        });
    }
}

#[test]
fn crafted_hashes_are_not_much_more_work() {
    let spread = |n: usize| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    type Hash = fn(usize) -> u64;
    let chosen: [(&str, Hash); 5] = [
        ("all equal", |_| 7),
        ("all zero", |_| 0),
        ("counting up", |n| n as u64),
        ("counting down", |n| u64::MAX - n as u64),
        ("crowded at the top", |n| (n as u64 % 64) << 58 | n as u64),
    ];
    for (name, hash) in chosen {
        let cut = |size: usize| {
            let hashes: Vec<u64> = (0..size).map(hash).collect();
            let numerals = hashes.iter().map(|&hash| hash as u32).collect();
            Shingles { tokens: 1, shingles: hashes.clone(), words: hashes, numerals }
        };
        assert_linear(&format!("sketch, hashes {name}"), 2_000, cut, |cut| {
            black_box(sketch(0, cut, 0));
        });
        // Most are random, and one slot is overfull.
        let mixed = |size: usize| {
            let hashes: Vec<u64> = (0..size).map(|n| if n % 8 == 0 { hash(n) } else { spread(n) }).collect();
            Shingles { tokens: 1, shingles: hashes.clone(), words: hashes, numerals: Vec::new() }
        };
        assert_linear(&format!("sketch, every eighth hash {name}"), 2_000, mixed, |cut| {
            black_box(sketch(0, cut, 0));
        });
    }
}

#[test]
fn common_passages_are_linear_work() {
    for language in &languages() {
        let name = |what: &str, piece: &str| format!("passages {:?} {what} {piece:?}", language.segment);
        for piece in PIECES {
            let pair = |size: usize| (repeated(piece, size), repeated(piece, size));
            assert_linear(&name("of equal texts", piece), 2_000, pair, |(a, b)| {
                black_box(common_passages(a, b, language));
            });
        }
        // Phrases that occur in very many places, and continue differently in each.
        for piece in ["late again and again ", "a ", "字字字字字字字字"] {
            let one = |size: usize, step: usize| -> String {
                (0..size / (piece.len() + 6)).map(|n| format!("{piece}x{:x} ", n * step)).collect()
            };
            let pair = |size: usize| (one(size, 1), one(size, 3));
            assert_linear(&name("everywhere", piece), 2_000, pair, |(a, b)| {
                black_box(common_passages(a, b, language));
            });
            let against_one = |size: usize| (repeated(piece, size), one(size, 1));
            assert_linear(&name("against its own repetition", piece), 2_000, against_one, |(a, b)| {
                black_box((common_passages(a, b, language), common_passages(b, a, language)));
            });
        }
        let prose = |size: usize| {
            let text: String = (0..size / 6).map(|n| format!("w{:x} ", n * 7919 % 65_537)).collect();
            (text.clone(), text)
        };
        assert_linear(&name("of long equal texts", ""), 4_000, prose, |(a, b)| {
            black_box(common_passages(a, b, language));
        });
    }
}

#[test]
fn choosing_a_language_is_no_more_than_linear_work() {
    for piece in PIECES {
        for declared in [None, Some("en"), Some("ja")] {
            let name = format!("language {declared:?} {piece:?}");
            assert_linear(
                &name,
                8_000,
                |size| repeated(piece, size),
                |text| {
                    black_box(choose(declared, text, Trust::Text));
                },
            );
        }
    }
    assert_linear(
        "language tag",
        8_000,
        |size| "hi-".repeat(size / 3),
        |tag| {
            black_box(choose(Some(tag), "the old bridge was closed on monday", Trust::Text));
        },
    );
}
