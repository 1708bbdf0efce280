//! Where a language lives: the one rule that route, match and whoever plans for them share.

use crate::model::Lang;

/// The partition of a language: its index in `stage.languages`, modulo their number.
pub fn home(languages: &[Lang], language: Lang, partitions: i32) -> i32 {
    let index = languages.iter().position(|&known| known == language).unwrap_or(0);
    i32::try_from(index).unwrap_or(0) % partitions.max(1)
}
