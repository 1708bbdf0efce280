//! Number words and words of direction: the only difference between two form reports that contain no digits.
//! `shingle` looks them up and adds them to the text's numbers.
//!
//! The lists are maintained by hand and documented in `docs/evidence.md`. A number word counts as its number,
//! so "seven" agrees with "7". A word of direction counts as one of two tokens, up or down. The words for one
//! are omitted, because they are also articles or pronouns. A language without a list only lacks this
//! evidence.

use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use super::language::{LANGUAGES, Language};
use super::notices;

/// The words of one language, separated by spaces; `numbers` pairs a word with the number it counts as.
struct WordList {
    language: &'static str,
    numbers: &'static str,
    up: &'static str,
    down: &'static str,
}

const WORD_LISTS: &[WordList] = &[
    WordList {
        language: "en",
        numbers: "two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12 \
            thirteen=13 fourteen=14 fifteen=15 sixteen=16 seventeen=17 eighteen=18 nineteen=19 \
            twenty=20 thirty=30 forty=40 fifty=50 sixty=60 seventy=70 eighty=80 ninety=90 first=1 \
            second=2 third=3 fourth=4 fifth=5 sixth=6 seventh=7 eighth=8 ninth=9 tenth=10 \
            monday=monday tuesday=tuesday wednesday=wednesday thursday=thursday friday=friday \
            saturday=saturday sunday=sunday january=january february=february april=april june=june \
            july=july august=august september=september october=october november=november \
            december=december",
        up: "rose rise rises rising gained gains climbed jumped surged increased higher won beat",
        down: "fell fall falls falling lost loses dropped slipped slumped decreased lower declined",
    },
    WordList {
        language: "de",
        numbers: "zwei=2 drei=3 vier=4 fünf=5 sechs=6 sieben=7 acht=8 neun=9 zehn=10 elf=11 zwölf=12 \
            zwanzig=20 dreissig=30 vierzig=40 fünfzig=50",
        up: "stieg stiegen steigt gewann gewannen zugelegt höher",
        down: "fiel fielen fällt verlor verloren sank sanken niedriger",
    },
    WordList {
        language: "fr",
        numbers: "deux=2 trois=3 quatre=4 cinq=5 six=6 sept=7 huit=8 neuf=9 dix=10 onze=11 douze=12 \
            vingt=20 trente=30 quarante=40 cinquante=50",
        up: "hausse augmenté progressé gagné",
        down: "baisse baissé reculé perdu chuté",
    },
    WordList {
        language: "es",
        numbers: "dos=2 tres=3 cuatro=4 cinco=5 seis=6 siete=7 ocho=8 nueve=9 diez=10 once=11 doce=12 \
            veinte=20 treinta=30 cuarenta=40 cincuenta=50",
        up: "subió subieron aumentó ganó ganaron alza",
        down: "bajó bajaron cayó cayeron perdió perdieron baja",
    },
    WordList {
        language: "it",
        numbers: "due=2 tre=3 quattro=4 cinque=5 sei=6 sette=7 otto=8 nove=9 dieci=10 undici=11 dodici=12 \
            venti=20 trenta=30",
        up: "salito saliti rialzo guadagnato vinto",
        down: "sceso scesi ribasso perso calo",
    },
    WordList {
        language: "pt",
        numbers: "dois=2 duas=2 três=3 quatro=4 cinco=5 seis=6 sete=7 oito=8 nove=9 dez=10 onze=11 doze=12 \
            vinte=20 trinta=30",
        up: "subiu subiram aumentou ganhou alta",
        down: "caiu caíram baixou perdeu queda",
    },
    WordList {
        language: "ru",
        numbers: "два=2 две=2 двух=2 три=3 трех=3 трёх=3 четыре=4 четырех=4 пять=5 пяти=5 шесть=6 семь=7 \
            восемь=8 девять=9 десять=10 двадцать=20 тридцать=30",
        up: "вырос выросла выросли выросло повысился подорожал",
        down: "упал упала упали упало снизился снизилась снизились подешевел",
    },
    WordList {
        language: "hi",
        numbers: "दो=2 तीन=3 चार=4 पांच=5 पाँच=5 छह=6 सात=7 आठ=8 नौ=9 दस=10 बीस=20 तीस=30 पचास=50",
        up: "बढ़ा बढ़ी बढ़त तेजी",
        down: "गिरा गिरी गिरावट घटा",
    },
    WordList {
        language: "tr",
        numbers: "iki=2 üç=3 dört=4 beş=5 alti=6 yedi=7 sekiz=8 dokuz=9 yirmi=20 otuz=30 kirk=40 elli=50",
        up: "yükseldi artti kazandi",
        down: "düştü azaldi kaybetti geriledi",
    },
];

/// The kind of a word in the lists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ListedWord {
    /// A number, or a direction.
    Number(u32),
    /// A word of page notices.
    Notice,
    /// A word that addresses the reader.
    Reader,
}

