//! Requests for plain files by their URLs.

use crate::registry::RegistrySessions;
use bytes::Bytes;
use landfall_http::{
    ErrorKind, HttpError, HttpRequest, HttpResponse, RequestBody, RequestPurpose, host_of,
};
use landfall_model::Failure;
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderName, RANGE};

/// Makes a cache on the way, such as a proxy, ask the server whether its copy is current, as apt,
/// dnf and git demand for the lists of a repository.
const CURRENT: (HeaderName, &str) = (CACHE_CONTROL, "max-age=0");

/// Makes caches on the way get a file from the server, whatever they have.
const UNCACHED: (HeaderName, &str) = (CACHE_CONTROL, "no-cache");

/// Requests a file, or a range of it, with the account for its host if there is one.
///
/// # Errors
/// If the request fails, or is denied and the account cannot be read.
pub async fn get_file(
    sessions: &RegistrySessions,
    url: &str,
    range: Option<String>,
) -> Result<HttpResponse, HttpError> {
    let range = range.as_deref().map(|range| (RANGE, range));
    send_plus_forms(sessions, Method::GET, url, range).await
}

/// Like [`get_file`], but if a whole file is requested once more, no cache may answer: the first
/// time, its bytes were wrong, or too few.
pub(super) async fn get_content(
    sessions: &RegistrySessions,
    url: &str,
    range: Option<String>,
    is_repeated: bool,
) -> Result<HttpResponse, HttpError> {
    if is_repeated && range.is_none() {
        return send_plus_forms(sessions, Method::GET, url, Some(UNCACHED)).await;
    }
    get_file(sessions, url, range).await
}

/// Like [`get_file`], for a file whose content decides what is locked: no cache may answer with a
/// copy that is not current.
///
/// # Errors
/// If the request fails, or is denied and the account cannot be read.
pub async fn get_current_file(
    sessions: &RegistrySessions,
    url: &str,
) -> Result<HttpResponse, HttpError> {
    send_plus_forms(sessions, Method::GET, url, Some(CURRENT)).await
}

/// Requests `url`. If the path has a `+`, that is sent as `%2B`, since S3 and some servers in front
/// of it read `+` as a blank; after 403 or 404, the plain form is tried. A host that has a file
/// only in the plain form is asked in that form first from then on.
async fn send_plus_forms(
    sessions: &RegistrySessions,
    method: Method,
    url: &str,
    header: Option<(HeaderName, &str)>,
) -> Result<HttpResponse, HttpError> {
    let Some((host, mut forms)) = plus_forms(url) else {
        return send_file_request(sessions, method, url, header).await;
    };
    let is_plain_first = sessions.takes_plain_plus(host);
    if is_plain_first {
        forms.reverse();
    }
    let first = send_file_request(sessions, method.clone(), &forms[0], header.clone()).await?;
    if !matches!(first.status.as_u16(), 403 | 404) {
        return Ok(first);
    }
    // the response holds a slot of the host, which the second request may need
    first.discard().await;
    let second = send_file_request(sessions, method, &forms[1], header).await?;
    if second.status.is_success() {
        sessions.set_plain_plus(host, !is_plain_first);
    }
    Ok(second)
}

/// Requests `url` as it is written: with GET, or in one attempt with HEAD.
async fn send_file_request(
    sessions: &RegistrySessions,
    method: Method,
    url: &str,
    header: Option<(HeaderName, &str)>,
) -> Result<HttpResponse, HttpError> {
    let is_head = method == Method::HEAD;
    let (mut request, fault) = request(sessions, method, url).await?;
    if is_release_asset(url) {
        request = request.header(ACCEPT, "application/octet-stream");
    }
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    if is_head {
        let request = HttpRequest {
            retried: false,
            ..request
        };
        return sessions.transport().send(&request).await;
    }
    send_with_account(sessions, &request, fault.as_ref()).await
}

