//! The weights of the evidence, fitted to judged pairs by `make fit`. Made by a program: change `dev/fit.py`, not this file.

use super::evidence::Weights;

impl Weights {
    /// The weights that come with the program.
    #[allow(clippy::approx_constant, reason = "a fitted step may happen to look like a constant")]
    pub const FITTED: Weights = Weights {
        prior: -1.791,
        steps: [
            // contained
            [0.252, 0.270, 0.295, 0.326, 0.338],
            // rare
            [0.833, 0.847, 0.832, 0.798, 0.772],
            // opening
            [0.374, 0.386, 0.394, 0.396, 0.398],
            // numbers
            [1.737, 5.138, 2.090, 0.757, 0.773],
            // numbers-replaced
            [0.626, 0.586, 0.548, 0.522, 0.508],
            // figures
            [0.348, 0.353, 0.353, 0.350, 0.346],
            // names
            [5.338, 7.048, 0.776, 0.285, 0.289],
            // titles
            [0.282, 0.287, 0.296, 0.289, 0.273],
            // brevity
            [0.339, 0.324, 0.300, 0.283, 0.272],
            // added
            [3.400, 2.550, 1.700, 0.850, 0.850],
            // wall
            [3.400, 3.400, 3.400, 3.400, 3.400],
            // digest
            [3.400, 3.400, 3.400, 3.400, 3.400],
        ],
        neutral: [0.47, 0.33, 0.56, 0.61, 0.0, 0.17, 0.79, 0.6, 0.0, 0.0, 0.0, 0.0],
    };
}
