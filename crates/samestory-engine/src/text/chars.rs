//! How normalisation treats a single character, and which neighbours it depends on.
//!
//! [`fold`] is the rule. [`classes`] caches it for the Basic Multilingual Plane, so that ordinary text costs
//! one load per character. `normalize` uses both.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::OnceLock;

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::properties::{
    CanonicalCombiningClassMap, CanonicalCombiningClassMapBorrowed, CanonicalComposition,
    CanonicalCompositionBorrowed, CanonicalDecomposition, Decomposed,
};
use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory, WhiteSpace};
use icu_properties::{CodePointMapData, CodePointSetData};

pub(super) const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();
pub(super) const CCC: CanonicalCombiningClassMapBorrowed<'static> = CanonicalCombiningClassMap::new();
pub(super) const COMPOSITION: CanonicalCompositionBorrowed<'static> = CanonicalComposition::new();
const CASE: CaseMapperBorrowed<'static> = CaseMapper::new();

/// A dot that only records that this i came from a Turkish capital; dropped after an i.
pub(super) const DOT_ABOVE: char = '\u{307}';
/// Arabic tatweel (kashida): stretches a word visually and means nothing.
const TATWEEL: char = '\u{640}';
/// Heh with a hamza above, which has no code point of its own.
const HEH_HAMZA: &str = "\u{647}\u{654}";

/// How a character that is already NFKC is normalised.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fold {
    Keep,
    Drop,
    To(Cow<'static, str>),
}

/// The folding rule for one character.
pub(super) fn fold(c: char) -> Fold {
    if c == TATWEEL || is_point(c) || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c) {
        return Fold::Drop;
    }
    if CodePointSetData::new::<WhiteSpace>().contains(c) {
        return if c == ' ' { Fold::Keep } else { Fold::To(" ".into()) };
    }
    match CodePointMapData::<GeneralCategory>::new().get(c) {
        // Control characters separate words, as line ends do.
        GeneralCategory::Control => return Fold::To(" ".into()),
        GeneralCategory::Format => return Fold::Drop,
        GeneralCategory::DecimalNumber if !c.is_ascii() => {
            return decimal_digit(c).map_or(Fold::Keep, |digit| Fold::To(digit.into()));
        }
        _ => {}
    }
    if let Some(plain) = typewriter(c).or_else(|| keyboard(c)) {
        return Fold::To(plain.into());
    }
    let mut buffer = [0; 4];
    let own: &str = c.encode_utf8(&mut buffer);
    match CASE.fold_string(own) {
        folded if folded == own => Fold::Keep,
        folded => Fold::To(folded.into_owned().into()),
    }
}

/// The typewriter equivalent: republishing swaps these freely.
fn typewriter(c: char) -> Option<&'static str> {
    Some(match c {
        '‘' | '’' | '‚' | '‛' | '′' | '‹' | '›' | 'ʼ' | '＇' | '׳' => "'",
        '“' | '”' | '„' | '‟' | '″' | '«' | '»' | '〝' | '〞' | '〟' | '״' => "\"",
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' | '⁃' | '־' => "-",
        // Arabic number separators: 1٬250 is 1,250.
        '٬' => ",",
        '٫' => ".",
        // Turkish: both forms of i fold to i, whatever locale-independent lower-casing made of them.
        'İ' | 'ı' => "i",
        _ => return None,
    })
}

/// Vowel points and reading marks of Arabic and Hebrew: harakat, superscript alef, Quranic marks, niqqud,
/// cantillation. News omits them and a careful editor adds them. A hamza is part of its letter and stays.
fn is_point(c: char) -> bool {
    matches!(c,
        '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{653}' | '\u{656}'..='\u{65f}' | '\u{670}'
        | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e8}' | '\u{6ea}'..='\u{6ed}'
        | '\u{898}'..='\u{89f}' | '\u{8c9}'..='\u{8e1}' | '\u{8e3}'..='\u{8ff}')
}