/// Whether `url` is that of an asset of a release in the API of GitHub, which returns a description
/// of the asset unless the request accepts only the file. Assets of private repositories have no
/// other URL at which an account is accepted.
fn is_release_asset(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.rsplit_once("/releases/assets/")
        .is_some_and(|(repository, id)| {
            let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
            is_number && repository.contains("/repos/")
        })
}

/// The host of `url`, and `url` with `%2B` and with `+` for each `+` in its path. `None` if its
/// path has none.
fn plus_forms(url: &str) -> Option<(&str, [String; 2])> {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let host_start = url.find("://")? + 3;
    let start = host_start + url.get(host_start..end)?.find('/')?;
    let plain = url[start..end].replace("%2B", "+").replace("%2b", "+");
    let encoded = plain.replace('+', "%2B");
    let whole = |path: &str| [&url[..start], path, &url[end..]].concat();
    (plain != encoded).then(|| {
        let host = &url[host_start..start];
        (host, [whole(&encoded), whole(&plain)])
    })
}

/// Sends a JSON document by POST, with the account for its host if there is one.
///
/// # Errors
/// If the request fails, or is denied and the account cannot be read.
pub async fn post_json(
    sessions: &RegistrySessions,
    url: &str,
    body: String,
) -> Result<HttpResponse, HttpError> {
    let (mut request, fault) = request(sessions, Method::POST, url).await?;
    request.body = RequestBody::Bytes(Bytes::from(body));
    let request = request
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json");
    send_with_account(sessions, &request, fault.as_ref()).await
}

/// Sends a request that [`request`] created.
pub(super) async fn send_with_account(
    sessions: &RegistrySessions,
    request: &HttpRequest,
    fault: Option<&Failure>,
) -> Result<HttpResponse, HttpError> {
    let response = sessions.transport().send(request).await?;
    match fault {
        // after a denial, the unreadable account is the likely cause
        Some(fault) if matches!(response.status.as_u16(), 401 | 403) => {
            let words = format!(
                "answered {}, and there is no account for it: {fault}",
                response.status
            );
            Err(HttpError::new(ErrorKind::Denied, words)
                .at(&response.url)
                .with_status(response.status))
        }
        _ => Ok(response),
    }
}

/// Requests the headers of a file, in one attempt: some servers close the connection after a HEAD
/// request. The caller can then use GET, which all servers support.
///
/// # Errors
/// If the request fails.
pub async fn head_file(sessions: &RegistrySessions, url: &str) -> Result<HttpResponse, HttpError> {
    send_plus_forms(sessions, Method::HEAD, url, Some(CURRENT)).await
}

/// Returns the request with the account for its host. If the account cannot be read, returns the
/// request without an account, and the reason. This is not an error yet, because most files need no
/// account.
pub(super) async fn request(
    sessions: &RegistrySessions,
    method: Method,
    url: &str,
) -> Result<(HttpRequest, Option<Failure>), HttpError> {
    let (target, origin) = sessions.file_url(url)?;
    let host = host_of(&target).to_owned();
    // over plain http, credentials are sent only if the user allowed plain http for this host, or
    // named this host as a mirror
    let trusted = target.scheme() == "https" || origin.is_some() || sessions.is_plain(&host);
    let request = HttpRequest {
        origin,
        ..HttpRequest::new(method, target, RequestPurpose::File)
    };
    if !trusted {
        return Ok((request, None));
    }
    Ok(match sessions.keychain().find(&host, "").await {
        Ok(account) => {
            let header = account.and_then(|account| account.secret.basic_header());
            let request = request.optional_header(AUTHORIZATION, header.as_deref());
            (request, None)
        }
        Err(fault) => (request, Some(fault)),
    })
}

/// Returns the response if it is the file. If `url` is not the URL of an HTML page, an HTML page
/// comes from a proxy, or is a sign-in page.
///
/// # Errors
/// If the status is not 200 or 206, or the response is an HTML page instead of the file.
pub async fn expect_file(response: HttpResponse, url: &str) -> Result<HttpResponse, HttpError> {
    let mut response = expect_success(response).await?;
    if !is_page(url) && response.is_page().await {
        Err(response.page_error("the file").await)
    } else {
        Ok(response)
    }
}

