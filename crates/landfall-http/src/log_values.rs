//! Values in the form in which they are logged. URLs are logged by
//! [`redacted_url`](super::redacted_url) alone.

use std::time::Duration;

/// A duration in whole milliseconds.
pub(super) fn rounded(duration: Duration) -> Duration {
    Duration::from_millis(duration.as_millis() as u64)
}
