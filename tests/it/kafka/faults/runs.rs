//! The test runs: a short one that dies at every fault point, and long ones with random faults.

use std::env;
use std::time::{Duration, Instant};

use crate::kafka::bus::Isolation;
use crate::kafka::proxy::{Mode, Way};

use super::actions::secs;
use super::coverage;
use super::oracle;
use super::process::Orders;
use super::random::Random;
use super::scene::{ALIVE, INSTANCES, SKEWED, Scene, Settings};

/// Every fault point at which a process can die.
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

/// Ends all faults, waits until every record is processed, and runs the oracle. Returns everything that is
/// wrong, including what was noticed during the run.
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
    let healed = scene.settings.healed();
    if let Err(why) = scene.quiesce(healed) {
        wrong.push(format!("not done {healed:?} after the last fault: {why}"));
    }
    scene.say(&format!("{} records processed, {:?} after the last fault", scene.fed(), began.elapsed()));
    wrong.extend(oracle::check(scene));
    wrong.append(&mut scene.wrong);
    let dead = scene.broker.read(&scene.config.bus.topics.dead_letter, Isolation::Committed).len();
    let (counts, deaths) = coverage::count(&scene.logs());
    scene.say(&format!("seen: {counts:?}, {dead} dead letters, deaths at {deaths:?}"));
    // A stopped partition needs an operator, which none of these faults justifies.
    if counts["partitions stopped"] > 0 {
        wrong.push(format!("{} times a partition was stopped for good", counts["partitions stopped"]));
    }
    wrong
}

/// Asserts that nothing is wrong, and that the run met the fault points and events that it should meet.
pub(crate) fn conclude(mut scene: Scene, points: &[&str], met: &[&[&str]]) {
    let mut wrong = judge(&mut scene);
    if scene.settings.wild && wrong.is_empty() {
        scene.recreate_input();
        wrong.append(&mut scene.wrong);
    }
    let (counts, deaths) = coverage::count(&scene.logs());
    for point in points.iter().filter(|point| !deaths.contains_key(**point)) {
        wrong.push(format!("void: nobody died at {point}"));
    }
    if scene.ledger.was_drawn("partitions added") && scene.logs_say("a raw partition not seen before") {
        scene.ledger.traced("partitions added");
    }
    if scene.settings.skewed && scene.has_run(SKEWED) {
        scene.ledger.done("a pod's clock ahead");
    }
    scene.say(&format!("faults: {}", scene.ledger.table()));
    wrong.extend(
        scene.ledger.untraced().iter().map(|fault| format!("void: {fault}: drawn, and left no trace")),
    );
    for any in met.iter().filter(|any| any.iter().all(|name| counts[*name] == 0)) {
        wrong.push(format!("void: no {}", any.join(" or ")));
    }
    if !wrong.is_empty() {
        eprintln!("{}", coverage::tails(&scene.logs(), 12));
    }
    assert!(wrong.is_empty(), "seed {}:\n- {}", scene.settings.seed, wrong.join("\n- "));
}

#[test]
fn killed_at_every_fault_point_it_publishes_what_one_undisturbed_process_would() {
    let seed = number("SAMESTORY_FAULTS_SEED").unwrap_or(1);
    eprintln!("seed {seed}");
    let mut scene = Scene::new(Settings::new(seed));
    scene.feed();
    scene.crash(&[(0, "create-family", 2)]);
    // The second instance makes the first one give up partitions.
    scene.kill(0);
    scene.start_with(0, &Orders::default().with("SAMESTORY_CRASH_AT", "revoke:1"));
    // A killed process stays a member of the group until its session ends.
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
    // One instance has all partitions, and gives up some of them.
    scene.stop(1);
    scene.await_alone();
    let before = scene.revocations();
    scene.start(1);
    scene.await_revocation(before);
    scene.wait(secs(3));
    conclude(scene, &POINTS, &[&["aborts", "losses"], &["restores"], &["assignments"], &["revocations"]]);
}

