//! Reads words that mix scripts in one script: `pаypаl` with a Cyrillic а becomes `paypal`.
//!
//! Only Latin, Cyrillic and Greek have letters that pass for each other, and only words that mix them reveal
//! that letters were swapped. The dominant script of the text decides how such a word is read. A word that
//! this script cannot spell stays as it is, so `μm` does not become `mm`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alphabet {
    Latin,
    Greek,
    Cyrillic,
}

const ALPHABETS: [Alphabet; 3] = [Alphabet::Latin, Alphabet::Greek, Alphabet::Cyrillic];

impl Alphabet {
    /// The script of a letter in normalised text.
    fn of_letter(c: char) -> Option<Alphabet> {
        match c {
            'a'..='z' => Some(Alphabet::Latin),
            '\u{370}'..='\u{3ff}' if c.is_alphabetic() => Some(Alphabet::Greek),
            '\u{400}'..='\u{481}' | '\u{48a}'..='\u{52f}' => Some(Alphabet::Cyrillic),
            _ => None,
        }
    }
}

/// The letter of `script` that `c` passes for; `c` itself if it belongs to that script. Case is already
/// folded, so some pairs look alike only as capitals.
fn read_as(c: char, script: Alphabet) -> Option<char> {
    let from = Alphabet::of_letter(c)?;
    if from == script {
        return Some(c);
    }
    Some(match (script, c) {
        (Alphabet::Latin, 'а' | 'α') => 'a',
        (Alphabet::Latin, 'в' | 'ь') => 'b',
        (Alphabet::Latin, 'с') => 'c',
        (Alphabet::Latin, 'ԁ') => 'd',
        (Alphabet::Latin, 'е' | 'ε') => 'e',
        (Alphabet::Latin, 'н' | 'һ') => 'h',
        (Alphabet::Latin, 'і' | 'ι') => 'i',
        (Alphabet::Latin, 'ј') => 'j',
        (Alphabet::Latin, 'к' | 'κ') => 'k',
        (Alphabet::Latin, 'ӏ') => 'l',
        (Alphabet::Latin, 'м') => 'm',
        (Alphabet::Latin, 'о' | 'ο') => 'o',
        (Alphabet::Latin, 'р' | 'ρ') => 'p',
        (Alphabet::Latin, 'ԛ') => 'q',
        (Alphabet::Latin, 'ѕ') => 's',
        (Alphabet::Latin, 'т' | 'τ') => 't',
        (Alphabet::Latin, 'υ') => 'u',
        (Alphabet::Latin, 'ѵ' | 'ν') => 'v',
        (Alphabet::Latin, 'ԝ') => 'w',
        (Alphabet::Latin, 'х' | 'χ') => 'x',
        (Alphabet::Latin, 'у' | 'ү' | 'γ') => 'y',
        (Alphabet::Cyrillic, 'a') => 'а',
        (Alphabet::Cyrillic, 'b') => 'в',
        (Alphabet::Cyrillic, 'c') => 'с',
        (Alphabet::Cyrillic, 'e') => 'е',
        (Alphabet::Cyrillic, 'h') => 'н',
        (Alphabet::Cyrillic, 'i') => 'і',
        (Alphabet::Cyrillic, 'k') => 'к',
        (Alphabet::Cyrillic, 'm') => 'м',
        (Alphabet::Cyrillic, 'o') => 'о',
        (Alphabet::Cyrillic, 'p') => 'р',
        (Alphabet::Cyrillic, 't') => 'т',
        (Alphabet::Cyrillic, 'x') => 'х',
        (Alphabet::Cyrillic, 'y') => 'у',
        (Alphabet::Greek, 'a') => 'α',
        (Alphabet::Greek, 'b') => 'β',
        (Alphabet::Greek, 'e') => 'ε',
        (Alphabet::Greek, 'h') => 'η',
        (Alphabet::Greek, 'i') => 'ι',
        (Alphabet::Greek, 'k') => 'κ',
        (Alphabet::Greek, 'm') => 'μ',
        (Alphabet::Greek, 'n' | 'v') => 'ν',
        (Alphabet::Greek, 'o') => 'ο',
        (Alphabet::Greek, 'p') => 'ρ',
        (Alphabet::Greek, 't') => 'τ',
        (Alphabet::Greek, 'x') => 'χ',
        (Alphabet::Greek, 'y') => 'υ',
        (Alphabet::Greek, 'z') => 'ζ',
        _ => return None,
    })
}

