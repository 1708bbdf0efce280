//! Clusters: who is in, who stands for it, and what readers see of it.
//!
//! A document alone is a cluster without a row of its own: all there is to say follows from the document. A row is
//! written when a second member comes, or when the founder split off, and stays until the last member is gone.

pub(crate) mod canonical;

use std::sync::Arc;

use crate::index::{Change, Cluster, Document, Hosts, Order, Rows, StoreError, View};
use crate::model::{ArticleId, ClusterId, DocumentNumber, Lang, MatchType};
use crate::model::{ClusterRecord, Member};

use super::Engine;
use super::batch::Output;
use super::batch::planner::Planner;
use super::candidates::Candidate;
use super::constraints::Bond;
use super::settings::LanguageSettings;
use canonical::prefers;

/// Members that a cluster record names.
const SHOWN: usize = 50;
/// Members that are read together where all are asked for.
const PAGE: usize = 1000;

/// A cluster while an item is being decided.
pub(super) struct ClusterEdit {
    /// As it was before the item; what its readers saw last.
    before: Cluster,
    /// Whether the store has a row for it.
    stored: bool,
    /// Who stood for it before the item.
    previous: ArticleId,
    /// As it is now; nothing once its last member is gone.
    pub(super) now: Option<Cluster>,
    /// Who has joined it.
    joined: Option<Arc<Document>>,
    /// Whether there is something new to tell.
    changed: bool,
}

/// The cluster that an article belongs to.
pub(super) struct Home {
    pub(super) cluster: ClusterId,
    pub(super) canonical: ArticleId,
}