/// Random faults in routed mode: `make test-faults SEED=n MINUTES=m`.
#[test]
#[ignore = "runs for MINUTES: make test-faults"]
fn a_long_run_with_random_faults() {
    with_random_faults(false);
}

/// The same in direct mode, with a single stage.
#[test]
#[ignore = "runs for MINUTES: make test-faults"]
fn a_long_run_with_random_faults_in_direct_mode() {
    with_random_faults(true);
}

fn with_random_faults(direct: bool) {
    let seed = number("SAMESTORY_FAULTS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let minutes = number("SAMESTORY_FAULTS_MINUTES").unwrap_or(5);
    let settings = Settings::drawn(seed, direct);
    eprintln!("seed {seed}, {minutes} minutes, {settings:?}");
    let mut scene = Scene::new(settings);
    let mut random = Random::new(seed ^ 0xFA17);
    scene.feed();
    scene.start(0);
    scene.wait(secs(8));
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    let mut deck = Vec::new();
    while Instant::now() < until {
        if deck.is_empty() {
            deck = shuffled(&scene, &mut random);
        }
        let fault = deck.pop().unwrap();
        inject(&mut scene, &mut random, fault);
        let pause = random.span(200, 4000);
        scene.wait(pause);
    }
    if let Some(((group, partition), stall)) = scene.pulse.as_ref().and_then(|pulse| pulse.longest()) {
        scene.say(&format!("{group}/{partition} had the longest stall: {stall:?}"));
        if stall > ALIVE {
            scene.wrong.push(format!("{group}/{partition} stalled for {stall:?} during faults"));
        }
    }
    scene.pulse = None;
    if let Some(readers) = scene.readers.take() {
        scene.say(&format!("{} answers over HTTP", readers.answers()));
        scene.wrong.extend(readers.wrong().into_iter().take(3));
        if readers.answers() == 0 {
            scene.wrong.push("void: nobody got an answer over HTTP".into());
        }
    }
    conclude(scene, &[], &[&["aborts", "losses"], &["restores"], &["assignments"], &["revocations"]]);
}

/// The faults of a random run. Each is drawn once before any is drawn again, so that a run of a few minutes
/// meets most of them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Kill,
    Crash,
    Zombie,
    ShortFreeze,
    LongFreeze,
    KillBroker,
    PauseBroker,
    LoseAnswers,
    Stall,
    Reset,
    Scale,
    LoseDisk,
    Damage,
    OldState,
    FailOver,
    LoseReplicas,
    RollingRestart,
    Two,
    Flood,
    LowerLimits,
    Panic,
    Idle,
    FreezeRegistry,
    AddPartition,
    Switch,
}

/// All faults that fit the scene, shuffled, some more than once.
fn shuffled(scene: &Scene, random: &mut Random) -> Vec<Fault> {
    use Fault::*;
    let mut deck = vec![Kill, Kill, Crash, Crash, Zombie, ShortFreeze, LongFreeze, KillBroker, PauseBroker];
    deck.extend([LoseAnswers, Stall, Reset, Scale, Scale, LoseDisk, Damage, OldState, Two, Two]);
    deck.extend([Flood, LowerLimits, Panic, Idle]);
    if scene.broker.nodes() > 1 {
        deck.extend([FailOver, FailOver, FailOver, LoseReplicas, RollingRestart]);
    }
    deck.extend(scene.registry.as_ref().map(|_| FreezeRegistry));
    // At most once per run.
    if !scene.has_switched() {
        deck.push(Switch);
        deck.extend((!scene.settings.direct).then_some(AddPartition));
    }
    for last in (1..deck.len()).rev() {
        deck.swap(last, random.below(last + 1));
    }
    deck
}

