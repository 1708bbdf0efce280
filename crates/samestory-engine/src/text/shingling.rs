//! Shingles cut otherwise than the language table says: the settings `shingle` and `tokenizer` of a language, and tokenisers
//! of the library's users. [`super::Options`] holds one [`Shingling`] per home, [`super::prepare`] hands it to the fingerprint.
//! Only shingles and the words that SimHash counts depend on it: the length of a text, its numbers, names and headline are
//! read as the language is written, so `min_tokens` and the like mean the same under every setting.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use super::language::{self, LANGUAGES, Language, Segmentation};
use super::shingle::{Shingles, shingles, windows};
use crate::model::Lang;

/// The most tokens per shingle.
const LONGEST: usize = 64;
/// The most nested `shingle-k=…/` in a name.
const DEEPEST: usize = 4;

/// Cuts normalised text into tokens. Implement it for a tokeniser of your own:
///
/// ```
/// use std::borrow::Cow;
/// use std::sync::Arc;
/// use samestory_engine::{Article, Deduplicator, Options, Shingling, Tokenizer, VerdictKind};
///
/// /// Sentences: the order of words inside them counts, their order in the text hardly does.
/// #[derive(Debug)]
/// struct Clauses;
///
/// impl Tokenizer for Clauses {
///     fn name(&self) -> Cow<'_, str> {
///         "clauses-1".into()
///     }
///     fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
///         text.split(['.', ',', ';']).map(str::trim).filter(|clause| !clause.is_empty()).for_each(visit);
///     }
///     fn run(&self) -> usize {
///         1
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = Options::default().with_shingling("en", Shingling::tokenizer(Arc::new(Clauses))?)?;
/// let mut dedup = Deduplicator::in_memory(options);
/// let body = "The ferry between Saltmere and Gull Island will run again from Monday, after six weeks of repairs, the \
///             operator said on Thursday. Engineers replaced both engines, a cracked propeller shaft, and the rudder.";
/// dedup.insert(Article::new("a1", body))?;
/// assert_eq!(dedup.insert(Article::new("a2", body))?.kind, VerdictKind::ExactDuplicate);
/// # Ok(())
/// # }
/// ```
pub trait Tokenizer: fmt::Debug + Send + Sync {
    /// Identifies the tokeniser. Fingerprints under different names are never compared, so a tokeniser that cuts
    /// differently, even in one text, needs another name.
    fn name(&self) -> Cow<'_, str>;

    /// Visits every token in order. It must be a pure function of the text.
    fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str));

    /// Tokens per shingle, unless a name says otherwise: three, as of words. Five characters cover about as much text.
    fn run(&self) -> usize {
        3
    }
}

/// `word-uax29`: the words of UAX #29.
#[derive(Debug)]
struct Words;

impl Tokenizer for Words {
    fn name(&self) -> Cow<'_, str> {
        "word-uax29".into()
    }

    fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
        text.unicode_words().for_each(visit);
    }
}

/// `grapheme-uax29`: the extended grapheme clusters of UAX #29, with spaces and punctuation.
#[derive(Debug)]
struct Graphemes;

impl Tokenizer for Graphemes {
    fn name(&self) -> Cow<'_, str> {
        "grapheme-uax29".into()
    }

    fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
        text.graphemes(true).for_each(visit);
    }

    fn run(&self) -> usize {
        5
    }
}

/// How the shingles of a language are cut, in place of its row in the language table.
#[derive(Clone, Debug)]
pub struct Shingling {
    unit: Unit,
    /// Lengths of runs: of tokens, then of the runs before.
    runs: Vec<usize>,
}

#[derive(Clone, Debug)]
enum Unit {
    /// The words or characters of the language table.
    Table(Segmentation),
    /// The tokens of a tokeniser.
    Tokens(Arc<dyn Tokenizer>),
}

