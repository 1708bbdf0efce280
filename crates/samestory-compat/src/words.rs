//! Words as the JavaScript original cuts them, for [`simhash`](crate::simhash) and
//! [`fnv_minhash`](crate::fnv_minhash).

use icu_properties::props::GeneralCategory;
use icu_properties::{CodePointMapData, CodePointMapDataBorrowed};

/// Minimum length of a word, in characters.
const SHORTEST: usize = 2;

/// The words of `toLowerCase()`'s result: `replace(/[^\w\s]/g, ' ')`, split at white space, two characters or more.
///
/// Without the flag `u`, `\w` is `[A-Za-z0-9_]`, so letters of other scripts end a word just as punctuation does.
pub(crate) fn ascii_words(lower: &str) -> impl Iterator<Item = &str> {
    lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.len() >= SHORTEST)
}

/// The same with the word characters of every script: `[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]`,
/// which is how UTS #18 defines `\w`. Marks and joiners belong to the word; without them Hindi and Persian
/// words fall apart.
pub(crate) fn unicode_words(lower: &str) -> impl Iterator<Item = &str> {
    lower.split(|c: char| !is_word_character(c)).filter(|word| word.chars().nth(SHORTEST - 1).is_some())
}

fn is_word_character(c: char) -> bool {
    const CATEGORY: CodePointMapDataBorrowed<'static, GeneralCategory> = CodePointMapData::new();
    const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];
    c.is_alphabetic()
        || JOINERS.contains(&c)
        || matches!(
            CATEGORY.get(c),
            GeneralCategory::DecimalNumber
                | GeneralCategory::ConnectorPunctuation
                | GeneralCategory::NonspacingMark
                | GeneralCategory::SpacingMark
                | GeneralCategory::EnclosingMark
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ascii(text: &str) -> Vec<&str> {
        ascii_words(text).collect()
    }

    fn unicode(text: &str) -> Vec<&str> {
        unicode_words(text).collect()
    }

    #[test]
    fn other_letters_and_punctuation_end_an_ascii_word() {
        assert_eq!(ascii("the 17:30 don't naïve x_1 a — b"), ["the", "17", "30", "don", "na", "ve", "x_1"]);
        assert_eq!(ascii("новости дня"), [""; 0]);
    }

    #[test]
    fn words_of_every_script_stay_whole() {
        assert_eq!(unicode("क्या हिन्दी, cafe\u{301}s"), ["क्या", "हिन्दी", "cafe\u{301}s"]);
        assert_eq!(unicode("می\u{200c}خواهم я x_1 ١٢٣"), ["می\u{200c}خواهم", "x_1", "١٢٣"]);
    }
}