/// Set in the hash of an exact figure, not set in that of any other number.
const FIGURE: u32 = 1;
/// Significant digits of an exact figure.
const EXACT: usize = 3;

/// The hash of a number, in digits without grouping and with a point.
pub(super) fn hashed(number: &[u8]) -> u32 {
    let hash = xxh3_64(number) as u32;
    if is_exact(number) { hash | FIGURE } else { hash & !FIGURE }
}

/// True if a number is an exact figure: `1,678,400` and `9.93`, but no round one and no year.
fn is_exact(number: &[u8]) -> bool {
    let whole = !number.contains(&b'.');
    if whole && number.len() == 4 && (number.starts_with(b"19") || number.starts_with(b"20")) {
        return false;
    }
    let zero = |&&digit: &&u8| digit == b'0';
    let digits = number.iter().filter(|byte| byte.is_ascii_digit());
    let significant = digits.clone().skip_while(zero).count();
    let round = if whole { digits.rev().take_while(zero).count() } else { 0 };
    significant >= EXACT + round
}

/// True if the hash is that of an exact figure.
pub(crate) fn is_figure(number: u32) -> bool {
    number & FIGURE != 0
}

/// Stands among the numbers of a text that is a page notice.
pub(crate) fn notice_mark() -> u32 {
    hashed(b"page notice")
}

/// The words of one language by their hashes.
pub(super) struct NumberWords {
    /// A bit for each value that the low ten bits of a word's hash take: most words are none of these.
    filter: [u64; 16],
    /// By the hash of the word, ascending.
    words: Vec<(u64, ListedWord)>,
}

impl NumberWords {
    /// The words of a language; empty for most.
    pub(super) fn for_language(language: &Language, hash: impl Fn(&str) -> u64) -> &'static NumberWords {
        static ALL: OnceLock<Vec<NumberWords>> = OnceLock::new();
        let all = ALL
            .get_or_init(|| LANGUAGES.iter().map(|row| NumberWords::new(row.lang.code(), &hash)).collect());
        let at = LANGUAGES.iter().position(|row| row.lang == language.lang);
        static NONE: NumberWords = NumberWords { filter: [0; 16], words: Vec::new() };
        at.and_then(|at| all.get(at)).unwrap_or(&NONE)
    }

    fn new(code: &str, hash: &impl Fn(&str) -> u64) -> NumberWords {
        let token = |token: &str| ListedWord::Number(hashed(token.as_bytes()));
        let mut words: Vec<(u64, ListedWord)> = Vec::new();
        for row in WORD_LISTS.iter().filter(|row| row.language == code) {
            let numbers = row.numbers.split(' ').filter_map(|pair| pair.split_once('='));
            words.extend(numbers.map(|(word, value)| (hash(word), token(value))));
            words.extend(row.up.split(' ').map(|word| (hash(word), token("direction: up"))));
            words.extend(row.down.split(' ').map(|word| (hash(word), token("direction: down"))));
        }
        for row in notices::LISTS.iter().filter(|row| row.language == code) {
            words.extend(row.notice.split(' ').map(|word| (hash(word), ListedWord::Notice)));
            words.extend(row.reader.split(' ').map(|word| (hash(word), ListedWord::Reader)));
        }
        words.sort_unstable();
        let mut filter = [0; 16];
        for &(hash, _) in &words {
            filter[(hash >> 6 & 15) as usize] |= 1 << (hash & 63);
        }
        NumberWords { filter, words }
    }

    /// The kind of a word.
    #[inline]
    pub(super) fn get(&self, word: u64) -> Option<ListedWord> {
        if self.filter[(word >> 6 & 15) as usize] >> (word & 63) & 1 == 0 {
            return None;
        }
        let at = self.words.binary_search_by_key(&word, |&(hash, _)| hash).ok()?;
        Some(self.words[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_listed_as_normalised_text_spells_them() {
        for row in WORD_LISTS {
            let numbers = row.numbers.split(' ').map(|pair| pair.split_once('=').unwrap().0);
            for word in numbers.chain(row.up.split(' ')).chain(row.down.split(' ')) {
                let normalised = super::super::normalize::normalize(word, 1 << 10).unwrap();
                assert_eq!(normalised, *word, "{}", row.language);
                assert!(!word.is_empty(), "{}", row.language);
            }
        }
    }

    #[test]
    fn exact_figures_are_told_from_round_numbers_and_years() {
        for exact in ["931000", "110552", "9.93", "12.50", "1031", "0.125", "123"] {
            assert!(is_figure(hashed(exact.as_bytes())), "{exact}");
        }
        for other in ["1987", "2024", "500000", "1.5", "100", "7", "0", "000", "2000", "1200", "monday"] {
            assert!(!is_figure(hashed(other.as_bytes())), "{other}");
        }
    }
}
