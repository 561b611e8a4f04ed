//! The minimum age of a version before `landfall update` chooses it.

use jiff::{SignedDuration, Timestamp};
use std::fmt;
use std::str::FromStr;

const HOUR: i64 = 3600;
/// The longest age, 10 years: a longer one is probably a typing error, and is refused.
const MOST_HOURS: i64 = 24 * 3650;

/// A time in hours, days or weeks, as in `12h`, `7d` or `2w`. `0d` means that no version has to
/// wait.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MinimumAge {
    hours: i64,
    text: String,
}

/// The error for a text that is not a minimum age.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an age: write a number with h, d or w, as in 12h, 7d or 2w (at most 3650d)")]
pub struct MinimumAgeError(String);

impl MinimumAge {
    /// Whether the age is zero, so that no version has to wait.
    pub fn is_zero(&self) -> bool {
        self.hours == 0
    }

    /// Returns the time from which `landfall update` may choose a version that was first seen at
    /// `seen`.
    pub fn end(&self, seen: Timestamp) -> Timestamp {
        seen.saturating_add(SignedDuration::from_secs(self.hours * HOUR))
            .unwrap_or(Timestamp::MAX)
    }
}

impl FromStr for MinimumAge {
    type Err = MinimumAgeError;

    fn from_str(text: &str) -> Result<MinimumAge, MinimumAgeError> {
        let bad = || MinimumAgeError(text.to_owned());
        let factor = match text.as_bytes().last() {
            Some(b'h') => 1,
            Some(b'd') => 24,
            Some(b'w') => 24 * 7,
            _ => return Err(bad()),
        };
        let digits = &text[..text.len() - 1];
        // `parse` would also accept a sign
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let hours = digits
            .parse::<i64>()
            .ok()
            .and_then(|number| number.checked_mul(factor))
            .filter(|hours| *hours <= MOST_HOURS)
            .ok_or_else(bad)?;
        Ok(MinimumAge {
            hours,
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for MinimumAge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_hours_days_or_weeks() {
        let seen: Timestamp = "2026-11-01T10:00:00Z".parse().unwrap();
        for (text, end) in [
            ("0d", "2026-11-01T10:00:00Z"),
            ("12h", "2026-11-01T22:00:00Z"),
            ("7d", "2026-11-08T10:00:00Z"),
            ("2w", "2026-11-15T10:00:00Z"),
        ] {
            let age: MinimumAge = text.parse().unwrap();
            assert_eq!(age.end(seen).to_string(), end, "{text}");
            assert_eq!(
                (age.to_string(), age.is_zero()),
                (text.into(), text == "0d")
            );
        }
        let longest: MinimumAge = "3650d".parse().unwrap();
        assert_eq!(longest.end(Timestamp::MAX), Timestamp::MAX);
        for bad in [
            "",
            "7",
            "d",
            "-1d",
            "+1d",
            "1.5d",
            "3651d",
            "9999999999999999999w",
            "1y",
            "ä",
        ] {
            assert!(bad.parse::<MinimumAge>().is_err(), "{bad}");
        }
    }
}
