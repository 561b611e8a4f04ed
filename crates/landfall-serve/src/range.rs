//! `Range` and the conditional headers, for content that never changes under its digest (RFC 9110
//! §13, §14).

use axum::http::HeaderMap;
use axum::http::header::{IF_NONE_MATCH, IF_RANGE, RANGE};

/// The part of the content that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it.
    Whole,
    /// From the first offset to before the second.
    Part(u64, u64),
    /// A range outside of the content.
    Outside,
}

/// Reads `Range` for content of `size` bytes with the entity tag `etag`. Several ranges at once,
/// other units and malformed ranges are ignored, as the RFC allows.
pub(super) fn wanted(headers: &HeaderMap, size: u64, etag: &str) -> Wanted {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if text(IF_RANGE).is_some_and(|tag| tag.trim() != etag) {
        return Wanted::Whole;
    }
    let Some(range) = text(RANGE) else {
        return Wanted::Whole;
    };
    read(range, size).unwrap_or(Wanted::Whole)
}

fn read(range: &str, size: u64) -> Option<Wanted> {
    let (unit, range) = range.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<u64>().ok(),
        false => None,
    };
    if first.is_empty() {
        let tail = number(last)?;
        let outside = tail == 0 || size == 0;
        return Some(if outside {
            Wanted::Outside
        } else {
            Wanted::Part(size.saturating_sub(tail), size)
        });
    }
    let first = number(first)?;
    let end = if last.is_empty() {
        size
    } else {
        number(last)?.saturating_add(1).min(size)
    };
    if !last.is_empty() && number(last)? < first {
        return None;
    }
    Some(if first >= size {
        Wanted::Outside
    } else {
        Wanted::Part(first, end)
    })
}

/// Whether the client has the content already: `If-None-Match` is `etag` or `*`.
pub(super) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let value = headers
        .get(IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let bare = |tag: &str| {
        tag.trim()
            .trim_start_matches("W/")
            .trim_matches('"')
            .to_owned()
    };
    value
        .split(',')
        .any(|tag| tag.trim() == "*" || (!tag.trim().is_empty() && bare(tag) == bare(etag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_rfc_says() {
        let cases = [
            ("bytes=0-0", Wanted::Part(0, 1)),
            ("bytes=2-4", Wanted::Part(2, 5)),
            ("bytes=7-", Wanted::Part(7, 10)),
            ("bytes=7-99", Wanted::Part(7, 10)),
            ("bytes=-3", Wanted::Part(7, 10)),
            ("bytes=-99", Wanted::Part(0, 10)),
            ("bytes=10-", Wanted::Outside),
            ("bytes=-0", Wanted::Outside),
            ("bytes=4-2", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("bytes=99999999999999999999-", Wanted::Whole),
        ];
        for (range, expected) in cases {
            let headers = HeaderMap::from_iter([(RANGE, range.parse().unwrap())]);
            assert_eq!(wanted(&headers, 10, "\"t\""), expected, "{range}");
        }
        let stale = [
            (RANGE, "bytes=1-2".parse().unwrap()),
            (IF_RANGE, "\"old\"".parse().unwrap()),
        ];
        assert_eq!(
            wanted(&HeaderMap::from_iter(stale), 10, "\"t\""),
            Wanted::Whole
        );
        let nothing = HeaderMap::from_iter([(RANGE, "bytes=0-".parse().unwrap())]);
        assert_eq!(wanted(&nothing, 0, "\"t\""), Wanted::Outside);
    }

    #[test]
    fn a_known_tag_is_found_in_a_list() {
        let ask = |value: &str| {
            is_known(
                &HeaderMap::from_iter([(IF_NONE_MATCH, value.parse().unwrap())]),
                "\"sha256:ab\"",
            )
        };
        assert!(ask("\"sha256:ab\"") && ask("W/\"x\", sha256:ab") && ask("*"));
        assert!(!ask("\"sha256:cd\"") && !ask(""));
    }
}
