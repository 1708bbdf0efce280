//! The weights of the evidence, fitted to judged pairs by `make fit`. Made by a program: change `dev/fit.py`, not this file.

use super::evidence::Weights;

impl Weights {
    /// The weights that come with the program.
    #[allow(clippy::approx_constant, reason = "a fitted step may happen to look like a constant")]
    pub const FITTED: Weights = Weights {
        prior: -2.249,
        steps: [
            // contained
            [0.321, 0.343, 0.375, 0.412, 0.427],
            // rare
            [1.004, 1.023, 1.008, 0.971, 0.941],
            // opening
            [0.440, 0.454, 0.464, 0.466, 0.465],
            // numbers
            [2.038, 6.040, 2.454, 0.883, 0.900],
            // numbers-replaced
            [0.756, 0.708, 0.662, 0.631, 0.615],
            // figures
            [0.403, 0.409, 0.408, 0.404, 0.399],
            // names
            [6.291, 8.302, 0.925, 0.348, 0.353],
            // titles
            [0.323, 0.328, 0.335, 0.322, 0.301],
            // brevity
            [0.364, 0.343, 0.312, 0.290, 0.279],
            // added
            [4.000, 3.000, 2.000, 1.000, 1.000],
            // wall
            [4.000, 4.000, 4.000, 4.000, 4.000],
            // digest
            [4.000, 4.000, 4.000, 4.000, 4.000],
        ],
        neutral: [0.47, 0.34, 0.56, 0.61, 0.0, 0.17, 0.79, 0.6, 0.0, 0.0, 0.0, 0.0],
    };
}
