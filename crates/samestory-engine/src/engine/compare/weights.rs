//! The weights of the evidence, fitted to judged pairs by `make fit`. Made by a program: change `dev/fit.py`, not this file.

use super::evidence::Weights;

impl Weights {
    /// The weights that come with the program.
    #[allow(clippy::approx_constant, reason = "a fitted step may happen to look like a constant")]
    pub const FITTED: Weights = Weights {
        prior: -1.934,
        steps: [
            // contained
            [0.265, 0.284, 0.310, 0.341, 0.352],
            // rare
            [0.867, 0.882, 0.868, 0.834, 0.808],
            // opening
            [0.371, 0.384, 0.395, 0.398, 0.401],
            // numbers
            [1.783, 5.186, 2.143, 0.813, 0.830],
            // numbers-replaced
            [0.596, 0.558, 0.522, 0.498, 0.485],
            // names
            [5.331, 7.040, 0.768, 0.275, 0.277],
            // titles
            [0.299, 0.306, 0.318, 0.315, 0.301],
            // brevity
            [0.287, 0.272, 0.250, 0.235, 0.227],
            // added
            [3.400, 2.550, 1.700, 0.850, 0.850],
            // wall
            [3.400, 3.400, 3.400, 3.400, 3.400],
            // digest
            [3.400, 3.400, 3.400, 3.400, 3.400],
        ],
        neutral: [0.47, 0.3, 0.56, 0.61, 0.0, 0.79, 0.6, 0.0, 0.0, 0.0, 0.0],
    };
}
