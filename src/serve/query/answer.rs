//! The answers of the query API, one type per question. A process serialises its own answer and reads those of its peers
//! into the same types, so merging compares values and not texts.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::formats::time;
use samestory_engine::engine::compare::Relation;
use samestory_engine::{
    ArticleId, ContentKind, EventTime, Flag, Fraction, Lang, LanguageSource, MatchType, Related, VerdictKind,
};

use super::question::Question;

/// An answer, and who did not contribute to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Answered {
    #[serde(flatten)]
    pub(super) body: AnswerBody,
    /// Peers that did not answer; their articles may be missing.
    pub(super) unanswered: BTreeSet<String>,
}

/// The answer to one kind of question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum AnswerBody {
    Article(ArticleAnswer),
    Fingerprint(FingerprintAnswer),
    Similar(SimilarAnswer),
    Cluster(ClusterAnswer),
    Check(CheckAnswer),
}

/// The verdict and metadata of an article.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ArticleAnswer {
    pub(super) id: ArticleId,
    pub(super) language: Lang,
    pub(super) verdict: VerdictKind,
    pub(super) match_type: Option<MatchType>,
    pub(super) duplicate_of: Option<ArticleId>,
    pub(super) similarity: Fraction,
    pub(super) confidence: Fraction,
    pub(super) cluster_id: Option<String>,
    pub(super) canonical_id: ArticleId,
    pub(super) revision: u32,
    #[serde(default)]
    pub(super) content_kind: ContentKind,
    pub(super) flags: Vec<Flag>,
    pub(super) title: Option<String>,
    pub(super) host: Option<String>,
    pub(super) url: Option<String>,
    #[serde(deserialize_with = "optional_time")]
    pub(super) published_at: Option<EventTime>,
    #[serde(deserialize_with = "event_time")]
    pub(super) last_seen: EventTime,
    pub(super) input: InputAnswer,
}

/// The fingerprint of an article, which `explain` compares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FingerprintAnswer {
    pub(super) id: ArticleId,
    pub(super) language: Lang,
    /// In hexadecimal.
    pub(super) fingerprint: String,
    #[serde(default)]
    pub(super) content_kind: ContentKind,
    #[serde(deserialize_with = "event_time")]
    pub(super) last_seen: EventTime,
    pub(super) input: InputAnswer,
}

/// Where an article was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum InputAnswer {
    Topic { topic: String, partition: i32, offset: i64 },
    File { file: String, line: u64 },
}

/// Articles that resemble one, the most similar first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SimilarAnswer {
    pub(super) similar: Vec<SimilarArticle>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SimilarArticle {
    pub(super) id: ArticleId,
    pub(super) title: Option<String>,
    pub(super) host: Option<String>,
    /// As on the bus.
    pub(super) similarity: Fraction,
    /// The same under an older name.
    pub(super) similarity_score: Fraction,
    pub(super) match_type: Resemblance,
}

/// How an article relates to the one asked about. `rewritten` is reported as `near`, as in verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Resemblance {
    Exact,
    Near,
    Partial,
    Extends,
    SameTemplate,
    FollowUp,
    SameFurniture,
    /// It resembles the article, under every threshold.
    Similar,
}

/// A cluster and its members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ClusterAnswer {
    pub(super) cluster_id: String,
    pub(super) language: Lang,
    pub(super) canonical_id: Option<ArticleId>,
    pub(super) size: u64,
    #[serde(deserialize_with = "event_time")]
    pub(super) first_seen: EventTime,
    #[serde(deserialize_with = "event_time")]
    pub(super) last_seen: EventTime,
    pub(super) hosts: Vec<String>,
    pub(super) members: Vec<MemberAnswer>,
    pub(super) split_from: Option<String>,
    pub(super) canonical_changed_from: Option<ArticleId>,
    /// Whether it has more members than are listed.
    pub(super) more: bool,
}

/// A member of a cluster, as in cluster records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct MemberAnswer {
    pub(super) id: ArticleId,
    pub(super) title: Option<String>,
    pub(super) host: Option<String>,
    pub(super) url: Option<String>,
    #[serde(deserialize_with = "optional_time")]
    pub(super) published_at: Option<EventTime>,
    pub(super) match_type: Option<MatchType>,
}

