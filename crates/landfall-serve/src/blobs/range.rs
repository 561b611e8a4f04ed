//! `Range` and the conditional headers (RFC 9110 §13, §14). The entity tag of a blob is its digest,
//! so content never changes under its tag.

use axum::http::HeaderMap;
use axum::http::header::{HeaderName, IF_NONE_MATCH, IF_RANGE, RANGE};

/// The part of the content that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestedRange {
    Whole,
    /// From the first offset to before the second.
    Part(u64, u64),
    /// A range outside of the content.
    Unsatisfiable,
}

/// Parses `Range` for content of `size` bytes with the entity tag `etag`. Multiple ranges, other
/// units and malformed ranges are ignored, as the RFC allows.
pub(super) fn requested_range(headers: &HeaderMap, size: u64, etag: &str) -> RequestedRange {
    if text(headers, &IF_RANGE).is_some_and(|tag| tag.trim() != etag) {
        // the client has a part of other content, so it must get this content completely
        return RequestedRange::Whole;
    }
    text(headers, &RANGE)
        .and_then(|range| parse(range, size))
        .unwrap_or(RequestedRange::Whole)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

fn parse(range: &str, size: u64) -> Option<RequestedRange> {
    let (unit, range) = range.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    if first.is_empty() {
        // `-N`: the last N bytes
        let length = number(last)?;
        if length == 0 || size == 0 {
            // the last 0 bytes, or a range of empty content: no Content-Range can express them
            return Some(RequestedRange::Unsatisfiable);
        }
        return Some(RequestedRange::Part(size.saturating_sub(length), size));
    }
    let first = number(first)?;
    let end = if last.is_empty() {
        size
    } else {
        let last = number(last)?;
        if last < first {
            return None;
        }
        last.saturating_add(1).min(size)
    };
    if first >= size {
        return Some(RequestedRange::Unsatisfiable);
    }
    Some(RequestedRange::Part(first, end))
}

/// Parses a number that has only digits: `str::parse` would also accept a sign.
fn number(text: &str) -> Option<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Whether the client has the content already: `If-None-Match` contains `etag`, or is `*`.
pub(super) fn matches_etag(headers: &HeaderMap, etag: &str) -> bool {
    let Some(value) = text(headers, &IF_NONE_MATCH) else {
        return false;
    };
    value
        .split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || (!tag.is_empty() && opaque_tag(tag) == opaque_tag(etag)))
}

/// The tag without quotes and weakness mark: `If-None-Match` compares weakly (RFC 9110 §13.1.2).
fn opaque_tag(tag: &str) -> &str {
    tag.trim_start_matches("W/").trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_as_the_rfc_says() {
        let cases = [
            ("bytes=0-0", RequestedRange::Part(0, 1)),
            ("bytes=2-4", RequestedRange::Part(2, 5)),
            ("bytes=7-", RequestedRange::Part(7, 10)),
            ("bytes=7-99", RequestedRange::Part(7, 10)),
            ("bytes=-3", RequestedRange::Part(7, 10)),
            ("bytes=-99", RequestedRange::Part(0, 10)),
            ("bytes=10-", RequestedRange::Unsatisfiable),
            ("bytes=-0", RequestedRange::Unsatisfiable),
            ("bytes=4-2", RequestedRange::Whole),
            ("bytes=0-1,3-4", RequestedRange::Whole),
            ("bytes=+1-2", RequestedRange::Whole),
            ("lines=1-2", RequestedRange::Whole),
            ("bytes=99999999999999999999-", RequestedRange::Whole),
        ];
        for (range, expected) in cases {
            let headers = HeaderMap::from_iter([(RANGE, range.parse().unwrap())]);
            assert_eq!(requested_range(&headers, 10, "\"t\""), expected, "{range}");
        }
        let stale = [
            (RANGE, "bytes=1-2".parse().unwrap()),
            (IF_RANGE, "\"old\"".parse().unwrap()),
        ];
        assert_eq!(
            requested_range(&HeaderMap::from_iter(stale), 10, "\"t\""),
            RequestedRange::Whole
        );
        let nothing = HeaderMap::from_iter([(RANGE, "bytes=0-".parse().unwrap())]);
        assert_eq!(
            requested_range(&nothing, 0, "\"t\""),
            RequestedRange::Unsatisfiable
        );
    }

    #[test]
    fn a_known_etag_is_found_in_a_list() {
        let matches = |value: &str| {
            matches_etag(
                &HeaderMap::from_iter([(IF_NONE_MATCH, value.parse().unwrap())]),
                "\"sha256:ab\"",
            )
        };
        assert!(matches("\"sha256:ab\"") && matches("W/\"x\", sha256:ab") && matches("*"));
        assert!(!matches("\"sha256:cd\"") && !matches(""));
    }
}