/// A setting of shingles that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShinglingError {
    /// Too few or too many tokens per shingle.
    #[error("{0} tokens per shingle; use 1 to {LONGEST}")]
    Length(usize),
    /// No tokeniser has this name.
    #[error(
        "{0:?} is not a tokeniser; use word-uax29, grapheme-uax29, cjk-jieba or shingle-k=<k>/<one of these>"
    )]
    Name(String),
    /// This build does not have the tokeniser.
    #[error(
        "this build has no tokeniser cjk-jieba; use a build with the feature jieba, or another tokeniser"
    )]
    Jieba,
    /// The language table does not have this language.
    #[error("{0:?} is not a language of the table; use a code of `samestory languages`")]
    Language(String),
}

impl Shingling {
    /// Runs of words, as languages with spaces have them: three by default.
    ///
    /// # Errors
    /// [`ShinglingError::Length`].
    pub fn words(run: usize) -> Result<Shingling, ShinglingError> {
        Shingling::new(Unit::Table(Segmentation::Words), vec![run])
    }

    /// Runs of letters and digits without what lies between them, as languages without spaces have them: five by default.
    ///
    /// # Errors
    /// [`ShinglingError::Length`].
    pub fn characters(run: usize) -> Result<Shingling, ShinglingError> {
        Shingling::new(Unit::Table(Segmentation::Characters), vec![run])
    }

    /// Runs of [`Tokenizer::run`] tokens of your own.
    ///
    /// # Errors
    /// [`ShinglingError::Length`].
    pub fn tokenizer(tokenizer: Arc<dyn Tokenizer>) -> Result<Shingling, ShinglingError> {
        let run = tokenizer.run();
        Shingling::new(Unit::Tokens(tokenizer), vec![run])
    }

    /// A tokeniser by name: `word-uax29`, `grapheme-uax29`, or `shingle-k=<k>/<name>` for runs of k tokens. Without `k`,
    /// runs have the usual length: three words or five graphemes.
    ///
    /// # Errors
    /// [`ShinglingError::Length`], [`ShinglingError::Name`], or [`ShinglingError::Jieba`]: this crate has no dictionary.
    pub fn named(name: &str) -> Result<Shingling, ShinglingError> {
        Shingling::named_with(name, None)
    }

    /// As [`Shingling::named`], with a tokeniser for the name `cjk-jieba`.
    ///
    /// # Errors
    /// As [`Shingling::named`].
    #[doc(hidden)]
    pub fn named_with(name: &str, jieba: Option<Arc<dyn Tokenizer>>) -> Result<Shingling, ShinglingError> {
        let unknown = || ShinglingError::Name(name.to_owned());
        let (mut runs, mut innermost) = (Vec::new(), name);
        while let Some(rest) = innermost.strip_prefix("shingle-k=") {
            let (run, inner) = rest.split_once('/').ok_or_else(unknown)?;
            runs.push(run.parse::<usize>().map_err(|_| unknown())?);
            innermost = inner;
            if runs.len() > DEEPEST {
                return Err(unknown());
            }
        }
        let tokenizer: Arc<dyn Tokenizer> = match innermost {
            "word-uax29" => Arc::new(Words),
            "grapheme-uax29" => Arc::new(Graphemes),
            "cjk-jieba" => jieba.ok_or(ShinglingError::Jieba)?,
            _ => return Err(unknown()),
        };
        if runs.is_empty() {
            return Shingling::tokenizer(tokenizer);
        }
        // A name lists them from the outside.
        runs.reverse();
        Shingling::new(Unit::Tokens(tokenizer), runs)
    }

    fn new(unit: Unit, runs: Vec<usize>) -> Result<Shingling, ShinglingError> {
        match runs.iter().find(|run| !(1..=LONGEST).contains(*run)) {
            Some(&run) => Err(ShinglingError::Length(run)),
            None => Ok(Shingling { unit, runs }),
        }
    }

