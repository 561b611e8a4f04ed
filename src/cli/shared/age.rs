//! Ages such as `90d`, for `report --older-than`.

use jiff::civil::Date;
use std::str::FromStr;

/// A number of days. A year has 365.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{text}")]
pub(crate) struct Age {
    days: i32,
    text: String,
}

impl Age {
    /// Whether the date at the beginning of `created` is more than this age before `today`. An
    /// unreadable date counts as recent.
    pub(crate) fn is_exceeded(&self, created: &str, today: Date) -> bool {
        let day = created.get(..10).and_then(|day| day.parse::<Date>().ok());
        day.and_then(|day| day.until(today).ok())
            .is_some_and(|span| span.get_days() > self.days)
    }
}

const EXPECTED: &str = "write a number with d, w or y, as in 90d, 26w or 1y";

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Age, String> {
        let factor = match text.as_bytes().last() {
            Some(b'd') => 1,
            Some(b'w') => 7,
            Some(b'y') => 365,
            _ => return Err(EXPECTED.to_owned()),
        };
        let number: i32 = text[..text.len() - 1].parse().map_err(|_| EXPECTED)?;
        let days = number
            .checked_mul(factor)
            .filter(|days| *days > 0)
            .ok_or(EXPECTED)?;
        Ok(Age {
            days,
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_days_weeks_or_years() {
        let today = "2026-11-22".parse().unwrap();
        let age = |text: &str| text.parse::<Age>().unwrap();
        assert!(age("90d").is_exceeded("2026-08-01T00:00:00Z", today));
        assert!(!age("26w").is_exceeded("2026-08-01T00:00:00Z", today));
        assert!(
            age("1y").is_exceeded("2025-11-21", today)
                && !age("1y").is_exceeded("2025-11-23", today)
        );
        assert!(
            !age("1d").is_exceeded("yesterday", today)
                && !age("1d").is_exceeded("2027-01-01", today)
        );
        for bad in ["", "1", "y", "-1d", "0d", "1m", "999999999y", "ä"] {
            assert!(bad.parse::<Age>().is_err(), "{bad}");
        }
    }
}
