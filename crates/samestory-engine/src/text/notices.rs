//! The words of page notices: what a site shows in place of an article, such as a consent text, a robot check or a paywall.
//!
//! Two articles that were fetched as one notice have equal texts and no news. Where headlines are missing or are the site's
//! name, only the wording decides. The lists are made by hand and declared in `docs/evidence.md`; none is keyed to a source. A
//! language without a list loses nothing but this, and so does a script without spaces.

/// One language's words, separated by spaces, as normalised text spells them.
pub(super) struct NoticeList {
    pub(super) language: &'static str,
    /// Subjects of notices: consent, robots, subscriptions.
    pub(super) notice: &'static str,
    /// Words that address the reader, or by which the site speaks of itself.
    pub(super) reader: &'static str,
}

/// Longer texts are articles, whatever they speak of.
const LONGEST: usize = 200;
/// A notice has at least this many of the words.
const LEAST: usize = 2;
/// At least one in this many words of a notice is from one of the two lists.
const ONE_IN: usize = 20;

/// The distinct words of both kinds in a text.
#[derive(Default)]
pub(super) struct NoticeWords {
    pub(super) notice: Vec<u64>,
    pub(super) reader: Vec<u64>,
}

impl NoticeWords {
    /// True if a text of so many tokens is a notice.
    pub(super) fn make_a_notice(mut self, tokens: usize) -> bool {
        let distinct = |words: &mut Vec<u64>| {
            words.sort_unstable();
            words.dedup();
            words.len()
        };
        let (notice, reader) = (distinct(&mut self.notice), distinct(&mut self.reader));
        tokens <= LONGEST && notice >= LEAST && reader > 0 && (notice + reader) * ONE_IN >= tokens
    }
}

