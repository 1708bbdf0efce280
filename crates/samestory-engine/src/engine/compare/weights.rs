//! The weights of the evidence, fitted to judged pairs by `make fit`. Made by a program: change `dev/fit.py`, not this file.

use super::evidence::Weights;

impl Weights {
    /// The weights that come with the program.
    #[allow(clippy::approx_constant, reason = "a fitted step may happen to look like a constant")]
    pub const FITTED: Weights = Weights {
        prior: -1.940,
        steps: [
            // contained
            [0.344, 0.367, 0.398, 0.433, 0.445],
            // rare
            [0.946, 0.967, 0.960, 0.933, 0.907],
            // opening
            [0.448, 0.463, 0.474, 0.474, 0.471],
            // numbers
            [2.030, 6.031, 2.444, 0.872, 0.889],
            // numbers-replaced
            [0.786, 0.736, 0.687, 0.654, 0.636],
            // figures
            [0.403, 0.409, 0.408, 0.404, 0.399],
            // names
            [6.328, 8.342, 0.967, 0.389, 0.391],
            // titles
            [0.350, 0.356, 0.366, 0.354, 0.335],
            // brevity
            [0.355, 0.333, 0.300, 0.279, 0.268],
            // added
            [4.000, 3.000, 2.000, 1.000, 1.000],
            // wall
            [4.000, 4.000, 4.000, 4.000, 4.000],
            // digest
            [4.000, 4.000, 4.000, 4.000, 4.000],
        ],
        neutral: [0.47, 0.36, 0.56, 0.61, 0.0, 0.17, 0.79, 0.6, 0.0, 0.0, 0.0, 0.0],
    };
}
