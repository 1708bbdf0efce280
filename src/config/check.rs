//! Checks of single values: each takes a key and a value as written, and returns the usable value or a [`ConfigError`] that
//! names the key, the value and the fix. [`language_settings`] applies them to `[match]` and `[languages.<code>]`.

use std::sync::Arc;

use samestory_engine::engine::compare::Rules;
use samestory_engine::engine::compare::evidence::{Measure, Weights};
use samestory_engine::engine::{Algorithm, LanguageSettings};
use samestory_engine::index::Retention;
use samestory_engine::{Shingling, ShinglingError, Tokenizer};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use super::{ConfigError, MatchSettings, ShingleSettings, invalid};

/// The settings of one table; an absent key is inherited from `base`, or from the defaults.
pub(super) fn language_settings(
    table: &str,
    own: &MatchSettings,
    base: Option<&LanguageSettings>,
    warnings: &mut Vec<String>,
) -> Result<LanguageSettings, ConfigError> {
    let defaults = LanguageSettings::default();
    let inherited = *base.unwrap_or(&defaults);
    let key = |name: &str| format!("{table}.{name}");
    let rules = rules(table, own, inherited.rules)?;
    let algorithm = choice(&key("algorithm"), own.algorithm.as_deref(), inherited.algorithm)?;
    // Eight bands of sixteen bits find every pair at distance 7, four find every pair at distance 3.
    let (bits, guaranteed) = match algorithm {
        Algorithm::Simhash128 => (128, Some(7)),
        Algorithm::Simhash64 => (64, Some(3)),
        Algorithm::Minhash | Algorithm::Combined => (128, None),
    };
    let hamming = match own.hamming {
        Some(hamming) if hamming >= bits => {
            return Err(invalid(&key("hamming"), hamming, "use fewer bits than the SimHash has"));
        }
        Some(hamming) => hamming,
        None if algorithm == inherited.algorithm => inherited.hamming,
        None => guaranteed.unwrap_or(defaults.hamming),
    };
    if let Some(guaranteed) = guaranteed.filter(|&guaranteed| hamming > guaranteed) {
        warnings.push(format!(
            "{} = {hamming}: bands find every pair up to {guaranteed} bits apart, but miss some beyond that",
            key("hamming")
        ));
    }
    let scaled = inherited.cluster_threshold / inherited.rules.threshold * rules.threshold;
    let cluster_threshold = fraction(&key("cluster_threshold"), own.cluster_threshold, scaled)?;
    if cluster_threshold > rules.threshold {
        let fix = "use a number that is not above the threshold";
        return Err(invalid(&key("cluster_threshold"), cluster_threshold, fix));
    }
    let retention = match own.retention.as_deref() {
        None => inherited.retention,
        Some(text) => retention(&key("retention"), text)?,
    };
    Ok(LanguageSettings {
        rules,
        algorithm,
        weights: weights(table, own, inherited.weights)?,
        hamming,
        cluster_threshold,
        retention,
    })
}

/// How a table wants texts to be cut.
pub(super) fn shingling(table: &str, written: &ShingleSettings) -> Result<Shingling, ConfigError> {
    let (shingling, written) = match written {
        ShingleSettings::Words(run) => (Shingling::words(*run), format!("words = {run}")),
        ShingleSettings::Characters(run) => (Shingling::characters(*run), format!("characters = {run}")),
        ShingleSettings::Tokenizer(name) => {
            (Shingling::named_with(name, jieba()), format!("tokenizer = {name:?}"))
        }
    };
    let refused = |error: ShinglingError| {
        invalid(&format!("{table}.shingle"), format!("{{ {written} }}"), error.to_string())
    };
    shingling.map_err(refused)
}

/// Chinese words by dictionary, in builds that have the dictionary.
#[cfg(not(feature = "jieba"))]
fn jieba() -> Option<Arc<dyn Tokenizer>> {
    None
}

/// Chinese words by dictionary.
#[cfg(feature = "jieba")]
fn jieba() -> Option<Arc<dyn Tokenizer>> {
    use samestory_compat::txtfp::{CjkTokenizer, Tokenizer as Original};

    #[derive(Debug)]
    struct Jieba(CjkTokenizer);

    impl Tokenizer for Jieba {
        fn name(&self) -> std::borrow::Cow<'_, str> {
            self.0.name()
        }

        fn for_each_token(&self, text: &str, visit: &mut dyn FnMut(&str)) {
            self.0.for_each_token(text, visit);
        }
    }

    Some(Arc::new(Jieba(CjkTokenizer { hmm: false })))
}

