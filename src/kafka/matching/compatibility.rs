//! Checks that a state can be continued with the current settings. [`StateSettings`] is what a state depends on: match records
//! it with every position and compares it when it takes a partition over, and route compares it at startup. A state that
//! does not fit is refused with the way out; it is never changed.

use crate::config::home;
use samestory_engine::index::{BuiltWith, Progress};
use samestory_engine::model::Lang;
use samestory_engine::text::language;

/// The settings that the state of a partition depends on.
#[derive(Clone, Debug)]
pub(crate) struct StateSettings {
    pub(super) application: String,
    /// The input topic.
    pub(super) topic: String,
    /// The languages that have a home of their own; `None` in direct mode, where the keys of the producers place them.
    pub(super) languages: Option<Vec<Lang>>,
    /// Number of partitions of the input topic.
    pub(super) partitions: i32,
    /// Hash of the settings that fingerprints depend on.
    pub(super) fingerprints: u32,
}

impl StateSettings {
    /// Why this state cannot be continued with the current settings, and what to do; `None` if it can.
    pub(crate) fn incompatibility(&self, progress: &Progress) -> Option<String> {
        let checks = [
            Self::other_application,
            Self::other_partitions,
            Self::other_map,
            Self::other_table,
            Self::other_fingerprints,
        ];
        checks.into_iter().find_map(|check| check(self, progress))
    }

    /// Refuses the state of another application: two of them on one changelog would each restore what the other wrote.
    fn other_application(&self, progress: &Progress) -> Option<String> {
        let written = progress.bus.as_ref()?.application.as_str();
        (written != self.application).then(|| {
            format!(
                "the changelog belongs to application \"{written}\", but stage.app is \"{}\"; put stage.app back, or \
                 give this application topics of its own in [topics]",
                self.application
            )
        })
    }

    /// Refuses state with fingerprints of other settings: they cannot be compared with ours.
    fn other_fingerprints(&self, progress: &Progress) -> Option<String> {
        let built_with = progress.built_with.as_ref()?.fingerprints;
        (built_with != self.fingerprints).then(|| {
            format!(
                "this state holds fingerprints computed with other settings in [text], language.trust or the `shingle` of a language, and they cannot be \
                 compared; put the settings back, or {NEW_GENERATION}"
            )
        })
    }

    /// The settings that the state depends on, recorded in it.
    pub(crate) fn recorded(&self) -> BuiltWith {
        BuiltWith {
            partitions: u32::try_from(self.partitions).unwrap_or(0),
            languages: self.languages.clone(),
            language_table: LANGUAGE_TABLE,
            fingerprints: self.fingerprints,
        }
    }

    /// The partition that a language belongs to.
    pub(crate) fn home(&self, language: Lang) -> i32 {
        home(self.languages.as_deref().unwrap_or_default(), language, self.partitions)
    }

    /// Refuses state that was built for another number of partitions.
    fn other_partitions(&self, progress: &Progress) -> Option<String> {
        let (made_for, ours) = (progress.built_with.as_ref()?.partitions, self.partitions);
        (i64::from(made_for) != i64::from(ours)).then(|| {
            format!(
                "this state was made for {made_for} partitions, but {} has {ours}: articles would go to other partitions than their earlier copies; partitions cannot be removed from a topic, so {NEW_GENERATION}",
                self.topic
            )
        })
    }

    /// Refuses state if `stage.languages` changed in any way other than appending languages that have no articles yet.
    fn other_map(&self, progress: &Progress) -> Option<String> {
        let ours = self.languages.as_deref()?;
        let theirs = progress.built_with.as_ref()?.languages.as_deref().unwrap_or_default();
        let refuse = |what: String| {
            Some(format!(
                "{what}; put stage.languages back (appending a language that has no articles yet is safe), or {NEW_GENERATION}"
            ))
        };
        if !ours.starts_with(theirs) {
            let (theirs, ours) = (codes(theirs).join(" "), codes(ours).join(" "));
            return refuse(format!(
                "this state was made with the languages \"{theirs}\", but stage.languages is now \"{ours}\""
            ));
        }
        let partition = progress.bus.as_ref()?.partition;
        let moved = progress.languages.keys().find(|&&language| self.home(language) != partition)?;
        refuse(format!(
            "articles in {moved} live in partition {partition}, but the settings would move them to partition {}",
            self.home(*moved)
        ))
    }

    /// Refuses state whose languages were detected with another version of the language table.
    fn other_table(&self, progress: &Progress) -> Option<String> {
        let theirs = progress.built_with.as_ref()?.language_table;
        (theirs != LANGUAGE_TABLE).then(|| {
            format!(
                "this state was made with language table {theirs}, but this program has {LANGUAGE_TABLE}: articles may go to other partitions than their earlier copies; start the version that made it, or {NEW_GENERATION}"
            )
        })
    }
}

/// Version of the table that language detection uses.
const LANGUAGE_TABLE: u32 = language::TABLE_VERSION;

const NEW_GENERATION: &str = "start a new generation with the next number in stage.generation, which builds its state from the raw topic";

