//! `samestory bands`: shows the bands and rows that a threshold and a recall lead to, their collision curve and their cost.

use std::io::{self, Write};

use samestory::config::{Config, ConfigError};
use samestory_engine::Options;
use samestory_engine::engine::Engine;
use samestory_engine::fingerprint::LANES;
use samestory_engine::lsh::Banding;
use samestory_engine::model::Lang;

use super::Failure;
use samestory::terminal::style::Style;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  samestory bands                                  the bands of the settings
  samestory bands --threshold 0.7 --recall 0.99
  samestory bands --bands 32 --rows 4              the recall and cost of this choice")]
pub(super) struct Args {
    /// Similarity (Jaccard) at which pairs must be found [default: match.threshold]
    #[arg(long, short)]
    threshold: Option<f64>,
    /// Fraction of those pairs that bands must find; sampled shingles find most of the others
    #[arg(long, short, default_value_t = Options::BAND_RECALL)]
    recall: f64,
    /// Lanes of the MinHash signature
    #[arg(long, default_value_t = LANES as u16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    lanes: u16,
    /// Show this number of bands instead of the best one
    #[arg(long, requires = "rows")]
    bands: Option<u16>,
    /// Show this number of rows instead of the best one
    #[arg(long, requires = "bands")]
    rows: Option<u16>,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let threshold = args.threshold.unwrap_or(config.rules(Lang::UND).threshold);
    let lanes = usize::from(args.lanes);
    let best = Banding::for_recall(threshold, args.recall, lanes);
    let banding = match (args.bands, args.rows) {
        (Some(bands), Some(rows)) => Banding::new(bands, rows, lanes),
        _ => best,
    }
    .map_err(ConfigError::from)?;
    let mut out = io::stdout().lock();
    let paint = Style::for_stdout();
    let title = format!("{} bands × {} rows", banding.bands(), banding.rows());
    writeln!(out, "{}, {} of {} lanes\n", paint.bold(&title), banding.bands() * banding.rows(), lanes)?;
    plot(&mut out, banding, threshold, paint)?;
    let found = |similarity: f64| format!("{:.2} %", 100.0 * banding.collision(similarity));
    writeln!(out)?;
    writeln!(out, "  found at {threshold}: {} (asked for {:.2} %)", found(threshold), 100.0 * args.recall)?;
    writeln!(out, "  false candidates per article, in a store of a million: {}", count(banding.load()))?;
    writeln!(
        out,
        "  keys to look up and write per article: {} bands, and {} sampled shingles that find most pairs that bands miss",
        banding.bands(),
        Engine::POSTED_SAMPLES
    )?;
    Ok(())
}

fn count(load: f64) -> String {
    if load >= 10.0 { format!("about {load:.0}") } else { format!("about {load:.1}") }
}

/// Draws the collision curve: similarity on the x axis, probability on the y axis, and a mark at the threshold.
fn plot(out: &mut impl Write, banding: Banding, threshold: f64, paint: Style) -> io::Result<()> {
    const WIDTH: u32 = 61;
    const HEIGHT: u32 = 10;
    for line in (0..HEIGHT).rev() {
        let bottom = f64::from(line) / f64::from(HEIGHT);
        let label = match line + 1 {
            HEIGHT => "100 %",
            5 => " 50 %",
            _ => "",
        };
        let bars: String = (0..WIDTH)
            .map(|column| {
                let height = banding.collision(f64::from(column) / f64::from(WIDTH - 1));
                let eighths = ((height - bottom) * f64::from(HEIGHT) * 8.0).round().clamp(0.0, 8.0) as usize;
                [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][eighths]
            })
            .collect();
        writeln!(out, "  {label:>5} │{}", bars.trim_end())?;
    }
    writeln!(out, "        └{}", "─".repeat(WIDTH as usize))?;
    let mark = (threshold * f64::from(WIDTH - 1)).round() as usize;
    writeln!(out, "         {}{}", " ".repeat(mark), paint.bold("▲"))?;
    writeln!(out, "         0{:>30}{:>30}", "0.5", "1  similarity")
}