/// One code for an Arabic letter that keyboards encode in several ways.
///
/// Yeh and kaf differ between Arabic, Persian, Urdu and Kurdish keyboards. The heh of Urdu (U+06C1) is folded
/// because Urdu has no other; U+06BE and U+06D5 are distinct letters in Urdu and Kurdish, as is U+06AA in
/// Sindhi, and stay.
pub(super) fn keyboard(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{649}' | '\u{6cc}' => "\u{64a}",
        '\u{6a9}' => "\u{643}",
        '\u{6c1}' => "\u{647}",
        '\u{6c3}' => "\u{629}",
        '\u{6c0}' | '\u{6c2}' => HEH_HAMZA,
        // Alef wasla, which occurs only in pointed text.
        '\u{671}' => "\u{627}",
        _ => return None,
    })
}

/// The ASCII equivalent of a decimal digit of any script. Unicode encodes each script's digits as ten in a
/// row.
fn decimal_digit(c: char) -> Option<&'static str> {
    static RANGES: OnceLock<Vec<RangeInclusive<u32>>> = OnceLock::new();
    let ranges = RANGES.get_or_init(|| {
        CodePointMapData::<GeneralCategory>::new()
            .iter_ranges_for_value(GeneralCategory::DecimalNumber)
            .collect()
    });
    let at = ranges.partition_point(|range| *range.end() < c as u32);
    let range = ranges.get(at).filter(|range| range.contains(&(c as u32)))?;
    let value = (c as u32 - range.start()) % 10;
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"].get(value as usize).copied()
}

/// How the fast path treats a character; see [`classes`].
pub(super) mod class {
    /// Stays, and no neighbour changes it.
    pub(in super::super) const KEEP: u8 = 0;
    /// White space.
    pub(in super::super) const SPACE: u8 = 1;
    /// Dropped.
    pub(in super::super) const DROP: u8 = 2;
    /// Becomes a fixed string of `KEEP` characters.
    pub(in super::super) const MAP: u8 = 3;
    /// A mark that may attach to the preceding character; stays if it does not.
    pub(in super::super) const MARK: u8 = 4;
    /// Needs the full rule.
    pub(in super::super) const SLOW: u8 = 5;
    /// Becomes one `KEEP` character: `MAP` without a lookup.
    pub(in super::super) const SWAP: u8 = 6;
}

/// Caches [`fold`] and the Unicode normalisation quick check for the Basic Multilingual Plane.
pub(super) struct Classes {
    class: Box<[u8]>,
    combines_backwards: Box<[bool]>,
    map: BTreeMap<u16, Box<str>>,
    swap: Box<[u16]>,
}

impl Classes {
    pub(super) fn class(&self, c: char) -> u8 {
        self.class.get(c as usize).copied().unwrap_or(class::SLOW)
    }

    pub(super) fn combines_backwards(&self, c: char) -> bool {
        self.combines_backwards.get(c as usize).copied().unwrap_or(true)
    }

    /// The replacement of a character of class `MAP`.
    pub(super) fn replacement(&self, c: char) -> &str {
        u16::try_from(c as u32).ok().and_then(|c| self.map.get(&c)).map_or("", |text| text)
    }

