//! The rate limit of a host, as in the headers that Docker Hub sends with manifests:
//! `ratelimit-limit: 100;w=21600`, `ratelimit-remaining` and `docker-ratelimit-source`.

use super::retry::bounded;
use reqwest::header::HeaderMap;
use std::fmt;
use std::time::Duration;

/// The number of pulls that a host allows in a window of time, and the number that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RateLimit {
    limit: u64,
    remaining: u64,
    window: Option<Duration>,
    /// The address or account whose pulls are counted.
    source: Option<String>,
}

impl RateLimit {
    /// Reads the rate limit from the headers of a response.
    pub(super) fn read(headers: &HeaderMap) -> Option<RateLimit> {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        let (limit, limit_window) = split(text("ratelimit-limit")?)?;
        let (remaining, window) = split(text("ratelimit-remaining")?)?;
        // either header may contain the window
        let window = window.or(limit_window);
        let source = text("docker-ratelimit-source").filter(|source| !source.is_empty());
        Some(RateLimit {
            limit,
            remaining,
            window,
            source: source.map(str::to_owned),
        })
    }

    /// Returns the longest time until a pull is allowed again, if none is left. The headers do not
    /// say when the window began.
    pub(super) fn wait_if_spent(&self) -> Option<Duration> {
        self.window.filter(|_| self.remaining == 0)
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} pulls left", self.remaining, self.limit)?;
        if let Some(window) = self.window {
            write!(f, " in {}", human_span(window))?;
        }
        if let Some(source) = &self.source {
            write!(f, ", counted for {source}")?;
        }
        Ok(())
    }
}

/// Splits `NUMBER;w=SECONDS` into the number and the window.
fn split(value: &str) -> Option<(u64, Option<Duration>)> {
    // a server may send any number, so the window is bounded
    let mut words = value.split(';').map(str::trim);
    let number = words.next()?.parse().ok()?;
    let window = words.find_map(|word| word.strip_prefix("w=")?.parse().ok());
    Some((number, window.map(Duration::from_secs).map(bounded)))
}

/// Formats a duration in its largest whole unit: `2 h`, `90 min`, `45 s`.
pub(super) fn human_span(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds >= 3600 && seconds.is_multiple_of(3600) => {
            format!("{} h", seconds / 3600)
        }
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_in(pairs: &[(&'static str, &str)]) -> Option<RateLimit> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        RateLimit::read(&headers)
    }

    #[test]
    fn the_headers_of_docker_hub_are_parsed() {
        let some = [
            ("ratelimit-limit", "100;w=21600"),
            ("ratelimit-remaining", "76;w=21600"),
            ("docker-ratelimit-source", "192.0.2.1"),
        ];
        let found = limit_in(&some).unwrap();
        assert_eq!(
            found.to_string(),
            "76 of 100 pulls left in 6 h, counted for 192.0.2.1"
        );
        assert_eq!(found.wait_if_spent(), None);
        let none = limit_in(&[
            ("ratelimit-limit", "100;w=21600"),
            ("ratelimit-remaining", "0;w=21600"),
        ]);
        assert_eq!(none.unwrap().wait_if_spent(), Some(Duration::from_hours(6)));
        let huge = [
            ("ratelimit-limit", "1;w=18446744073709551615"),
            ("ratelimit-remaining", "0"),
        ];
        assert!(limit_in(&huge).unwrap().wait_if_spent().unwrap() < Duration::from_hours(400 * 24));
        assert_eq!(
            limit_in(&[("ratelimit-limit", "many"), ("ratelimit-remaining", "0")]),
            None
        );
        assert_eq!(limit_in(&[]), None);
    }
}
