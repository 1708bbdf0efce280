//! Reading state: ordered rows of bytes ([`rows`]) and what they mean ([`view`]).

pub(crate) mod rows;
pub(crate) mod view;
