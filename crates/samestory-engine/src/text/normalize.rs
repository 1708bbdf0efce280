//! Turns plain text into normalised text: one spelling for everything readers take to be the same words.
//! Language detection, shingles and the content hash all read normalised text.
//!
//! Invisible characters are dropped, compatibility forms and case are folded (NFKC, full case folding),
//! digits of every script become ASCII, quotes and dashes become typewriter ones, Arabic and Hebrew points
//! are dropped, Arabic letters that keyboards encode in several ways get one code, words that mix scripts are
//! read in one script, and white space collapses to single spaces. Normalised text is a fixed point:
//! normalising it again changes nothing.
//!
//! `fold_until_stable` is the specification, [`normalize`] the fast path to the same bytes. Text is cut
//! only in front of ASCII characters: those never combine with what precedes them, so the pieces can be
//! processed independently.

use std::fmt::{self, Write};

use icu_normalizer::properties::{CanonicalDecomposition, Decomposed};

use super::TooLarge;
use super::block::{BLOCK, fold as fold_block};
use super::chars::{CCC, COMPOSITION, DOT_ABOVE, Fold, NFKC, class, classes, fold};
use super::look_alikes::in_one_script;
use super::words::is_spaced;

/// Normalises `text` to at most `limit` bytes.
///
/// The limit is enforced while the text grows, not afterwards: three bytes of U+FDFA expand to thirty-three.
///
/// # Errors
/// The result is [`TooLarge`], so the article has no fingerprint under this limit.
pub fn normalize(text: &str, limit: usize) -> Result<String, TooLarge> {
    // Reading a Cyrillic word in Latin script halves its length, so the first pass may need twice the limit.
    let room = limit.saturating_mul(2);
    let normalized = match run_pass(text, room) {
        Err(PassStopped::ZeroWidth) => run_pass(&resolve_zero_width_spaces(text), room),
        normalized => normalized,
    };
    let (mut normalized, ascii) = normalized.map_err(|_| TooLarge { limit })?;
    for _ in 0..ROUNDS {
        let Some(read) = (if ascii { None } else { in_one_script(&normalized) }) else { break };
        (normalized, _) = run_pass(&read, room).map_err(|_| TooLarge { limit })?;
    }
    if normalized.len() > limit { Err(TooLarge { limit }) } else { Ok(normalized) }
}

/// Why a pass stopped.
#[derive(Debug)]
enum PassStopped {
    TooLarge,
    /// The text contains a zero-width space; [`resolve_zero_width_spaces`] must run first.
    ZeroWidth,
}

/// One pass, which leaves words that mix scripts alone. Also returns whether the text is all ASCII.
fn run_pass(text: &str, limit: usize) -> Result<(String, bool), PassStopped> {
    let mut pass = Pass { out: Vec::with_capacity(text.len().min(limit) + BLOCK), limit, ascii: true };
    pass.run(text)?;
    while pass.out.last() == Some(&b' ') {
        pass.out.pop();
    }
    if pass.out.len() > limit {
        return Err(PassStopped::TooLarge);
    }
    #[expect(clippy::expect_used, reason = "only whole characters are written")]
    let normalized = String::from_utf8(pass.out).expect("normalised text is written character by character");
    Ok((normalized, pass.ascii))
}

const ZERO_WIDTH_SPACE: char = '\u{200b}';
/// More letters in a row than a word of prose has.
const LONG_WORD: usize = 16;

/// Replaces zero-width spaces: by spaces where they are the only separator of words, by nothing elsewhere.
///
/// They count as separators within a run between spaces if the letters are too many for one word, average at
/// least two per piece, and belong to a script that spaces its words. Elsewhere they are line-break hints or
/// a disguise.
fn resolve_zero_width_spaces(text: &str) -> String {
    // Letters are counted in one normal form: a decomposed Hangul syllable is three characters, composed it is one.
    let text = super::chars::NFKC.normalize(text);
    let mut out = String::with_capacity(text.len());
    for run in text.split_inclusive(char::is_whitespace) {
        let pieces = run.split(ZERO_WIDTH_SPACE).filter(|piece| !piece.is_empty()).count();
        let spaced = run.chars().filter(|&c| is_spaced(c)).count();
        let unspaced = run.chars().filter(|&c| c.is_alphanumeric() && !is_spaced(c)).count();
        let separates = spaced >= LONG_WORD && spaced >= 2 * pieces && spaced > unspaced;
        for (at, piece) in run.split(ZERO_WIDTH_SPACE).enumerate() {
            if separates && at > 0 {
                out.push(' ');
            }
            out.push_str(piece);
        }
    }
    out
}

