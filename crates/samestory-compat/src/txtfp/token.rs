//! txtfp's tokens: UAX #29 words and grapheme clusters, shingles of either, and tokenisers by name.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

/// The words of a text, which should be [normalised](super::canonicalize) first.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.unicode_words()
}

/// The extended grapheme clusters of a text, spaces and punctuation included.
pub fn graphemes(text: &str) -> impl Iterator<Item = &str> {
    text.graphemes(true)
}

/// Every run of `k` consecutive tokens, joined by single spaces.
///
/// The tokens are joined once; each shingle is a slice of that.
#[derive(Clone, Debug)]
pub struct Shingles {
    joined: String,
    /// Start and end of each token in `joined`.
    bounds: Vec<(usize, usize)>,
    k: usize,
}

impl Shingles {
    /// Shingles of `k` tokens. Fewer than `k` tokens make one shingle together; no tokens, or `k` = 0, make
    /// none.
    pub fn new<'a>(tokens: impl IntoIterator<Item = &'a str>, k: usize) -> Shingles {
        let mut shingles = Shingles { joined: String::new(), bounds: Vec::new(), k };
        tokens.into_iter().for_each(|token| shingles.push(token));
        shingles
    }

    fn push(&mut self, token: &str) {
        if !self.bounds.is_empty() {
            self.joined.push(' ');
        }
        let start = self.joined.len();
        self.joined.push_str(token);
        self.bounds.push((start, self.joined.len()));
    }

    /// The shingles in order, repeats included.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let width = self.k.min(self.bounds.len());
        // `windows(0)` would panic, and there are no shingles.
        let windows = (width > 0).then(|| self.bounds.windows(width));
        windows.into_iter().flatten().map(|window| &self.joined[window[0].0..window[window.len() - 1].1])
    }
}

/// Cuts normalised text into tokens. Implement it for your own tokeniser:
///
/// ```
/// use std::borrow::Cow;
/// use samestory_compat::txtfp::{MinHashFingerprinter, Tokenizer};
///
/// struct Lines;
///
/// impl Tokenizer for Lines {
///     fn name(&self) -> Cow<'static, str> {
///         "lines".into()
///     }
///     fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
///         text.lines().for_each(visit);
///     }
/// }
///
/// let poems = MinHashFingerprinter::<_, 128>::new(Lines);
/// assert!(poems.fingerprint("roses are red\nviolets are blue").is_ok());
/// ```
pub trait Tokenizer: Send + Sync {
    /// Identifies it in [`FingerprintMetadata`](super::FingerprintMetadata). Fingerprints under different
    /// names cannot be compared, so a tokeniser that cuts differently needs a different name.
    fn name(&self) -> Cow<'static, str>;

    /// Visits every token in order.
    fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str));

    /// All tokens in order.
    fn tokens(&self, text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        self.for_each_token(text, &mut |token| tokens.push(token.to_owned()));
        tokens
    }
}

impl<T: Tokenizer + ?Sized> Tokenizer for Box<T> {
    fn name(&self) -> Cow<'static, str> {
        (**self).name()
    }

    fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
        (**self).for_each_token(text, visit);
    }
}

/// `word-uax29`: the words of UAX #29.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WordTokenizer;

impl Tokenizer for WordTokenizer {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("word-uax29")
    }

    fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
        words(text).for_each(visit);
    }
}

/// `grapheme-uax29`: the extended grapheme clusters of UAX #29.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GraphemeTokenizer;

impl Tokenizer for GraphemeTokenizer {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("grapheme-uax29")
    }

    fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
        graphemes(text).for_each(visit);
    }
}

/// `shingle-k=<k>/<inner>`: every run of `k` tokens of another tokeniser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShingleTokenizer<T> {
    /// Tokens per shingle; 0 yields none.
    pub k: usize,
    /// Cuts the tokens.
    pub inner: T,
}

impl<T: Tokenizer> Tokenizer for ShingleTokenizer<T> {
    fn name(&self) -> Cow<'static, str> {
        Cow::Owned(format!("shingle-k={}/{}", self.k, self.inner.name()))
    }

    fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
        let mut shingles = Shingles::new([], self.k);
        self.inner.for_each_token(text, &mut |token| shingles.push(token));
        shingles.iter().for_each(visit);
    }
}

/// `cjk-jieba`, or `cjk-jieba-hmm`: Chinese words by the dictionary of `jieba-rs`.
#[cfg(feature = "jieba")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CjkTokenizer {
    /// Guess words that the dictionary lacks, with a hidden Markov model. Guesses change between versions of
    /// `jieba-rs`.
    pub hmm: bool,
}

