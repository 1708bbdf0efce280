//! Cluster maintenance: which documents belong to a cluster, which one is its canonical, and which records
//! readers see.
//!
//! [`Planner`] collects the edits of one item here and flushes them when the item is decided; [`canonical`]
//! elects. A document that is alone in its cluster needs no cluster row, since everything follows from the
//! document. A row is written when a second member joins or when the founder split off from another cluster,
//! and it stays until the last member is gone.

pub(crate) mod canonical;

use std::sync::Arc;

use crate::index::{Change, Cluster, Document, Hosts, Order, StoreError, View};
use crate::model::{ArticleId, ClusterId, DocumentNumber, Lang, MatchType};
use crate::model::{ClusterRecord, Member};

use super::Engine;
use super::batch::Output;
use super::batch::planner::Planner;
use super::candidates::Candidate;
use super::constraints::Bond;
use super::settings::LanguageSettings;
use canonical::prefers;

/// How many members a cluster record lists, at most.
const SHOWN: usize = 50;
/// How many members are read at a time when all are needed.
const PAGE: usize = 1000;

/// A cluster that the current item changes.
pub(super) struct ClusterEdit {
    /// The cluster before the item: what readers saw last.
    before: Cluster,
    /// True if the store has a row for the cluster.
    stored: bool,
    /// The canonical before the item.
    previous: ArticleId,
    /// The cluster now; `None` once its last member is gone.
    pub(super) now: Option<Cluster>,
    /// The document that the item added.
    joined: Option<Arc<Document>>,
    /// True if readers need a new record.
    changed: bool,
}

/// The cluster that an article belongs to, and its canonical.
pub(super) struct ClusterRef {
    pub(super) cluster: ClusterId,
    pub(super) canonical: ArticleId,
}

