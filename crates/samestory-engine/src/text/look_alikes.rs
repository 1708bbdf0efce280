//! Reads words that mix scripts in one script: `pаypаl` with a Cyrillic а becomes `paypal`.
//!
//! Only Latin, Cyrillic and Greek have letters that pass for each other, and only words that mix them reveal
//! that letters were swapped. The dominant script of the text decides how such a word is read. A word that
//! this script cannot spell stays as it is, so `μm` does not become `mm`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
}

const SCRIPTS: [Script; 3] = [Script::Latin, Script::Greek, Script::Cyrillic];

impl Script {
    /// The script of a letter in normalised text.
    fn of_letter(c: char) -> Option<Script> {
        match c {
            'a'..='z' => Some(Script::Latin),
            '\u{370}'..='\u{3ff}' if c.is_alphabetic() => Some(Script::Greek),
            '\u{400}'..='\u{481}' | '\u{48a}'..='\u{52f}' => Some(Script::Cyrillic),
            _ => None,
        }
    }
}

/// The letter of `script` that `c` passes for; `c` itself if it belongs to that script. Case is already
/// folded, so some pairs look alike only as capitals.
fn read_as(c: char, script: Script) -> Option<char> {
    let from = Script::of_letter(c)?;
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

/// Rewrites the words of normalised text that mix scripts; `None` if no word changes. The result may need
/// normalising again: a Latin letter combines with marks that a Cyrillic one does not.
pub(super) fn in_one_script(text: &str) -> Option<String> {
    if !may_mix(text.as_bytes()) {
        return None;
    }
    let dominant = dominant(text);
    let changes = |word: &str| {
        let [latin, greek, cyrillic] =
            SCRIPTS.map(|script| word.chars().filter(|&c| Script::of_letter(c) == Some(script)).count());
        let mixed = [latin, greek, cyrillic].iter().filter(|&&letters| letters > 0).count() > 1;
        // A Latin letter next to a Greek one is a unit of measurement, even in a Greek text.
        let mostly = match dominant {
            Script::Latin => true,
            Script::Greek => greek > latin,
            Script::Cyrillic => cyrillic >= latin,
        };
        mixed && mostly && word.chars().all(|c| read_as(c, dominant).is_some())
    };
    if !pieces(text).any(changes) {
        return None;
    }
    // Short words may consist of look-alikes only. In a Latin text with swapped letters they were swapped
    // too; a Latin word in a Russian text is more likely a name.
    let swapped =
        |word: &str| dominant == Script::Latin && word.chars().all(|c| read_as(c, dominant).is_some());
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
fn dominant(text: &str) -> Script {
    let [mut latin, mut greek, mut cyrillic] = [0usize; 3];
    for c in text.chars() {
        let passes = |script| read_as(c, script).is_some();
        match Script::of_letter(c) {
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

/// Splits the text into runs of letters of the three scripts and everything in between.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let letter = Script::of_letter(rest.chars().next()?).is_some();
        let end = rest.find(|c| Script::of_letter(c).is_some() != letter).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Whether an ASCII letter touches a Greek or Cyrillic one. It is branch-free so that the compiler vectorises
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
