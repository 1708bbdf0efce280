//! A cluster as consumers of the cluster topic and the query API see it. The engine builds a record whenever
//! a cluster changes; the formats encode it.

use serde::Serialize;

use super::{ArticleId, ClusterId, EventTime, MatchType};

/// The published state of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterRecord {
    /// Never reused, also after the cluster is deleted.
    #[serde(rename = "cluster_id")]
    pub id: ClusterId,
    /// The article that represents it.
    #[serde(rename = "canonical_id")]
    pub canonical: ArticleId,
    /// Number of members, including those that `members` leaves out.
    pub size: u64,
    /// Earliest event time of a member.
    pub first_seen: EventTime,
    /// Latest event time of a member.
    pub last_seen: EventTime,
    /// Sites of the members.
    pub hosts: Vec<String>,
    /// The newest members.
    pub members: Vec<Member>,
    /// The previous canonical, if this change replaced it.
    pub canonical_changed_from: Option<ArticleId>,
    /// The cluster whose member the founder resembled, if it resembled the member but not that cluster's canonical.
    pub split_from: Option<ClusterId>,
}

/// A member of a cluster, as published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// The member's article id.
    pub id: ArticleId,
    /// For display.
    pub title: Option<String>,
    /// For display.
    pub host: Option<String>,
    /// For display.
    pub url: Option<String>,
    /// When the publisher says it appeared.
    pub published_at: Option<EventTime>,
    /// How it was matched; `None` for the founder.
    pub match_type: Option<MatchType>,
}
