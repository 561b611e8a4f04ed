//! The day on which a command runs.

use jiff::civil::Date;

/// Today in UTC, so that all machines agree; shown as `YYYY-MM-DD`.
pub fn today() -> Date {
    jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date()
}
