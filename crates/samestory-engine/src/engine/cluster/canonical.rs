//! Election of a cluster's canonical, the member that represents it.
//!
//! [`Planner`] asks here whenever a member joins, leaves or expires. The policy in [`Settings`] decides among
//! live members; under every policy a complete text is preferred to a part of another member.

use std::sync::Arc;

use crate::index::{Document, Order, StoreError, View};
use crate::model::{DocumentNumber, EventTime, Lang, MatchType};

use crate::engine::batch::planner::Planner;
use crate::engine::compare::Relation;
use crate::engine::judge::Judged;
use crate::engine::settings::{CanonicalPolicy, Settings};

/// How many members an election reads, from either end. The rest of a cluster of a million copies is not
/// read.
const ELECTORATE: usize = 256;

impl<V: View> Planner<'_, V> {
    /// The current canonical of a cluster that is being edited: the recorded one, or a newly elected one if
    /// that is expired or gone.
    pub(crate) fn current_canonical(
        &self,
        language: Lang,
        founder: DocumentNumber,
    ) -> Result<Option<Arc<Document>>, StoreError> {
        let now = self.cluster_edits.get(&(language, founder)).and_then(|edit| edit.now.as_ref());
        let Some(canonical) = now.map(|cluster| cluster.canonical) else { return Ok(None) };
        match self.state.shared_document(language, canonical)? {
            Some(document) if document.cluster == founder && self.is_live(&document) => Ok(Some(document)),
            _ => self.elect(language, founder),
        }
    }

    /// Elects the canonical of a cluster. If all members are expired it is the oldest one, until they are
    /// removed.
    pub(crate) fn elect(
        &self,
        language: Lang,
        founder: DocumentNumber,
    ) -> Result<Option<Arc<Document>>, StoreError> {
        let settings = self.engine.settings();
        // These two policies can stop at the first suitable member.
        let end = match settings.canonical {
            CanonicalPolicy::FirstSeen => Some(Order::Ascending),
            CanonicalPolicy::Newest => Some(Order::Descending),
            CanonicalPolicy::FirstPublished | CanonicalPolicy::Longest => None,
        };
        if let Some(order) = end {
            for number in self.state.members(language, founder, order, None, ELECTORATE)?.numbers {
                let member = self.state.shared_document(language, number)?;
                let is_whole = |member: &Arc<Document>| self.is_live(member) && !member.judgement.is_part;
                if let Some(member) = member.filter(is_whole) {
                    return Ok(Some(member));
                }
            }
        }
        let mut elected: Option<Arc<Document>> = None;
        for order in [Order::Ascending, Order::Descending] {
            let members = self.members(language, founder, order, ELECTORATE)?;
            let live = members.into_iter().filter(|member| self.is_live(member));
            elected = elected
                .into_iter()
                .chain(live)
                .reduce(|current, other| if prefers(settings, &other, &current) { other } else { current });
            // There may be a complete text at the other end.
            if elected.as_ref().is_some_and(|elected| !elected.judgement.is_part) {
                break;
            }
        }
        match elected {
            Some(elected) => Ok(Some(elected)),
            None => Ok(self.members(language, founder, Order::Ascending, 1)?.pop()),
        }
    }
}

/// True if the policy prefers `other` to `current`: a complete text to a part, and among equals the lower
/// number.
pub(crate) fn prefers(settings: &Settings, other: &Document, current: &Document) -> bool {
    if other.judgement.is_part != current.judgement.is_part {
        return current.judgement.is_part;
    }
    let older = other.number < current.number;
    match settings.canonical {
        CanonicalPolicy::FirstSeen => older,
        CanonicalPolicy::Newest => !older,
        CanonicalPolicy::FirstPublished => {
            let rank = |document: &Document| {
                let published_at = believed(settings, document);
                (published_at.is_none(), published_at, document.number)
            };
            rank(other) < rank(current)
        }
        CanonicalPolicy::Longest => {
            let (words, most) = (other.fingerprint.tokens, current.fingerprint.tokens);
            words > most || words == most && older
        }
    }
}

/// The publication time that a document states, unless it lies too long before the fetch: anybody can write
/// 1990.
fn believed(settings: &Settings, document: &Document) -> Option<EventTime> {
    let earliest = settings.published_within.horizon(document.event_time);
    document.published_at.filter(|&at| earliest.is_none_or(|earliest| at >= earliest))
}

/// True if an article is contained in its best match, or in most copies of it, rather than containing it; or
/// is a copy of a document that is.
pub(crate) fn is_part(judged: &Judged) -> bool {
    let Some(best) = &judged.best else { return false };
    match judged.match_type {
        Some(MatchType::Partial) => {
            let pair = &best.comparison;
            pair.relation != Relation::Partial || pair.containment > pair.containment_of_old
        }
        // An editor's ruling says that the texts are the same item, not how much of it each contains.
        Some(MatchType::Reviewed) => false,
        _ => best.document.judgement.is_part,
    }
}
