//! The weights of the evidence, fitted to judged pairs by `make fit`. Made by a program: change `dev/fit.py`, not this file.

use super::evidence::Weights;

impl Weights {
    /// The weights that come with the program.
    pub const FITTED: Weights = Weights {
        prior: -0.767,
        steps: [
            // contained
            [0.054, 0.134, 0.216, 0.374, 0.520],
            // rare
            [0.723, 0.728, 0.487, 0.326, 0.308],
            // opening
            [0.000, 0.000, 0.000, 0.004, 0.063],
            // numbers
            [0.264, 0.276, 0.316, 0.370, 0.364],
            // numbers-replaced
            [0.724, 0.592, 0.513, 0.525, 0.549],
            // names
            [0.779, 0.791, 0.541, 0.261, 0.271],
            // titles
            [0.254, 0.243, 0.330, 0.392, 0.285],
            // brevity
            [0.438, 0.299, 0.169, 0.151, 0.139],
            // added
            [2.000, 1.500, 1.000, 0.500, 0.500],
            // wall
            [2.000, 2.000, 2.000, 2.000, 2.000],
            // digest
            [2.000, 2.000, 2.000, 2.000, 2.000],
        ],
        neutral: [0.64, 0.32, 0.5, 0.7, 0.0, 0.5, 0.57, 0.0, 0.0, 0.0, 0.0],
    };
}