fn inject(scene: &mut Scene, random: &mut Random, fault: Fault) {
    let at = *random.pick(&scene.running());
    match fault {
        Fault::Kill => scene.kill_and_start(at),
        Fault::Crash => {
            let points = ["poll", "begin", "produce", "flush", "offsets", "commit", "apply", "store-flush"];
            let point = *random.pick(&points);
            let count = 1 + random.below(if point == "produce" { 100 } else { 6 });
            scene.crash(&[(at, point, u32::try_from(count).unwrap())]);
        }
        Fault::Zombie => {
            let point = *random.pick(&["begin", "flush", "offsets", "commit"]);
            scene.zombie(at, point, random.span(7000, 14_000));
        }
        Fault::ShortFreeze => scene.freeze(at, random.span(1000, 5000)),
        Fault::LongFreeze => scene.freeze(at, random.span(9000, 14_000)),
        Fault::KillBroker => scene.kill_broker(),
        Fault::PauseBroker if scene.broker.nodes() > 1 => scene.pause_node(random),
        Fault::PauseBroker => scene.pause_broker(random.span(3000, 15_000)),
        Fault::LoseAnswers => scene.lose_answers(at, random.span(100, 9000)),
        Fault::Stall => {
            let way = *random.pick(&[None, Some(Way::Answers), Some(Way::Requests)]);
            scene.stall(at, way, random.span(1000, 12_000));
        }
        Fault::Reset => scene.reset_network(at),
        Fault::Scale => scale(scene),
        Fault::LoseDisk => {
            scene.lose_disk(at);
            scene.start(at);
        }
        Fault::Damage => scene.damage(at, random.below(2) == 0, random),
        Fault::OldState => scene.put_back_old_state(at, secs(12)),
        Fault::FailOver => scene.fail_over(random),
        Fault::LoseReplicas => scene.lose_replicas(random),
        Fault::RollingRestart => scene.rolling_restart(),
        Fault::Two => two_at_once(scene, random),
        Fault::Flood => scene.flood(random),
        Fault::LowerLimits => scene.lower_limits(),
        Fault::Panic => {
            let point = *random.pick(&["plan", "poll"]);
            scene.panic_at(at, point, 1 + random.below(8));
        }
        Fault::Idle => scene.idle(),
        Fault::FreezeRegistry => scene.freeze_registry(at, random),
        Fault::AddPartition => scene.add_partition(),
        Fault::Switch => scene.switch_generation(random),
    }
}

/// Starts an instance, or stops all but one.
fn scale(scene: &mut Scene) {
    match (0..INSTANCES).find(|&at| !scene.runs(at)) {
        Some(at) => {
            scene.say(&format!("start {at}"));
            scene.start(at);
            scene.ledger.done("instance comes");
        }
        None => {
            for at in [1, 2] {
                scene.say(&format!("stop {at}"));
                scene.stop(at);
            }
            scene.ledger.done("instances go");
        }
    }
}

/// Injects a fault during another one: a broker is down, or an instance is frozen or has a slow or stalled
/// network.
fn two_at_once(scene: &mut Scene, random: &mut Random) {
    if scene.running().len() < 2 {
        scale(scene);
        scene.wait(secs(5));
    }
    scene.ledger.done("two at once");
    let running = scene.running();
    let (first, at) = (running[0], *random.pick(&running[1..]));
    let node = 1 + random.below(scene.broker.nodes());
    let beside = random.below(if scene.broker.nodes() > 1 { 4 } else { 3 });
    match beside {
        0 => scene.networks[first].set(Mode::Delay(random.span(20, 200))),
        1 => scene.networks[first].set(Mode::Stall(*random.pick(&[None, Some(Way::Answers)]))),
        2 => scene.process(first).signal("STOP"),
        _ => scene.broker.node(node, "kill"),
    }
    scene.say(&format!(
        "beside it: {}",
        ["slow network", "stalled network", "freeze", "a broker killed"][beside]
    ));
    match random.below(3) {
        0 => scene.kill_and_start(at),
        1 => scene.zombie(at, "flush", random.span(7000, 10_000)),
        _ => scene.freeze(at, random.span(3000, 9000)),
    }
    match beside {
        0 | 1 => scene.networks[first].set(Mode::Pass),
        2 => scene.process(first).signal("CONT"),
        _ => scene.broker.node(node, "start"),
    }
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}