/// Normalises `text` and merges look-alikes (UTS #39 skeleton): Cyrillic `а` in a Latin word reads as Latin
/// `a`.
///
/// # Errors
/// As [`normalize`].
pub fn skeleton(text: &str, limit: usize) -> Result<String, TooLarge> {
    let mut current = normalize(text, limit)?;
    // A skeleton may need folding again, and the folded text may have a simpler skeleton.
    for _ in 0..ROUNDS {
        let merged: String = unicode_security::confusable_detection::skeleton(&current).collect();
        let next = normalize(&merged, limit)?;
        if next == current {
            break;
        }
        current = next;
    }
    Ok(current)
}

/// A bound, so that no text can ask for more rounds. Two are the most that any text was seen to need.
pub(super) const ROUNDS: usize = 8;

/// The specification, before white space is collapsed: NFKC and the folding rule until nothing changes.
pub(super) fn fold_until_stable(text: &str, limit: usize) -> Result<String, TooLarge> {
    let mut current = fold_round(text, limit)?;
    for _ in 0..ROUNDS {
        let next = fold_round(&current, limit)?;
        if next == current {
            break;
        }
        current = next;
    }
    Ok(current)
}

fn fold_round(text: &str, limit: usize) -> Result<String, TooLarge> {
    let mut sink = FoldSink { out: String::with_capacity(text.len().min(limit)), limit };
    NFKC.normalize_to(text, &mut sink).map_err(|fmt::Error| TooLarge { limit })?;
    Ok(sink.out)
}

/// Folds the output of the NFKC normaliser and stops it at the limit.
struct FoldSink {
    out: String,
    limit: usize,
}