/// Like [`expect_file`], for the response to a request for the whole file, whose digest is not
/// known.
///
/// # Errors
/// Like [`expect_file`], and if the response is a part of the file.
pub async fn expect_whole_file(
    response: HttpResponse,
    url: &str,
) -> Result<HttpResponse, HttpError> {
    let response = expect_file(response, url).await?;
    if !response.is_part() {
        return Ok(response);
    }
    let words = "it answered with a part of the file, although the whole file was requested; \
                 perhaps a cache on the way does not distinguish them";
    let error = HttpError::new(ErrorKind::Invalid, words).at(&response.url);
    Err(error.with_status(response.status))
}

/// Whether the URL is that of an HTML page.
pub fn is_page(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    // a web server answers a folder with its index page
    path.ends_with(".html") || path.ends_with(".htm") || path.ends_with('/')
}

/// Returns the response if its status is 200 or 206.
///
/// # Errors
/// If it has another status, with the kind of error that fits the status.
pub async fn expect_success(response: HttpResponse) -> Result<HttpResponse, HttpError> {
    match response.status.as_u16() {
        200 | 206 => Ok(response),
        _ => Err(status_error(response, "").await),
    }
}

/// Returns the error for a response with an unexpected status, with what the server says. `to`
/// follows the status in the message, as in ` to an upload`.
pub(super) async fn status_error(response: HttpResponse, to: &str) -> HttpError {
    let kind = match response.status.as_u16() {
        404 | 410 => ErrorKind::NotFound,
        401 | 403 => ErrorKind::Denied,
        code => ErrorKind::Status(code),
    };
    let (status, url) = (response.status, response.url.clone());
    let said = response.server_words().await;
    let advice = if status == 400 && wants_certificate(&said.body) {
        let host = url.host_str().unwrap_or_default();
        format!(
            "; it requires a client certificate: name clientCert and clientKey under \
             upstreams.\"{host}\" of the site"
        )
    } else {
        String::new()
    };
    let words = format!("answered {status}{to}{advice}");
    said.add_to(HttpError::new(kind, words).at(&url).with_status(status))
}

/// Whether a server says that a client certificate is missing or rejected, in the words of nginx.
fn wants_certificate(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    text.contains("no required ssl certificate") || text.contains("the ssl certificate error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assets_of_releases_are_those_of_the_api() {
        let asset = "https://api.github.com/repos/o/r/releases/assets/1234";
        for url in [
            asset,
            "https://ghes.test/api/v3/repos/o/r/releases/assets/1?x=/y",
        ] {
            assert!(is_release_asset(url), "{url}");
        }
        for other in [
            "https://github.com/o/r/releases/download/v1/1234",
            "https://api.github.com/repos/o/r/releases/assets/",
            "https://api.github.com/repos/o/r/releases/assets/12/x",
            "https://x.test/releases/assets/1",
        ] {
            assert!(!is_release_asset(other), "{other}");
        }
    }

    #[test]
    fn only_the_path_of_a_url_is_written_in_another_way() {
        let encoded = "https://u+x.test/a%2Bb/libstdc%2B%2B.rpm?c=1+2#d+e";
        let plain = "https://u+x.test/a+b/libstdc++.rpm?c=1+2#d+e";
        for url in [encoded, plain, &plain.replace("a+b", "a%2bb")] {
            let (host, forms) = plus_forms(url).unwrap();
            assert_eq!(
                (host, forms),
                ("u+x.test", [encoded, plain].map(str::to_owned))
            );
        }
        for same in ["https://h.test/a?b=+", "https://h+.test", "", "a+b"] {
            assert_eq!(plus_forms(same), None, "{same}");
        }
    }
}