    /// True if the language is cut like this anyway.
    fn is_usual(&self, language: &Language) -> bool {
        matches!(self.unit, Unit::Table(segment) if segment == language.segment)
            && self.runs == [language.shingle]
    }

    /// Cuts normalised text. A text without a letter or digit has no shingles, whatever a tokeniser makes of its
    /// punctuation.
    pub(crate) fn cut(&self, text: &str, language: &Language) -> Shingles {
        let mut cut = shingles(text, language);
        if cut.tokens == 0 {
            return cut;
        }
        let Some((&first, outer)) = self.runs.split_first() else { return cut };
        let of_runs = match &self.unit {
            Unit::Table(segment) => {
                shingles(text, &Language { segment: *segment, shingle: first, ..*language }).shingles
            }
            Unit::Tokens(tokenizer) => {
                let mut tokens = Vec::new();
                tokenizer.for_each_token(text, &mut |token| tokens.push(xxh3_64(token.as_bytes())));
                let of_runs = windows(&tokens, first);
                cut.words = tokens;
                of_runs
            }
        };
        cut.shingles = outer.iter().fold(of_runs, |inner, &run| windows(&inner, run));
        cut
    }
}

/// The name that states and config hashes record, from the outermost run to the unit. Names of tokenisers are quoted, so
/// none can look like a unit of ours.
impl fmt::Display for Shingling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.runs.iter().rev().try_for_each(|run| write!(f, "shingle-k={run}/"))?;
        match &self.unit {
            Unit::Table(Segmentation::Words) => f.write_str("words"),
            Unit::Table(Segmentation::Characters) => f.write_str("characters"),
            Unit::Tokens(tokenizer) => write!(f, "{:?}", tokenizer.name()),
        }
    }
}

impl PartialEq for Shingling {
    fn eq(&self, other: &Shingling) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Shingling {}

/// The homes whose shingles are cut otherwise than the language table says. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shinglings(BTreeMap<Lang, Arc<Shingling>>);

impl Shinglings {
    /// The language table alone.
    pub const NONE: Shinglings = Shinglings(BTreeMap::new());

    /// Sets how the language's home is cut. What the language table says anyway is no setting.
    pub fn set(&mut self, language: &Language, shingling: Shingling) {
        let home = language.home();
        if shingling.is_usual(language::row(home)) {
            self.0.remove(&home);
        } else {
            self.0.insert(home, Arc::new(shingling));
        }
    }

    /// Sets how every home is cut.
    pub fn set_all(&mut self, shingling: &Shingling) {
        LANGUAGES
            .iter()
            .filter(|row| row.home() == row.lang)
            .for_each(|row| self.set(row, shingling.clone()));
    }

    /// How a home is cut, if not as the language table says.
    pub fn of(&self, home: Lang) -> Option<&Arc<Shingling>> {
        self.0.get(&home)
    }
}

/// The settings as config hashes cover them; empty if there are none, so that hashes without them stay as they were.
impl fmt::Display for Shinglings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(home, shingling)| write!(f, "; {home} {shingling}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "the ferry runs again from monday, the operator said. two men, one boat, 24 hours.";

    fn english() -> &'static Language {
        language::find("en").unwrap()
    }

    fn named(name: &str) -> Shingles {
        Shingling::named(name).unwrap().cut(TEXT, english())
    }

    #[test]
    fn characters_and_words_are_cut_as_the_language_table_cuts_them() {
        let japanese = language::find("ja").unwrap();
        let usual = shingles(TEXT, english());
        let characters = Shingling::characters(5).unwrap().cut(TEXT, english());
        assert_eq!(characters.shingles, shingles(TEXT, japanese).shingles);
        // The length, the numbers in words and the words of SimHash stay those of English.
        assert_eq!(Shingles { shingles: usual.shingles.clone(), ..characters }, usual);
        assert_eq!(Shingling::words(3).unwrap().cut(TEXT, english()), usual);
        assert_eq!(Shingling::words(4).unwrap().cut(TEXT, english()).shingles.len(), usual.words.len() - 3);
    }