/// The verdict that a text would get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CheckAnswer {
    pub(super) verdict: VerdictKind,
    pub(super) match_type: Option<MatchType>,
    pub(super) duplicate_of: Option<ArticleId>,
    pub(super) similarity: Fraction,
    pub(super) containment: Fraction,
    pub(super) confidence: Fraction,
    pub(super) cluster_id: Option<String>,
    pub(super) language: Lang,
    pub(super) language_source: LanguageSource,
    pub(super) declared_language: Option<String>,
    #[serde(default)]
    pub(super) content_kind: ContentKind,
    pub(super) related: Vec<Related>,
    pub(super) flags: Vec<Flag>,
    pub(super) candidates: u64,
}

impl From<Relation> for Resemblance {
    fn from(relation: Relation) -> Resemblance {
        match relation {
            Relation::Exact => Resemblance::Exact,
            Relation::Near | Relation::Rewritten => Resemblance::Near,
            Relation::Partial => Resemblance::Partial,
            Relation::Extends => Resemblance::Extends,
            Relation::SameTemplate => Resemblance::SameTemplate,
            Relation::FollowUp => Resemblance::FollowUp,
            Relation::SameFurniture => Resemblance::SameFurniture,
            Relation::Different => Resemblance::Similar,
        }
    }
}

impl AnswerBody {
    /// Reads a peer's answer to a question.
    pub(super) fn read(question: &Question, bytes: &[u8]) -> serde_json::Result<AnswerBody> {
        Ok(match question {
            Question::Article(_) => AnswerBody::Article(serde_json::from_slice(bytes)?),
            Question::Fingerprint(_) => AnswerBody::Fingerprint(serde_json::from_slice(bytes)?),
            Question::Similar(..) => AnswerBody::Similar(serde_json::from_slice(bytes)?),
            Question::Cluster(_) => AnswerBody::Cluster(serde_json::from_slice(bytes)?),
            Question::Check(_) => AnswerBody::Check(serde_json::from_slice(bytes)?),
        })
    }

    /// Merges the answers of several processes to one question. The result does not depend on their order.
    pub(super) fn merge(answers: Vec<AnswerBody>, limit: Option<usize>) -> Option<AnswerBody> {
        if let Some(AnswerBody::Similar(_)) = answers.first() {
            let lists = answers.into_iter().filter_map(|answer| match answer {
                AnswerBody::Similar(SimilarAnswer { similar }) => Some(similar),
                _ => None,
            });
            let similar = merge_rankings(lists.flatten().collect(), limit.unwrap_or(usize::MAX));
            return Some(AnswerBody::Similar(SimilarAnswer { similar }));
        }
        answers.into_iter().max_by(AnswerBody::preference)
    }

    /// A duplicate before a unique verdict, then the more similar one; of an id that exists in several languages, the one
    /// seen last. Ties are broken by an arbitrary but stable order.
    fn preference(&self, other: &AnswerBody) -> Ordering {
        let by_kind = match (self, other) {
            (AnswerBody::Check(a), AnswerBody::Check(b)) => {
                let rank =
                    |one: &CheckAnswer| (one.verdict != VerdictKind::Unique, one.similarity, one.candidates);
                rank(a).cmp(&rank(b))
            }
            (a, b) => a.last_seen().cmp(&b.last_seen()),
        };
        by_kind.then_with(|| self.text().cmp(&other.text()))
    }

