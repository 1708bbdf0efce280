//! The header of a store: what it was created with. A store with any other header is refused by name.
//!
//! Opening a store compares the stored [`Format`] with the configured one. Every mismatch becomes a
//! [`StoreError`] that names both values and the command that resolves it.
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | format version, 3: the tables in [`super::key`] and [`super::value`] |
//! | 1 | fingerprint scheme |
//! | 1 | 1 while its postings are being rebuilt, else 0 |
//! | optional 4 | partition of the changelog; nothing where it keeps its own log |
//! | optional: optional text, optional 16 | the changelog's cluster id and topic id |
//! | 1, optional 2 · 2, 1, 1, 4 | default posting: MinHash bands · rows, SimHash bands, samples, shortest |
//! | 2, then language · posting | other languages |

use crate::fingerprint::Scheme;

use super::bytes::{ByteReader, ByteWriter, DecodeError};
use crate::index::record::TopicIdentity;
use crate::index::scheme::IndexSchemes;
use crate::index::{Durability, StoreError};

/// The format version of a store. A number is never reused.
pub const VERSION: u8 = 3;

/// What a store was created with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The number of its fingerprint scheme.
    pub scheme: u8,
    /// What restores it after a crash.
    pub durability: Durability,
    /// The identity of the changelog topic; `None` if there is no changelog.
    pub changelog: Option<TopicIdentity>,
    /// The index schemes of its documents.
    pub postings: IndexSchemes,
    /// Whether its postings are being rebuilt; until that is done they must not be read.
    pub rebanding: bool,
}

impl Format {
    /// The format of a store that is created now.
    pub fn new(durability: Durability, postings: IndexSchemes) -> Format {
        Format { scheme: Scheme::CURRENT.number(), durability, changelog: None, postings, rebanding: false }
    }

    /// Sets the changelog topic that it is built from.
    #[must_use]
    pub fn made_from(self, changelog: Option<TopicIdentity>) -> Format {
        Format { changelog, ..self }
    }

