//! Removes guards, one at a time, each in a scenario that needs it. With the guard the run must pass; without
//! it the oracle must report an error, or it could not be trusted in the other runs either.
//!
//! `make test-mutants` runs them all; `docs/reliability.md` lists what each one showed.

use super::actions::secs;
use super::process::Orders;
use super::runs::judge;
use super::scene::{Scene, Settings};

/// Plays the scene twice: with the guard, and without it.
fn must_be_noticed(mutant: &str, settings: &Settings, play: impl Fn(&mut Scene)) {
    let run = |settings: Settings| {
        let mut scene = Scene::new(settings);
        scene.feed();
        play(&mut scene);
        judge(&mut scene)
    };
    // Saves half of the time when the guarded run is known to pass.
    if std::env::var_os("SAMESTORY_FAULTS_UNGUARDED").is_none() {
        eprintln!("{mutant}: with the guard");
        let wrong = run(settings.clone());
        assert!(wrong.is_empty(), "{mutant}: wrong even with the guard:\n- {}", wrong.join("\n- "));
    }
    eprintln!("{mutant}: without the guard");
    let mut settings = settings.clone();
    settings.orders = settings.orders.with("SAMESTORY_MUTANT", mutant);
    let wrong = run(settings);
    assert!(!wrong.is_empty(), "{mutant}: nobody noticed");
    eprintln!("{mutant}: noticed:\n- {}", wrong.join("\n- "));
}

/// Plays the scene without the guard, which must pass because a second guard backs it up. Fails if that one
/// disappears.
fn has_a_second_guard(mutant: &str, settings: &Settings, play: impl Fn(&mut Scene)) {
    let mut settings = settings.clone();
    settings.orders = settings.orders.with("SAMESTORY_MUTANT", mutant);
    let mut scene = Scene::new(settings);
    scene.feed();
    play(&mut scene);
    let wrong = judge(&mut scene);
    assert!(wrong.is_empty(), "{mutant}: the second guard is gone:\n- {}", wrong.join("\n- "));
}

/// The match role only.
fn matching() -> Orders {
    Orders { role: Some("match"), ..Orders::default() }
}

/// Starts the route role only, as the last instance.
fn route(scene: &mut Scene) {
    scene.start_with(2, &Orders { role: Some("route"), ..Orders::default() });
}

/// The group rebalances while a transaction is open; most partitions keep their owner.
fn rebalanced_in_a_transaction(scene: &mut Scene) {
    route(scene);
    scene.start_with(0, &matching().with("SAMESTORY_SLEEP_AT", "flush:15:5000"));
    scene.wait(secs(8));
    scene.start_with(1, &matching());
    scene.wait(secs(15));
    // Instance 0 continues alone with its remaining partitions.
    scene.stop(1);
    scene.wait(secs(3));
    finish(scene);
}

/// Leaves one process with both roles.
fn finish(scene: &mut Scene) {
    for at in [0, 1, 2] {
        scene.stop(at);
    }
    scene.start(0);
}

#[test]
#[ignore = "make test-mutants"]
fn no_seek_after_an_abort_is_noticed() {
    must_be_noticed("no-seek", &Settings::new(11), rebalanced_in_a_transaction);
}

#[test]
#[ignore = "make test-mutants"]
fn state_applied_before_the_commit_is_noticed() {
    must_be_noticed("state-before-commit", &Settings::new(12), rebalanced_in_a_transaction);
}

/// A worker freezes before it begins a transaction until the group has removed it; another has its partitions
/// when it continues. The broker also refuses the group metadata that librdkafka returns then.
#[test]
#[ignore = "make test-mutants"]
fn group_metadata_fetched_at_commit_is_refused_by_the_broker() {
    let settings = Settings { transaction_timeout: "30s", ..Settings::new(13) };
    has_a_second_guard("late-membership", &settings, |scene| {
        route(scene);
        let frozen = matching().with("SAMESTORY_STOP_AT", "plan:15");
        scene.start_with(0, &frozen.with("SAMESTORY_SLEEP_AT", "plan:15:4000"));
        assert!(scene.process(0).await_frozen(secs(40)), "nobody froze");
        scene.start_with(1, &matching());
        scene.wait(secs(15));
        scene.process(0).signal("CONT");
        scene.wait(secs(12));
        finish(scene);
    });
}

