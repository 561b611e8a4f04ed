//! What a host says of our quota there: `ratelimit-limit: 100;w=21600`, `ratelimit-remaining` and
//! `docker-ratelimit-source`, as Docker Hub sends them with manifests.

use reqwest::header::HeaderMap;
use std::time::Duration;

/// A quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quota {
    limit: u64,
    remaining: u64,
    window: Option<Duration>,
    /// Address or account that is counted.
    source: Option<String>,
}

impl Quota {
    /// The quota in an answer's headers.
    pub(super) fn read(headers: &HeaderMap) -> Option<Quota> {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        let (limit, _) = split(text("ratelimit-limit")?)?;
        let (remaining, window) = split(text("ratelimit-remaining")?)?;
        let window = window.or_else(|| split(text("ratelimit-limit")?)?.1);
        let source = text("docker-ratelimit-source").filter(|source| !source.is_empty());
        Some(Quota { limit, remaining, window, source: source.map(str::to_owned) })
    }

    /// When something is left again at the latest, where nothing is.
    pub(super) fn spent(&self) -> Option<Duration> {
        self.window.filter(|_| self.remaining == 0)
    }

    /// For people: what is left of what, in how long, counted for whom.
    pub(super) fn shown(&self) -> String {
        let window = self.window.map(|window| format!(" in {}", span(window))).unwrap_or_default();
        let source = self.source.as_ref().map(|source| format!(", counted for {source}")).unwrap_or_default();
        format!("{} of {} pulls left{window}{source}", self.remaining, self.limit)
    }
}

fn split(value: &str) -> Option<(u64, Option<Duration>)> {
    let mut words = value.split(';').map(str::trim);
    let number = words.next()?.parse().ok()?;
    let window = words.find_map(|word| word.strip_prefix("w=")?.parse().ok());
    Some((number, window.map(Duration::from_secs)))
}

/// A span of time in its largest whole unit.
pub(super) fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds >= 3600 && seconds.is_multiple_of(3600) => format!("{} h", seconds / 3600),
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(pairs: &[(&'static str, &str)]) -> Option<Quota> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        Quota::read(&headers)
    }

    #[test]
    fn the_headers_of_docker_hub() {
        let some = [
            ("ratelimit-limit", "100;w=21600"),
            ("ratelimit-remaining", "76;w=21600"),
            ("docker-ratelimit-source", "192.0.2.1"),
        ];
        let found = quota(&some).unwrap();
        assert_eq!(found.shown(), "76 of 100 pulls left in 6 h, counted for 192.0.2.1");
        assert_eq!(found.spent(), None);
        let none = quota(&[("ratelimit-limit", "100;w=21600"), ("ratelimit-remaining", "0;w=21600")]);
        assert_eq!(none.unwrap().spent(), Some(Duration::from_secs(21600)));
        assert_eq!(quota(&[("ratelimit-limit", "many"), ("ratelimit-remaining", "0")]), None);
        assert_eq!(quota(&[]), None);
    }
}
