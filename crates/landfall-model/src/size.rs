//! Parsing and formatting of sizes in bytes, and of dates.

use super::Failure;
use jiff::Timestamp;
use jiff::civil::Date;

/// Parses `1234`, `1.5G` (powers of 1000) or `2GiB` (powers of 1024) as a number of bytes.
///
/// # Errors
/// Fails if `text` is not a number with an optional unit, or if the size exceeds 2^62 bytes.
pub fn parse_size(text: &str) -> Result<u64, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "'{text}' is not a size: write a number with an optional unit, as in 4700000000, 4.7G \
             (10^9) or 4GiB (2^30)"
        ))
    };
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let unit = unit.trim().to_ascii_lowercase();
    let (prefix, base) = match unit.strip_suffix("ib") {
        Some(prefix) => (prefix, 1024u64),
        None => (unit.strip_suffix('b').unwrap_or(&unit), 1000),
    };
    let power = match prefix {
        "" if base == 1000 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(wrong()),
    };
    let bytes = number * base.pow(power) as f64;
    if bytes.is_finite() && bytes <= 2f64.powi(62) {
        Ok(bytes.round() as u64)
    } else {
        Err(wrong())
    }
}

/// Adds sizes in bytes. The sum of sizes from a foreign lock may exceed 64 bits; then it is
/// `u64::MAX`.
pub fn sum_sizes(sizes: impl IntoIterator<Item = u64>) -> u64 {
    sizes.into_iter().fold(0, u64::saturating_add)
}

/// Formats a number of bytes for people: `812 B`, `1.2 kB`, `83.4 MB`, `60.1 GB`.
pub fn human_size(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 || value >= 99.95 {
        format!("{value:.0} {}", units[unit])
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

/// The variable that sets the clock in tests, as in `2026-11-25T10:00:00Z`.
#[cfg(feature = "testkit")]
const TEST_CLOCK: &str = "LANDFALL_TEST_CLOCK";

/// Returns the time of the machine's clock in whole seconds.
pub fn now() -> Timestamp {
    #[cfg(feature = "testkit")]
    if let Ok(text) = std::env::var(TEST_CLOCK)
        && let Ok(time) = text.parse()
    {
        return time;
    }
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Returns today's date in UTC, so that all machines agree on it.
pub fn today() -> Date {
    now().to_zoned(jiff::tz::TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_and_formatted() {
        assert_eq!(parse_size("4.7G"), Ok(4_700_000_000));
        assert_eq!(parse_size("4GiB"), Ok(4 << 30));
        assert_eq!(parse_size("12"), Ok(12));
        assert_eq!(parse_size("12 kB"), Ok(12_000));
        assert_eq!(parse_size("4194304TiB"), Ok(1 << 62));
        for bad in ["", "x", "4Q", "1..2", "-4", "1e400", "iB", "4194305TiB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!(human_size(999), "999 B");
        assert_eq!(human_size(83_400_000), "83.4 MB");
        assert_eq!(human_size(999_960), "1.0 MB");
    }
}