    #[test]
    fn a_name_counts_its_runs_from_the_outside() {
        let graphemes = TEXT.graphemes(true).count();
        assert_eq!(named("grapheme-uax29").words.len(), graphemes);
        assert_eq!(named("grapheme-uax29").shingles.len(), graphemes - 4);
        assert_eq!(named("grapheme-uax29"), named("shingle-k=5/grapheme-uax29"));
        assert_eq!(named("word-uax29"), named("shingle-k=3/word-uax29"));
        assert_eq!(
            named("shingle-k=2/shingle-k=3/word-uax29").shingles.len(),
            TEXT.unicode_words().count() - 3
        );
        assert_eq!(named("word-uax29").tokens, shingles(TEXT, english()).tokens);
    }

    #[test]
    fn a_text_without_letters_and_digits_has_nothing_to_compare() {
        for text in ["", "… — !", "\u{1f600}"] {
            assert_eq!(Shingling::named("grapheme-uax29").unwrap().cut(text, english()), Shingles::default());
        }
    }

    #[test]
    fn a_name_or_length_that_is_nothing_is_refused() {
        let refused = |name: &str| Shingling::named(name).unwrap_err();
        let endless = "shingle-k=1/".repeat(100_000) + "word-uax29";
        for name in ["", "words", "shingle-k=3", "shingle-k=/word-uax29", "shingle-k=-1/word-uax29", &endless]
        {
            assert_eq!(refused(name), ShinglingError::Name(name.to_owned()));
        }
        assert_eq!(refused("shingle-k=0/word-uax29"), ShinglingError::Length(0));
        assert_eq!(Shingling::characters(65), Err(ShinglingError::Length(65)));
        assert_eq!(refused("shingle-k=2/cjk-jieba"), ShinglingError::Jieba);
        assert!(refused("cjk-jieba").to_string().contains("feature jieba"));
    }

    #[test]
    fn a_tokenizer_of_ones_own_is_part_of_the_hash() {
        #[derive(Debug)]
        struct Named(&'static str);
        impl Tokenizer for Named {
            fn name(&self) -> Cow<'_, str> {
                self.0.into()
            }
            fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
                text.split(' ').for_each(visit);
            }
        }
        let hash = |shingling: Shingling| {
            let options = crate::Options::default().with_shingling("en", shingling).unwrap();
            (options.hash(), crate::fingerprint::config_hash(&options.text))
        };
        let own = |name| Shingling::tokenizer(Arc::new(Named(name))).unwrap();
        assert_eq!(hash(own("spaces-1")), hash(own("spaces-1")));
        // A name of ours does not make it the unit of the language table.
        let hashes = [own("spaces-1"), own("spaces-2"), own("characters"), Shingling::characters(3).unwrap()]
            .map(hash);
        for (at, (all, text)) in hashes.iter().enumerate() {
            assert!(hashes[..at].iter().all(|(other, print)| other != all && print != text));
        }
        let cut = own("spaces-1").cut(TEXT, english());
        assert_eq!(
            (cut.words.len(), cut.shingles.len()),
            (TEXT.split(' ').count(), TEXT.split(' ').count() - 2)
        );
    }

    #[test]
    fn what_the_table_says_anyway_is_no_setting() {
        let mut own = Shinglings::NONE;
        own.set(english(), Shingling::words(3).unwrap());
        assert_eq!(own, Shinglings::NONE);
        own.set_all(&Shingling::characters(5).unwrap());
        assert!(own.of(english().lang).is_some() && own.of(language::find("ja").unwrap().lang).is_none());
        assert!(own.to_string().contains("; en shingle-k=5/characters"), "{own}");
        own.set(english(), Shingling::words(3).unwrap());
        assert!(own.of(english().lang).is_none(), "the language has a row of its own");
    }
}
