//! Resumes content in the middle: by `Range` where a host honours it, else from the start.

use super::body::HttpResponse;
use super::error::HttpError;
use super::error::host_port;
use super::transport::Transport;
use reqwest::StatusCode;
use url::Url;

impl Transport {
    /// Remembers that this URL's host answers ranges wrongly: this run asks it for none again.
    pub fn distrust_ranges(&self, url: &Url) {
        let mut wrong_ranges = self
            .0
            .wrong_ranges
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        wrong_ranges.insert(host_port(url));
    }

    fn trusts_ranges(&self, url: &Url) -> bool {
        self.0
            .wrong_ranges
            .lock()
            .is_ok_and(|wrong_ranges| !wrong_ranges.contains(&host_port(url)))
    }
}

/// Asks `url` for content of `size` bytes from `offset` on by `send`, which gets the value of a
/// `Range` header or `None`. Returns the answer and the offset at which it really starts: 0 where
/// the server ignores ranges (RFC 9110, 14.2). Where the server refuses the range, or answers with
/// another part, landfall asks for the whole, and for no range of that host again.
///
/// # Errors
/// Those of `send`.
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
            StatusCode::PARTIAL_CONTENT if fits(response.header("content-range"), offset, size) => {
                return Ok((offset, response));
            }
            // dropped with its connection: the body of a wrong answer may never end
            StatusCode::PARTIAL_CONTENT
            | StatusCode::BAD_REQUEST
            | StatusCode::RANGE_NOT_SATISFIABLE => {
                transport.distrust_ranges(url);
            }
            _ => return Ok((0, response)),
        }
    }
    Ok((0, send(None).await?))
}

/// Whether a `Content-Range` is the part from `offset` to the end of `size` bytes. A total of `*`
/// is allowed (RFC 9110, 14.4).
fn fits(range: Option<&str>, offset: u64, size: u64) -> bool {
    let parts = || {
        let (span, total) = range?.trim().strip_prefix("bytes ")?.split_once('/')?;
        let (start, end) = span.split_once('-')?;
        let total = Some(total.trim())
            .filter(|total| *total != "*")
            .map(str::parse::<u64>);
        Some((
            start.trim().parse::<u64>().ok()?,
            end.trim().parse::<u64>().ok()?,
            total,
        ))
    };
    match parts() {
        Some((start, end, total)) => {
            start == offset
                && end.checked_add(1) == Some(size)
                && total.is_none_or(|total| total == Ok(size))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rest_of_the_same_content_fits() {
        let good = |range| fits(Some(range), 10, 100);
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
        assert!(!fits(None, 10, 100));
    }
}
