//! Scripts: which one a letter belongs to, and how much of each a text contains.
//!
//! Only a bounded excerpt of a text is ever examined, so 10 MB cost as much as 3 kB.

listed! {
/// A writing system, as far as language detection distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Script {
    /// Latin.
    Latin,
    /// Cyrillic.
    Cyrillic,
    /// Greek.
    Greek,
    /// Arabic.
    Arabic,
    /// Hebrew.
    Hebrew,
    /// Devanagari.
    Devanagari,
    /// Bengali.
    Bengali,
    /// Gurmukhi.
    Gurmukhi,
    /// Gujarati.
    Gujarati,
    /// Odia.
    Odia,
    /// Tamil.
    Tamil,
    /// Telugu.
    Telugu,
    /// Kannada.
    Kannada,
    /// Malayalam.
    Malayalam,
    /// Thai.
    Thai,
    /// Lao.
    Lao,
    /// Myanmar (Burmese).
    Myanmar,
    /// Khmer.
    Khmer,
    /// Ethiopic.
    Ethiopic,
    /// Hiragana and Katakana.
    Kana,
    /// Chinese characters in any language.
    Han,
    /// Hangul.
    Hangul,
    /// Letters of scripts that no row of the table uses.
    Other,
}
}

/// A text is Japanese if it has more than one kana per this many Chinese characters. Prose has about one to
/// one and lists of places one to ten; Chinese news has none except in names.
const MAX_HAN_PER_KANA: u32 = 20;

impl Script {
    /// Number of scripts.
    pub(super) const COUNT: usize = Script::ALL.len();

    /// How much one character counts. Syllables and ideographs correspond to several letters. Latin counts
    /// less: articles in other scripts are full of foreign names, products and addresses, while the reverse
    /// is rare.
    const fn weight(self) -> u32 {
        match self {
            Script::Latin => 1,
            Script::Ethiopic => 8,
            Script::Kana | Script::Han | Script::Hangul => 12,
            _ => 4,
        }
    }

    /// The script of a letter, or of a mark inside words; `None` for everything else.
    #[inline]
    pub(super) fn of_letter(c: char) -> Option<Script> {
        match LOW.get(c as usize) {
            Some(&script) => script,
            None => Script::of_code(c as u32),
        }
    }

    /// [`Script::of_letter`] without the lookup table.
    const fn of_code(code: u32) -> Option<Script> {
        Some(match code {
            0x41..=0x5A | 0x61..=0x7A | 0xC0..=0xD6 | 0xD8..=0xF6 | 0xF8..=0x2AF | 0x1E00..=0x1EFF => {
                Script::Latin
            }
            0x370..=0x37D | 0x37F..=0x3FF | 0x1F00..=0x1FFF => Script::Greek,
            0x400..=0x52F => Script::Cyrillic,
            0x591..=0x5BD | 0x5BF..=0x5C7 | 0x5D0..=0x5F2 => Script::Hebrew,
            0x610..=0x61A | 0x620..=0x65F | 0x66E..=0x6D3 | 0x6D5..=0x6EF | 0x6FA..=0x6FF => Script::Arabic,
            0x750..=0x77F | 0x8A0..=0x8FF | 0xFB50..=0xFDFF | 0xFE70..=0xFEFC => Script::Arabic,
            // The danda between the ranges ends sentences in every script of India.
            0x900..=0x963 | 0x971..=0x97F => Script::Devanagari,
            0x980..=0x9E5 | 0x9F0..=0x9F1 => Script::Bengali,
            0xA00..=0xA65 | 0xA70..=0xA75 => Script::Gurmukhi,
            0xA80..=0xAE5 => Script::Gujarati,
            0xB00..=0xB65 | 0xB71 => Script::Odia,
            0xB80..=0xBE5 => Script::Tamil,
            0xC00..=0xC65 => Script::Telugu,
            0xC80..=0xCE5 => Script::Kannada,
            0xD00..=0xD65 | 0xD7A..=0xD7F => Script::Malayalam,
            0xE01..=0xE3A | 0xE40..=0xE4E => Script::Thai,
            0xE81..=0xECF | 0xEDC..=0xEDF => Script::Lao,
            0x1000..=0x103F | 0x1050..=0x109F | 0xAA60..=0xAA7F => Script::Myanmar,
            0x1200..=0x135F | 0x1380..=0x138F | 0x2D80..=0x2DDF => Script::Ethiopic,
            0x1780..=0x17D3 | 0x17D7 => Script::Khmer,
            0x3041..=0x3096 | 0x30A1..=0x30FA | 0x30FC..=0x30FF | 0x31F0..=0x31FF => Script::Kana,
            0x3005 | 0x3007 | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF => {
                Script::Han
            }
            0x1100..=0x11FF | 0x3131..=0x318E | 0xAC00..=0xD7FB => Script::Hangul,
            // Armenian, Syriac to Samaritan, Sinhala, Tibetan, Georgian; Cherokee to Mongolian, and the small
            // scripts of South-East Asia; the historic ones.
            0x531..=0x587
            | 0x700..=0x74F
            | 0x780..=0x89F
            | 0xD80..=0xDDF
            | 0xF40..=0xFBC
            | 0x10A0..=0x10FF => Script::Other,
            0x13A0..=0x177F | 0x1820..=0x1CFF | 0xA000..=0xA4FF | 0xA980..=0xAA5F | 0xABC0..=0xABEF => {
                Script::Other
            }
            0x10000..=0x1CFFF | 0x1E800..=0x1E95F => Script::Other,
            _ => return None,
        })
    }
}