fn codes(languages: &[Lang]) -> Vec<&'static str> {
    languages.iter().map(|lang| lang.code()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Settings};
    use crate::kafka::matching::intake::BatchReader;
    use samestory_engine::index::{BusPosition, Counters, TopicName};

    fn reader(languages: &str, partitions: i32) -> StateSettings {
        let settings: Settings = toml::from_str(&format!("[stage]\nlanguages = {languages}")).unwrap();
        BatchReader::routed(&Config::try_from(settings).unwrap(), partitions).settings().clone()
    }

    /// The progress that a partition records with these settings, after articles in these languages.
    fn written(made: &StateSettings, partition: i32, arrived: &[&str]) -> Progress {
        let language = |code: &&str| samestory_engine::text::language::find(code).unwrap().lang;
        Progress {
            bus: Some(BusPosition {
                application: TopicName::new(&made.application),
                cluster: None,
                changelog: None,
                topic: TopicName::new(&made.topic),
                topic_id: None,
                partition,
                next: 1,
                leader_epoch: None,
            }),
            built_with: Some(made.recorded()),
            languages: arrived.iter().map(|code| (language(code), Counters::default())).collect(),
            ..Progress::default()
        }
    }

    // The language map was compared as text and ended with the whole table, so appending a language, which is
    // documented as safe, was refused. The suggested way out, `state rebuild`, reported "done" and changed nothing.
    #[test]
    fn appending_a_language_is_accepted_and_any_other_change_is_refused() {
        let made = reader("[\"en\", \"hi\"]", 3);
        let progress = written(&made, 1, &["en"]);
        assert_eq!(made.incompatibility(&progress), None);
        assert_eq!(made.incompatibility(&Progress::default()), None);
        assert_eq!(reader("[\"en\", \"hi\", \"bn\"]", 3).incompatibility(&progress), None);
        for other in ["[\"hi\", \"en\"]", "[\"en\"]", "[]", "[\"en\", \"bn\", \"hi\"]"] {
            let why = reader(other, 3).incompatibility(&progress).unwrap();
            for part in ["put stage.languages back", "und en hi", "new generation"] {
                assert!(why.contains(part) && !why.contains("state rebuild"), "{other}: {why}");
            }
        }
        assert!(
            reader("[\"en\", \"hi\"]", 4)
                .incompatibility(&progress)
                .unwrap()
                .contains("made for 3 partitions")
        );
    }

    #[test]
    fn appending_a_language_that_has_articles_elsewhere_is_refused_by_name() {
        let made = reader("[\"en\"]", 3);
        let (bengali, appended) =
            (samestory_engine::text::language::find("bn").unwrap().lang, "[\"en\", \"bn\"]");
        let (before, after) = (made.home(bengali), reader(appended, 3).home(bengali));
        assert_ne!(before, after, "choose another language for this test");
        let why = reader(appended, 3).incompatibility(&written(&made, before, &["bn"])).unwrap();
        assert!(why.contains(&format!("articles in bn live in partition {before}")), "{why}");
        assert_eq!(reader(appended, 3).incompatibility(&written(&made, 1, &["en"])), None);
    }

    // In direct mode the number of partitions was not recorded: after some were added, copies of an article went to other
    // partitions than the article and were unique.
    #[test]
    fn a_direct_state_made_for_another_number_of_partitions_is_refused() {
        let direct = |partitions| {
            let settings: Settings = toml::from_str("[stage]\nmode = \"direct\"").unwrap();
            BatchReader::raw(&Config::try_from(settings).unwrap(), partitions, None).settings().clone()
        };
        let progress = written(&direct(2), 1, &["en", "hi"]);
        assert_eq!(direct(2).incompatibility(&progress), None);
        let why = direct(3).incompatibility(&progress).unwrap();
        for part in ["made for 2 partitions", "articles.raw has 3", "new generation"] {
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn a_state_with_fingerprints_of_another_segmentation_is_refused() {
        let reader = |own: &str| {
            let settings: Settings =
                toml::from_str(&format!("[stage]\nlanguages = [\"en\"]\n{own}")).unwrap();
            BatchReader::routed(&Config::try_from(settings).unwrap(), 3).settings().clone()
        };
        let progress = written(&reader(""), 1, &["en"]);
        assert_eq!(reader("[languages.en]\nshingle = { words = 3 }").incompatibility(&progress), None);
        for own in ["characters = 5", "words = 4", "tokenizer = \"word-uax29\""] {
            let made = reader(&format!("[languages.en]\nshingle = {{ {own} }}"));
            let why = made.incompatibility(&progress).unwrap();
            assert!(why.contains("`shingle` of a language") && why.contains("new generation"), "{why}");
        }
    }

    #[test]
    fn a_state_made_with_another_language_table_is_refused() {
        let made = reader("[\"en\"]", 3);
        let mut progress = written(&made, 1, &["en"]);
        progress.built_with.as_mut().unwrap().language_table += 1;
        let expected =
            format!("language table {}, but this program has {LANGUAGE_TABLE}", LANGUAGE_TABLE + 1);
        assert!(made.incompatibility(&progress).unwrap().contains(&expected));
    }

    #[test]
    fn languages_are_spread_over_partitions_in_order() {
        let languages = &reader("[\"en\", \"hi\"]", 2).languages.unwrap();
        let home_of = |code| home(languages, samestory_engine::text::language::find(code).unwrap().lang, 2);
        assert_eq!((home(languages, Lang::UND, 2), home_of("en"), home_of("hi")), (0, 1, 0));
    }
}
