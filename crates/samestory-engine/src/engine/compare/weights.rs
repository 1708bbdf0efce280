//! The weights of the evidence, fitted to judged pairs by `make fit`. Made by a program: change `dev/fit.py`, not this file.

use super::evidence::Weights;

impl Weights {
    /// The weights that come with the program.
    #[allow(clippy::approx_constant, reason = "a fitted step may happen to look like a constant")]
    pub const FITTED: Weights = Weights {
        prior: -2.276,
        steps: [
            // contained
            [0.318, 0.341, 0.372, 0.409, 0.422],
            // rare
            [1.047, 1.066, 1.052, 1.016, 0.985],
            // opening
            [0.427, 0.440, 0.450, 0.450, 0.448],
            // numbers
            [2.022, 6.022, 2.435, 0.862, 0.879],
            // numbers-replaced
            [0.758, 0.708, 0.659, 0.627, 0.609],
            // figures
            [0.390, 0.395, 0.395, 0.392, 0.387],
            // names
            [6.281, 8.292, 0.914, 0.335, 0.339],
            // titles
            [0.330, 0.335, 0.345, 0.334, 0.316],
            // brevity
            [0.330, 0.309, 0.278, 0.258, 0.249],
            // added
            [4.000, 3.000, 2.000, 1.000, 1.000],
            // wall
            [4.000, 4.000, 4.000, 4.000, 4.000],
            // digest
            [4.000, 4.000, 4.000, 4.000, 4.000],
        ],
        neutral: [0.47, 0.33, 0.56, 0.61, 0.0, 0.17, 0.79, 0.6, 0.0, 0.0, 0.0, 0.0],
    };
}
