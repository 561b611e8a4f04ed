//! When to try again, and how long to wait before.

use std::time::{Duration, SystemTime};

/// Whether a request that was answered with this status may succeed later.
pub(super) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

/// The wait before attempt `attempt + 1` (counted from 1): exponential from `first` up to `most`, each
/// with a jitter of its own so that workers do not come back together.
pub(crate) fn backoff(attempt: u32, first: Duration, most: Duration) -> Duration {
    let base = first.as_secs_f64() * 2f64.powi(attempt.saturating_sub(1).min(20) as i32);
    Duration::from_secs_f64(base.min(most.as_secs_f64()) * (0.5 + jitter()))
}

/// A number from 0 to 1 that differs from call to call. It needs no quality.
fn jitter() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let state = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (state >> 11) as f64 / (1u64 << 53) as f64
}

/// `Retry-After` as a duration from now: seconds or an HTTP date (RFC 9110, 10.2.3).
pub(super) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    /// More than anybody waits; larger values would not fit a date.
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let value = value.trim();
    let wait = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(YEAR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_retry_after() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(retry_after("120", now), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:07 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("Sat, 06 Nov 1993 08:50:07 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
        assert!(retry_after("18446744073709551615", now).unwrap() < Duration::from_secs(400 * 24 * 3600));
    }

    #[test]
    fn waits_grow_and_stay_bounded() {
        let wait = |attempt| backoff(attempt, Duration::from_millis(300), Duration::from_secs(30));
        assert!(wait(1) >= Duration::from_millis(150) && wait(1) <= Duration::from_millis(450));
        assert!(wait(4) >= Duration::from_millis(1200));
        assert!(wait(40) <= Duration::from_secs(45));
    }
}
