//! From one vector per token to one vector per text.

use crate::Error;
use crate::embedding::normalize;

/// How the hidden states of a text's tokens become one vector. The model's authors say which one it was trained with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// The first token's state, scaled to length one (BGE, Arctic, mxbai).
    Cls,
    /// The mean over the tokens of the text, scaled to length one (MiniLM, E5, GTE, Nomic).
    Mean,
    /// The same mean at its own length.
    MeanNoNorm,
    /// The largest value of each dimension, scaled to length one.
    Max,
}

impl Pooling {
    /// True if the vector is scaled to length one.
    pub fn normalizes(self) -> bool {
        self != Pooling::MeanNoNorm
    }

    /// Pools hidden states, one vector of `dimension` numbers after the other. `mask` has one number per token; tokens with
    /// zero are left out, except by [`Pooling::Cls`]. Without any token the result is zeros.
    ///
    /// # Errors
    /// [`Error::HiddenShape`]: the states are not whole vectors, or the mask has another length.
    pub fn apply(self, hidden: &[f32], dimension: usize, mask: Option<&[i64]>) -> Result<Vec<f32>, Error> {
        let tokens = hidden.len().checked_div(dimension).unwrap_or(0);
        let masked = mask.map_or(tokens, <[i64]>::len);
        if tokens == 0 || tokens * dimension != hidden.len() || masked != tokens {
            return Err(Error::HiddenShape { values: hidden.len(), dimension, mask: masked });
        }
        let kept = || {
            let states = hidden.chunks_exact(dimension).enumerate();
            states.filter(|(token, _)| mask.is_none_or(|mask| mask[*token] != 0)).map(|(_, state)| state)
        };
        let mut pooled = match self {
            Pooling::Cls => hidden[..dimension].to_vec(),
            Pooling::Mean | Pooling::MeanNoNorm => mean(kept(), dimension),
            Pooling::Max => largest(kept(), dimension),
        };
        if self.normalizes() {
            normalize(&mut pooled);
        }
        Ok(pooled)
    }
}

fn mean<'a>(states: impl Iterator<Item = &'a [f32]>, dimension: usize) -> Vec<f32> {
    let (mut sum, mut count) = (vec![0.0_f32; dimension], 0_u32);
    for state in states {
        count += 1;
        for (sum, value) in sum.iter_mut().zip(state) {
            *sum += value;
        }
    }
    if count > 0 {
        let share = 1.0 / count as f32;
        sum.iter_mut().for_each(|value| *value *= share);
    }
    sum
}

fn largest<'a>(mut states: impl Iterator<Item = &'a [f32]>, dimension: usize) -> Vec<f32> {
    let Some(first) = states.next() else { return vec![0.0; dimension] };
    let mut largest = first.to_vec();
    for state in states {
        for (largest, value) in largest.iter_mut().zip(state) {
            *largest = largest.max(*value);
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three tokens of two dimensions; the last is padding.
    const HIDDEN: [f32; 6] = [3.0, 4.0, 1.0, -8.0, 100.0, 100.0];
    const MASK: [i64; 3] = [1, 1, 0];

    fn pooled(pooling: Pooling) -> Vec<f32> {
        pooling.apply(&HIDDEN, 2, Some(&MASK)).unwrap()
    }

    #[test]
    fn each_pooling_has_its_known_value_and_leaves_padding_out() {
        assert_eq!(pooled(Pooling::Cls), [0.6, 0.8]);
        assert_eq!(pooled(Pooling::MeanNoNorm), [2.0, -2.0]);
        let root = 2.0_f32 / 8.0_f32.sqrt();
        assert_eq!(pooled(Pooling::Mean), [root, -root]);
        assert_eq!(pooled(Pooling::Max), [0.6, 0.8]);
        assert_eq!(Pooling::MeanNoNorm.apply(&HIDDEN, 2, None).unwrap(), [104.0 / 3.0, 32.0]);
    }

    #[test]
    fn the_first_token_counts_even_when_it_is_masked() {
        assert_eq!(Pooling::Cls.apply(&HIDDEN, 2, Some(&[0, 1, 1])).unwrap(), [0.6, 0.8]);
    }

    #[test]
    fn values_below_zero_have_a_largest_one() {
        let pooled = Pooling::Max.apply(&[-3.0, -5.0, -6.0, -4.0], 2, None).unwrap();
        assert_eq!(pooled, [-0.6, -0.8]);
    }

    #[test]
    fn without_any_token_the_result_is_zeros() {
        for pooling in [Pooling::Mean, Pooling::MeanNoNorm, Pooling::Max] {
            assert_eq!(pooling.apply(&HIDDEN, 2, Some(&[0, 0, 0])).unwrap(), [0.0, 0.0]);
        }
    }

    #[test]
    fn states_that_are_not_whole_vectors_are_refused() {
        for (hidden, dimension, mask) in [
            (&HIDDEN[..5], 2, None),
            (&HIDDEN[..0], 2, None),
            (&HIDDEN, 0, None),
            (&HIDDEN, 2, Some(&MASK[..2])),
        ] {
            let refused = Pooling::Mean.apply(hidden, dimension, mask);
            assert!(matches!(refused, Err(Error::HiddenShape { .. })), "{refused:?}");
        }
    }
}
