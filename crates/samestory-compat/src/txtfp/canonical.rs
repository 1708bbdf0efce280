//! txtfp's normalisation, which it calls canonicalisation: invisible characters out, NFKC, full case folding,
//! NFKC again.
//!
//! White space and digits stay as they are; samestory's own normalisation does more.

use std::borrow::Cow;

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};

const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();
const CASE: CaseMapperBorrowed<'static> = CaseMapper::new();

/// Normalises a text exactly as txtfp's default `Canonicalizer` does.
///
/// Idempotent. Folding can put marks out of order (`İ` becomes `i` and a dot above, which must follow a mark
/// below), hence the second NFKC; a text that is already normal passes it with a quick check.
pub fn canonicalize(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let visible = without_invisible(text);
    let normal = NFKC.normalize(&visible);
    let folded = fold(&normal);
    match NFKC.normalize(&folded) {
        Cow::Owned(renormalised) => renormalised,
        Cow::Borrowed(_) => folded.into_owned(),
    }
}

/// Drops invisible characters before anything is normalised: one of them between two marks would keep the
/// marks from being ordered, and the next pass would order them after all.
fn without_invisible(text: &str) -> Cow<'_, str> {
    if text.contains(is_invisible) {
        Cow::Owned(text.split(is_invisible).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// txtfp's own list. It is neither all of Cf (the soft hyphen and the Arabic number signs stay) nor only Cf
/// (variation selectors are marks).
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{61C}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' // Bidi controls
        | '\u{200B}'..='\u{200D}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' // zero-width
        | '\u{180B}'..='\u{180F}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' // variation selectors
        | '\u{E0001}' | '\u{E0020}'..='\u{E007F}' // tags
    )
}

/// Full case folding as of Unicode 16, as txtfp folds, with ICU4X's newer tables.
fn fold(text: &str) -> Cow<'_, str> {
    if !text.contains(is_capital_since_unicode_17) {
        return CASE.fold_string(text);
    }
    let mut folded = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_capital_since_unicode_17) {
        // Folding is character by character, so the pieces fold as the whole would.
        let kept = piece.trim_end_matches(is_capital_since_unicode_17);
        folded.push_str(&CASE.fold_string(kept));
        folded.push_str(&piece[kept.len()..]);
    }
    Cow::Owned(folded)
}

/// Letters that were unassigned in Unicode 16, the version of txtfp's folding table (`caseless` 0.2), and
/// that Unicode 17 and 18 made capitals. Its other tables, in the versions locked here, are as new as ours
/// (18), so this is the whole difference; the test over every code point reports when that changes.
fn is_capital_since_unicode_17(c: char) -> bool {
    matches!(c,
        '\u{A7CE}' | '\u{A7D2}' | '\u{A7D4}' | '\u{A7DD}' | '\u{A7E2}' | '\u{AB6C}'..='\u{AB6D}' // Latin
        | '\u{16EA0}'..='\u{16EB8}' // Beria Erfe
        | '\u{1DF40}'..='\u{1DF7F}' // Latin Extended-G
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_have_their_known_form() {
        let pairs = [
            ("", ""),
            ("Hello\u{200B}World", "helloworld"),
            ("ＡＢＣ ﬁle Ⅷ", "abc file viii"),
            ("Straße ΣΟΦΊΑΣ", "strasse σοφίασ"),
            ("admin\u{202E}drow", "admindrow"),
            ("❤\u{FE0F} 👨\u{200D}👩", "❤ 👨👩"),
            ("İ\u{329}", "i\u{329}\u{307}"),
            ("\u{6e4}\u{202a}\u{6ea}", "\u{6ea}\u{6e4}"),
            ("soft\u{ad}hyphen", "soft\u{ad}hyphen"),
            ("two  spaces\tand ١٢٣", "two  spaces\tand ١٢٣"),
        ];
        for (text, canonical) in pairs {
            assert_eq!(canonicalize(text), canonical, "{text:?}");
            assert_eq!(canonicalize(canonical), canonical, "again: {text:?}");
        }
    }

    #[test]
    fn capitals_younger_than_txtfps_table_stay_capital() {
        assert_eq!(canonicalize("É\u{A7CE}\u{A7D2}É"), "é\u{A7CE}\u{A7D2}é");
    }

    #[test]
    fn a_ligature_of_eighteen_letters_grows_linearly() {
        let one = canonicalize("\u{FDFA}").len();
        assert_eq!(canonicalize(&"\u{FDFA}".repeat(100_000)).len(), one * 100_000);
    }
}