    fn last_seen(&self) -> Option<EventTime> {
        match self {
            AnswerBody::Article(answer) => Some(answer.last_seen),
            AnswerBody::Fingerprint(answer) => Some(answer.last_seen),
            AnswerBody::Cluster(answer) => Some(answer.last_seen),
            AnswerBody::Similar(_) | AnswerBody::Check(_) => None,
        }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn merge_rankings(mut all: Vec<SimilarArticle>, limit: usize) -> Vec<SimilarArticle> {
    all.sort_by(|a, b| {
        let rank = |one: &SimilarArticle| Reverse(one.similarity);
        rank(a).cmp(&rank(b)).then_with(|| a.id.cmp(&b.id))
    });
    let mut named = BTreeSet::new();
    all.retain(|one| named.insert(one.id.clone()));
    all.truncate(limit);
    all
}

fn event_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EventTime, D::Error> {
    optional_time(deserializer)?.ok_or_else(|| D::Error::custom("a time is missing"))
}

fn optional_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<EventTime>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let parse = |text: String| time::parse(&text).ok_or_else(|| D::Error::custom("not a time"));
    text.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: &str, score: f64) -> SimilarArticle {
        SimilarArticle {
            id: ArticleId::new(id).unwrap(),
            title: None,
            host: None,
            similarity: Fraction::new(score),
            similarity_score: Fraction::new(score),
            match_type: Resemblance::Similar,
        }
    }

    fn ranking(similar: Vec<SimilarArticle>) -> AnswerBody {
        AnswerBody::Similar(SimilarAnswer { similar })
    }

    fn checked(verdict: VerdictKind, similarity: f64, candidates: u64) -> AnswerBody {
        AnswerBody::Check(CheckAnswer {
            verdict,
            match_type: None,
            duplicate_of: None,
            similarity: Fraction::new(similarity),
            containment: Fraction::new(0.0),
            confidence: Fraction::new(0.9),
            cluster_id: None,
            language: Lang::UND,
            language_source: LanguageSource::Text,
            declared_language: None,
            content_kind: ContentKind::Short,
            related: Vec::new(),
            flags: vec![Flag::NoText],
            candidates,
        })
    }

    #[test]
    fn rankings_are_merged_without_repeating_an_article() {
        let here = ranking(vec![one("a", 0.9), one("b", 0.2)]);
        let there = ranking(vec![one("c", 0.5), one("a", 0.4), one("d", 0.1)]);
        let expected = ranking(vec![one("a", 0.9), one("c", 0.5), one("b", 0.2)]);
        assert_eq!(AnswerBody::merge(vec![here.clone(), there.clone()], Some(3)).unwrap(), expected);
        assert_eq!(AnswerBody::merge(vec![there, here], Some(3)).unwrap(), expected);
        assert_eq!(AnswerBody::merge(Vec::new(), Some(3)), None);
    }

    #[test]
    fn the_most_similar_verdict_wins_and_a_duplicate_wins_over_unique() {
        let stranger = checked(VerdictKind::Unique, 0.0, 0);
        let close = checked(VerdictKind::Unique, 0.4, 7);
        let copy = checked(VerdictKind::NearDuplicate, 0.3, 1);
        assert_eq!(AnswerBody::merge(vec![close.clone(), stranger.clone()], None).unwrap(), close);
        assert_eq!(AnswerBody::merge(vec![stranger, copy.clone(), close], None).unwrap(), copy);
    }

    // Times were compared as texts: half a second after `06:10:00Z` is `06:10:00.500Z`, which sorts before it.
    #[test]
    fn of_two_articles_with_one_id_the_one_seen_last_wins() {
        let seen = |millis| {
            AnswerBody::Fingerprint(FingerprintAnswer {
                id: ArticleId::new("a").unwrap(),
                language: Lang::UND,
                fingerprint: "00".to_owned(),
                content_kind: ContentKind::Ordinary,
                last_seen: EventTime::from_millis(millis),
                input: InputAnswer::File { file: "a".to_owned(), line: 1 },
            })
        };
        let (earlier, later) = (seen(1_772_431_800_000), seen(1_772_431_800_500));
        assert_eq!(AnswerBody::merge(vec![later.clone(), earlier], None).unwrap(), later);
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let question = Question::Check(axum::body::Bytes::new());
        let answer = checked(VerdictKind::NearDuplicate, 0.1234, 3);
        let written =
            serde_json::to_vec(&Answered { body: answer.clone(), unanswered: BTreeSet::new() }).unwrap();
        assert_eq!(AnswerBody::read(&question, &written).unwrap(), answer);
        assert!(written.ends_with(b",\"unanswered\":[]}"));
    }
}
