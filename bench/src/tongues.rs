//! The ten languages of synthetic articles: invented words in the letters of each.

/// A language: its code, its share of a hundred articles, and what stands for the letters a to z in its script. Texts are
/// made of invented words; with no letters of its own, a language is written in Latin ones.
pub struct Tongue {
    pub code: &'static str,
    pub share: u64,
    pub letters: &'static str,
}

pub const TONGUES: [Tongue; 10] = [
    Tongue { code: "en", share: 28, letters: "" },
    Tongue {
        code: "hi", share: 22, letters: "ाबचदेफगहिजकलमनोपकरसतुववयय"
    },
    Tongue { code: "es", share: 12, letters: "" },
    Tongue {
        code: "bn", share: 8, letters: "াবচদেফগহিজকলমনোপকরসতুবৱশযজ"
    },
    Tongue {
        code: "ta", share: 7, letters: "ாபசதெபகஹிஜகலமனொபகரசதுவவஷயஜ"
    },
    Tongue { code: "fr", share: 6, letters: "" },
    Tongue {
        code: "te", share: 5, letters: "ాబచదెఫగహిజకలమనొపకరసతువవషయజ"
    },
    Tongue { code: "de", share: 5, letters: "" },
    Tongue { code: "ru", share: 4, letters: "абцдефгхийклмнопкрстуввхызз" },
    Tongue { code: "ar", share: 3, letters: "ابجدهفغحيجكلمنوبقرستوووزيز" },
];

/// Article n: its language, and its number among those of that language.
pub fn of_article(n: u64) -> (usize, u64) {
    let (hundred, at) = (n / 100, n % 100);
    // A step that has no divisor in common with a hundred mixes the languages.
    let drawn = at * 37 % 100;
    let mut from = 0;
    for (tongue, Tongue { share, .. }) in TONGUES.iter().enumerate() {
        if drawn < from + share {
            return (tongue, hundred * share + drawn - from);
        }
        from += share;
    }
    unreachable!("the shares add up to a hundred")
}

/// Replaces Latin letters.
pub fn transliterate(text: &str, letters: &str) -> String {
    let letters: Vec<char> = letters.chars().collect();
    let other = |letter: char| match letter {
        'a'..='z' => letters.get(letter as usize - 'a' as usize).copied().unwrap_or(letter),
        _ => letter,
    };
    text.chars().map(other).collect()
}
