//! Laws of the state over random histories.

use proptest::prelude::*;
use samestory_engine::index::{Change, ChangeKey, IndexScheme, Overlay, Store, StoreError, View};

use crate::history::{
    HistoryStep, applied, assert_reads_like_the_model, compacted, history, index_schemes, lang, memory,
    sketch, step, steps, time,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_answers_like_a_full_search(steps in steps(), cut in 0usize..40, cap in 0usize..4, edge in proptest::option::of(0u64..6)) {
        let changes = history(&steps);
        assert_reads_like_the_model(&applied(&changes), &changes, cap, edge);
        let (before, after) = changes.split_at(cut.min(changes.len()));
        let base = applied(before);
        let mut overlay = Overlay::new(&base);
        after.iter().for_each(|change| overlay.stage(change).unwrap());
        assert_reads_like_the_model(&overlay, &changes, cap, edge);
    }

    #[test]
    fn an_overlay_reads_like_the_store_after_applying(steps in steps(), cut in 0usize..40) {
        let changes = history(&steps);
        let (before, after) = changes.split_at(cut.min(changes.len()));
        let mut base = applied(before);
        let mut overlay = Overlay::new(&base);
        after.iter().for_each(|change| overlay.stage(change).unwrap());
        let foreseen = overlay.dump().unwrap();
        base.apply_own_changes(after).unwrap();
        prop_assert_eq!(foreseen, base.dump().unwrap());
    }

    #[test]
    fn applying_twice_is_applying_once(steps in steps()) {
        let changes = history(&steps);
        let mut store = applied(&changes);
        let once = store.dump().unwrap();
        store.apply_own_changes(&compacted(&changes)).unwrap();
        prop_assert_eq!(&once, &store.dump().unwrap());
        store.apply_own_changes(&changes).unwrap();
        prop_assert_eq!(once, store.dump().unwrap());
    }

    #[test]
    fn a_compacted_log_restores_the_same_state(steps in steps()) {
        let changes = history(&steps);
        prop_assert_eq!(applied(&compacted(&changes)).dump().unwrap(), applied(&changes).dump().unwrap());
    }

    #[test]
    fn neither_batching_nor_the_order_of_keys_matters(steps in steps(), size in 1usize..7) {
        let changes = history(&steps);
        let mut in_batches = memory();
        for batch in changes.chunks(size) {
            in_batches.apply_own_changes(batch).unwrap();
        }
        prop_assert_eq!(in_batches.dump().unwrap(), applied(&changes).dump().unwrap());
        let mut by_key = compacted(&changes);
        by_key.sort_by_key(|change| std::cmp::Reverse(change.key()));
        prop_assert_eq!(applied(&by_key).dump().unwrap(), applied(&changes).dump().unwrap());
    }

    #[test]
    fn removing_leaves_nothing_behind(steps in steps()) {
        let changes = history(&steps);
        let mut store = applied(&changes);
        let removals: Vec<Change> = changes.iter().filter_map(|change| match change.key() {
            ChangeKey::Document(lang, id) => Some(Change::NoDocument(lang, id)),
            ChangeKey::Cluster(lang, founder) => Some(Change::ClusterDeleted(lang, founder)),
            ChangeKey::Residence(id) => Some(Change::NoResidence(id)),
            ChangeKey::Progress => None,
        }).collect();
        store.apply_own_changes(&removals).unwrap();
        prop_assert!(store.dump().unwrap().iter().all(|row| row.family == "meta"));
    }

    #[test]
    fn a_change_survives_encoding(steps in steps()) {
        for change in history(&steps) {
            let (key, value) = change.encode();
            prop_assert_eq!(ChangeKey::decode(&key).unwrap(), change.key());
            prop_assert_eq!(Change::decode(&key, value.as_deref()).unwrap(), change);
        }
    }

    #[test]
    fn no_bytes_make_reading_panic(kind in 0u8..6, key in proptest::collection::vec(any::<u8>(), 0..40), value in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200))) {
        let key = [&[kind][..], &key].concat();
        let _change = Change::decode(&key, value.as_deref());
    }

    #[test]
    fn damaged_records_are_refused_or_read_completely(steps in proptest::collection::vec(step(), 1..4), at in any::<proptest::sample::Index>(), bit in 0u8..8, cut in any::<bool>()) {
        for change in history(&steps) {
            let (key, Some(mut value)) = change.encode() else { continue };
            let at = at.index(value.len());
            if cut {
                value.truncate(at);
                prop_assert!(Change::decode(&key, Some(&value)).is_err());
            } else {
                value[at] ^= 1 << bit;
                if let Ok(read) = Change::decode(&key, Some(&value)) {
                    prop_assert_eq!(read.encode(), (key, Some(value)), "decoding and encoding changed the bytes");
                }
            }
        }
    }
}

#[test]
fn seeing_an_article_again_moves_only_its_expiry() {
    let steps = [HistoryStep {
        what: 0,
        lang: 0,
        id: 0,
        words: vec![0, 1, 2, 0, 1],
        time: 0,
        cluster: 0,
        same_number: true,
    }];
    let first = history(&steps);
    let store = applied(&first);
    let Change::Document(mut again) = first[0].clone() else { unreachable!() };
    std::sync::Arc::make_mut(&mut again).last_seen = time(1);
    let mut overlay = Overlay::new(&store);
    overlay.stage(&Change::Document(again)).unwrap();
    let (before, after) = (store.dump().unwrap(), overlay.dump().unwrap());
    let changed: Vec<&str> =
        after.iter().filter(|row| !before.contains(row)).map(|row| row.family.as_str()).collect();
    assert_eq!(changed, ["docs:und", "expiry"]);
    assert_eq!(before.len(), after.len());
}

#[test]
fn a_write_set_for_an_earlier_state_is_refused() {
    let changes = history(&[HistoryStep {
        what: 0,
        lang: 0,
        id: 0,
        words: vec![0],
        time: 0,
        cluster: 0,
        same_number: true,
    }]);
    let mut store = memory();
    let mut overlay = Overlay::new(&store);
    changes.iter().for_each(|change| overlay.stage(change).unwrap());
    let write_set = overlay.into_write_set();
    let outdated = Overlay::new(&store).into_write_set();
    store.apply_own(write_set).unwrap();
    assert_eq!(store.dump().unwrap(), applied(&changes).dump().unwrap());
    let refusal = store.apply_own(outdated).unwrap_err();
    assert!(matches!(refusal, StoreError::Outdated { .. }), "{refusal}");
}

#[test]
fn an_empty_text_is_posted_nowhere_and_a_short_one_by_its_content() {
    let posting = *index_schemes().for_language(lang(0));
    assert_eq!(posting.keys(&sketch(0, &[])), []);
    assert_eq!(posting.keys(&sketch(0, &[0, 1])), [IndexScheme::content(&sketch(0, &[0, 1]))]);
    assert!(posting.keys(&sketch(0, &[0, 1, 2, 1])).len() > 32);
}