/// A transaction stays open; another instance commits behind it and dies; a third takes over.
#[test]
#[ignore = "make test-mutants"]
fn restoring_only_to_the_last_stable_offset_is_noticed() {
    let settings = Settings { transaction_timeout: "25s", ..Settings::new(14) };
    must_be_noticed("restore-to-lso", &settings, |scene| {
        route(scene);
        scene.wait(secs(4));
        scene.start_with(1, &matching().with("SAMESTORY_STOP_AT", "flush:12"));
        assert!(scene.process(1).await_frozen(secs(40)), "nobody froze");
        scene.start_with(0, &matching());
        scene.wait(secs(11));
        scene.kill_and_start_with(0, &matching());
        scene.wait(secs(20));
        scene.kill(1);
        finish(scene);
    });
}

/// Repeated SIGKILL, while the memtables of the column families fill one by one.
fn killed_again_and_again(scene: &mut Scene) {
    scene.start(0);
    scene.wait(secs(12));
    for _ in 0..4 {
        scene.kill_and_start(0);
        scene.wait(secs(11));
    }
}

#[test]
#[ignore = "make test-mutants"]
fn column_families_flushed_separately_are_noticed() {
    must_be_noticed(
        "atomic-flush-off",
        &Settings { pace: 4800, ..Settings::new(15) },
        killed_again_and_again,
    );
}

#[test]
#[ignore = "make test-mutants"]
fn a_position_outside_its_batch_is_noticed() {
    must_be_noticed("position-outside-batch", &Settings::new(16), killed_again_and_again);
}

fn undisturbed(scene: &mut Scene) {
    scene.start(0);
    scene.wait(secs(35));
}

#[test]
#[ignore = "make test-mutants"]
fn reading_expired_documents_is_noticed() {
    must_be_noticed("read-expired", &Settings { pace: 4800, ..Settings::new(17) }, undisturbed);
}

#[test]
#[ignore = "make test-mutants"]
fn a_clock_in_a_verdict_is_noticed() {
    must_be_noticed("wall-clock", &Settings::new(18), undisturbed);
}

/// The response to a commit is lost.
#[test]
#[ignore = "make test-mutants"]
fn retrying_a_commit_with_unknown_outcome_ends_well_all_the_same() {
    has_a_second_guard("retry-before-fatal", &Settings::new(19), |scene| {
        scene.start(0);
        scene.wait(secs(8));
        scene.lose_answers(0, secs(10));
        scene.wait(secs(6));
    });
}

/// Articles that changed their language also stay in their former partition.
#[test]
#[ignore = "make test-mutants"]
fn dropped_forgets_are_noticed() {
    must_be_noticed("drop-forgets", &Settings::new(20), undisturbed);
}

/// The partition that an article left writes tombstones itself, although another has published the article
/// since.
#[test]
#[ignore = "make test-mutants"]
fn tombstones_of_a_former_home_are_noticed() {
    must_be_noticed("two-voices", &Settings::new(22), undisturbed);
}

/// Route loses its committed offsets while match has a backlog, so records are routed again after their first
/// copies.
#[test]
#[ignore = "make test-mutants"]
fn judging_records_that_were_routed_again_is_noticed() {
    must_be_noticed("receiver-off", &Settings::new(21), |scene| {
        scene.start(0);
        scene.wait(secs(8));
        scene.stop(0);
        route(scene);
        scene.wait(secs(5));
        scene.stop(2);
        scene.lose_offsets_of_route();
        scene.start(0);
        scene.wait(secs(5));
    });
}
