//! The weights of the evidence, fitted to judged pairs by `make fit`. Made by a program: change `dev/fit.py`, not this file.

use super::evidence::Weights;

impl Weights {
    /// The weights that come with the program.
    #[allow(clippy::approx_constant, reason = "a fitted step may happen to look like a constant")]
    pub const FITTED: Weights = Weights {
        prior: -1.887,
        steps: [
            // contained
            [0.288, 0.309, 0.337, 0.372, 0.386],
            // rare
            [0.955, 0.975, 0.963, 0.928, 0.900],
            // opening
            [0.437, 0.449, 0.455, 0.455, 0.454],
            // numbers
            [2.038, 6.040, 2.454, 0.883, 0.900],
            // numbers-replaced
            [0.738, 0.690, 0.647, 0.620, 0.604],
            // figures
            [0.400, 0.405, 0.405, 0.401, 0.397],
            // names
            [6.005, 10.005, 4.005, 1.011, 0.617],
            // titles
            [0.286, 0.288, 0.291, 0.271, 0.248],
            // brevity
            [0.346, 0.330, 0.301, 0.280, 0.269],
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
