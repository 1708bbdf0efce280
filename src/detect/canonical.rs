//! Who stands for a cluster.

use std::sync::Arc;

use crate::model::{DocumentNumber, Lang};
use crate::store::{Document, Order, StoreError, View};

use super::planner::Planner;
use super::settings::CanonicalPolicy;

/// Members that an election looks at, from either end. In a cluster of a million copies the rest are not asked.
const ELECTORATE: usize = 256;

impl<V: View> Planner<'_, V> {
    /// Who stands for a touched cluster at this instant: its canonical, or the next if that is expired or gone.
    pub(super) fn standing(
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
    fn elect(&self, language: Lang, founder: DocumentNumber) -> Result<Option<Arc<Document>>, StoreError> {
        let policy = self.engine.settings().canonical;
        // These two need not ask everybody.
        let end = match policy {
            CanonicalPolicy::FirstSeen => Some(Order::Ascending),
            CanonicalPolicy::Newest => Some(Order::Descending),
            CanonicalPolicy::FirstPublished | CanonicalPolicy::Longest => None,
        };
        if let Some(order) = end {
            for number in self.state.members(language, founder, order, None, ELECTORATE)?.numbers {
                let member = self.state.shared_document(language, number)?;
                if let Some(member) = member.filter(|member| self.is_live(member)) {
                    return Ok(Some(member));
                }
            }
        }
        for order in [Order::Ascending, Order::Descending] {
            let live = self.members(language, founder, order, ELECTORATE)?;
            let live = live.into_iter().filter(|member| self.is_live(member));
            let elected =
                live.reduce(|stands, other| if prefers(policy, &other, &stands) { other } else { stands });
            if elected.is_some() {
                return Ok(elected);
            }
        }
        Ok(self.members(language, founder, Order::Ascending, 1)?.pop())
    }
}

/// Whether the policy wants `other` in the place of `stands`. Between equals the lower number stands.
pub(super) fn prefers(policy: CanonicalPolicy, other: &Document, stands: &Document) -> bool {
    let older = other.number < stands.number;
    match policy {
        CanonicalPolicy::FirstSeen => older,
        CanonicalPolicy::Newest => !older,
        CanonicalPolicy::FirstPublished => {
            let rank = |document: &Document| {
                (document.published_at.is_none(), document.published_at, document.number)
            };
            rank(other) < rank(stands)
        }
        CanonicalPolicy::Longest => {
            let (words, most) = (other.fingerprint.tokens, stands.fingerprint.tokens);
            words > most || words == most && older
        }
    }
}
