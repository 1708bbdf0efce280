//! Optional folds that some newsrooms want and some languages do not: accents, the two scripts of Serbian,
//! the two forms of Chinese characters.
//!
//! Each maps normalised text to normalised text and is idempotent. They run after language detection, which
//! depends on accents and scripts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use icu_normalizer::properties::{CanonicalDecomposition, Decomposed};
use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

use super::TooLarge;
use super::normalize::{ROUNDS, normalize};

/// Removes accents and strokes from Latin letters: `é` becomes `e`, `đ` becomes `d`.
///
/// A bare letter may now touch one of another script, and the word is then read in one script; so this
/// repeats until nothing changes.
pub(super) fn without_accents(text: &str, limit: usize) -> Result<String, TooLarge> {
    let mut current = text.to_owned();
    for _ in 0..ROUNDS {
        let next = normalize(&bare(&current), limit)?;
        if next == current {
            break;
        }
        current = next;
    }
    Ok(current)
}

fn bare(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    // True while marks that follow belong to a Latin letter.
    let mut after_latin = false;
    for c in text.chars() {
        match c {
            'đ' | 'ð' => out.push('d'),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'ħ' => out.push('h'),
            'ŧ' => out.push('t'),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'þ' => out.push_str("th"),
            _ if is_latin(c) => out.push(base(c)),
            _ if after_latin && is_mark(c) => continue,
            _ => out.push(c),
        }
        after_latin = is_latin(c);
    }
    Cow::Owned(out)
}

fn is_latin(c: char) -> bool {
    match c {
        'a'..='z' => true,
        '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => c.is_alphabetic(),
        _ => false,
    }
}

fn is_mark(c: char) -> bool {
    CodePointMapData::<GeneralCategory>::new().get(c) == GeneralCategory::NonspacingMark
}

/// The letter under the accents of `c`.
fn base(c: char) -> char {
    match CanonicalDecomposition::new().decompose(c) {
        Decomposed::Expansion(letter, _) => base(letter),
        Decomposed::Singleton(letter) => letter,
        Decomposed::Default => c,
    }
}

/// Transliterates Serbian to Latin letters.
pub(super) fn serbian_in_latin(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let latin = match c {
            'а' => "a",
            'б' => "b",
            'в' => "v",
            'г' => "g",
            'д' => "d",
            'ђ' => "đ",
            'е' => "e",
            'ж' => "ž",
            'з' => "z",
            'и' => "i",
            'ј' => "j",
            'к' => "k",
            'л' => "l",
            'љ' => "lj",
            'м' => "m",
            'н' => "n",
            'њ' => "nj",
            'о' => "o",
            'п' => "p",
            'р' => "r",
            'с' => "s",
            'т' => "t",
            'ћ' => "ć",
            'у' => "u",
            'ф' => "f",
            'х' => "h",
            'ц' => "c",
            'ч' => "č",
            'џ' => "dž",
            'ш' => "š",
            _ => {
                out.push(c);
                continue;
            }
        };
        out.push_str(latin);
    }
    Cow::Owned(out)
}

/// Converts Chinese to simplified characters, one by one: the result must not depend on surrounding phrases.
pub(super) fn simplified(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let table = table();
    Cow::Owned(text.chars().map(|c| table.get(&c).copied().unwrap_or(c)).collect())
}

fn table() -> &'static BTreeMap<char, char> {
    static TABLE: OnceLock<BTreeMap<char, char>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lines = include_str!("han.txt").lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.flat_map(str::split_ascii_whitespace).filter_map(|pair| {
            let mut pair = pair.chars();
            Some((pair.next()?, pair.next()?))
        });
        pairs.collect()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normalize_all(text: &str) -> String {
        normalize(text, usize::MAX).unwrap()
    }

    #[test]
    fn accents_go_from_latin_letters_only() {
        let folded = |text: &str| without_accents(&normalize_all(text), usize::MAX).unwrap();
        assert_eq!(
            folded("Été à Łódź, Đorđe, Ærø, Œuvre, Việt Nam"),
            "ete a lodz, dorde, aero, oeuvre, viet nam"
        );
        assert_eq!(folded("m\u{304}\u{323}"), "m");
        assert_eq!(folded("йогурт หนึ่ง क़लम άλφα"), normalize_all("йогурт หนึ่ง क़लम άλφα"));
    }

    #[test]
    fn serbian_reads_the_same_in_both_scripts() {
        let folded = |text: &str| serbian_in_latin(&normalize_all(text)).into_owned();
        let (cyrillic, latin) = (
            "Град је у понедељак саопштио да ће стари мост бити затворен. Љубав, њива, џеп, ђак.",
            "Grad je u ponedeljak saopštio da će stari most biti zatvoren. Ljubav, njiva, džep, đak.",
        );
        assert_eq!(folded(cyrillic), folded(latin));
        assert_eq!(folded(latin), normalize_all(latin));
    }

    #[test]
    fn traditional_and_simplified_characters_are_one() {
        assert_eq!(simplified("市政府星期一表示，舊橋將關閉維修"), "市政府星期一表示，旧桥将关闭维修");
        assert_eq!(simplified("臺灣裏裡髮發"), "台湾里里发发");
    }

    #[test]
    fn the_table_has_no_chains_and_nothing_that_normalising_would_change() {
        assert_eq!(table().len(), 3216);
        for (&from, &to) in table() {
            assert!(!table().contains_key(&to), "{from} {to}");
            let pair: String = [from, to].iter().collect();
            assert_eq!(normalize_all(&pair), pair);
        }
    }

    proptest! {
        #[test]
        fn folds_change_nothing_the_second_time_and_leave_text_normalised(
            text in "[a-zà-ỹ\u{300}-\u{345} а-яђ-џ一-龥α-ώ\u{5d0}-\u{64f}ﬀ-ﬃ가-각ก-๏]{0,40}",
        ) {
            let text = normalize_all(&text);
            for fold in [serbian_in_latin, simplified] {
                let once = fold(&text).into_owned();
                prop_assert_eq!(&fold(&once), &once);
            }
            prop_assert_eq!(normalize_all(&simplified(&text)), simplified(&text));
            let bare = without_accents(&text, usize::MAX).unwrap();
            prop_assert_eq!(without_accents(&bare, usize::MAX), Ok(bare.clone()));
            prop_assert_eq!(normalize_all(&bare), bare);
        }
    }
}
