//! A text as a vector, and how close two of them are.

use serde::{Deserialize, Serialize};

use crate::Error;

/// A vector that stands for the meaning of a text, and the model that it came from. Its numbers are finite and there is at
/// least one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Embedding {
    vector: Vec<f32>,
    model_id: Option<String>,
}

/// An embedding as it is read, before it is checked.
#[derive(Deserialize)]
struct Written {
    vector: Vec<f32>,
    model_id: Option<String>,
}

impl TryFrom<Written> for Embedding {
    type Error = Error;

    fn try_from(written: Written) -> Result<Embedding, Error> {
        Ok(Embedding { model_id: written.model_id, ..Embedding::new(written.vector)? })
    }
}

impl Embedding {
    /// An embedding of an unknown model. It can be compared with those of any model.
    ///
    /// # Errors
    /// [`Error::EmptyEmbedding`], [`Error::NotFinite`].
    pub fn new(vector: Vec<f32>) -> Result<Embedding, Error> {
        if vector.is_empty() {
            return Err(Error::EmptyEmbedding);
        }
        match vector.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(Error::NotFinite { at }),
            None => Ok(Embedding { vector, model_id: None }),
        }
    }

    /// An embedding of a named model. It cannot be compared with those of another.
    ///
    /// # Errors
    /// As [`Embedding::new`].
    pub fn with_model(vector: Vec<f32>, model_id: impl Into<String>) -> Result<Embedding, Error> {
        Ok(Embedding { model_id: Some(model_id.into()), ..Embedding::new(vector)? })
    }

    /// The numbers.
    pub fn vector(&self) -> &[f32] {
        &self.vector
    }

    /// The model, if it is known.
    pub fn model_id(&self) -> Option<&str> {
        self.model_id.as_deref()
    }

    /// How many numbers there are.
    pub fn dim(&self) -> usize {
        self.vector.len()
    }

    /// The length of the vector.
    pub fn l2_norm(&self) -> f32 {
        self.vector.iter().map(|value| value * value).sum::<f32>().sqrt()
    }

    /// Scales the vector to length one. A vector of zeros stays as it is.
    pub fn normalize(&mut self) {
        normalize(&mut self.vector);
    }

    /// The dot product: the similarity, if both were normalised.
    ///
    /// # Errors
    /// [`Error::ModelMismatch`], [`Error::DimensionMismatch`].
    pub fn dot(&self, other: &Embedding) -> Result<f32, Error> {
        self.check(other)?;
        Ok(self.vector.iter().zip(&other.vector).map(|(a, b)| a * b).sum())
    }

    fn check(&self, other: &Embedding) -> Result<(), Error> {
        if let (Some(a), Some(b)) = (&self.model_id, &other.model_id)
            && a != b
        {
            return Err(Error::ModelMismatch { a: a.clone(), b: b.clone() });
        }
        if self.dim() != other.dim() {
            return Err(Error::DimensionMismatch { a: self.dim(), b: other.dim() });
        }
        Ok(())
    }
}

/// Scales a vector to length one; one whose length is zero or beyond `f32` stays as it is.
pub(crate) fn normalize(vector: &mut [f32]) {
    let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if norm > 0.0 && norm.is_finite() {
        for value in vector {
            *value /= norm;
        }
    }
}

/// The cosine of the angle between two embeddings: 1 in the same direction, 0 at right angles, −1 in opposite ones. They need
/// not be normalised. As everywhere with `f32`, the last digit may lie beyond one.
///
/// # Errors
/// [`Error::ModelMismatch`], [`Error::DimensionMismatch`], [`Error::ZeroNorm`].
pub fn semantic_similarity(a: &Embedding, b: &Embedding) -> Result<f32, Error> {
    a.check(b)?;
    let (mut dot, mut aa, mut bb) = (0.0_f32, 0.0_f32, 0.0_f32);
    for (a, b) in a.vector.iter().zip(&b.vector) {
        dot += a * b;
        aa += a * a;
        bb += b * b;
    }
    let norms = aa.sqrt() * bb.sqrt();
    if norms.is_normal() && dot.is_finite() {
        return Ok(dot / norms);
    }
    wide_similarity(a, b)
}