#[cfg(feature = "jieba")]
impl Tokenizer for CjkTokenizer {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(if self.hmm { "cjk-jieba-hmm" } else { "cjk-jieba" })
    }

    fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
        // Loading the dictionary takes a tenth of a second or more, so it is done once.
        static JIEBA: std::sync::LazyLock<jieba_rs::Jieba> = std::sync::LazyLock::new(jieba_rs::Jieba::new);
        JIEBA.cut(text, self.hmm).into_iter().filter(|word| !word.trim().is_empty()).for_each(visit);
    }
}

/// A name that belongs to no tokeniser of this build.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a tokeniser; use word-uax29, grapheme-uax29, shingle-k=<k>/<inner> or, with the feature jieba, cjk-jieba"
)]
pub struct UnknownTokenizer(pub String);

/// The tokeniser with this name.
///
/// # Errors
///
/// [`UnknownTokenizer`] lists the names.
///
/// ```
/// use samestory_compat::txtfp::tokenizer;
///
/// let pairs = tokenizer("shingle-k=2/word-uax29")?;
/// assert_eq!(pairs.tokens("the quick fox"), ["the quick", "quick fox"]);
/// # Ok::<(), samestory_compat::txtfp::UnknownTokenizer>(())
/// ```
pub fn tokenizer(name: &str) -> Result<Box<dyn Tokenizer>, UnknownTokenizer> {
    /// Shingles of shingles are useless but have a name; an endless name must not exhaust the stack.
    const DEEPEST: usize = 4;
    let unknown = || UnknownTokenizer(name.to_owned());
    let mut sizes = Vec::new();
    let mut innermost = name;
    while let Some((k, inner)) = innermost.strip_prefix("shingle-k=").and_then(|rest| rest.split_once('/')) {
        sizes.push(k.parse::<usize>().map_err(|_| unknown())?);
        innermost = inner;
        if sizes.len() > DEEPEST {
            return Err(unknown());
        }
    }
    let tokenizer: Box<dyn Tokenizer> = match innermost {
        "word-uax29" => Box::new(WordTokenizer),
        "grapheme-uax29" => Box::new(GraphemeTokenizer),
        #[cfg(feature = "jieba")]
        "cjk-jieba" => Box::new(CjkTokenizer { hmm: false }),
        #[cfg(feature = "jieba")]
        "cjk-jieba-hmm" => Box::new(CjkTokenizer { hmm: true }),
        _ => return Err(unknown()),
    };
    Ok(sizes.into_iter().rev().fold(tokenizer, |inner, k| Box::new(ShingleTokenizer { k, inner })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shingles(text: &str, k: usize) -> Vec<String> {
        ShingleTokenizer { k, inner: WordTokenizer }.tokens(text)
    }

    #[test]
    fn words_exclude_punctuation_and_spaces() {
        assert_eq!(WordTokenizer.tokens("don't go, v1.2 – 我爱"), ["don't", "go", "v1.2", "我", "爱"]);
    }

    #[test]
    fn graphemes_keep_clusters_together() {
        assert_eq!(GraphemeTokenizer.tokens("e\u{301} 🇮🇳க்"), ["e\u{301}", " ", "🇮🇳", "க்"]);
    }

    #[test]
    fn shingles_slide_by_one_token() {
        assert_eq!(shingles("the quick, brown fox", 3), ["the quick brown", "quick brown fox"]);
        assert_eq!(shingles("a b", 1), ["a", "b"]);
    }

    #[test]
    fn too_few_tokens_make_one_shingle_together() {
        assert_eq!(shingles("a b", 5), ["a b"]);
    }

    #[test]
    fn nothing_makes_nothing() {
        assert_eq!(shingles("", 3), [""; 0]);
        assert_eq!(shingles("a b c", 0), [""; 0]);
    }

    #[test]
    fn a_tokeniser_is_found_by_its_own_name() {
        for name in [
            "word-uax29",
            "grapheme-uax29",
            "shingle-k=5/word-uax29",
            "shingle-k=2/shingle-k=3/grapheme-uax29",
        ] {
            assert_eq!(tokenizer(name).unwrap().name(), name);
        }
        let endless = "shingle-k=1/".repeat(100_000) + "word-uax29";
        for name in ["", "words", "shingle-k=/word-uax29", "shingle-k=-1/word-uax29", "shingle-k=3", &endless]
        {
            assert!(tokenizer(name).is_err());
        }
    }

    #[cfg(feature = "jieba")]
    #[test]
    fn chinese_words_come_from_the_dictionary() {
        let jieba = tokenizer("cjk-jieba").unwrap();
        assert_eq!(jieba.tokens("我爱 北京天安门"), ["我", "爱", "北京", "天安门"]);
        assert_eq!(tokenizer("shingle-k=2/cjk-jieba-hmm").unwrap().name(), "shingle-k=2/cjk-jieba-hmm");
    }
}
