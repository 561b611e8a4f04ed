//! The rate limit of a host: `ratelimit-limit: 100;w=21600`, `ratelimit-remaining` and
//! `docker-ratelimit-source`, as Docker Hub sends them with manifests.

use super::retry::bounded;
use reqwest::header::HeaderMap;
use std::time::Duration;

/// How many pulls a host allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RateLimit {
    limit: u64,
    remaining: u64,
    window: Option<Duration>,
    /// The address or account that it counts.
    source: Option<String>,
}

impl RateLimit {
    /// The rate limit in an answer's headers.
    pub(super) fn read(headers: &HeaderMap) -> Option<RateLimit> {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        let (limit, _) = split(text("ratelimit-limit")?)?;
        let (remaining, window) = split(text("ratelimit-remaining")?)?;
        let window = window.or_else(|| split(text("ratelimit-limit")?)?.1);
        let source = text("docker-ratelimit-source").filter(|source| !source.is_empty());
        Some(RateLimit {
            limit,
            remaining,
            window,
            source: source.map(str::to_owned),
        })
    }

    /// Where no pull is left: the longest time until there is one again.
    pub(super) fn spent(&self) -> Option<Duration> {
        self.window.filter(|_| self.remaining == 0)
    }

    /// For people: what is left of what, in how long, counted for whom.
    pub(super) fn shown(&self) -> String {
        let window = self
            .window
            .map(|window| format!(" in {}", span(window)))
            .unwrap_or_default();
        let source = self
            .source
            .as_ref()
            .map(|source| format!(", counted for {source}"))
            .unwrap_or_default();
        format!(
            "{} of {} pulls left{window}{source}",
            self.remaining, self.limit
        )
    }
}

fn split(value: &str) -> Option<(u64, Option<Duration>)> {
    let mut words = value.split(';').map(str::trim);
    let number = words.next()?.parse().ok()?;
    let window = words.find_map(|word| word.strip_prefix("w=")?.parse().ok());
    Some((number, window.map(Duration::from_secs).map(bounded)))
}

/// A span of time in its largest whole unit.
pub(super) fn span(time: Duration) -> String {
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
    fn the_headers_of_docker_hub() {
        let some = [
            ("ratelimit-limit", "100;w=21600"),
            ("ratelimit-remaining", "76;w=21600"),
            ("docker-ratelimit-source", "192.0.2.1"),
        ];
        let found = limit_in(&some).unwrap();
        assert_eq!(
            found.shown(),
            "76 of 100 pulls left in 6 h, counted for 192.0.2.1"
        );
        assert_eq!(found.spent(), None);
        let none = limit_in(&[
            ("ratelimit-limit", "100;w=21600"),
            ("ratelimit-remaining", "0;w=21600"),
        ]);
        assert_eq!(none.unwrap().spent(), Some(Duration::from_hours(6)));
        let huge = [
            ("ratelimit-limit", "1;w=18446744073709551615"),
            ("ratelimit-remaining", "0"),
        ];
        assert!(limit_in(&huge).unwrap().spent().unwrap() < Duration::from_hours(400 * 24));
        assert_eq!(
            limit_in(&[("ratelimit-limit", "many"), ("ratelimit-remaining", "0")]),
            None
        );
        assert_eq!(limit_in(&[]), None);
    }
}
