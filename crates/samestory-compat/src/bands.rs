//! Bands and rows, chosen as other systems choose them.

/// The (bands, rows) with `bands · rows = lanes` that `txtfp` and `datasketch` choose for a threshold: the least
/// sum of false positives below it and false negatives above, each a trapezoid sum over 200 steps.
pub fn for_threshold(threshold: f64, lanes: usize) -> Option<(usize, usize)> {
    let area = |from: f64, to: f64, error: &dyn Fn(f64) -> f64| {
        const STEPS: u32 = 200;
        let step = (to - from) / f64::from(STEPS);
        let inner: f64 = (1..STEPS).map(|n| error(from + f64::from(n) * step)).sum();
        (inner + (error(from) + error(to)) / 2.0) * step
    };
    factor_pairs(lanes)
        .map(|(bands, rows)| {
            let found = |s: f64| 1.0 - (1.0 - s.powi(rows as i32)).powi(bands as i32);
            let wrong = area(0.0, threshold, &found) + area(threshold, 1.0, &|s| 1.0 - found(s));
            (wrong, (bands, rows))
        })
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, pair)| pair)
}

/// The (bands, rows) with `bands · rows = lanes` whose curve's midpoint `(1/bands)^(1/rows)` lies nearest to the
/// threshold.
pub fn optimal_lsh_params(lanes: usize, threshold: f64) -> Option<(usize, usize)> {
    factor_pairs(lanes)
        .map(|(bands, rows)| {
            let midpoint = (1.0 / bands as f64).powf(1.0 / rows as f64);
            ((midpoint - threshold).abs(), (bands, rows))
        })
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, pair)| pair)
}

fn factor_pairs(lanes: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..=lanes).filter(move |bands| lanes.is_multiple_of(*bands)).map(move |bands| (bands, lanes / bands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_choices_come_out() {
        assert_eq!(for_threshold(0.7, 128), Some((16, 8)));
        assert_eq!(optimal_lsh_params(128, 0.5), Some((32, 4)));
    }
}
