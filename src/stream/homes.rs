//! Where the ids of one batch went, so that every other partition can be told to forget them, each at the record that
//! took the id there.

use std::collections::BTreeMap;

use crate::model::ArticleId;

/// A place on the raw topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) partition: i32,
    pub(super) offset: i64,
}

/// Where an id is, and since which record of the batch.
///
/// The first record at its home, not the last: a partition that forgets the id takes it back in that record's name,
/// and a later version at home may have something of its own to take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    /// Nothing where every partition was told.
    home: Option<i32>,
    since: At,
}

impl Stay {
    /// The partitions that must forget the id, and at which record.
    pub(super) fn elsewhere(self, partitions: i32) -> impl Iterator<Item = (i32, At)> {
        let home = self.home;
        (0..partitions)
            .filter(move |&partition| home.is_some_and(|home| home != partition))
            .map(move |partition| (partition, self.since))
    }
}

/// The ids of a batch.
#[derive(Default)]
pub(super) struct Homes(BTreeMap<ArticleId, Stay>);

impl Homes {
    /// An article goes home. If this batch took its id somewhere else before, that stay is over: whoever must forget
    /// the id for it is told first, as if the batch had ended there. Else two partitions would take it back for one
    /// and the same record.
    pub(super) fn goes(&mut self, id: &ArticleId, home: i32, at: At) -> Option<Stay> {
        let before = self.0.get(id).copied();
        if before.is_some_and(|before| before.home == Some(home)) {
            return None;
        }
        self.0.insert(id.clone(), Stay { home: Some(home), since: at });
        before
    }

    /// Every partition is told that an id is deleted. Where the batch had taken it, that stay is over.
    pub(super) fn deleted(&mut self, id: &ArticleId, at: At) -> Option<Stay> {
        self.0.insert(id.clone(), Stay { home: None, since: at })
    }

    /// What a partition must forget when the batch ends.
    pub(super) fn elsewhere(&self, partition: i32) -> Vec<(&ArticleId, At)> {
        let away = self.0.iter().filter(|(_, stay)| stay.home.is_some_and(|home| home != partition));
        away.map(|(id, stay)| (id, stay.since)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: i64) -> At {
        At { partition: 3, offset }
    }

    fn told(stay: Option<Stay>) -> Vec<(i32, At)> {
        stay.into_iter().flat_map(|stay| stay.elsewhere(3)).collect()
    }

    #[test]
    fn a_second_version_at_one_home_is_forgotten_elsewhere_in_the_name_of_the_first() {
        let (mut homes, id) = (Homes::default(), ArticleId::new("a").unwrap());
        assert_eq!(told(homes.goes(&id, 1, at(7))), []);
        assert_eq!(told(homes.goes(&id, 1, at(8))), []);
        assert_eq!(homes.elsewhere(0), [(&id, at(7))]);
        assert_eq!(homes.elsewhere(1), []);
        assert_eq!(homes.elsewhere(2), [(&id, at(7))]);
    }

    #[test]
    fn whoever_moves_on_within_a_batch_is_forgotten_at_once_for_each_stay() {
        let (mut homes, id) = (Homes::default(), ArticleId::new("a").unwrap());
        homes.goes(&id, 1, at(7));
        assert_eq!(told(homes.goes(&id, 2, at(9))), [(0, at(7)), (2, at(7))]);
        assert_eq!(homes.elsewhere(1), [(&id, at(9))]);
        assert_eq!(homes.elsewhere(2), []);
    }

    #[test]
    fn the_deleted_need_not_be_forgotten_and_begin_anew() {
        let (mut homes, id) = (Homes::default(), ArticleId::new("a").unwrap());
        homes.goes(&id, 1, at(7));
        assert_eq!(told(homes.deleted(&id, at(8))), [(0, at(7)), (2, at(7))]);
        assert_eq!(homes.elsewhere(0), []);
        assert_eq!(told(homes.goes(&id, 0, at(9))), [], "all were told");
        assert_eq!(homes.elsewhere(1), [(&id, at(9))]);
    }
}
