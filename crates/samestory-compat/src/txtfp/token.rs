//! txtfp's tokens: UAX #29 words and grapheme clusters, and shingles of either.

use unicode_segmentation::UnicodeSegmentation;

/// The words of a text, as it stands; make it canonical first.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.unicode_words()
}

/// The extended grapheme clusters of a text, spaces and punctuation included.
pub fn graphemes(text: &str) -> impl Iterator<Item = &str> {
    text.graphemes(true)
}

/// Every run of `k` neighbouring tokens, joined by single spaces.
///
/// The tokens are joined once; each shingle is a slice of that.
#[derive(Clone, Debug)]
pub struct Shingles {
    joined: String,
    /// Where each token starts and ends in `joined`.
    bounds: Vec<(usize, usize)>,
    k: usize,
}

impl Shingles {
    /// Shingles of `k` tokens. Fewer than `k` tokens make one shingle together; no tokens, or `k` = 0, make
    /// none.
    pub fn new<'a>(tokens: impl IntoIterator<Item = &'a str>, k: usize) -> Shingles {
        let mut joined = String::new();
        let mut bounds = Vec::new();
        for token in tokens {
            if !bounds.is_empty() {
                joined.push(' ');
            }
            let start = joined.len();
            joined.push_str(token);
            bounds.push((start, joined.len()));
        }
        let k = k.min(bounds.len());
        Shingles { joined, bounds, k }
    }

    /// The shingles in order, repeats included.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        // `windows(0)` would panic; where k is 0 there is nothing to give.
        let windows = (self.k > 0).then(|| self.bounds.windows(self.k));
        windows.into_iter().flatten().map(|window| &self.joined[window[0].0..window[window.len() - 1].1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shingles(text: &str, k: usize) -> Vec<String> {
        Shingles::new(words(text), k).iter().map(str::to_owned).collect()
    }

    #[test]
    fn words_leave_out_what_stands_between_them() {
        assert_eq!(words("don't go, v1.2 – 我爱").collect::<Vec<_>>(), ["don't", "go", "v1.2", "我", "爱"]);
    }

    #[test]
    fn graphemes_keep_what_belongs_together() {
        assert_eq!(graphemes("e\u{301} 🇮🇳க்").collect::<Vec<_>>(), ["e\u{301}", " ", "🇮🇳", "க்"]);
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
}