impl<V: View> Planner<'_, V> {
    /// Takes a cluster up and gives it as it was before the item. Comes before any change of its members.
    pub(super) fn touch(&mut self, language: Lang, founder: DocumentNumber) -> Result<&Cluster, StoreError> {
        let key = (language, founder);
        if !self.touched.contains_key(&key) {
            let row = self.state.cluster(language, founder)?;
            let stored = row.is_some();
            let canonical = row.as_ref().map_or(founder, |cluster| cluster.canonical);
            let canonical = self.state.shared_document(language, canonical)?;
            let alone = |document| alone(document, self.partition);
            let (Some(before), Some(canonical)) =
                (row.or_else(|| canonical.as_deref().map(alone)), canonical)
            else {
                return Err(StoreError::Corrupt {
                    place: self.place(),
                    detail: format!("clusters {language} {founder}: nobody stands for it"),
                });
            };
            let now = Some(before.clone());
            let previous = canonical.id.clone();
            self.touched
                .insert(key, ClusterEdit { before, stored, previous, now, joined: None, changed: false });
        }
        match self.touched.get(&key) {
            Some(touched) => Ok(&touched.before),
            None => unreachable!("it has just been put there"),
        }
    }

    fn place(&self) -> String {
        self.state.place().into()
    }

    fn now(&mut self, language: Lang, founder: DocumentNumber) -> Option<&mut ClusterEdit> {
        self.touched.get_mut(&(language, founder))
    }

    /// A member of a touched cluster is described in other words: its readers are told, if it has any.
    pub(super) fn retell(&mut self, language: Lang, founder: DocumentNumber) -> Result<(), StoreError> {
        let stands = self.elect(language, founder)?;
        let members = self.members(language, founder, Order::Ascending, SHOWN)?;
        if let Some(touched) = self.now(language, founder).filter(|touched| touched.stored) {
            touched.changed = true;
            if let (Some(cluster), Some(stands)) = (&mut touched.now, stands) {
                cluster.canonical = stands.number;
                if cluster.size <= SHOWN as u64 {
                    cluster.hosts = members.iter().filter_map(|member| member.host.clone()).collect();
                }
            }
        }
        Ok(())
    }

    /// Finds a new document its cluster and stores it there.
    pub(super) fn join_cluster(
        &mut self,
        mut document: Document,
        best: Option<&Candidate>,
        settings: &LanguageSettings,
    ) -> Result<Home, StoreError> {
        let language = document.language;
        let (home, split_from) = self.choose(&document, best, settings)?;
        let Some((founder, canonical)) = home else {
            let document = Arc::new(document);
            self.change(Change::Document(Arc::clone(&document)))?;
            self.stats.splits += u64::from(split_from.is_some());
            let home = Home { cluster: document.founds(self.partition), canonical: document.id.clone() };
            if split_from.is_some() {
                self.change(Change::Cluster(Box::new(Cluster {
                    split_from,
                    ..alone(&document, self.partition)
                })))?;
            }
            return Ok(home);
        };
        document.cluster = founder;
        let document = Arc::new(document);
        self.change(Change::Document(Arc::clone(&document)))?;
        let prefers = prefers(self.engine.settings(), &document, &canonical);
        let stands = if prefers { &*document } else { &canonical };
        let Some(touched) = self.now(language, founder) else { unreachable!("choosing touches it") };
        touched.changed = true;
        touched.joined = Some(Arc::clone(&document));
        let Some(cluster) = &mut touched.now else { unreachable!("its canonical is a member") };
        cluster.size += 1;
        cluster.first_seen = cluster.first_seen.min(document.event_time);
        cluster.last_seen = cluster.last_seen.max(document.event_time);
        cluster.hosts = cluster.hosts.iter().cloned().chain(document.host.clone()).collect();
        cluster.canonical = stands.number;
        Ok(Home { cluster: cluster.id.clone(), canonical: stands.id.clone() })
    }

    /// The cluster that a document would be in, were it stored.
    pub(super) fn would_join(
        &mut self,
        document: &Document,
        best: Option<&Candidate>,
        settings: &LanguageSettings,
    ) -> Result<Home, StoreError> {
        let (home, _) = self.choose(document, best, settings)?;
        Ok(match home {
            None => Home { cluster: document.founds(self.partition), canonical: document.id.clone() },
            Some((founder, canonical)) => {
                let cluster = self.touch(document.language, founder)?.id.clone();
                Home { cluster, canonical: canonical.id.clone() }
            }
        })
    }

    /// The founder and the canonical of the cluster a document belongs to; or none, and what it split from.
    ///
    /// It belongs to its best match's cluster if it resembles who stands for that: members who resemble only each
    /// other would carry a cluster away.
    #[expect(clippy::type_complexity, reason = "two answers, told apart at once")]
    fn choose(
        &mut self,
        document: &Document,
        best: Option<&Candidate>,
        settings: &LanguageSettings,
    ) -> Result<(Option<(DocumentNumber, Arc<Document>)>, Option<ClusterId>), StoreError> {
        let Some(best) = best else { return Ok((None, None)) };
        let (language, founder) = (document.language, best.document.cluster);
        let id = self.touch(language, founder)?.id.clone();
        let canonical = self.standing(language, founder)?.unwrap_or_else(|| Arc::clone(&best.document));
        let belongs = canonical.number == best.document.number
            || self.engine.settings().constraints.between(&document.id, &best.document.id) == Some(Bond::Same)
            // Where an editor put an article, its copies go too.
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

    /// Takes a document out of its cluster, after it has been removed.
    pub(super) fn leave(&mut self, document: &Document) -> Result<(), StoreError> {
        let (language, founder) = (document.language, document.cluster);
        let Some(left) = self.now(language, founder).and_then(|touched| {
            touched.changed = true;
            let cluster = touched.now.as_mut()?;
            cluster.size -= 1;
            Some(cluster.size)
        }) else {
            return Ok(());
        };
        let stands = self.standing(language, founder)?;
        // In a large cluster the times and hosts of those who left stay: nobody would notice one.
        let members = if left <= SHOWN as u64 {
            Some(self.members(language, founder, Order::Ascending, SHOWN)?)
        } else {
            None
        };
        let Some(touched) = self.now(language, founder) else { return Ok(()) };
        match (&mut touched.now, stands) {
            (Some(cluster), Some(stands)) => {
                cluster.canonical = stands.number;
                if let Some(members) = members {
                    let times = || members.iter().map(|member| member.event_time);
                    cluster.first_seen = times().min().unwrap_or(cluster.first_seen);
                    cluster.last_seen = times().max().unwrap_or(cluster.last_seen);
                    cluster.hosts = members.iter().filter_map(|member| member.host.clone()).collect();
                }
            }
            (now, _) => *now = None,
        }
        // The rest of the item reads the row too, and a row never names who is gone.
        let row = touched.now.clone();
        match row {
            _ if !touched.stored => Ok(()),
            Some(cluster) => self.change(Change::Cluster(Box::new(cluster))),
            None => self.change(Change::ClusterDeleted(language, founder)),
        }
    }

    /// Lays the changes of all clusters that the item touched, and tells their readers.
    pub(super) fn settle_clusters(&mut self, outputs: &mut Vec<Output>) -> Result<(), StoreError> {
        for ((language, founder), touched) in std::mem::take(&mut self.touched) {
            let ClusterEdit { before, stored, previous, now, joined, changed } = touched;
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
                        // Without a row there was the founder alone.
                        (false, Some(joined)) => {
                            let founder = self.state.shared_document(language, founder)?;
                            [joined].into_iter().chain(founder).collect()
                        }
                        _ => self.members(language, founder, Order::Descending, SHOWN)?,
                    };
                    self.settle_cluster(cluster, &before, previous, &members)?
                }
            };
            // Readers were never told about a cluster of one.
            let told = before.size > 1 || matches!(output, Output::Cluster(_));
            if told && self.publishes_clusters(language) {
                outputs.push(output);
            }
        }
        Ok(())
    }

    /// Stages the cluster's row and gives the record for its readers: the cluster, or a tombstone where fewer than two
    /// members are live.
    fn settle_cluster(
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
        let stands = canonical.as_ref().map_or_else(|| previous.clone(), |document| document.id.clone());
        if stands != previous {
            self.stats.elections += 1;
            cluster.canonical_changed_from = Some(previous);
        } else {
            cluster.canonical_changed_from.clone_from(&before.canonical_changed_from);
        }
        let live: Vec<&Document> =
            shown.iter().map(|member| &**member).filter(|member| self.is_live(member)).collect();
        // A large cluster is not counted through; those few that are expired are about to be removed.
        let size = if cluster.size <= SHOWN as u64 { live.len() as u64 } else { cluster.size };
        // The newest members of a large cluster may all be overdue while an older one, which was sent again, is live.
        let is_large = cluster.size > SHOWN as u64 && canonical.is_some_and(|member| self.is_live(&member));
        let output = match live[..] {
            [] if !is_large => Output::ClusterDeleted { id: cluster.id.clone(), remaining: None },
            [one] if !is_large => {
                Output::ClusterDeleted { id: cluster.id.clone(), remaining: Some(one.id.clone()) }
            }
            [..] => {
                let members = live.iter().map(|document| member(&cluster, document)).collect();
                Output::Cluster(Box::new(record(&cluster, stands, size, members)))
            }
        };
        self.change(Change::Cluster(Box::new(cluster)))?;
        Ok(output)
    }
}

/// The cluster of a document that nobody has joined.
fn alone(document: &Document, partition: i32) -> Cluster {
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
    /// Visits every cluster that has two members or more, by language and founder, with all its members, the newest first;
    /// until told to stop.
    ///
    /// # Errors
    /// The state could not be read.
    pub fn each_cluster(
        &self,
        state: &impl View,
        visit: &mut dyn FnMut(ClusterRecord) -> bool,
    ) -> Result<(), StoreError> {
        let mut planner = Planner::new(self, state, None, false)?;
        for language in state.languages() {
            for founder in state.founders(language)? {
                planner.touched.clear();
                let cluster = planner.touch(language, founder)?.clone();
                let Some(stands) = planner.standing(language, founder)? else { continue };
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
                if size > 1 && !visit(record(&cluster, stands.id.clone(), size, members)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