/// Rewrites the words of normalised text that mix scripts; `None` if no word changes. The result may need
/// normalising again: a Latin letter combines with marks that a Cyrillic one does not.
pub(super) fn in_one_script(text: &str) -> Option<String> {
    if !may_mix(text.as_bytes()) {
        return None;
    }
    let dominant = dominant(text);
    let changes = |word: &str| {
        let [latin, greek, cyrillic] =
            ALPHABETS.map(|script| word.chars().filter(|&c| Alphabet::of_letter(c) == Some(script)).count());
        let mixed = [latin, greek, cyrillic].iter().filter(|&&letters| letters > 0).count() > 1;
        // A Latin letter next to a Greek one is a unit of measurement, even in a Greek text.
        let mostly = match dominant {
            Alphabet::Latin => true,
            Alphabet::Greek => greek > latin,
            Alphabet::Cyrillic => cyrillic >= latin,
        };
        mixed && mostly && word.chars().all(|c| read_as(c, dominant).is_some())
    };
    if !pieces(text).any(changes) {
        return None;
    }
    // Short words may consist of look-alikes only. In a Latin text with swapped letters they were swapped
    // too; a Latin word in a Russian text is more likely a name.
    let swapped =
        |word: &str| dominant == Alphabet::Latin && word.chars().all(|c| read_as(c, dominant).is_some());
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        if changes(piece) || swapped(piece) {
            out.extend(piece.chars().filter_map(|c| read_as(c, dominant)));
        } else {
            out.push_str(piece);
        }
    }
    (out != text).then_some(out)
}

/// The dominant script: that of most letters that pass for no other.
fn dominant(text: &str) -> Alphabet {
    let [mut latin, mut greek, mut cyrillic] = [0usize; 3];
    for c in text.chars() {
        let passes = |script| read_as(c, script).is_some();
        match Alphabet::of_letter(c) {
            Some(Alphabet::Latin) if !passes(Alphabet::Cyrillic) && !passes(Alphabet::Greek) => latin += 1,
            Some(Alphabet::Greek) if !passes(Alphabet::Latin) => greek += 1,
            Some(Alphabet::Cyrillic) if !passes(Alphabet::Latin) => cyrillic += 1,
            _ => {}
        }
    }
    if latin >= greek.max(cyrillic) {
        Alphabet::Latin
    } else if greek > cyrillic {
        Alphabet::Greek
    } else {
        Alphabet::Cyrillic
    }
}

/// Splits the text into runs of letters of the three scripts and everything in between.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let letter = Alphabet::of_letter(rest.chars().next()?).is_some();
        let end = rest.find(|c| Alphabet::of_letter(c).is_some() != letter).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// True if an ASCII letter touches a Greek or Cyrillic one. It is branch-free so that the compiler vectorises
/// it; most texts need nothing else.
fn may_mix(bytes: &[u8]) -> bool {
    let letter = |byte: u8| byte.wrapping_sub(b'a') < 26;
    // Leading bytes of U+0340 to U+053F.
    let lead = |byte: u8| byte.wrapping_sub(0xcd) < 8;
    let Some(last) = bytes.len().checked_sub(2) else { return false };
    let triples = bytes[..last].iter().zip(&bytes[1..]).zip(&bytes[2..]);
    triples.fold(false, |mixed, ((&a, &b), &c)| mixed | (letter(a) & lead(b)) | (lead(a) & letter(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_mixes_scripts_is_read_in_the_script_of_its_text() {
        for (written, read) in [
            ("thе оld bridgе", "the old bridge"),
            // All look-alikes, in a text in which letters were swapped.
            ("ѕсоре іѕ а wоrd", "scope is a word"),
            ("старый моcт зaкрыли нa ремонт", "старый мост закрыли на ремонт"),
            ("aθήνα και ο πειραιάς", "αθήνα και ο πειραιάς"),
            // Normalised text has no capitals; these are the Cyrillic letters whose capitals pass for Latin
            // ones.
            ("тhe сouncil мet", "the council met"),
        ] {
            assert_eq!(in_one_script(written).as_deref(), Some(read));
            assert_eq!(in_one_script(read), None);
        }
    }

    #[test]
    fn words_of_one_script_and_words_that_no_script_can_spell_stay() {
        for text in [
            "",
            "a",
            "the word слово is russian",
            "сосна is a pine",
            "bbc и opec",
            "5 μm of it and 3 μg",
            "it-специалист и smsка",
            "tnfβ in 2020",
            "é\u{430}",
        ] {
            assert_eq!(in_one_script(text), None, "{text}");
        }
    }
}
