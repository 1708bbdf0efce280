//! Words that mix scripts are read in one: `pаypаl` with a Cyrillic а is `paypal`.
//!
//! Only Latin, Cyrillic and Greek have letters that pass for each other, and only words that mix them show that they were
//! swapped. The script that the rest of the text is in decides how such a word is read. A word that this script cannot
//! spell stays as it is, so `μm` is not `mm`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
}

const SCRIPTS: [Script; 3] = [Script::Latin, Script::Greek, Script::Cyrillic];

impl Script {
    /// The script of a letter in normalised text.
    fn of(c: char) -> Option<Script> {
        match c {
            'a'..='z' => Some(Script::Latin),
            '\u{370}'..='\u{3ff}' if c.is_alphabetic() => Some(Script::Greek),
            '\u{400}'..='\u{481}' | '\u{48a}'..='\u{52f}' => Some(Script::Cyrillic),
            _ => None,
        }
    }
}

/// The letter of `script` that `c` passes for; `c` itself if it is of that script. Case is folded by now, so a pair may
/// look alike as capitals only.
fn read_as(c: char, script: Script) -> Option<char> {
    let from = Script::of(c)?;
    if from == script {
        return Some(c);
    }
    Some(match (script, c) {
        (Script::Latin, 'а' | 'α') => 'a',
        (Script::Latin, 'в' | 'ь') => 'b',
        (Script::Latin, 'с') => 'c',
        (Script::Latin, 'ԁ') => 'd',
        (Script::Latin, 'е' | 'ε') => 'e',
        (Script::Latin, 'н' | 'һ') => 'h',
        (Script::Latin, 'і' | 'ι') => 'i',
        (Script::Latin, 'ј') => 'j',
        (Script::Latin, 'к' | 'κ') => 'k',
        (Script::Latin, 'ӏ') => 'l',
        (Script::Latin, 'м') => 'm',
        (Script::Latin, 'о' | 'ο') => 'o',
        (Script::Latin, 'р' | 'ρ') => 'p',
        (Script::Latin, 'ԛ') => 'q',
        (Script::Latin, 'ѕ') => 's',
        (Script::Latin, 'т' | 'τ') => 't',
        (Script::Latin, 'υ') => 'u',
        (Script::Latin, 'ѵ' | 'ν') => 'v',
        (Script::Latin, 'ԝ') => 'w',
        (Script::Latin, 'х' | 'χ') => 'x',
        (Script::Latin, 'у' | 'ү' | 'γ') => 'y',
        (Script::Cyrillic, 'a') => 'а',
        (Script::Cyrillic, 'b') => 'в',
        (Script::Cyrillic, 'c') => 'с',
        (Script::Cyrillic, 'e') => 'е',
        (Script::Cyrillic, 'h') => 'н',
        (Script::Cyrillic, 'i') => 'і',
        (Script::Cyrillic, 'k') => 'к',
        (Script::Cyrillic, 'm') => 'м',
        (Script::Cyrillic, 'o') => 'о',
        (Script::Cyrillic, 'p') => 'р',
        (Script::Cyrillic, 't') => 'т',
        (Script::Cyrillic, 'x') => 'х',
        (Script::Cyrillic, 'y') => 'у',
        (Script::Greek, 'a') => 'α',
        (Script::Greek, 'b') => 'β',
        (Script::Greek, 'e') => 'ε',
        (Script::Greek, 'h') => 'η',
        (Script::Greek, 'i') => 'ι',
        (Script::Greek, 'k') => 'κ',
        (Script::Greek, 'm') => 'μ',
        (Script::Greek, 'n' | 'v') => 'ν',
        (Script::Greek, 'o') => 'ο',
        (Script::Greek, 'p') => 'ρ',
        (Script::Greek, 't') => 'τ',
        (Script::Greek, 'x') => 'χ',
        (Script::Greek, 'y') => 'υ',
        (Script::Greek, 'z') => 'ζ',
        _ => return None,
    })
}

/// Normalised text with the words that mix scripts in one; `None` if no word changes. The result may have to be
/// normalised again: a Latin letter combines with marks that a Cyrillic one does not.
pub(super) fn in_one_script(text: &str) -> Option<String> {
    if !may_mix(text.as_bytes()) {
        return None;
    }
    let home = home(text);
    let changes = |word: &str| {
        let [latin, greek, cyrillic] =
            SCRIPTS.map(|script| word.chars().filter(|&c| Script::of(c) == Some(script)).count());
        let mixed = [latin, greek, cyrillic].iter().filter(|&&letters| letters > 0).count() > 1;
        // A Latin letter and a Greek one are a unit, in a Greek text too.
        let mostly = match home {
            Script::Latin => true,
            Script::Greek => greek > latin,
            Script::Cyrillic => cyrillic >= latin,
        };
        mixed && mostly && word.chars().all(|c| read_as(c, home).is_some())
    };
    if !pieces(text).any(changes) {
        return None;
    }
    // Short words may be all look-alikes. In a Latin text in which letters were swapped they were swapped too; a Latin word
    // in a Russian text is likelier a name.
    let swapped = |word: &str| home == Script::Latin && word.chars().all(|c| read_as(c, home).is_some());
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        if changes(piece) || swapped(piece) {
            out.extend(piece.chars().filter_map(|c| read_as(c, home)));
        } else {
            out.push_str(piece);
        }
    }
    (out != text).then_some(out)
}

/// The script of the text: that of most letters that pass for no other.
fn home(text: &str) -> Script {
    let [mut latin, mut greek, mut cyrillic] = [0usize; 3];
    for c in text.chars() {
        let passes = |script| read_as(c, script).is_some();
        match Script::of(c) {
            Some(Script::Latin) if !passes(Script::Cyrillic) && !passes(Script::Greek) => latin += 1,
            Some(Script::Greek) if !passes(Script::Latin) => greek += 1,
            Some(Script::Cyrillic) if !passes(Script::Latin) => cyrillic += 1,
            _ => {}
        }
    }
    if latin >= greek.max(cyrillic) {
        Script::Latin
    } else if greek > cyrillic {
        Script::Greek
    } else {
        Script::Cyrillic
    }
}

/// The text in pieces: letters of the three scripts in a row, and what stands between.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let letter = Script::of(rest.chars().next()?).is_some();
        let end = rest.find(|c| Script::of(c).is_some() != letter).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Whether an ASCII letter touches one of Greek or Cyrillic. Nothing branches, so the compiler makes vectors of it; most
/// texts need no more than this.
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
            // In normalised text capitals are gone, and the Cyrillic ones that pass for Latin are these.
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
