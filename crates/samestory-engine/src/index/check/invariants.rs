//! Invariants of rows that do not follow from a single document: clusters, residences and counters.
//!
//! The engine maintains them; a store that was filled by anything else may violate them. [`cross_check`]
//! completes [`super::verify`], which checks the derived rows.

use std::ops::ControlFlow;

use crate::index::StoreError;
use crate::index::format::key;
use crate::index::format::key::{ClusterRow, Family, IdRow};
use crate::index::read::rows::{Order, Span};
use crate::index::read::view::View;
use crate::model::{DocumentNumber, Lang};

use super::{Findings, STEP, VerifyWatch, Verifying};

/// A cluster whose members are being counted.
struct Group {
    language: Lang,
    founder: DocumentNumber,
    /// Its canonical and its recorded size, if it has a row.
    row: Option<(DocumentNumber, u64)>,
    members: u64,
    founder_only: bool,
    canonical_found: bool,
}

/// Checks clusters, residences and counters, and describes every violation.
///
/// # Errors
/// A row could not be read; [`super::verify`] names it.
pub fn cross_check<V: View + ?Sized>(
    store: &V,
    watch: &mut dyn FnMut(Verifying),
) -> Result<Vec<String>, StoreError> {
    let mut findings = counters(store)?;
    findings.extend(clusters(store, watch)?);
    findings.extend(residences(store)?);
    Ok(findings)
}

/// No id has both a residence and a document.
fn residences<V: View + ?Sized>(store: &V) -> Result<Vec<String>, StoreError> {
    let (mut wrong, mut last) = (Findings::new(Family::Ids), None);
    store.scan(Family::Ids, &Span::all(), Order::Ascending, &mut |key, _| {
        match key::decode_id(key) {
            // The residence sorts before the other rows of an id.
            Ok(IdRow::Residence(id)) => last = Some(id),
            Ok(IdRow::Document(id, language)) if last.as_ref() == Some(&id) => {
                wrong.add(|| format!("id {id:?} has a residence and a document ({language})"));
            }
            // Undecodable keys are reported by `verify`.
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(wrong.into_vec())
}

/// Numbers are never reused: the next one is higher than all existing ones.
fn counters<V: View + ?Sized>(store: &V) -> Result<Vec<String>, StoreError> {
    let mut wrong = Findings::new(Family::Meta);
    for language in store.languages() {
        let mut last = None;
        store.scan(Family::Documents(language), &Span::all(), Order::Descending, &mut |key, _| {
            last = key::decode_number(key).ok();
            ControlFlow::Break(())
        })?;
        let next = store.counters(language)?.next_number;
        if let Some(DocumentNumber(last)) = last.filter(|last| last.0 >= next) {
            wrong.add(|| {
                format!("position: the next {language} document would get number {next}, but {last} exists")
            });
        }
    }
    Ok(wrong.into_vec())
}

fn clusters<V: View + ?Sized>(store: &V, watch: &mut VerifyWatch<'_>) -> Result<Vec<String>, StoreError> {
    let mut wrong = Findings::new(Family::Clusters);
    let (mut group, mut failure, mut rows): (Option<Group>, _, _) = (None, None, 0);
    store.scan(Family::Clusters, &Span::all(), Order::Ascending, &mut |key, _| {
        rows += 1;
        if rows % STEP == 0 {
            watch(Verifying { family: Family::Clusters, rows });
        }
        let step = match key::decode_cluster(key) {
            Ok(ClusterRow::Member(language, founder, member)) => {
                let same = |group: &Group| (group.language, group.founder) == (language, founder);
                let opened = if group.as_ref().is_some_and(same) {
                    Ok(())
                } else {
                    close(group.take(), &mut wrong);
                    open(store, language, founder).map(|opened| group = Some(opened))
                };
                if let Some(group) = &mut group {
                    group.members += 1;
                    group.founder_only &= member == founder;
                    group.canonical_found |= group.row.is_some_and(|(canonical, _)| canonical == member);
                }
                opened
            }
            Ok(ClusterRow::Cluster(language, founder)) => {
                store.members(language, founder, Order::Ascending, None, 1).map(|page| {
                    if page.numbers.is_empty() {
                        wrong.add(|| format!("cluster {founder} ({language}) has no members"));
                    }
                })
            }
            // Undecodable keys are reported by `verify`.
            Err(_) => Ok(()),
        };
        failure = step.err();
        if failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    close(group, &mut wrong);
    failure.map_or(Ok(wrong.into_vec()), Err)
}

fn open<V: View + ?Sized>(store: &V, language: Lang, founder: DocumentNumber) -> Result<Group, StoreError> {
    let row = store.cluster(language, founder)?.map(|cluster| (cluster.canonical, cluster.size));
    Ok(Group { language, founder, row, members: 0, founder_only: true, canonical_found: false })
}

fn close(group: Option<Group>, wrong: &mut Findings) {
    let Some(Group { language, founder, row, members, founder_only, canonical_found }) = group else {
        return;
    };
    match row {
        // A document that is alone has no cluster row.
        None if founder_only => {}
        None => wrong.add(|| format!("cluster {founder} ({language}) has several members, but no row")),
        Some((_, size)) if size != members => {
            wrong.add(|| format!("cluster {founder} ({language}) records {size} members, but has {members}"));
        }
        Some((canonical, _)) if !canonical_found => wrong.add(|| {
            format!("cluster {founder} ({language}): its canonical, document {canonical}, is not a member")
        }),
        Some(_) => {}
    }
}
