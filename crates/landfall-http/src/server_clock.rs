//! Compares the machine's clock with those of the servers that answer.

use reqwest::header::{AGE, DATE, HeaderMap};
use std::time::SystemTime;

/// Returns by how many seconds the server's clock is ahead of `now`, negative if it is behind;
/// `None` if the response has no readable date.
pub(super) fn clock_offset(headers: &HeaderMap, now: SystemTime) -> Option<i64> {
    let date = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    // RFC 9111, 5.1: a cache repeats the date of its source, and adds how long ago that was
    let age = headers
        .get(AGE)
        .and_then(|age| age.to_str().ok()?.parse::<u32>().ok());
    let seconds = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_secs()).ok()
    };
    Some(seconds(date)? + i64::from(age.unwrap_or_default()) - seconds(now)?)
}

/// Returns the median of the offsets, or the smaller one of the two in the middle. With three or
/// more servers, one wrong clock cannot be the median.
pub(super) fn median(mut offsets: Vec<i64>) -> Option<i64> {
    offsets.sort_unstable();
    offsets.get(offsets.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};
    use std::time::Duration;

    #[test]
    fn the_offset_is_that_of_the_server_behind_a_cache() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let headers = |pairs: &[(HeaderName, &'static str)]| {
            let pairs = pairs.iter().cloned();
            let pairs = pairs.map(|(name, value)| (name, HeaderValue::from_static(value)));
            pairs.collect::<HeaderMap>()
        };
        for (sent, offset) in [
            (&[(DATE, "Sun, 06 Nov 1994 08:49:37 GMT")][..], Some(0)),
            (&[(DATE, "Sun, 06 Nov 1994 08:49:07 GMT")], Some(-30)),
            (
                &[(DATE, "Sun, 06 Nov 1994 08:49:07 GMT"), (AGE, "40")],
                Some(10),
            ),
            (
                &[(DATE, "Mon, 07 Nov 1994 08:49:37 GMT"), (AGE, "x")],
                Some(86400),
            ),
            (&[(DATE, "today")], None),
            (&[], None),
        ] {
            assert_eq!(clock_offset(&headers(sent), now), offset, "{sent:?}");
        }
    }

    #[test]
    fn the_median_ignores_one_wrong_clock_of_three_and_is_the_smaller_offset_of_two() {
        assert_eq!(median(Vec::new()), None);
        assert_eq!(median(vec![5]), Some(5));
        assert_eq!(median(vec![-999_999, 3]), Some(-999_999));
        assert_eq!(median(vec![3, 999_999]), Some(3));
        assert_eq!(median(vec![1, 999_999, 0]), Some(1));
        assert_eq!(median(vec![-999_999, 0, 1]), Some(0));
    }
}