    /// Encodes the format.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, self.scheme, u8::from(self.rebanding)];
        let partition = match self.durability {
            Durability::Changelog { partition } => Some(partition),
            Durability::OwnWal => None,
        };
        bytes.optional(partition, |bytes, partition| bytes.extend(partition.to_le_bytes()));
        bytes.optional(self.changelog.as_ref(), |bytes, topic| {
            bytes.optional(topic.cluster.as_ref(), |bytes, cluster| bytes.text(cluster.as_str()));
            bytes.optional(topic.id, |bytes, id| bytes.extend(id.bytes()));
        });
        self.postings.encode(&mut bytes);
        bytes
    }

    /// Decodes a format.
    ///
    /// # Errors
    /// The bytes are from another version, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Format, DecodeError> {
        let mut read = ByteReader(bytes);
        read.layout("state", VERSION)?;
        let scheme = read.byte()?;
        let rebanding = match read.byte()? {
            0 => false,
            1 => true,
            _ => return Err(DecodeError::Value("a state of re-banding")),
        };
        let partition = read.optional(|read| read.array().map(i32::from_le_bytes))?;
        let durability =
            partition.map_or(Durability::OwnWal, |partition| Durability::Changelog { partition });
        let changelog = read.optional(|read| {
            Ok(TopicIdentity {
                cluster: read.optional(ByteReader::bounded_str)?,
                id: read.optional(ByteReader::topic_id)?,
            })
        })?;
        let postings = IndexSchemes::decode(&mut read)?;
        read.end()?;
        Ok(Format { scheme, durability, changelog, postings, rebanding })
    }

    /// Checks that a store created with `found` can be used with this format.
    ///
    /// # Errors
    /// The difference, with the command that resolves it.
    pub fn accepts(&self, found: &[u8], place: &str) -> Result<(), StoreError> {
        let foreign = |what, found: String, expected: String, remedy| StoreError::Foreign {
            place: place.into(),
            what,
            found,
            expected,
            remedy,
        };
        let found = match Format::decode(found) {
            Ok(found) => found,
            Err(DecodeError::Layout { found, .. }) => {
                let remedy = "use the version of samestory that created it, or see what `samestory state rebuild` suggests";
                return Err(foreign("format version", found.to_string(), VERSION.to_string(), remedy));
            }
            Err(error) => return Err(StoreError::damaged(place, "meta format", &error)),
        };
        if found.scheme != self.scheme {
            let remedy = "fingerprints cannot be converted; `samestory state rebuild` explains how to read the articles again";
            return Err(foreign("scheme", found.scheme.to_string(), self.scheme.to_string(), remedy));
        }
        if found.durability != self.durability {
            let remedy = "choose another directory: a state belongs to one log";
            return Err(foreign("log", found.durability.to_string(), self.durability.to_string(), remedy));
        }
        if let (Some(made_from), Some(now)) = (&found.changelog, &self.changelog)
            && made_from.differs(now)
        {
            let (found, expected) = (made_from.to_string(), now.to_string());
            return Err(StoreError::OtherChangelog { place: place.into(), found, expected });
        }
        if found.postings != self.postings || found.rebanding {
            let unfinished = if found.rebanding { ", unfinished" } else { "" };
            return Err(StoreError::OtherBands {
                place: place.into(),
                found: format!("{}{unfinished}", found.postings),
                expected: self.postings.to_string(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::LANES;
    use crate::index::{IndexScheme, SimHashBands, TopicName};
    use crate::lsh::Banding;
    use crate::model::{Lang, TopicId};

    fn format() -> Format {
        let minhash = Banding::new(25, 5, LANES).ok();
        let posting = IndexScheme { minhash, simhash: SimHashBands::Of128, samples: 16, shortest: 50 };
        let other = IndexScheme { minhash: None, simhash: SimHashBands::Of64, ..posting };
        let changelog = TopicIdentity {
            cluster: Some(TopicName::new("cluster-a")),
            id: Some(TopicId::from_halves(0, 1)),
        };
        Format::new(Durability::Changelog { partition: 3 }, IndexSchemes::new(posting).with(Lang::UND, other))
            .made_from(Some(changelog))
    }

    fn refusal(change: impl Fn(&mut Format)) -> String {
        let mut found = format();
        change(&mut found);
        format().accepts(&found.encode(), "state/3").unwrap_err().to_string()
    }

    #[test]
    fn a_format_survives_its_bytes_and_accepts_itself() {
        assert_eq!(Format::decode(&format().encode()), Ok(format()));
        assert_eq!(format().accepts(&format().encode(), "state/3"), Ok(()));
    }

    #[test]
    fn any_other_format_is_refused_with_both_values_and_the_command() {
        let scheme = refusal(|format| format.scheme = 9);
        assert!(scheme.contains("scheme 9, but 2"), "{scheme}");
        let log = refusal(|format| format.durability = Durability::OwnWal);
        assert!(log.contains("a log of its own, but changelog partition 3"), "{log}");
        let bands =
            refusal(|format| format.postings = IndexSchemes::new(*format.postings.for_language(Lang::UND)));
        assert!(bands.contains("(no minhash") && bands.contains("(minhash 25×5"), "{bands}");
        let unfinished = refusal(|format| format.rebanding = true);
        assert!(unfinished.contains("unfinished"), "{unfinished}");
        let mut newer = format().encode();
        newer[0] = 4;
        let version = format().accepts(&newer, "state/3").unwrap_err().to_string();
        assert!(version.contains("format version 4, but 3"), "{version}");
        assert!(log.contains("state/3") && log.contains("choose another directory"), "{log}");
        let mut older = format().encode();
        older[0] = 2;
        let older = format().accepts(&older, "state/3").unwrap_err().to_string();
        assert!(older.contains("format version 2, but 3"), "{older}");
        for message in [scheme, bands, unfinished, version, older] {
            assert!(
                message.contains("state/3") && message.contains("`samestory state rebuild`"),
                "{message}"
            );
        }
    }

    /// A changelog was deleted and created again while the state volume stayed. The position in the state was a bare
    /// offset that fitted the new topic too, so the state continued with data that the topic never held.
    #[test]
    fn a_state_built_from_another_topic_of_that_name_is_refused() {
        let other_topic = refusal(|format| {
            let made_from = format.changelog.as_mut().unwrap();
            made_from.id = Some(TopicId::from_halves(0, 2));
        });
        assert!(
            other_topic.contains("AAAAAAAAAAAAAAAAAAAAAg") && other_topic.contains("AAAAAAAAAAAAAAAAAAAAAQ"),
            "{other_topic}"
        );
        let other_cluster = refusal(|format| {
            format.changelog.as_mut().unwrap().cluster = Some(TopicName::new("cluster-b"));
        });
        assert!(
            other_cluster.contains("cluster-a") && other_cluster.contains("cluster-b"),
            "{other_cluster}"
        );
        // Ids that a broker does not report prove nothing.
        let silent = Format { changelog: Some(TopicIdentity::default()), ..format() };
        assert_eq!(format().accepts(&silent.encode(), "state/3"), Ok(()));
        assert_eq!(format().accepts(&Format { changelog: None, ..format() }.encode(), "state/3"), Ok(()));
    }
}