fn rules(table: &str, own: &MatchSettings, base: Rules) -> Result<Rules, ConfigError> {
    let fraction = |name: &str, value, default| fraction(&format!("{table}.{name}"), value, default);
    Ok(Rules {
        threshold: fraction("threshold", own.threshold, base.threshold)?,
        containment_threshold: fraction(
            "containment_threshold",
            own.containment_threshold,
            base.containment_threshold,
        )?,
        min_confidence: fraction("min_confidence", own.min_confidence, base.min_confidence)?,
        min_tokens: own.min_tokens.unwrap_or(base.min_tokens),
        wall_tokens: own.wall_tokens.unwrap_or(base.wall_tokens),
    })
}

/// The inherited weights, with those of `own` in their place.
fn weights(table: &str, own: &MatchSettings, mut weights: Weights) -> Result<Weights, ConfigError> {
    let Some(written) = &own.weights else { return Ok(weights) };
    let fix = "use the output of `make fit`: steps are 0 or more, neutral is 0 to 1";
    if let Some(prior) = written.prior {
        if !prior.is_finite() {
            return Err(invalid(&format!("{table}.weights.prior"), prior, fix));
        }
        weights.prior = prior;
    }
    for (name, curve) in &written.measures {
        let key = format!("{table}.weights.measures.{name}");
        let measure = Measure::ALL.into_iter().find(|measure| measure.as_str() == name);
        let measure = measure.ok_or_else(|| invalid(&key, name, "use a measure of docs/evidence.md"))?;
        // Curves never fall: more overlap must not turn a duplicate into a unique article.
        let rises = curve.steps.iter().all(|step| step.is_finite() && *step >= 0.0);
        if !rises || !(0.0..=1.0).contains(&curve.neutral) {
            return Err(invalid(&key, format!("{:?}", curve.steps), fix));
        }
        weights.steps[measure as usize] = curve.steps;
        weights.neutral[measure as usize] = curve.neutral;
    }
    Ok(weights)
}

/// One of an enum's names; the error lists all of them.
pub(super) fn choice<'a, T: Deserialize<'a>>(
    key: &str,
    written: Option<&'a str>,
    default: T,
) -> Result<T, ConfigError> {
    let Some(text) = written else { return Ok(default) };
    T::deserialize(IntoDeserializer::<Error>::into_deserializer(text)).map_err(|error| {
        let message = error.to_string();
        let expected = message.rsplit_once(", expected ").map_or("", |(_, expected)| expected);
        let names: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        let names = match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => message.clone(),
        };
        invalid(key, text, format!("write {names}"))
    })
}

fn fraction(key: &str, value: Option<f64>, default: f64) -> Result<f64, ConfigError> {
    match value {
        None => Ok(default),
        Some(value) if value > 0.0 && value < 1.0 => Ok(value),
        Some(value) => Err(invalid(key, value, "use a number above 0 and below 1")),
    }
}

/// A duration, or `forever`.
pub(super) fn retention(key: &str, text: &str) -> Result<Retention, ConfigError> {
    match text {
        "forever" => Ok(Retention::Forever),
        text => Ok(Retention::Millis(duration(key, text)?)),
    }
}

/// Milliseconds of a duration such as `90s`, `30m`, `12h`, `7d` or `2w`.
pub(super) fn duration(key: &str, text: &str) -> Result<u64, ConfigError> {
    let refused = || {
        invalid(
            key,
            text,
            "use a whole number and a unit: 90s, 30m, 12h, 7d or 2w (or forever, for a retention)",
        )
    };
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match text[digits.len()..].trim() {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 7 * 86_400_000,
        _ => return Err(refused()),
    };
    let count: u64 = digits.trim().parse().map_err(|_| refused())?;
    // Event times are i64, so a longer duration could not be added to one.
    count.checked_mul(unit).filter(|&millis| millis > 0 && i64::try_from(millis).is_ok()).ok_or_else(refused)
}
