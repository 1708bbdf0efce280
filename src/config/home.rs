//! Maps a language to its home partition. Route, match and `samestory plan` share this one function, because a language that
//! two of them put on different partitions would never meet its duplicates.

use samestory_engine::model::Lang;
use samestory_engine::text::language::LANGUAGES;

/// The partition of a language: its index in `stage.languages`, modulo the number of partitions. An unlisted language has the
/// index of its row in the language table, so listing another one does not move it.
pub fn home(languages: &[Lang], language: Lang, partitions: i32) -> i32 {
    let listed = languages.iter().position(|&known| known == language);
    let rows = || LANGUAGES.iter().map(|row| row.lang).filter(|&lang| lang != Lang::UND);
    let index = listed.or_else(|| rows().position(|known| known == language).map(|row| row + 1)).unwrap_or(0);
    i32::try_from(index).unwrap_or(0) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use samestory_engine::text::language::find;

    // Unlisted languages were numbered after the listed ones, so listing one more moved all of them.
    #[test]
    fn listing_one_more_language_moves_no_other() {
        let languages = |codes: &[&str]| -> Vec<Lang> {
            codes.iter().map(|code| find(code).map_or(Lang::UND, |row| row.lang)).collect()
        };
        let (one, two) = (languages(&["und", "en"]), languages(&["und", "en", "hi"]));
        for partitions in [1, 2, 3, 7] {
            for row in LANGUAGES.iter().filter(|row| row.lang.code() != "hi") {
                let lang = row.lang;
                assert_eq!(home(&one, lang, partitions), home(&two, lang, partitions), "{lang}");
            }
        }
        let hindi = find("hi").unwrap().lang;
        assert_eq!((home(&two, hindi, 7), home(&two, Lang::UND, 7)), (2, 0));
    }
}
