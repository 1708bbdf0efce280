//! Sizes of a state directory, and their display.

use std::path::Path;

/// Bytes of all files in a directory, RocksDB's info logs included.
pub(super) fn on_disk(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(|data| data.is_file())
        .map(|data| data.len())
        .sum()
}

/// Bytes of SST files and of the WAL.
pub(super) fn live_bytes(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let data = entries.filter(|entry| {
        Path::new(&entry.file_name()).extension().is_some_and(|found| found == "sst" || found == "log")
    });
    data.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

/// A size with a decimal unit.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    let mut size = count as f64;
    let mut unit = None;
    for next in UNITS {
        if size < 999.5 {
            break;
        }
        (size, unit) = (size / 1000.0, Some(next));
    }
    match unit {
        None => format!("{count} bytes"),
        Some(unit) if size < 9.95 => format!("{size:.1} {unit}"),
        Some(unit) => format!("{size:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_have_two_or_three_digits() {
        let sizes = [0, 999, 1000, 9_949, 9_950, 999_499, 999_500, 12_345_678_901].map(bytes);
        let expected = ["0 bytes", "999 bytes", "1.0 kB", "9.9 kB", "10 kB", "999 kB", "1.0 MB", "12 GB"];
        assert_eq!(sizes, expected);
    }
}