/// The same for values whose squares `f32` cannot hold.
fn wide_similarity(a: &Embedding, b: &Embedding) -> Result<f32, Error> {
    let wide = |x: &Embedding, y: &Embedding| -> f64 {
        x.vector.iter().zip(&y.vector).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    let norms = wide(a, a).sqrt() * wide(b, b).sqrt();
    if norms == 0.0 {
        return Err(Error::ZeroNorm);
    }
    Ok((wide(a, b) / norms) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vector: &[f32]) -> Embedding {
        Embedding::new(vector.to_vec()).unwrap()
    }

    #[test]
    fn an_embedding_of_nothing_or_with_nan_or_infinity_is_refused() {
        assert!(matches!(Embedding::new(vec![]), Err(Error::EmptyEmbedding)));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let refused = Embedding::with_model(vec![1.0, bad, bad], "m");
            assert!(matches!(refused, Err(Error::NotFinite { at: 1 })), "{refused:?}");
        }
        for json in [r#"{"vector":[],"model_id":null}"#, r#"{"vector":[1e60],"model_id":null}"#] {
            assert!(serde_json::from_str::<Embedding>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn an_embedding_survives_json() {
        let written = Embedding::with_model(vec![0.1, -2.5e-8, 3.0], "m").unwrap();
        let json = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<Embedding>(&json).unwrap(), written);
    }

    #[test]
    fn the_similarity_is_the_cosine_whatever_the_lengths() {
        let similar = |a: &[f32], b: &[f32]| semantic_similarity(&of(a), &of(b)).unwrap();
        assert_eq!(similar(&[1.0, 0.0], &[0.0, 5.0]), 0.0);
        assert_eq!(similar(&[2.0, 0.0], &[7.0, 0.0]), 1.0);
        assert_eq!(similar(&[2.0, 0.0], &[-7.0, 0.0]), -1.0);
        assert_eq!(similar(&[3.0, 4.0], &[4.0, 3.0]), 0.96);
        // Added one by one in `f32`, as the original does. In `f64` the bits would be 0x3eca5f3c.
        let fraction = |n: u16, of: u16, less: f32| f32::from(n % of) / f32::from(of) - less;
        let (a, b): (Vec<f32>, Vec<f32>) =
            (0..384).map(|n| (fraction(n * 37, 101, 0.3), fraction(n * 41 + 7, 103, 0.2))).unzip();
        assert_eq!(similar(&a, &b).to_bits(), 0x3eca5f3a);
    }

    #[test]
    fn values_whose_squares_are_beyond_f32_are_compared_too() {
        for scale in [1e30, 1e-30] {
            let found =
                semantic_similarity(&of(&[3.0 * scale, 4.0 * scale]), &of(&[4.0 * scale, 3.0 * scale]));
            assert!((found.unwrap() - 0.96).abs() < 1e-6, "{scale}");
        }
    }

    #[test]
    fn two_models_two_lengths_and_zeros_are_refused_by_name() {
        let of_model = |model: &str| Embedding::with_model(vec![1.0, 0.0], model).unwrap();
        let refused = semantic_similarity(&of_model("minilm"), &of_model("e5")).unwrap_err();
        assert_eq!(refused.to_string(), "embeddings of different models cannot be compared: minilm and e5");
        assert!(matches!(of_model("minilm").dot(&of_model("e5")), Err(Error::ModelMismatch { .. })));
        assert_eq!(semantic_similarity(&of_model("minilm"), &of(&[1.0, 0.0])).unwrap(), 1.0);
        let refused = semantic_similarity(&of(&[1.0]), &of(&[1.0, 0.0]));
        assert!(matches!(refused, Err(Error::DimensionMismatch { a: 1, b: 2 })));
        for (a, b) in [([0.0, 0.0], [1.0, 0.0]), ([1.0, 0.0], [0.0, -0.0])] {
            assert!(matches!(semantic_similarity(&of(&a), &of(&b)), Err(Error::ZeroNorm)));
        }
    }

    #[test]
    fn a_normalised_embedding_has_length_one_and_zeros_stay() {
        let mut long = of(&[3.0, 4.0]);
        assert_eq!(long.l2_norm(), 5.0);
        long.normalize();
        assert_eq!(long.vector(), [0.6, 0.8]);
        assert_eq!(long.dot(&of(&[1.0, 1.0])).unwrap(), 0.6 + 0.8);
        let mut zeros = of(&[0.0, 0.0]);
        zeros.normalize();
        assert_eq!(zeros.vector(), [0.0, 0.0]);
    }
}
