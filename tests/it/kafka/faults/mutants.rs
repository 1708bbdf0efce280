//! Guards taken away, one at a time: each in the scene where it is needed. With the guard the scene ends well; without
//! it the oracle must see what is wrong, or it would not see it in the other runs either.
//!
//! `make test-mutants` runs them all; `docs/reliability.md` says what each showed.

use super::actions::secs;
use super::process::Orders;
use super::runs::judge;
use super::scene::{Scene, Settings};

/// Plays the scene twice: as it is, and with the guard taken away.
fn must_be_noticed(mutant: &str, settings: &Settings, play: impl Fn(&mut Scene)) {
    let run = |settings: Settings| {
        let mut scene = Scene::new(settings);
        scene.feed();
        play(&mut scene);
        judge(&mut scene)
    };
    // Half the time, for who has seen the other half.
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

/// Plays the scene without the guard, and all ends well: something else stands behind it. Should that go, this fails.
fn has_another_behind_it(mutant: &str, settings: &Settings, play: impl Fn(&mut Scene)) {
    let mut settings = settings.clone();
    settings.orders = settings.orders.with("SAMESTORY_MUTANT", mutant);
    let mut scene = Scene::new(settings);
    scene.feed();
    play(&mut scene);
    let wrong = judge(&mut scene);
    assert!(wrong.is_empty(), "{mutant}: nothing stands behind it any more:\n- {}", wrong.join("\n- "));
}

/// Match alone.
fn matching() -> Orders {
    Orders { role: Some("match"), ..Orders::default() }
}

/// Route alone, as the last instance.
fn route(scene: &mut Scene) {
    scene.start_with(2, &Orders { role: Some("route"), ..Orders::default() });
}

/// A batch is open while the group goes on to its next generation, with most partitions where they were.
fn rebalanced_in_a_transaction(scene: &mut Scene) {
    route(scene);
    scene.start_with(0, &matching().with("SAMESTORY_SLEEP_AT", "flush:15:5000"));
    scene.wait(secs(8));
    scene.start_with(1, &matching());
    scene.wait(secs(15));
    // What is left of instance 0 goes on by itself.
    scene.stop(1);
    scene.wait(secs(3));
    finish(scene);
}

/// Both roles in one process for the end.
fn finish(scene: &mut Scene) {
    for at in [0, 1, 2] {
        scene.stop(at);
    }
    scene.start(0);
}

#[test]
#[ignore = "make test-mutants"]
fn not_going_back_after_an_abort_is_noticed() {
    must_be_noticed("no-seek", &Settings::new(11), rebalanced_in_a_transaction);
}

#[test]
#[ignore = "make test-mutants"]
fn state_that_does_not_wait_for_the_commit_is_noticed() {
    must_be_noticed("state-before-commit", &Settings::new(12), rebalanced_in_a_transaction);
}

/// A worker freezes before it begins a transaction, for so long that it is put out of the group; another has its
/// partitions when it goes on. What the library then calls its membership, the broker refuses as well.
#[test]
#[ignore = "make test-mutants"]
fn membership_taken_when_it_commits_is_refused_all_the_same() {
    let settings = Settings { transaction_timeout: "30s", ..Settings::new(13) };
    has_another_behind_it("late-membership", &settings, |scene| {
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
fn restoring_only_what_is_stable_is_noticed() {
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

/// SIGKILL again and again, with write buffers that fill one by one.
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
fn families_flushed_one_by_one_are_noticed() {
    must_be_noticed(
        "atomic-flush-off",
        &Settings { pace: 4800, ..Settings::new(15) },
        killed_again_and_again,
    );
}

#[test]
#[ignore = "make test-mutants"]
fn a_place_written_beside_its_rows_is_noticed() {
    must_be_noticed("position-outside-batch", &Settings::new(16), killed_again_and_again);
}

fn undisturbed(scene: &mut Scene) {
    scene.start(0);
    scene.wait(secs(35));
}

#[test]
#[ignore = "make test-mutants"]
fn reading_what_has_expired_is_noticed() {
    must_be_noticed("read-expired", &Settings { pace: 4800, ..Settings::new(17) }, undisturbed);
}

#[test]
#[ignore = "make test-mutants"]
fn a_clock_in_a_verdict_is_noticed() {
    must_be_noticed("wall-clock", &Settings::new(18), undisturbed);
}

/// The answer to a commit is lost.
#[test]
#[ignore = "make test-mutants"]
fn trying_again_what_may_have_been_committed_ends_all_the_same() {
    has_another_behind_it("retry-before-fatal", &Settings::new(19), |scene| {
        scene.start(0);
        scene.wait(secs(8));
        scene.lose_answers(0, secs(10));
        scene.wait(secs(6));
    });
}

/// Articles that changed their language stay where they were as well.
#[test]
#[ignore = "make test-mutants"]
fn forgets_that_are_dropped_are_noticed() {
    must_be_noticed("drop-forgets", &Settings::new(20), undisturbed);
}

/// The partition that an article left writes tombstones itself, whoever has published the article since.
#[test]
#[ignore = "make test-mutants"]
fn tombstones_of_a_former_home_are_noticed() {
    must_be_noticed("two-voices", &Settings::new(22), undisturbed);
}

/// Route loses its committed offsets while match has a backlog: records are routed again behind their first copies.
#[test]
#[ignore = "make test-mutants"]
fn records_that_are_routed_again_and_judged_again_are_noticed() {
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
