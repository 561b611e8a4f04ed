//! The current time and date in UTC.

use jiff::Timestamp;
use jiff::civil::Date;

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
