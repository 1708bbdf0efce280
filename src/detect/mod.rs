//! Deciding: what one text is to another.

pub mod compare;
