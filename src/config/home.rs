//! Where a language lives: the one rule that route, match and whoever plans for them share.

use crate::model::Lang;

/// The partition of a language: its index in `stage.languages`, modulo their number.
pub fn home(languages: &[Lang], language: Lang, partitions: i32) -> i32 {
    let index = languages.iter().position(|&known| known == language).unwrap_or(0);
    i32::try_from(index).unwrap_or(0) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Settings};

    #[test]
    fn languages_are_spread_in_their_order() {
        let settings: Settings = toml::from_str("[stage]\nlanguages = [\"en\", \"hi\"]").unwrap();
        let languages = Config::try_from(settings).unwrap().bus.languages;
        let home_of = |code| home(&languages, crate::text::language::find(code).unwrap().lang, 2);
        assert_eq!((home(&languages, Lang::UND, 2), home_of("en"), home_of("hi")), (0, 1, 0));
    }
}
