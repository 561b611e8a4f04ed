//! The current date, the same for all machines.

use jiff::civil::Date;

/// Returns today's date in UTC, so that all machines agree on it.
pub fn today() -> Date {
    jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date()
}
