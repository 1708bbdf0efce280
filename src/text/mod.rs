//! An article's text: from what the crawler fetched to what is compared.

pub mod canonical;
mod chars;
pub mod language;
pub mod passages;
pub mod shingle;
mod words;
