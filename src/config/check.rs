//! The checks of single values.

use samestory_engine::engine::compare::Rules;
use samestory_engine::engine::compare::evidence::{Measure, Weights};
use samestory_engine::engine::{Algorithm, LanguageSettings};
use samestory_engine::index::Retention;

use super::{ConfigError, MatchSettings, invalid};

/// What `[match]` or a language's own table says, over what holds where it says nothing.
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
    let algorithm = match own.algorithm.as_deref() {
        None => inherited.algorithm,
        Some("minhash") => Algorithm::Minhash,
        Some("simhash128") => Algorithm::Simhash128,
        Some("simhash64") => Algorithm::Simhash64,
        Some("combined") => Algorithm::Combined,
        Some(other) => {
            return Err(invalid(
                &key("algorithm"),
                other,
                "write minhash, simhash128, simhash64 or combined",
            ));
        }
    };
    // Eight bands of sixteen bits find every pair at distance 7, four find every pair at distance 3.
    let (bits, promised) = match algorithm {
        Algorithm::Simhash128 => (128, Some(7)),
        Algorithm::Simhash64 => (64, Some(3)),
        Algorithm::Minhash | Algorithm::Combined => (128, None),
    };
    let hamming = match own.hamming {
        Some(hamming) if hamming >= bits => {
            return Err(invalid(
                &key("hamming"),
                hamming,
                "give a number of bits below those of the SimHash",
            ));
        }
        Some(hamming) => hamming,
        None if algorithm == inherited.algorithm => inherited.hamming,
        None => promised.unwrap_or(defaults.hamming),
    };
    if let Some(promised) = promised.filter(|&promised| hamming > promised) {
        warnings.push(format!(
            "{} = {hamming}: its bands find every pair up to {promised} bits apart; some beyond that are missed",
            key("hamming")
        ));
    }
    let scaled = inherited.cluster_threshold / inherited.rules.threshold * rules.threshold;
    let cluster_threshold = share(&key("floor"), own.floor, scaled)?;
    if cluster_threshold > rules.threshold {
        return Err(invalid(
            &key("floor"),
            cluster_threshold,
            "give a share that is not above the threshold",
        ));
    }
    let retention = match own.retention.as_deref() {
        None => inherited.retention,
        Some(text) => span(&key("retention"), text)?,
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

fn rules(table: &str, own: &MatchSettings, base: Rules) -> Result<Rules, ConfigError> {
    let share = |name: &str, value, default| share(&format!("{table}.{name}"), value, default);
    Ok(Rules {
        threshold: share("threshold", own.threshold, base.threshold)?,
        containment_threshold: share("coverage", own.coverage, base.containment_threshold)?,
        min_confidence: share("min_confidence", own.min_confidence, base.min_confidence)?,
        min_tokens: own.min_tokens.unwrap_or(base.min_tokens),
        wall_tokens: own.wall_tokens.unwrap_or(base.wall_tokens),
    })
}

/// The weights as written, over those that are inherited.
fn weights(table: &str, own: &MatchSettings, mut weights: Weights) -> Result<Weights, ConfigError> {
    let Some(written) = &own.weights else { return Ok(weights) };
    let fix = "give what `make fit` writes: no step below 0, a neutral share between 0 and 1";
    if let Some(prior) = written.prior {
        if !prior.is_finite() {
            return Err(invalid(&format!("{table}.weights.prior"), prior, fix));
        }
        weights.prior = prior;
    }
    for (name, curve) in &written.measures {
        let key = format!("{table}.weights.measures.{name}");
        let measure = Measure::ALL.into_iter().find(|measure| measure.as_str() == name);
        let measure = measure.ok_or_else(|| invalid(&key, name, "`docs/evidence.md` lists the measures"))?;
        // More overlap must never turn a copy into a stranger.
        let rises = curve.steps.iter().all(|step| step.is_finite() && *step >= 0.0);
        if !rises || !(0.0..=1.0).contains(&curve.neutral) {
            return Err(invalid(&key, format!("{:?}", curve.steps), fix));
        }
        weights.steps[measure as usize] = curve.steps;
        weights.neutral[measure as usize] = curve.neutral;
    }
    Ok(weights)
}

fn share(key: &str, value: Option<f64>, default: f64) -> Result<f64, ConfigError> {
    match value {
        None => Ok(default),
        Some(value) if value > 0.0 && value < 1.0 => Ok(value),
        Some(value) => Err(invalid(key, value, "give a share above 0 and below 1")),
    }
}

/// A duration, or `forever`.
pub(super) fn span(key: &str, text: &str) -> Result<Retention, ConfigError> {
    match text {
        "forever" => Ok(Retention::Forever),
        text => Ok(Retention::Millis(duration(key, text)?)),
    }
}

/// `90s`, `30m`, `12h`, `7d`, `2w`: milliseconds.
pub(super) fn duration(key: &str, text: &str) -> Result<u64, ConfigError> {
    let refused = || {
        invalid(
            key,
            text,
            "give a whole number and a unit: 90s, 30m, 12h, 7d or 2w (or forever, for a retention)",
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
    // Times are signed, so a span of more than half their range means nothing.
    count.checked_mul(unit).filter(|&millis| millis > 0 && i64::try_from(millis).is_ok()).ok_or_else(refused)
}
