//! An article's text: from what the crawler fetched to what is compared.

pub mod language;
pub mod markup;
