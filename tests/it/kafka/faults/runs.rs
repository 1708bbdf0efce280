//! Runs: a short one that visits every place to die at, and long ones by chance.

use std::env;
use std::time::{Duration, Instant};

use crate::kafka::bus::Isolation;
use crate::kafka::proxy::Way;

use super::coverage;
use super::deeds::secs;
use super::oracle;
use super::process::Orders;
use super::random::Random;
use super::scene::{HEALED, INSTANCES, Scene, Settings};

/// Every place to die at.
const POINTS: [&str; 11] = [
    "poll",
    "begin",
    "produce",
    "flush",
    "offsets",
    "commit",
    "apply",
    "restore",
    "store-flush",
    "revoke",
    "create-family",
];

/// Heals everything, waits until all is done, and compares. What is wrong, besides what was noticed on the way.
pub(crate) fn judge(scene: &mut Scene) -> Vec<String> {
    scene.say("no more faults");
    scene.stop_feeding();
    for at in 1..INSTANCES {
        scene.stop(at);
    }
    if !scene.runs(0) {
        scene.start(0);
    }
    let began = Instant::now();
    let mut wrong = std::mem::take(&mut scene.wrong);
    if let Err(why) = scene.quiesce(HEALED) {
        wrong.push(format!("not done {HEALED:?} after the last fault: {why}"));
    }
    scene.say(&format!("{} records are done with {:?} later", scene.fed(), began.elapsed()));
    wrong.extend(oracle::check(scene));
    wrong.append(&mut scene.wrong);
    let dead = scene.broker.read(&scene.config.bus.topics.dead_letter, Isolation::Committed).len();
    let (counts, deaths) = coverage::count(&scene.logs());
    scene.say(&format!("seen: {counts:?}, {dead} dead letters, deaths at {deaths:?}"));
    // That is for people to decide about, and none of these faults needs one.
    if counts["partitions stopped"] > 0 {
        wrong.push(format!("{} times a partition was stopped for good", counts["partitions stopped"]));
    }
    wrong
}

/// Nothing wrong, and what should have been met was met.
pub(crate) fn conclude(mut scene: Scene, points: &[&str], met: &[&[&str]]) {
    let mut wrong = judge(&mut scene);
    let (counts, deaths) = coverage::count(&scene.logs());
    for point in points.iter().filter(|point| !deaths.contains_key(**point)) {
        wrong.push(format!("void: nobody died at {point}"));
    }
    for any in met.iter().filter(|any| any.iter().all(|name| counts[*name] == 0)) {
        wrong.push(format!("void: no {}", any.join(" or ")));
    }
    if !wrong.is_empty() {
        eprintln!("{}", coverage::tails(&scene.logs(), 12));
    }
    assert!(wrong.is_empty(), "seed {}:\n- {}", scene.settings.seed, wrong.join("\n- "));
}

#[test]
fn killed_at_every_place_it_says_what_one_undisturbed_process_says() {
    let seed = number("SAMESTORY_FAULTS_SEED").unwrap_or(1);
    eprintln!("seed {seed}");
    let mut scene = Scene::new(Settings::new(seed));
    scene.feed();
    scene.crash(&[(0, "create-family", 2)]);
    // The second one to come makes the first give up partitions.
    scene.kill(0);
    scene.start_with(0, &Orders::default().with("SAMESTORY_CRASH_AT", "revoke:1"));
    // Whoever was killed is a member until its session ends.
    scene.wait(secs(7));
    scene.await_alone();
    scene.start(1);
    scene.await_deaths(&[(0, "revoke", 1)]);
    scene.start(2);
    scene.crash(&[(0, "poll", 20), (1, "begin", 5), (2, "produce", 60)]);
    scene.crash(&[(0, "flush", 4), (1, "offsets", 4), (2, "commit", 3)]);
    scene.lose_disk(2);
    scene.crash(&[(0, "apply", 3), (1, "store-flush", 1), (2, "restore", 1)]);
    scene.zombie(1, "flush", secs(11));
    scene.kill(2);
    // One has everything, and gives up a part of it.
    scene.stop(1);
    scene.await_alone();
    let before = scene.revocations();
    scene.start(1);
    scene.await_revocation(before);
    scene.wait(secs(3));
    conclude(scene, &POINTS, &[&["aborts", "losses"], &["restores"], &["assignments"], &["revocations"]]);
}

/// `make test-faults SEED=n MINUTES=m`.
#[test]
#[ignore = "takes as long as it is told to: make test-faults"]
fn a_long_run_by_chance() {
    by_chance(false);
}

/// The same where one stage does everything.
#[test]
#[ignore = "takes as long as it is told to: make test-faults"]
fn a_long_run_by_chance_where_articles_come_by_language() {
    by_chance(true);
}

fn by_chance(direct: bool) {
    let seed = number("SAMESTORY_FAULTS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let minutes = number("SAMESTORY_FAULTS_MINUTES").unwrap_or(5);
    eprintln!("seed {seed}, {minutes} minutes");
    let mut scene = Scene::new(Settings { direct, ..Settings::new(seed) });
    let mut random = Random::new(seed ^ 0xFA17);
    scene.feed();
    scene.start(0);
    scene.wait(secs(8));
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    while Instant::now() < until {
        once(&mut scene, &mut random);
        let pause = random.span(200, 5000);
        scene.wait(pause);
    }
    conclude(scene, &[], &[&["aborts", "losses"], &["restores"], &["assignments"], &["revocations"]]);
}

/// One fault, by chance.
fn once(scene: &mut Scene, random: &mut Random) {
    let running = scene.running();
    let at = *random.pick(&running);
    match random.below(17) {
        0..3 => scene.kill_and_start(at),
        3..6 => {
            let point = *random.pick(&[
                "poll",
                "begin",
                "produce",
                "flush",
                "offsets",
                "commit",
                "apply",
                "store-flush",
            ]);
            let count = 1 + random.below(if point == "produce" { 100 } else { 6 });
            scene.crash(&[(at, point, u32::try_from(count).unwrap())]);
        }
        6..8 => {
            let point = *random.pick(&["begin", "flush", "offsets", "commit"]);
            let time = random.span(7000, 14_000);
            scene.zombie(at, point, time);
        }
        8 => scene.freeze(at, random.span(1000, 5000)),
        9 => scene.freeze(at, random.span(9000, 14_000)),
        10 => scene.kill_broker(),
        11 => scene.pause_broker(random.span(3000, 15_000)),
        12 => scene.lose_answers(at, random.span(100, 9000)),
        13 => {
            let way = *random.pick(&[None, Some(Way::Answers), Some(Way::Requests)]);
            scene.stall(at, way, random.span(1000, 12_000));
        }
        14 => scene.reset_network(at),
        15 => match (0..INSTANCES).find(|&at| !scene.runs(at)) {
            Some(at) => {
                scene.say(&format!("{at} comes"));
                scene.start(at);
            }
            None => {
                for at in [1, 2] {
                    scene.say(&format!("{at} goes"));
                    scene.stop(at);
                }
            }
        },
        _ => match random.below(4) {
            0 => {
                scene.lose_disk(at);
                scene.start(at);
            }
            1 => scene.damage(at, true, random),
            2 => scene.damage(at, false, random),
            _ => scene.put_back_old_state(at, secs(12)),
        },
    }
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}
