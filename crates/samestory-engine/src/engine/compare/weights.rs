//! The weights of the evidence, fitted to judged pairs by `make fit`. Made by a program: change `dev/fit.py`, not this file.

use super::evidence::Weights;

impl Weights {
    /// The weights that come with the program.
    #[allow(clippy::approx_constant, reason = "a fitted step may happen to look like a constant")]
    pub const FITTED: Weights = Weights {
        prior: -2.001,
        steps: [
            // contained
            [0.321, 0.344, 0.375, 0.412, 0.427],
            // rare
            [1.003, 1.022, 1.007, 0.970, 0.940],
            // opening
            [0.440, 0.453, 0.464, 0.466, 0.465],
            // numbers
            [2.040, 6.042, 2.456, 0.885, 0.902],
            // numbers-replaced
            [0.758, 0.710, 0.664, 0.634, 0.617],
            // figures
            [0.405, 0.410, 0.409, 0.405, 0.400],
            // names
            [6.292, 8.304, 0.927, 0.350, 0.355],
            // titles
            [0.324, 0.328, 0.336, 0.322, 0.302],
            // brevity
            [0.364, 0.343, 0.312, 0.290, 0.279],
            // added
            [4.000, 3.000, 2.000, 1.000, 1.000],
            // wall
            [4.000, 4.000, 4.000, 4.000, 4.000],
            // digest
            [4.000, 4.000, 4.000, 4.000, 4.000],
        ],
        neutral: [0.47, 0.35, 0.56, 0.61, 0.0, 0.17, 0.79, 0.6, 0.0, 0.0, 0.0, 0.0],
    };
}