pub(super) const LISTS: &[NoticeList] = &[
    NoticeList {
        language: "en",
        notice: "cookie cookies javascript captcha browser subscribe unsubscribe login password \
            paywall privacy newsletter inbox robot robots adblock adblocker website unlimited",
        reader: "you your",
    },
    NoticeList {
        language: "de",
        notice: "cookie cookies javascript captcha browser abonnieren abonnement anmelden \
            registrieren passwort newsletter datenschutz datenschutzerklärung \
            datenschutzrichtlinie datenschutzrichtlinien zustimmung akzeptieren widerrufen \
            anklicken website webseite werbung werbeblocker roboter",
        reader: "wir uns unsere unserer unseren",
    },
    NoticeList {
        language: "fr",
        notice: "cookie cookies javascript captcha navigateur abonner abonnez inscrivez connectez \
            connecter newsletter courriel confidentialité consentement accepter acceptez robot \
            site internautes",
        reader: "vous votre vos",
    },
    NoticeList {
        language: "es",
        notice: "cookie cookies javascript captcha navegador suscríbase suscríbete suscribirse \
            suscripción registrarse regístrese regístrate contraseña boletín newsletter \
            privacidad consentimiento aceptar robot sitio web spam",
        reader: "usted tu tus su sus nuestro nuestra",
    },
    NoticeList {
        language: "it",
        notice: "cookie cookies javascript captcha browser abbonati abbonamento accedi registrati \
            registrarsi password newsletter privacy consenso accetta accettare robot sito",
        reader: "tuo tua tuoi vostro nostro nostri",
    },
    NoticeList {
        language: "pt",
        notice: "cookie cookies javascript captcha navegador assine assinante assinatura inscreva \
            cadastre senha newsletter privacidade consentimento aceitar robô site",
        reader: "você seu sua nosso nossa",
    },
    NoticeList {
        language: "nl",
        notice: "cookie cookies javascript captcha browser abonneren abonnee inloggen registreren \
            wachtwoord nieuwsbrief privacy privacybeleid toestemming accepteren robot website \
            advertenties",
        reader: "u uw je jouw onze",
    },
    NoticeList {
        language: "pl",
        notice: "cookie cookies ciasteczka javascript captcha przeglądarka przeglądarki przeglądarce \
            subskrybuj subskrypcja zaloguj zarejestruj hasło newsletter prywatności zgodę \
            akceptuję robot robotem ip adres adresu połączeń serwisu",
        reader: "twój twoja twoje twojego nami nasz naszej chcesz korzystasz używasz",
    },
    NoticeList {
        language: "ru",
        notice: "cookie cookies javascript captcha капча браузер браузера браузере подпишитесь \
            подписаться подписка войдите зарегистрируйтесь регистрация пароль рассылку \
            конфиденциальности согласие робот ip сайт сайта сайтом",
        reader: "вы вас вам ваш ваша ваше вашего",
    },
    NoticeList {
        language: "uk",
        notice: "cookie cookies javascript captcha браузер браузера підпишіться підписатися увійдіть \
            зареєструйтеся пароль розсилку конфіденційності згоду робот ip сайт сайту сайтом",
        reader: "ви вас вам ваш ваша ваше",
    },
    NoticeList {
        language: "tr",
        notice: "cookie çerez çerezler çerezleri javascript captcha tarayici tarayiciniz abone giriş \
            kayit şifre bülten gizlilik onay kabul robot ip site sitemizi",
        reader: "siz sizin sizi bizi bizim",
    },
    NoticeList {
        language: "ar",
        notice: "cookie cookies javascript captcha كوكيز الارتباط المتصفح متصفحك اشترك الاشتراك سجل \
            كلمة المرور النشرة البريدية الخصوصية موافقتك روبوت ip الموقع للموقع موقعنا تبرع \
            التبرع",
        reader: "أنت لك بك بريدك لنا نحن ادعمنا ادعمونا",
    },
    NoticeList {
        language: "hi",
        notice: "cookie cookies कुकी कुकीज़ कुकीज javascript captcha ब्राउज़र ब्राउजर सब्सक्राइब \
            लॉगिन लॉग पासवर्ड न्यूज़लेटर न्यूजलेटर गोपनीयता सहमति रोबोट ip वेबसाइट",
        reader: "आप आपका आपके आपकी हमारी हमारे हमें",
    },
];

#[cfg(test)]
mod tests {
    use super::super::language::{self, Language};
    use super::super::numbers::notice_mark;
    use super::super::shingle::shingles;

    fn is_notice(text: &str, code: &str) -> bool {
        let language: &Language = language::find(code).unwrap();
        shingles(text, language).numerals.contains(&notice_mark())
    }

    #[test]
    fn a_notice_is_told_from_a_short_item_that_speaks_of_one() {
        assert!(is_notice("please enable javascript in your browser to see this page", "en"));
        assert!(is_notice("wir verwenden cookies, um unsere webseite zu verbessern. datenschutz", "de"));
        assert!(is_notice("twój adres ip jest zablokowany. zaznacz nie jestem robotem", "pl"));
        let item =
            "the regulator fined the search engine over cookies that its browser stored without consent";
        assert!(!is_notice(item, "en"), "nobody is addressed");
        let long =
            format!("{} we use cookies on this website, your privacy matters", "the council met ".repeat(40));
        assert!(!is_notice(&long, "en"), "an article above a notice is an article");
        assert!(!is_notice("you said that your house has no roof and no windows either", "en"));
    }

    #[test]
    fn words_are_listed_once_as_normalised_text_spells_them() {
        for row in super::LISTS {
            let words: Vec<&str> = row.notice.split(' ').chain(row.reader.split(' ')).collect();
            for (at, word) in words.iter().enumerate() {
                assert_eq!(
                    super::super::normalize::normalize(word, 1 << 10).unwrap(),
                    *word,
                    "{}",
                    row.language
                );
                assert!(!words[..at].contains(word), "{word} is listed twice for {}", row.language);
            }
        }
    }
}
