//! Deletes what an application has built, so that it starts again from the raw topic, for `samestory reset`. The raw topic and
//! the outputs are never touched.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::config::{Bus, Mode};
use crate::kafka::client as clients;
use crate::kafka::client::{Quiet, Role};

use super::topics::{self, TopicError, block_on};

const PATIENCE: Duration = Duration::from_secs(10);

/// The things that a reset deletes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResetPlan {
    /// Internal topics, which are created again.
    pub topics: Vec<String>,
    /// Consumer groups with their committed offsets.
    pub groups: Vec<String>,
    /// State directories on this machine.
    pub states: Vec<PathBuf>,
}

/// Why nothing, or not everything, was deleted.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// A process still works.
    #[error("group {group} has {members} members: stop every process of {app} first; nothing was deleted")]
    Running {
        /// The group.
        group: String,
        /// Its members.
        members: usize,
        /// The application.
        app: String,
    },
    /// The broker does not answer or refuses.
    #[error("{what}: {error}; repeating the command is safe")]
    Broker {
        /// The attempted action.
        what: String,
        /// The error of the client.
        error: KafkaError,
    },
    /// The topics could not be created again.
    #[error(transparent)]
    Topics(#[from] TopicError),
    /// A state directory could not be deleted.
    #[error("cannot delete {}", path.display())]
    State {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: std::io::Error,
    },
}

/// Plans a reset: lists the things that it would delete, and deletes nothing.
///
/// # Errors
/// The broker does not answer, or a process still works.
pub fn plan(bus: &Bus) -> Result<ResetPlan, ResetError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error| ResetError::Broker { what, error }
    };
    let client: BaseConsumer<Quiet> = clients::surveyor(bus, "samestory-reset")
        .create_with_context(Quiet)
        .map_err(failed("cannot connect"))?;
    let roles: &[Role] = match bus.mode {
        Mode::Routed => &[Role::Route, Role::Match],
        Mode::Direct => &[Role::Direct],
    };
    let mut plan = ResetPlan::default();
    for &role in roles {
        let name = clients::group(bus, role);
        let list = client.fetch_group_list(Some(&name), PATIENCE).map_err(failed("cannot list groups"))?;
        let found = list.groups().iter().find(|group| group.name() == name && group.state() != "Dead");
        if let Some(group) = found {
            if !group.members().is_empty() {
                let (members, app) = (group.members().len(), bus.app.clone());
                return Err(ResetError::Running { group: name, members, app });
            }
            plan.groups.push(name);
        }
    }
    let metadata = client.fetch_metadata(None, PATIENCE).map_err(failed("cannot list topics"))?;
    let mut wanted = vec![&bus.topics.changelog];
    wanted.extend((bus.mode == Mode::Routed).then_some(&bus.topics.routed));
    let exists = |name: &String| metadata.topics().iter().any(|topic| topic.name() == name);
    plan.topics = wanted.into_iter().filter(|name| exists(name)).cloned().collect();
    let prefix = format!("{}-", bus.topics.changelog);
    let entries = std::fs::read_dir(&bus.state).into_iter().flatten().filter_map(Result::ok);
    let ours = entries.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = name.strip_prefix(&prefix).unwrap_or_default();
        rest.starts_with(|first: char| first.is_ascii_digit()) && entry.path().is_dir()
    });
    plan.states = ours.map(|entry| entry.path()).collect();
    plan.states.sort();
    Ok(plan)
}

/// Deletes what the plan names, states first, and creates the topics again. If it fails in between, repeating it is safe:
/// a state whose changelog is gone, or a changelog without committed offsets, is refused by name when a process starts.
///
/// # Errors
/// See [`ResetError`].
pub fn reset(bus: &Bus, plan: &ResetPlan) -> Result<(), ResetError> {
    for path in &plan.states {
        let deleted = std::fs::remove_dir_all(path);
        deleted.map_err(|error| ResetError::State { path: path.clone(), error })?;
    }
    let failed = |what: &str, error| ResetError::Broker { what: what.to_owned(), error };
    let admin: AdminClient<DefaultClientContext> =
        clients::base(bus, "samestory-reset").create().map_err(|error| failed("cannot connect", error))?;
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE)).request_timeout(Some(PATIENCE));
    let groups: Vec<&str> = plan.groups.iter().map(String::as_str).collect();
    if !groups.is_empty() {
        let deleted = block_on(admin.delete_groups(&groups, &options));
        for outcome in deleted.map_err(|error| failed("cannot delete groups", error))? {
            match outcome {
                Ok(_) | Err((_, RDKafkaErrorCode::GroupIdNotFound)) => {}
                Err((name, code)) => {
                    return Err(failed(&format!("cannot delete group {name}"), KafkaError::AdminOp(code)));
                }
            }
        }
    }
    let topics: Vec<&str> = plan.topics.iter().map(String::as_str).collect();
    if !topics.is_empty() {
        let deleted = block_on(admin.delete_topics(&topics, &options));
        for outcome in deleted.map_err(|error| failed("cannot delete topics", error))? {
            match outcome {
                Ok(_) | Err((_, RDKafkaErrorCode::UnknownTopicOrPartition)) => {}
                Err((name, code)) => {
                    return Err(failed(&format!("cannot delete topic {name}"), KafkaError::AdminOp(code)));
                }
            }
        }
    }
    // A topic that is being deleted still exists for a moment.
    let deadline = Instant::now() + PATIENCE * 3;
    loop {
        let created = topics::create(bus)?.topics;
        let left = plan.topics.iter().filter(|name| !created.contains(name)).count();
        if left == 0 || Instant::now() > deadline {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
        if plan_is_created(bus, plan)? {
            break;
        }
    }
    Ok(())
}

/// True if all topics of the plan exist again and are empty.
fn plan_is_created(bus: &Bus, plan: &ResetPlan) -> Result<bool, ResetError> {
    let failed = |error| ResetError::Broker { what: "cannot look at the new topics".to_owned(), error };
    let client: BaseConsumer<Quiet> =
        clients::surveyor(bus, "samestory-reset").create_with_context(Quiet).map_err(failed)?;
    let metadata = client.fetch_metadata(None, PATIENCE).map_err(failed)?;
    for name in &plan.topics {
        let Some(topic) = metadata.topics().iter().find(|topic| topic.name() == name) else {
            return Ok(false);
        };
        for partition in topic.partitions() {
            match client.fetch_watermarks(name, partition.id(), PATIENCE) {
                Ok((0, 0)) => {}
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}
