//! Checks who may use an article id (`input.owner`): an id belongs to the source that it begins with. Decoders call
//! [`Owner::check`] for every record. The rule looks at one record only: remembering who used an id first is
//! impossible, because articles are partitioned by language and no partition sees the ids of the others.

use samestory_engine::model::ArticleId;

use super::fields::{DecodeFailure, RecordContext, short};
use samestory_engine::model::DeadLetterReason;

/// How the source of a record is identified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// Not at all: any source may use any id.
    #[default]
    Anyone,
    /// By the article's host.
    Host,
    /// By the value of this header.
    Header(String),
}

impl Owner {
    /// Parses the setting: `none`, `host` or `header:NAME`.
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

    /// Checks that a record comes from the owner of its id. `host` is called only if the host decides.
    ///
    /// # Errors
    /// [`DeadLetterReason::NotOwner`], with a message that says what to change.
    pub fn check(
        &self,
        id: &ArticleId,
        host: impl FnOnce() -> Option<String>,
        context: RecordContext<'_>,
    ) -> Result<(), DecodeFailure> {
        let (source, missing) = match self {
            Owner::Anyone => return Ok(()),
            Owner::Host => (
                host(),
                "the record names no host, so it owns no id; send a host or a url with every article and delete event (a tombstone has neither)".to_owned(),
            ),
            Owner::Header(name) => (
                context.header(name),
                format!("the record has no header \"{}\" with a UTF-8 value, so it owns no id; let the producer set it", short(name)),
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

/// True if an id equals its source or begins with the source and a separator. An id may be a URL.
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
        let context = RecordContext { key: None, headers: &[] };
        let id = ArticleId::new(id).unwrap();
        owner.check(&id, || host.map(str::to_owned), context).map_err(|refusal| {
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
    fn an_empty_source_owns_no_id() {
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
            let context = RecordContext { key: None, headers: &headers };
            owner.check(
                &ArticleId::new("wire/1").unwrap(),
                || unreachable!("the host does not count"),
                context,
            )
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
    fn a_source_in_a_message_is_shortened_and_printable() {
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