impl<V: View> Planner<'_, V> {
    /// Starts editing a cluster and returns it as it was before the item. Must be called before any of its
    /// members changes.
    pub(super) fn edit_cluster(
        &mut self,
        language: Lang,
        founder: DocumentNumber,
    ) -> Result<&Cluster, StoreError> {
        let key = (language, founder);
        if !self.cluster_edits.contains_key(&key) {
            let row = self.state.cluster(language, founder)?;
            let stored = row.is_some();
            let canonical = row.as_ref().map_or(founder, |cluster| cluster.canonical);
            let canonical = self.state.shared_document(language, canonical)?;
            let implicit_cluster = |document| implicit_cluster(document, self.partition);
            let (Some(before), Some(canonical)) =
                (row.or_else(|| canonical.as_deref().map(implicit_cluster)), canonical)
            else {
                return Err(StoreError::Corrupt {
                    place: self.state.place().into(),
                    detail: format!("clusters {language} {founder}: its canonical document is missing"),
                });
            };
            let now = Some(before.clone());
            let previous = canonical.id.clone();
            self.cluster_edits
                .insert(key, ClusterEdit { before, stored, previous, now, joined: None, changed: false });
        }
        match self.cluster_edits.get(&key) {
            Some(edit) => Ok(&edit.before),
            None => unreachable!("inserted above"),
        }
    }

    fn edit_mut(&mut self, language: Lang, founder: DocumentNumber) -> Option<&mut ClusterEdit> {
        self.cluster_edits.get_mut(&(language, founder))
    }

    /// Publishes a cluster again after the metadata of a member changed, if readers know the cluster.
    pub(super) fn republish_cluster(
        &mut self,
        language: Lang,
        founder: DocumentNumber,
    ) -> Result<(), StoreError> {
        let elected = self.elect(language, founder)?;
        let members = self.members(language, founder, Order::Ascending, SHOWN)?;
        if let Some(edit) = self.edit_mut(language, founder).filter(|edit| edit.stored) {
            edit.changed = true;
            if let (Some(cluster), Some(elected)) = (&mut edit.now, elected) {
                cluster.canonical = elected.number;
                if cluster.size <= SHOWN as u64 {
                    cluster.hosts = members.iter().filter_map(|member| member.host.clone()).collect();
                }
            }
        }
        Ok(())
    }

    /// Chooses the cluster of a new document and stores the document in it.
    pub(super) fn join_cluster(
        &mut self,
        mut document: Document,
        best: Option<&Candidate>,
        settings: &LanguageSettings,
    ) -> Result<ClusterRef, StoreError> {
        let language = document.language;
        let (target, split_from) = self.choose_cluster(&document, best, settings)?;
        let Some((founder, canonical)) = target else {
            let document = Arc::new(document);
            self.change(Change::Document(Arc::clone(&document)))?;
            self.stats.splits += u64::from(split_from.is_some());
            let founded =
                ClusterRef { cluster: document.founds(self.partition), canonical: document.id.clone() };
            if split_from.is_some() {
                self.change(Change::Cluster(Box::new(Cluster {
                    split_from,
                    ..implicit_cluster(&document, self.partition)
                })))?;
            }
            return Ok(founded);
        };
        document.cluster = founder;
        let document = Arc::new(document);
        self.change(Change::Document(Arc::clone(&document)))?;
        let prefers = prefers(self.engine.settings(), &document, &canonical);
        let elected = if prefers { &*document } else { &canonical };
        let Some(edit) = self.edit_mut(language, founder) else {
            unreachable!("choose_cluster starts the edit")
        };
        edit.changed = true;
        edit.joined = Some(Arc::clone(&document));
        let Some(cluster) = &mut edit.now else { unreachable!("the cluster has a member, its canonical") };
        cluster.size += 1;
        cluster.first_seen = cluster.first_seen.min(document.event_time);
        cluster.last_seen = cluster.last_seen.max(document.event_time);
        cluster.hosts = cluster.hosts.iter().cloned().chain(document.host.clone()).collect();
        cluster.canonical = elected.number;
        Ok(ClusterRef { cluster: cluster.id.clone(), canonical: elected.id.clone() })
    }

    /// The cluster that a document would join if it were stored.
    pub(super) fn would_join(
        &mut self,
        document: &Document,
        best: Option<&Candidate>,
        settings: &LanguageSettings,
    ) -> Result<ClusterRef, StoreError> {
        let (target, _) = self.choose_cluster(document, best, settings)?;
        Ok(match target {
            None => ClusterRef { cluster: document.founds(self.partition), canonical: document.id.clone() },
            Some((founder, canonical)) => {
                let cluster = self.edit_cluster(document.language, founder)?.id.clone();
                ClusterRef { cluster, canonical: canonical.id.clone() }
            }
        })
    }

    /// The founder and the canonical of the cluster that a document joins; or `None`, with the cluster that
    /// it split from.
    ///
    /// It joins its best match's cluster only if it also resembles that cluster's canonical. Otherwise
    /// members that resemble only each other would make the cluster drift.
    #[expect(clippy::type_complexity, reason = "the callers destructure the pair at once")]
    fn choose_cluster(
        &mut self,
        document: &Document,
        best: Option<&Candidate>,
        settings: &LanguageSettings,
    ) -> Result<(Option<(DocumentNumber, Arc<Document>)>, Option<ClusterId>), StoreError> {
        let Some(best) = best else { return Ok((None, None)) };
        let (language, founder) = (document.language, best.document.cluster);
        let id = self.edit_cluster(language, founder)?.id.clone();
        let canonical =
            self.current_canonical(language, founder)?.unwrap_or_else(|| Arc::clone(&best.document));
        let belongs = canonical.number == best.document.number
            || self.engine.settings().constraints.between(&document.id, &best.document.id) == Some(Bond::Same)
            // Copies follow an article that an editor placed.
            || best.document.judgement.match_type == Some(MatchType::Reviewed)
            || settings.resembles(&settings.compare(&canonical.fingerprint, &document.fingerprint));
        Ok(if belongs { (Some((founder, canonical)), None) } else { (None, Some(id)) })
    }

    pub(super) fn members(
        &self,
        language: Lang,
        founder: DocumentNumber,
        order: Order,
        cap: usize,
    ) -> Result<Vec<Arc<Document>>, StoreError> {
        let numbers = self.state.members(language, founder, order, None, cap)?.numbers;
        Ok(self.state.shared_documents(language, &numbers)?.into_iter().flatten().collect())
    }

    /// Takes a removed document out of its cluster.
    pub(super) fn leave_cluster(&mut self, document: &Document) -> Result<(), StoreError> {
        let (language, founder) = (document.language, document.cluster);
        let Some(left) = self.edit_mut(language, founder).and_then(|edit| {
            edit.changed = true;
            let cluster = edit.now.as_mut()?;
            cluster.size -= 1;
            Some(cluster.size)
        }) else {
            return Ok(());
        };
        let elected = self.current_canonical(language, founder)?;
        // A large cluster keeps the times and hosts of members that left; recomputing them would read every
        // member.
        let members = if left <= SHOWN as u64 {
            Some(self.members(language, founder, Order::Ascending, SHOWN)?)
        } else {
            None
        };
        let Some(edit) = self.edit_mut(language, founder) else { return Ok(()) };
        match (&mut edit.now, elected) {
            (Some(cluster), Some(elected)) => {
                cluster.canonical = elected.number;
                if let Some(members) = members {
                    let times = || members.iter().map(|member| member.event_time);
                    cluster.first_seen = times().min().unwrap_or(cluster.first_seen);
                    cluster.last_seen = times().max().unwrap_or(cluster.last_seen);
                    cluster.hosts = members.iter().filter_map(|member| member.host.clone()).collect();
                }
            }
            (now, _) => *now = None,
        }
        // Later steps of the same item read the row too, and a row never names a document that is gone.
        let row = edit.now.clone();
        match row {
            _ if !edit.stored => Ok(()),
            Some(cluster) => self.change(Change::Cluster(Box::new(cluster))),
            None => self.change(Change::ClusterDeleted(language, founder)),
        }
    }

    /// Stages the changes of all clusters that the item edited, and publishes them.
    pub(super) fn flush_cluster_edits(&mut self, outputs: &mut Vec<Output>) -> Result<(), StoreError> {
        for ((language, founder), edit) in std::mem::take(&mut self.cluster_edits) {
            let ClusterEdit { before, stored, previous, now, joined, changed } = edit;
            if !changed {
                continue;
            }
            let output = match now {
                None => {
                    if stored {
                        self.change(Change::ClusterDeleted(language, founder))?;
                    }
                    Output::ClusterDeleted { id: before.id.clone(), remaining: None }
                }
                Some(cluster) => {
                    let members = match (stored, joined) {
                        // Without a row, the founder was the only member.
                        (false, Some(joined)) => {
                            let founder = self.state.shared_document(language, founder)?;
                            [joined].into_iter().chain(founder).collect()
                        }
                        _ => self.members(language, founder, Order::Descending, SHOWN)?,
                    };
                    self.flush_cluster(cluster, &before, previous, &members)?
                }
            };
            // Readers never saw a cluster of one.
            let published_before_or_now = before.size > 1 || matches!(output, Output::Cluster(_));
            if published_before_or_now && self.publishes_clusters(language) {
                outputs.push(output);
            }
        }
        Ok(())
    }

    /// Stages the cluster's row and returns the record for its readers: the cluster, or a tombstone if fewer
    /// than two members are live.
    fn flush_cluster(
        &mut self,
        mut cluster: Cluster,
        before: &Cluster,
        previous: ArticleId,
        shown: &[Arc<Document>],
    ) -> Result<Output, StoreError> {
        let language = cluster.id.language;
        let canonical = match shown.iter().find(|member| member.number == cluster.canonical) {
            Some(member) => Some(Arc::clone(member)),
            None => self.state.shared_document(language, cluster.canonical)?,
        };
        let elected = canonical.as_ref().map_or_else(|| previous.clone(), |document| document.id.clone());
        if elected != previous {
            self.stats.elections += 1;
            cluster.canonical_changed_from = Some(previous);
        } else {
            cluster.canonical_changed_from.clone_from(&before.canonical_changed_from);
        }
        let live: Vec<&Document> =
            shown.iter().map(|member| &**member).filter(|member| self.is_live(member)).collect();
        // The members of a large cluster are not counted one by one; its few expired ones are about to be
        // removed.
        let size = if cluster.size <= SHOWN as u64 { live.len() as u64 } else { cluster.size };
        // All of the newest members may be overdue while an older member, which was sent again, is live.
        let is_large = cluster.size > SHOWN as u64 && canonical.is_some_and(|member| self.is_live(&member));
        let output = match live[..] {
            [] if !is_large => Output::ClusterDeleted { id: cluster.id.clone(), remaining: None },
            [one] if !is_large => {
                Output::ClusterDeleted { id: cluster.id.clone(), remaining: Some(one.id.clone()) }
            }
            [..] => {
                let members = live.iter().map(|document| member(&cluster, document)).collect();
                Output::Cluster(Box::new(record(&cluster, elected, size, members)))
            }
        };
        self.change(Change::Cluster(Box::new(cluster)))?;
        Ok(output)
    }
}

