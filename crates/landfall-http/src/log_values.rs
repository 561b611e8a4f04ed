//! Formats values for the log. URLs are formatted by [`redacted_url`](super::redacted_url).

use std::time::Duration;

/// Rounds a duration down to whole milliseconds: nanoseconds make a log hard to read.
pub(super) fn rounded(duration: Duration) -> Duration {
    Duration::from_millis(duration.as_millis() as u64)
}
