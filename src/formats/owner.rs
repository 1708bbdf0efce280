//! Who may write about an id.
//!
//! Ownership is a rule about one record: an id belongs to the source that it begins with. Remembering who used an id first
//! is not possible, because articles are partitioned by language and no partition sees the ids of the others.

use samestory_engine::model::ArticleId;

use super::fields::{DecodeFailure, RecordContext, short};
use samestory_engine::model::DeadLetterReason;

/// Where a record says which source it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// Ids belong to nobody.
    #[default]
    Anyone,
    /// To the host of the article.
    Host,
    /// To the source that this header of the record names.
    Header(String),
}

impl Owner {
    /// As settings write it: `none`, `host` or `header:NAME`.
    pub fn parse(text: &str) -> Option<Owner> {
        match text {
            "none" => Some(Owner::Anyone),
            "host" => Some(Owner::Host),
            _ => {
                let name = text.strip_prefix("header:").filter(|name| !name.is_empty())?;
                Some(Owner::Header(name.to_owned()))
            }
        }
    }

    /// Checks that a record comes from the owner of its id. `host` is asked for the record's host only where it counts.
    ///
    /// # Errors
    /// [`DeadLetterReason::NotOwner`], with what to do.
    pub fn check(
        &self,
        id: &ArticleId,
        host: impl FnOnce() -> Option<String>,
        around: RecordContext<'_>,
    ) -> Result<(), DecodeFailure> {
        let (source, missing) = match self {
            Owner::Anyone => return Ok(()),
            Owner::Host => (
                host(),
                "the record names no host, so it owns no id; send a host or a url with every article and delete event (a null value has neither)".to_owned(),
            ),
            Owner::Header(name) => (
                around.header(name),
                format!("the record has no header \"{}\" with a text in UTF-8, so it owns no id; let the producer set it", short(name)),
            ),
        };
        let source = source.unwrap_or_default();
        let source = source.trim();
        let message = match source {
            "" => missing,
            _ if owns(source, id.as_str()) => return Ok(()),
            _ => format!(
                "id \"{}\" does not belong to its source \"{source}\"; begin it with the source, as in \"{source}/…\"",
                short(id.as_str()),
                source = short(source),
            ),
        };
        Err(DecodeFailure::new(DeadLetterReason::NotOwner, format!("{message}; or change input.owner")))
    }
}

/// Whether an id is a source, or begins with it and a separator. An id may be a URL.
fn owns(source: &str, id: &str) -> bool {
    let (source, id) = (source.to_lowercase(), id.to_lowercase());
    let address = ["https://", "http://"].into_iter().find_map(|scheme| id.strip_prefix(scheme));
    let mut rests =
        [Some(id.as_str()), address].into_iter().flatten().filter_map(|id| id.strip_prefix(&source));
    rests.any(|rest| rest.is_empty() || rest.starts_with(['/', ':', '#']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(owner: &Owner, id: &str, host: Option<&str>) -> Result<(), String> {
        let around = RecordContext { key: None, headers: &[] };
        let id = ArticleId::new(id).unwrap();
        owner.check(&id, || host.map(str::to_owned), around).map_err(|refusal| {
            assert_eq!(refusal.reason, DeadLetterReason::NotOwner);
            refusal.message
        })
    }

    #[test]
    fn an_id_belongs_to_the_source_that_it_begins_with() {
        for (source, id, belongs) in [
            ("news.example", "news.example/a", true),
            ("news.example", "news.example:17", true),
            ("news.example", "news.example#a", true),
            ("news.example", "news.example", true),
            ("news.example", "https://news.example/a", true),
            ("news.example", "HTTP://News.Example:8080/a", true),
            ("NEWS.example ", "news.EXAMPLE/a", true),
            ("zürich.example", "ZÜRICH.example/a", true),
            ("news.example", "www.news.example/a", false),
            ("www.news.example", "news.example/a", false),
            ("news.example", "news.example.org/a", false),
            ("news.example", "https://news.example@other.example/a", false),
            ("news.example", "other.example/news.example/a", false),
            ("news.example", "a", false),
        ] {
            assert_eq!(check(&Owner::Host, id, Some(source)).is_ok(), belongs, "{source} {id}");
            assert_eq!(check(&Owner::Anyone, id, Some(source)), Ok(()));
        }
    }

    #[test]
    fn an_empty_source_owns_nothing() {
        for source in [None, Some(""), Some(" ")] {
            let message = check(&Owner::Host, "/a", source).unwrap_err();
            assert!(message.contains("names no host") && message.contains("input.owner"), "{message}");
        }
    }

    #[test]
    fn a_header_names_the_source_in_utf_8_and_the_last_one_counts() {
        let owner = Owner::parse("header:x-source").unwrap();
        let check = |headers: &[(&str, Option<&[u8]>)]| {
            let headers: Vec<_> =
                headers.iter().map(|(name, value)| ((*name).to_owned(), value.map(<[u8]>::to_vec))).collect();
            let around = RecordContext { key: None, headers: &headers };
            owner.check(&ArticleId::new("wire/1").unwrap(), || unreachable!("nobody asked"), around)
        };
        assert_eq!(check(&[("x-source", Some(b"Wire"))]), Ok(()));
        assert_eq!(check(&[("x-source", Some(b"other")), ("x-source", Some(b"wire"))]), Ok(()));
        let named = |value: Option<&'static [u8]>| vec![("x-source", value)];
        let missing = [vec![], named(None), named(Some(b"")), named(Some(b"wire\xff"))];
        for headers in missing.into_iter().chain([vec![("X-Source", Some(&b"wire"[..]))]]) {
            let refusal = check(&headers).unwrap_err();
            assert!(refusal.message.contains("no header \"x-source\""), "{refusal}");
        }
        let refusal = check(&[("x-source", Some(b"wire")), ("x-source", Some(b"other"))]).unwrap_err();
        assert!(refusal.message.contains("begin it with the source, as in \"other/…\""), "{refusal}");
    }

    #[test]
    fn a_source_in_a_message_is_cut_short_and_printable() {
        let message = check(&Owner::Host, "a", Some(&"\u{1b}[31m".repeat(100))).unwrap_err();
        assert!(message.len() < 600 && !message.contains('\u{1b}'), "{message}");
    }

    #[test]
    fn settings_name_none_the_host_or_a_header() {
        assert_eq!(Owner::parse("none"), Some(Owner::Anyone));
        assert_eq!(Owner::parse("host"), Some(Owner::Host));
        assert_eq!(Owner::parse("header:x:y"), Some(Owner::Header("x:y".into())));
        for wrong in ["", "Host", "header", "header:", "url"] {
            assert_eq!(Owner::parse(wrong), None, "{wrong}");
        }
    }
}