impl Write for FoldSink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| self.write_char(c))
    }

    fn write_char(&mut self, c: char) -> fmt::Result {
        match fold(c) {
            Fold::Keep if c == DOT_ABOVE && self.out.ends_with('i') => {}
            Fold::Keep => self.out.push(c),
            Fold::Drop => {}
            Fold::To(text) => self.out.push_str(&text),
        }
        if self.out.len() > self.limit { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The slow path takes at least this much text at a time.
const SLOW_PIECE: usize = 512;

/// One pass. `out` holds normalised text, except for a trailing space.
struct Pass {
    out: Vec<u8>,
    limit: usize,
    /// True if the input was all ASCII so far.
    ascii: bool,
}

impl Pass {
    fn run(&mut self, text: &str) -> Result<(), PassStopped> {
        let mut at = 0;
        while at < text.len() {
            at = self.ascii(text.as_bytes(), at);
            if at < text.len() {
                self.ascii = false;
                at = self.beyond_ascii(text, at)?;
            }
            if self.out.len() > self.limit.saturating_add(1) {
                return Err(PassStopped::TooLarge);
            }
        }
        Ok(())
    }

    fn ends_with_space(&self) -> bool {
        // The start counts as a space, so that leading white space is dropped.
        self.out.last().is_none_or(|&byte| byte == b' ')
    }

    fn space(&mut self) {
        if !self.ends_with_space() {
            self.out.push(b' ');
        }
    }

    /// Consumes ASCII from `at`; returns where it ends.
    fn ascii(&mut self, bytes: &[u8], mut at: usize) -> usize {
        loop {
            while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
                let folded = fold_block(block);
                let double = folded.space & (folded.space << 1 | u64::from(self.ends_with_space()));
                let stop = folded.odd | double;
                if stop == 0 {
                    self.out.extend_from_slice(&folded.bytes);
                    at += BLOCK;
                } else {
                    let plain = stop.trailing_zeros() as usize;
                    self.out.extend_from_slice(&folded.bytes[..plain]);
                    at += plain;
                    break;
                }
            }
            // Byte by byte through whatever stopped the block loop, or to the end.
            loop {
                let Some(&byte) = bytes.get(at) else { return at };
                match byte {
                    0x21..=0x7e => self.out.push(byte.to_ascii_lowercase()),
                    0..=0x20 | 0x7f => self.space(),
                    0x80.. => return at,
                }
                at += 1;
                if byte > b' ' && at + BLOCK <= bytes.len() {
                    break;
                }
            }
        }
    }

    /// Consumes characters from `at` until ASCII resumes; returns where that is.
    fn beyond_ascii(&mut self, text: &str, mut at: usize) -> Result<usize, PassStopped> {
        // A mark may attach to the ASCII character before it, so the slow path starts from that one.
        let mut previous = self.out.last().map(|&byte| char::from(byte));
        let from_input = at > 0 && previous.is_some_and(|c| c != ' ');
        let (piece, piece_out) = if from_input { (at - 1, self.out.len() - 1) } else { (at, self.out.len()) };
        let classes = classes();
        let mut previous_ccc = 0;
        // After a replaced or dropped character, marks need the slow path.
        let mut disturbed = false;
        for c in text[at..].chars() {
            if c.is_ascii() {
                return Ok(at);
            }
            match classes.class(c) {
                class::KEEP => {
                    self.push(c);
                    (previous, previous_ccc, disturbed) = (Some(c), 0, false);
                }
                class::SPACE => {
                    self.space();
                    (previous, previous_ccc, disturbed) = (Some(' '), 0, false);
                }
                class::SWAP => {
                    let c = classes.swapped(c);
                    self.push(c);
                    (previous, previous_ccc, disturbed) = (Some(c), 0, true);
                }
                class::DROP if c == ZERO_WIDTH_SPACE => return Err(PassStopped::ZeroWidth),
                class::DROP => disturbed = true,
                class::MAP => {
                    let text = classes.replacement(c);
                    self.out.extend_from_slice(text.as_bytes());
                    (previous, previous_ccc, disturbed) = (text.chars().next_back(), 0, true);
                }
                class::MARK if !disturbed => {
                    let ccc = CCC.get_u8(c);
                    let attaches = classes.combines_backwards(c)
                        && if previous_ccc == 0 {
                            previous.is_some_and(|starter| COMPOSITION.compose(starter, c).is_some())
                        } else {
                            ccc != 0
                        };
                    // `ê` already contains a mark, and a dot below sorts before it.
                    let before = if previous_ccc == 0 { previous.map_or(0, last_ccc) } else { previous_ccc };
                    if attaches || (ccc != 0 && ccc < before) {
                        return self.slow(text, piece, piece_out);
                    }
                    self.push(c);
                    (previous, previous_ccc) = (Some(c), ccc);
                }
                _ => return self.slow(text, piece, piece_out),
            }
            at += c.len_utf8();
        }
        Ok(at)
    }

    fn push(&mut self, c: char) {
        self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// The slow path: applies the specification to a piece that starts at `from` and ends before an ASCII
    /// character.
    fn slow(&mut self, text: &str, from: usize, out_len: usize) -> Result<usize, PassStopped> {
        self.out.truncate(out_len);
        let bytes = text.as_bytes();
        let far = (from + SLOW_PIECE).min(bytes.len());
        let end = bytes[far..].iter().position(u8::is_ascii).map_or(bytes.len(), |ahead| far + ahead);
        let piece = &text[from..end];
        if piece.contains(ZERO_WIDTH_SPACE) {
            return Err(PassStopped::ZeroWidth);
        }
        let folded = fold_until_stable(piece, self.limit.saturating_sub(out_len).saturating_add(SLOW_PIECE))
            .map_err(|_| PassStopped::TooLarge)?;
        for word in folded.split_inclusive(' ') {
            match word.strip_suffix(' ') {
                Some(word) => {
                    self.out.extend_from_slice(word.as_bytes());
                    self.space();
                }
                None => self.out.extend_from_slice(word.as_bytes()),
            }
        }
        Ok(end)
    }
}

/// Combining class of the last mark in a character: `ê` is an e with a mark above.
fn last_ccc(c: char) -> u8 {
    match CanonicalDecomposition::new().decompose(c) {
        Decomposed::Expansion(_, mark) => CCC.get_u8(mark),
        Decomposed::Default | Decomposed::Singleton(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification, with white space collapsed and mixed words in one script.
    fn plain(text: &str) -> String {
        let folded = fold_until_stable(&resolve_zero_width_spaces(text), usize::MAX).unwrap();
        let words: Vec<_> = folded.split(' ').filter(|word| !word.is_empty()).collect();
        let spaced = words.join(" ");
        in_one_script(&spaced).map_or(spaced, |read| plain(&read))
    }

    fn fast(text: &str) -> String {
        normalize(text, usize::MAX).unwrap()
    }

    #[test]
    fn texts_that_read_the_same_normalise_to_one_spelling() {
        for (written, normalized) in [
            ("The  Cat\r\n sat", "the cat sat"),
            ("\u{feff}“Don’t” — he said…", "\"don't\" - he said..."),
            ("ＦＵＬＬ　ｗｉｄｔｈ １２３", "full width 123"),
            ("ﬁne ﬂour", "fine flour"),
            ("ΟΔΥΣΣΕΥΣ Οδυσσεύς", "οδυσσευσ οδυσσεύσ"),
            ("İstanbul ISPARTA ısı i\u{307}", "istanbul isparta isi i"),
            ("Straße STRASSE", "strasse strasse"),
            ("كـــتاب ١٢٣ ۴۵۶", "كتاب 123 456"),
            ("الْعَرَبِيَّةُ هٰذَا ٱلْكِتَاب", "العربية هذا الكتاب"),
            ("ا\u{653}\u{64e} و\u{64f}\u{654}", "آ ؤ"),
            ("בְּרֵאשִׁ֖ית שָׁלוֹם תל־אביב", "בראשית שלום תל-אביב"),
            ("\u{fb2a}\u{fb35}", "שו"),
            // Persian and Urdu as Arabic keyboards write them.
            ("یک کتاب ہے ۀ ۂ ۃ", "يك كتاب هے ه\u{654} ه\u{654} ة"),
            ("ی\u{654} ى\u{654}", "ئ ئ"),
            // Urdu's and Kurdish's own letters stay.
            ("بھ ئەو ڪ", "بھ ئەو ڪ"),
            ("می\u{200c}خواهم क्\u{200d}ष", "ميخواهم क्ष"),
            ("१२३ अंक", "123 अंक"),
            ("e\u{301}te\u{301} été", "été été"),
            ("e\u{200d}\u{301}", "é"),
            ("ｶﾞｷﾞ", "ガギ"),
            ("soft\u{ad}hyphen zero\u{200b}width", "softhyphen zerowidth"),
            ("a\u{a0}\u{2003}b\u{3000}c", "a b c"),
            ("Viê\u{323}t Việt", "việt việt"),
            ("क\u{93c} ड़ ऩ", "क\u{93c} ड\u{93c} \u{929}"),
            ("", ""),
            (" \n\t ", ""),
            ("\u{301}", "\u{301}"),
            ("nul\0byte", "nul byte"),
        ] {
            assert_eq!(fast(written), normalized, "{written:?}");
            assert_eq!(plain(written), normalized, "{written:?} by the specification");
        }
    }

    // A law met it: in decomposed Hangul a run had sixteen letters, in composed Hangul fourteen, and only the first was cut
    // at its zero-width space.
    #[test]
    fn a_zero_width_space_is_resolved_alike_in_every_normal_form() {
        let composed = "aAAAaaa\u{130}\u{329}Aa\u{ac01}\u{200b}\u{13ad}a.b ";
        let decomposed = "aAAAaaaI\u{329}\u{307}Aa\u{1100}\u{1161}\u{11a8}\u{200b}\u{13ad}a.b ";
        assert_eq!(normalize(composed, 1 << 10).unwrap(), normalize(decomposed, 1 << 10).unwrap());
    }

    #[test]
    fn a_zero_width_space_separates_words_where_nothing_else_does() {
        // A page that separated its words with U+200B became one word and shared nothing with the same page
        // in spaces. Inside words, where U+200B is a hint or a disguise, it must still be dropped.
        for spaced in [
            "the old bridge was closed on monday and the buses take the other road",
            "старый мост закрыли на ремонт, автобусы идут в объезд",
            "옛 다리가 폐쇄되고 버스가 다른 길로 다닐 것이라고 밝혔다",
            "storm hits the coast",
        ] {
            assert_eq!(fast(&spaced.replace(' ', "\u{200b}")), fast(spaced));
            assert_eq!(fast(&spaced.replace(' ', "\u{200b}\n")), fast(spaced));
        }
        let letters = |text: &str| text.chars().flat_map(|c| [c, '\u{200b}']).collect::<String>();
        for plain in [
            "an extraordinarily uncharacteristic word",
            "市政府星期一表示旧桥将关闭维修在工程结束之前",
            "สะพานเก่าจะปิดซ่อมแซมและรถประจำทาง",
        ] {
            assert_eq!(fast(&letters(plain)), fast(plain));
        }
        // Thai marks word boundaries with them, invisibly to readers.
        assert_eq!(fast("สะพาน\u{200b}เก่า\u{200b}จะ\u{200b}ปิด\u{200b}ซ่อมแซม"), fast("สะพานเก่าจะปิดซ่อมแซม"));
    }

    fn follows_the_specification(text: &str) {
        let result = fast(text);
        assert_eq!(result, plain(text), "{text:?}");
        assert_eq!(fast(&result), result, "{text:?} is not a fixed point");
    }

    #[test]
    fn every_character_alone_and_in_context_follows_the_specification() {
        // Beyond the first plane nearly all are ideographs or unassigned. What no rule touches has no neighbours that matter,
        // so many of them share one text. One text each took minutes in a debug build.
        let inert = |c: &char| {
            *c > '\u{ffff}'
                && CCC.get_u8(*c) == 0
                && matches!(fold(*c), Fold::Keep)
                && NFKC.is_normalized(c.encode_utf8(&mut [0; 4]))
        };
        let blocks: Vec<u32> = (0..=u32::from(char::MAX)).step_by(256).collect();
        crate::parallel::map(&blocks, |&block| {
            let all = (block..block + 256).filter_map(char::from_u32);
            let (inert, others): (Vec<char>, Vec<char>) = all.partition(inert);
            for some in inert.chunks(64) {
                let words: Vec<String> = some.iter().map(char::to_string).collect();
                follows_the_specification(&words.join(" "));
            }
            for c in others {
                // Followed by marks that may sort before one that the character contains.
                let marked = format!("{c}\u{338} {c}\u{327} {c}\u{323}");
                let pointed = format!("و{c}\u{654} ا\u{64e}{c}\u{653} e{c}\u{301}");
                for text in
                    [format!("{c}"), format!("ab {c}\u{301}cd"), format!("и{c}\u{93c}x"), marked, pointed]
                {
                    follows_the_specification(&text);
                }
            }
        });
    }

    #[test]
    fn the_limit_is_enforced_while_the_text_grows() {
        assert_eq!(normalize("abc", 3), Ok("abc".into()));
        assert_eq!(normalize("abc  ", 3), Ok("abc".into()));
        assert_eq!(normalize("abcd", 3), Err(TooLarge { limit: 3 }));
        assert_eq!(normalize(&"\u{fdfa}".repeat(100_000), 1 << 20), Err(TooLarge { limit: 1 << 20 }));
    }

    #[test]
    fn a_skeleton_merges_look_alikes_and_is_a_fixed_point() {
        let latin = skeleton("paypal scope", usize::MAX).unwrap();
        let mixed = skeleton("pаypаl ѕсоре", usize::MAX).unwrap();
        assert_eq!(latin, mixed);
        assert_eq!(skeleton(&mixed, usize::MAX).unwrap(), mixed);
    }
}
