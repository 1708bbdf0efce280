//! Whether clusters and counters say of the documents what is true of them. The engine sees to that; a store that was
//! filled by anything else need not.

use std::ops::ControlFlow;

use crate::index::StoreError;
use crate::index::format::key;
use crate::index::format::key::{ClusterRow, Family, IdRow};
use crate::index::read::rows::{Order, Span};
use crate::index::read::view::View;
use crate::model::{DocumentNumber, Lang};

use super::{Named, STEP, Verifying, Watch};

/// The members of one cluster, while they are counted.
struct Group {
    language: Lang,
    founder: DocumentNumber,
    /// Who stands for it and how many there should be, if it has a row.
    row: Option<(DocumentNumber, u64)>,
    members: u64,
    founder_only: bool,
    canonical_found: bool,
}

/// What clusters and counters say that is not true, in words.
///
/// # Errors
/// Something could not be read: [`super::verify`] says what.
pub fn cross_check<V: View + ?Sized>(
    store: &V,
    watch: &mut dyn FnMut(Verifying),
) -> Result<Vec<String>, StoreError> {
    let mut findings = counters(store)?;
    findings.extend(clusters(store, watch)?);
    findings.extend(residences(store)?);
    Ok(findings)
}

/// An id is here or it is not: there is no residence beside a document.
fn residences<V: View + ?Sized>(store: &V) -> Result<Vec<String>, StoreError> {
    let (mut wrong, mut last) = (Named::new(Family::Ids), None);
    store.scan(Family::Ids, &Span::all(), Order::Ascending, &mut |key, _| {
        match key::decode_id(key) {
            // The residence is the first of an id's rows.
            Ok(IdRow::Residence(id)) => last = Some(id),
            Ok(IdRow::Document(id, language)) if last.as_ref() == Some(&id) => {
                wrong.add(|| format!("id {id:?} has a residence and a document ({language})"));
            }
            // Named when all rows were read.
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(wrong.told())
}

/// A number is never given twice: the next one lies above all that are there.
fn counters<V: View + ?Sized>(store: &V) -> Result<Vec<String>, StoreError> {
    let mut wrong = Named::new(Family::Meta);
    for language in store.languages() {
        let mut last = None;
        store.scan(Family::Documents(language), &Span::all(), Order::Descending, &mut |key, _| {
            last = key::decode_number(key).ok();
            ControlFlow::Break(())
        })?;
        let next = store.counters(language)?.next_number;
        if let Some(DocumentNumber(last)) = last.filter(|last| last.0 >= next) {
            wrong.add(|| {
                format!("position: the next {language} document gets number {next}, but {last} is there")
            });
        }
    }
    Ok(wrong.told())
}

fn clusters<V: View + ?Sized>(store: &V, watch: &mut Watch<'_>) -> Result<Vec<String>, StoreError> {
    let mut wrong = Named::new(Family::Clusters);
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
            // Named when all rows were read.
            Err(_) => Ok(()),
        };
        failure = step.err();
        if failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    close(group, &mut wrong);
    failure.map_or(Ok(wrong.told()), Err)
}

fn open<V: View + ?Sized>(store: &V, language: Lang, founder: DocumentNumber) -> Result<Group, StoreError> {
    let row = store.cluster(language, founder)?.map(|cluster| (cluster.canonical, cluster.size));
    Ok(Group { language, founder, row, members: 0, founder_only: true, canonical_found: false })
}

fn close(group: Option<Group>, wrong: &mut Named) {
    let Some(Group { language, founder, row, members, founder_only, canonical_found }) = group else {
        return;
    };
    match row {
        // A document alone is a cluster without a row.
        None if founder_only => {}
        None => {
            wrong.add(|| format!("cluster {founder} ({language}) has members, but nothing says what it is"))
        }
        Some((_, size)) if size != members => {
            wrong.add(|| {
                format!("cluster {founder} ({language}) says it has {size} members; it has {members}")
            });
        }
        Some((canonical, _)) if !canonical_found => wrong.add(|| {
            format!("cluster {founder} ({language}): document {canonical} stands for it and is not a member")
        }),
        Some(_) => {}
    }
}
