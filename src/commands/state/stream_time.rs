//! `samestory state set-stream-time`: sets the stream time of a language after articles with a wrong clock moved it. A state that
//! follows a changelog is changed only through Kafka, so that state and changelog stay equal.

use std::time::{Duration, SystemTime};

use samestory::config::Config;
use samestory::files;
use samestory::formats::time;
use samestory_engine::engine::Engine;
use samestory_engine::index::{Budget, Durability, Format, Rocks, RocksOptions, RocksReader, View};
use samestory_engine::model::{EventTime, Lang};
use samestory_engine::text::language;
use samestory_engine::text::language::Language;

use super::{Failure, StateError, StreamTimeArgs};

pub(super) fn run(args: &StreamTimeArgs, config: &Config) -> Result<(), Failure> {
    let language = language::find(&args.language)
        .map(Language::home)
        .ok_or_else(|| Failure::UnknownLanguage(args.language.clone()))?;
    let at = time::parse(&args.time).ok_or_else(|| StateError::NotATime(args.time.clone()))?;
    if at > now().unwrap_or(at) {
        return Err(StateError::Future(at.to_string()).into());
    }
    match &args.state {
        Some(_) => in_directory(args, config, language, at),
        None => on_the_bus(config, language, at),
    }
}

/// The system clock; `None` if it is before 1970.
#[expect(clippy::disallowed_methods, reason = "a typing error must not expire a language")]
fn now() -> Option<EventTime> {
    let since_1970: Duration = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(EventTime::from_millis(i64::try_from(since_1970.as_millis()).ok()?))
}

/// Changes a state of `samestory file`, which has no changelog.
fn in_directory(
    args: &StreamTimeArgs,
    config: &Config,
    language: Lang,
    at: EventTime,
) -> Result<(), Failure> {
    let Some(directory) = &args.state else { return Ok(()) };
    let (place, budget) = (directory.display().to_string(), Budget::default());
    let reader = RocksReader::existing(directory, &budget)?;
    let format = reader.format()?.and_then(|bytes| Format::decode(&bytes).ok());
    drop(reader);
    if let Some(Format { durability: Durability::Changelog { partition }, .. }) = format {
        return Err(StateError::FollowsChangelog { directory: place, partition }.into());
    }
    let options = RocksOptions::new(config.postings.clone(), Durability::OwnWal, budget);
    let mut store = Rocks::open(directory, &options)?;
    let known = files::set_stream_time(&Engine::new(config.engine.clone()), &mut store, language, at)?;
    match known {
        true => println!("state {place}: stream time of {language} is {}", at),
        false => println!("state {place}: no article in {language} yet, so there is nothing to set"),
    }
    Ok(())
}

#[cfg(feature = "kafka")]
fn on_the_bus(config: &Config, language: Lang, at: EventTime) -> Result<(), Failure> {
    samestory::kafka::check_properties(&config.bus)?;
    for written in samestory::kafka::admin::control::set_stream_time(config, language, at)? {
        let samestory::kafka::admin::control::Written { topic, partition, offset } = written;
        println!("{topic} partition {partition} offset {offset}: stream time of {language} becomes {}", at);
    }
    println!("the stage applies it when it reads the record, and logs `stream time set by control record`");
    Ok(())
}

#[cfg(not(feature = "kafka"))]
fn on_the_bus(_: &Config, _: Lang, _: EventTime) -> Result<(), Failure> {
    Err(StateError::NoBus.into())
}
