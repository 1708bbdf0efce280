//! The weights of the evidence, fitted to judged pairs by `make fit`. Made by a program: change `dev/fit.py`, not this file.

use super::evidence::Weights;

impl Weights {
    /// The weights that come with the program.
    pub const FITTED: Weights = Weights {
        prior: -1.633,
        steps: [
            // contained
            [0.192, 0.206, 0.225, 0.246, 0.254],
            // rare
            [0.606, 0.618, 0.611, 0.589, 0.570],
            // opening
            [0.268, 0.277, 0.285, 0.287, 0.289],
            // numbers
            [1.283, 3.730, 1.542, 0.586, 0.599],
            // numbers-replaced
            [0.430, 0.402, 0.376, 0.358, 0.349],
            // names
            [3.833, 5.062, 0.552, 0.198, 0.199],
            // titles
            [0.215, 0.220, 0.228, 0.226, 0.216],
            // brevity
            [0.210, 0.199, 0.183, 0.172, 0.166],
            // added
            [2.000, 1.500, 1.000, 0.500, 0.500],
            // wall
            [2.000, 2.000, 2.000, 2.000, 2.000],
            // digest
            [2.000, 2.000, 2.000, 2.000, 2.000],
        ],
        neutral: [0.47, 0.22, 0.56, 0.61, 0.0, 0.79, 0.6, 0.0, 0.0, 0.0, 0.0],
    };
}