/// [`Script::of_code`] for the alphabets, precomputed because it is needed twice per letter of an excerpt.
static LOW: [Option<Script>; 0x1200] = {
    let mut low = [None; 0x1200];
    let mut code = 0;
    while code < low.len() {
        low[code] = Script::of_code(code as u32);
        code += 1;
    }
    low
};

/// The weighted amount of each script in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Census {
    letters: [u32; Script::COUNT],
    total: u32,
}

impl Census {
    /// Counts the letters of an excerpt.
    pub(super) fn count(excerpt: &Excerpt<'_>) -> Census {
        let mut letters = [0u32; Script::COUNT];
        for window in excerpt.windows() {
            // In ASCII only the Latin letters count. The sum wraps explicitly (it cannot), because a checked one is not
            // vectorised.
            let latin = |sum: u32, byte: u8| sum.wrapping_add(u32::from(byte.is_ascii_alphabetic()));
            letters[Script::Latin as usize] += window.bytes().fold(0, latin);
            if window.is_ascii() {
                continue;
            }
            for c in window.chars().filter(|c| !c.is_ascii()) {
                if let Some(script) = Script::of_letter(c) {
                    letters[script as usize] += 1;
                }
            }
        }
        for (count, script) in letters.iter_mut().zip(Script::ALL) {
            *count *= script.weight();
        }
        Census { letters, total: letters.iter().sum() }
    }

    /// The fraction of letters that belong to one of `scripts`, between 0 and 1.
    pub(super) fn share(&self, scripts: &[Script]) -> f32 {
        if self.total == 0 {
            return 0.0;
        }
        let of_them: u32 = scripts.iter().map(|&script| self.letters[script as usize]).sum();
        of_them as f32 / self.total as f32
    }

    /// The most common script and its fraction of the letters. Chinese characters count as kana if the text
    /// has a noticeable amount of kana: then it is Japanese.
    pub(super) fn dominant(&self) -> Option<(Script, f32)> {
        let mut letters = self.letters;
        let (kana, han) = (letters[Script::Kana as usize], letters[Script::Han as usize]);
        if kana * MAX_HAN_PER_KANA > han {
            letters[Script::Kana as usize] = kana + han;
            letters[Script::Han as usize] = 0;
        }
        let (best, &most) = letters.iter().enumerate().rev().max_by_key(|&(_, &count)| count)?;
        (most > 0).then(|| (Script::ALL[best], most as f32 / self.total as f32))
    }
}

/// At most three windows of a text, spread over it, because the first lines are often the site's page
/// furniture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Excerpt<'t>([&'t str; 3]);

impl<'t> Excerpt<'t> {
    /// Takes a text of up to three times `window` bytes completely, otherwise three windows of that size.
    pub(super) fn new(text: &'t str, window: usize) -> Excerpt<'t> {
        if text.len() <= 3 * window {
            return Excerpt([text, "", ""]);
        }
        Excerpt([0, 1, 2].map(|part| {
            let start = boundary(text, text.len() / 3 * part);
            let cut = &text[start..boundary(text, start + window)];
            // Half a word is a different word, so the cut moves to the next space; a word that fills the
            // window stays.
            if part == 0 { cut } else { cut.find(' ').map_or(cut, |space| &cut[space..]) }
        }))
    }

    /// The windows, in text order.
    pub(super) fn windows(&self) -> impl Iterator<Item = &'t str> {
        self.0.into_iter()
    }
}

/// The last character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