    /// The replacement of a character of class `SWAP`.
    pub(super) fn swapped(&self, c: char) -> char {
        let code = self.swap.get(c as usize).copied().map(u32::from);
        code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

pub(super) fn classes() -> &'static Classes {
    static CLASSES: OnceLock<Classes> = OnceLock::new();
    CLASSES.get_or_init(build)
}

fn build() -> Classes {
    let mut combines_backwards = vec![false; 0x1_0000].into_boxed_slice();
    let mut set = |c: char| {
        if let Some(slot) = combines_backwards.get_mut(c as usize) {
            *slot = true;
        }
    };
    // Every second half of a pair that NFC composes, and the Hangul vowels and finals, which compose by
    // arithmetic.
    for c in '\0'..=char::MAX {
        if let Decomposed::Expansion(first, second) = CanonicalDecomposition::new().decompose(c)
            && COMPOSITION.compose(first, second).is_some()
        {
            set(second);
        }
    }
    ('\u{1161}'..='\u{1175}').for_each(&mut set);
    ('\u{11a8}'..='\u{11c2}').for_each(&mut set);

    let mut classes = vec![class::SLOW; 0x1_0000].into_boxed_slice();
    let mut map = BTreeMap::new();
    for c in '\0'..='\u{ffff}' {
        let mut buffer = [0; 4];
        let own: &str = c.encode_utf8(&mut buffer);
        let is_mark = CCC.get_u8(c) != 0 || combines_backwards[c as usize];
        classes[c as usize] = match fold(c) {
            _ if c == DOT_ABOVE => class::SLOW,
            // A point that attaches to nothing can be dropped at once: marks after it take the slow path.
            Fold::Drop if !combines_backwards[c as usize] => class::DROP,
            Fold::Keep if NFKC.is_normalized(own) => {
                if is_mark {
                    class::MARK
                } else {
                    class::KEEP
                }
            }
            Fold::To(space) if space == " " => class::SPACE,
            _ if is_mark => class::SLOW,
            _ => match super::normalize::fold_until_stable(own, usize::MAX) {
                Ok(text) => {
                    map.insert(c as u16, text.into_boxed_str());
                    class::MAP
                }
                Err(_) => class::SLOW,
            },
        };
    }
    // A replacement must consist of `KEEP` characters, or its neighbours would matter; a space must collapse.
    map.retain(|&c, text| {
        let inert = text.chars().all(|c| c != ' ' && classes.get(c as usize) == Some(&class::KEEP));
        if !inert {
            classes[usize::from(c)] = class::SLOW;
        }
        inert
    });
    let mut swap = vec![0; 0x1_0000].into_boxed_slice();
    map.retain(|&c, text| {
        let mut chars = text.chars();
        let one = chars.next().filter(|_| chars.next().is_none()).and_then(|c| u16::try_from(c as u32).ok());
        if let Some(one) = one {
            classes[usize::from(c)] = class::SWAP;
            swap[usize::from(c)] = one;
        }
        one.is_none()
    });
    Classes { class: classes, combines_backwards, map, swap }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_every_script_become_ascii() {
        for (script, zero) in
            [("Devanagari", '०'), ("Arabic", '٠'), ("Persian", '۰'), ("Bengali", '০'), ("Thai", '๐')]
        {
            for value in 0..10u32 {
                let digit = char::from_u32(zero as u32 + value).unwrap();
                assert_eq!(fold(digit), Fold::To(value.to_string().into()), "{script} {value}");
            }
        }
    }

    #[test]
    fn invisible_characters_are_dropped() {
        for c in ['\u{200b}', '\u{200d}', '\u{202e}', '\u{2066}', '\u{ad}', '\u{feff}', 'ـ', '\u{fe0f}'] {
            assert_eq!(fold(c), Fold::Drop, "{:?}", c);
        }
    }

    #[test]
    fn arabic_and_hebrew_points_are_dropped_and_parts_of_letters_stay() {
        for c in ['\u{5b8}', '\u{591}', '\u{64e}', '\u{651}', '\u{670}', '\u{6d6}', '\u{6e5}', '\u{8f0}'] {
            assert_eq!(fold(c), Fold::Drop, "{:x}", c as u32);
        }
        for c in
            ['\u{654}', '\u{655}', '\u{5be}', '\u{93c}', '\u{902}', '\u{e31}', '\u{301}', 'ە', 'ھ', 'ڪ', 'ے']
        {
            assert_ne!(fold(c), Fold::Drop, "{:x}", c as u32);
        }
    }

    #[test]
    fn curly_quotes_and_dashes_become_typewriter_ones() {
        assert_eq!(fold('’'), Fold::To("'".into()));
        assert_eq!(fold('“'), Fold::To("\"".into()));
        assert_eq!(fold('—'), Fold::To("-".into()));
    }
}