/// The implicit cluster of a document that has no other members.
fn implicit_cluster(document: &Document, partition: i32) -> Cluster {
    Cluster {
        id: document.founds(partition),
        canonical: document.number,
        size: 1,
        first_seen: document.event_time,
        last_seen: document.event_time,
        split_from: None,
        canonical_changed_from: None,
        hosts: document.host.clone().into_iter().collect::<Hosts>(),
    }
}

fn member(cluster: &Cluster, document: &Document) -> Member {
    let text = |text: Option<&str>| text.map(str::to_owned);
    Member {
        id: document.id.clone(),
        title: text(document.title.as_ref().map(|title| title.as_str())),
        host: text(document.host.as_ref().map(|host| host.as_str())),
        url: text(document.url.as_ref().map(|url| url.as_str())),
        published_at: document.published_at,
        match_type: document.judgement.match_type.filter(|_| document.number != cluster.id.number),
    }
}

fn record(cluster: &Cluster, canonical: ArticleId, size: u64, members: Vec<Member>) -> ClusterRecord {
    ClusterRecord {
        id: cluster.id.clone(),
        canonical,
        size,
        first_seen: cluster.first_seen,
        last_seen: cluster.last_seen,
        hosts: cluster.hosts.iter().map(|host| host.as_str().to_owned()).collect(),
        members,
        canonical_changed_from: cluster.canonical_changed_from.clone(),
        split_from: cluster.split_from.clone(),
    }
}

impl Engine {
    /// Visits every cluster with at least two live members, by language and founder, with all its members,
    /// newest first; stops when `visit` returns `false`.
    ///
    /// # Errors
    /// The index could not be read.
    pub fn each_cluster(
        &self,
        state: &impl View,
        visit: &mut dyn FnMut(ClusterRecord) -> bool,
    ) -> Result<(), StoreError> {
        let mut planner = Planner::new(self, state, None, false)?;
        for language in state.languages() {
            for founder in state.founders(language)? {
                planner.cluster_edits.clear();
                let cluster = planner.edit_cluster(language, founder)?.clone();
                let Some(elected) = planner.current_canonical(language, founder)? else { continue };
                let (mut members, mut after) = (Vec::new(), None);
                loop {
                    let page = state.members(language, founder, Order::Descending, after, PAGE)?;
                    for document in state.shared_documents(language, &page.numbers)?.iter().flatten() {
                        members.extend(planner.is_live(document).then(|| member(&cluster, document)));
                    }
                    after = page.numbers.last().copied();
                    if !page.more {
                        break;
                    }
                }
                let size = members.len() as u64;
                if size > 1 && !visit(record(&cluster, elected.id.clone(), size, members)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
