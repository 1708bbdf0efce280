//! A cluster as readers see it.

use serde::Serialize;

use super::{ArticleId, ClusterId, EventTime, MatchType};

/// A cluster as its readers see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterRecord {
    /// Its name.
    #[serde(rename = "cluster_id")]
    pub id: ClusterId,
    /// The article that stands for it.
    #[serde(rename = "canonical_id")]
    pub canonical: ArticleId,
    /// How many members it has.
    pub size: u64,
    /// Earliest event time of a member.
    pub first_seen: EventTime,
    /// Latest event time of a member.
    pub last_seen: EventTime,
    /// Where members were found.
    pub hosts: Vec<String>,
    /// The newest members.
    pub members: Vec<Member>,
    /// Who stood for it before.
    pub canonical_changed_from: Option<ArticleId>,
    /// The cluster of the member its founder resembled.
    pub split_from: Option<ClusterId>,
}

/// A member as a reader shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// The article.
    pub id: ArticleId,
    /// For display.
    pub title: Option<String>,
    /// For display.
    pub host: Option<String>,
    /// For display.
    pub url: Option<String>,
    /// When it was published.
    pub published_at: Option<EventTime>,
    /// How it was matched; none for a founder.
    pub match_type: Option<MatchType>,
}
