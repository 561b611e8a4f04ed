//! Resumes a download at an offset by `Range`, or from the start if the host does not support it.

use super::body::HttpResponse;
use super::error::{HttpError, host_port};
use super::transport::Transport;
use landfall_model::locked;
use reqwest::StatusCode;
use tracing::info;
use url::Url;

impl Transport {
    /// Records that the host of this URL responds wrongly to `Range`. The host gets no `Range`
    /// again in this run.
    pub fn distrust_ranges(&self, url: &Url) {
        let host = host_port(url);
        info!(
            host,
            "its responses to Range are wrong; no range is requested again"
        );
        locked(&self.0.wrong_ranges).insert(host);
    }

    fn trusts_ranges(&self, url: &Url) -> bool {
        !locked(&self.0.wrong_ranges).contains(&host_port(url))
    }
}

/// Requests content of `size` bytes at `url` from `offset` on. `send` gets the value of the `Range`
/// header, or `None`.
///
/// Returns the offset at which the response starts, and the response. The offset is 0 if the server
/// ignores `Range` (RFC 9110, 14.2). If the server refuses the range or answers with another part,
/// the whole content is requested. The host then gets no `Range` again in this run, unless it
/// refused the range because its content has another size.
///
/// # Errors
/// The errors of `send`.
pub async fn send_from_offset<F>(
    transport: &Transport,
    url: &Url,
    offset: u64,
    size: u64,
    send: impl Fn(Option<String>) -> F,
) -> Result<(u64, HttpResponse), HttpError>
where
    F: Future<Output = Result<HttpResponse, HttpError>>,
{
    if offset > 0 && transport.trusts_ranges(url) {
        let response = send(Some(format!("bytes={offset}-"))).await?;
        match response.status {
            StatusCode::PARTIAL_CONTENT
                if is_rest(response.header("content-range"), offset, size) =>
            {
                return Ok((offset, response));
            }
            // The host's content has another size, so the refusal may be right.
            StatusCode::RANGE_NOT_SATISFIABLE
                if response
                    .header("content-range")
                    .and_then(total_of_unsatisfied)
                    .is_some_and(|total| total != size) => {}
            // The response is dropped with its connection instead of being read. docker-registry
            // 2.8 sends a 416 with the `Content-Length` of the whole blob and a short body.
            StatusCode::PARTIAL_CONTENT
            | StatusCode::BAD_REQUEST
            | StatusCode::RANGE_NOT_SATISFIABLE => {
                transport.distrust_ranges(url);
            }
            // 200 with the whole content, or an error for the caller
            _ => return Ok((0, response)),
        }
    }
    Ok((0, send(None).await?))
}

/// Whether a `Content-Range` is the part from `offset` to the end of `size` bytes. Its total may be
/// `*` (RFC 9110, 14.4).
fn is_rest(range: Option<&str>, offset: u64, size: u64) -> bool {
    let Some((start, end, total)) = range.and_then(parse_content_range) else {
        return false;
    };
    // the end is checked too, because a shorter part would look like the end of the content
    start == offset
        && end.checked_add(1) == Some(size)
        && (total == "*" || total.parse() == Ok(size))
}

/// Parses `bytes FIRST-LAST/TOTAL` into first byte, last byte and total.
fn parse_content_range(range: &str) -> Option<(u64, u64, &str)> {
    let (span, total) = range.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = span.split_once('-')?;
    Some((
        start.trim().parse().ok()?,
        end.trim().parse().ok()?,
        total.trim(),
    ))
}

/// Parses `bytes */TOTAL`, the range of a response with status 416 (RFC 9110, 15.5.17).
fn total_of_unsatisfied(range: &str) -> Option<u64> {
    range.trim().strip_prefix("bytes */")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rest_of_the_same_content_is_accepted() {
        let good = |range| is_rest(Some(range), 10, 100);
        assert!(good("bytes 10-99/100") && good("bytes 10-99/*"));
        for wrong in [
            "bytes 9-99/100",
            "bytes 10-98/100",
            "bytes 10-99/101",
            "10-99/100",
            "bytes */100",
            "",
        ] {
            assert!(!good(wrong), "{wrong}");
        }
        assert!(!is_rest(None, 10, 100));
    }

    #[test]
    fn the_size_in_a_refusal_of_a_range_is_parsed() {
        assert_eq!(total_of_unsatisfied("bytes */96"), Some(96));
        for other in ["bytes */*", "bytes 0-95/96", "*/96", ""] {
            assert_eq!(total_of_unsatisfied(other), None, "{other}");
        }
    }
}
