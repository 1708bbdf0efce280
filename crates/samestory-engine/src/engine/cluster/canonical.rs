//! Who stands for a cluster.

use std::sync::Arc;

use crate::index::{Document, Order, StoreError, View};
use crate::model::{DocumentNumber, EventTime, Lang, MatchType};

use crate::engine::batch::planner::Planner;
use crate::engine::compare::Relation;
use crate::engine::judge::Judged;
use crate::engine::settings::{CanonicalPolicy, Settings};

/// Members that an election looks at, from either end. In a cluster of a million copies the rest are not asked.
const ELECTORATE: usize = 256;

impl<V: View> Planner<'_, V> {
    /// Who stands for a touched cluster at this instant: its canonical, or the next if that is expired or gone.
    pub(crate) fn standing(
        &self,
        language: Lang,
        founder: DocumentNumber,
    ) -> Result<Option<Arc<Document>>, StoreError> {
        let now = self.touched.get(&(language, founder)).and_then(|touched| touched.now.as_ref());
        let Some(canonical) = now.map(|cluster| cluster.canonical) else { return Ok(None) };
        match self.state.shared_document(language, canonical)? {
            Some(document) if document.cluster == founder && self.is_live(&document) => Ok(Some(document)),
            _ => self.elect(language, founder),
        }
    }

    /// Who should stand for a cluster. If all are expired, the oldest, until they are removed.
    pub(crate) fn elect(
        &self,
        language: Lang,
        founder: DocumentNumber,
    ) -> Result<Option<Arc<Document>>, StoreError> {
        let settings = self.engine.settings();
        // These two need not ask everybody.
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
                .reduce(|stands, other| if prefers(settings, &other, &stands) { other } else { stands });
            // A whole may be at the other end.
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

/// Whether the policy wants `other` in the place of `stands`: a whole before a part, and between equals the lower number.
pub(crate) fn prefers(settings: &Settings, other: &Document, stands: &Document) -> bool {
    if other.judgement.is_part != stands.judgement.is_part {
        return stands.judgement.is_part;
    }
    let older = other.number < stands.number;
    match settings.canonical {
        CanonicalPolicy::FirstSeen => older,
        CanonicalPolicy::Newest => !older,
        CanonicalPolicy::FirstPublished => {
            let rank = |document: &Document| {
                let published_at = believed(settings, document);
                (published_at.is_none(), published_at, document.number)
            };
            rank(other) < rank(stands)
        }
        CanonicalPolicy::Longest => {
            let (words, most) = (other.fingerprint.tokens, stands.fingerprint.tokens);
            words > most || words == most && older
        }
    }
}

/// When a document says that it was published, unless that lies too long before it was fetched: anybody can write 1990.
fn believed(settings: &Settings, document: &Document) -> Option<EventTime> {
    let earliest = settings.published_within.horizon(document.event_time);
    document.published_at.filter(|&at| earliest.is_none_or(|earliest| at >= earliest))
}

/// Whether an article lies inside its best match, or inside most of the copies of that, rather than around it; or is a copy of
/// one that does.
pub(crate) fn is_part(judged: &Judged) -> bool {
    let Some(best) = &judged.best else { return false };
    match judged.match_type {
        Some(MatchType::Partial) => {
            let pair = &best.comparison;
            pair.relation != Relation::Partial || pair.containment > pair.containment_of_old
        }
        // An editor says what it is, not how much of it.
        Some(MatchType::Reviewed) => false,
        _ => best.document.judgement.is_part,
    }
}
