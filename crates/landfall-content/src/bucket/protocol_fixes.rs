//! Adds features of the protocols that the crate `object_store` lacks: conditional deletion,
//! listings with keys that are not valid paths for the crate, and etags that a proxy changed.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::ETAG;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::{BodyExt, Limited};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};
use object_store::path::Path;

/// The condition of Google Cloud Storage: the generation that an object must have.
const GENERATION: HeaderName = HeaderName::from_static("x-goog-if-generation-match");
/// The largest page of a listing that is read, in bytes.
const MAX_PAGE: usize = 64 << 20;
/// How often a page of a listing is requested whose response breaks off.
const PAGE_ATTEMPTS: u32 = 5;

tokio::task_local! {
    /// The generation that an object must have for a deletion in this task.
    static ONLY_GENERATION: HeaderValue;
}

/// Runs `deletion` so that Google Cloud Storage deletes only an object of this generation.
pub(super) async fn if_generation<T>(
    generation: HeaderValue,
    deletion: impl Future<Output = T>,
) -> T {
    ONLY_GENERATION.scope(generation, deletion).await
}

/// Gives `object_store` an HTTP client, and changes the requests and responses of that client.
#[derive(Debug, Clone)]
pub(super) struct ProtocolFixes<S>(pub S);

impl<S: HttpService + Clone> HttpConnector for ProtocolFixes<S> {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        // ignored: the options configure the client that this one replaces
        Ok(HttpClient::new(self.clone()))
    }
}

impl<S: HttpService> HttpService for ProtocolFixes<S> {
    fn call<'a, 'b>(
        &'a self,
        mut request: HttpRequest,
    ) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            if request.method() == Method::DELETE
                // a task-local variable, because `object_store` has no parameter for the condition
                && let Ok(generation) = ONLY_GENERATION.try_with(Clone::clone)
            {
                request.headers_mut().insert(GENERATION, generation);
            }
            if !is_listing(request.uri().query().unwrap_or_default()) {
                let mut response = self.0.call(request).await?;
                restore_etag(response.headers_mut());
                return Ok(response);
            }
            let mut attempt = 1;
            loop {
                let response = self.0.call(request.clone()).await?;
                if !response.status().is_success() {
                    return Ok(response);
                }
                let (head, body) = response.into_parts();
                // read whole, because an entry may be split between two frames
                match Limited::new(body, MAX_PAGE).collect().await {
                    Ok(page) => {
                        let page = remove_invalid_paths(page.to_bytes());
                        return Ok(HttpResponse::from_parts(head, page.into()));
                    }
                    // the transport repeats a request, but not one whose response breaks off
                    Err(error) if error.is::<HttpError>() && attempt < PAGE_ATTEMPTS => {
                        attempt += 1;
                    }
                    Err(error) => {
                        return Err(HttpError::new(HttpErrorKind::Decode, PageError(error)));
                    }
                }
            }
        })
    }
}

/// Replaces a weak etag by that of the store, which is strong. A proxy marks the etags of bodies as
/// weak that it may compress, and `If-Match` never holds for a weak one (RFC 9110, 13.1.1).
fn restore_etag(headers: &mut HeaderMap) {
    let strong = headers.get(ETAG).and_then(|etag| {
        let strong = etag.as_bytes().strip_prefix(b"W/")?;
        HeaderValue::from_bytes(strong).ok()
    });
    if let Some(strong) = strong {
        headers.insert(ETAG, strong);
    }
}

/// Why a page of a listing cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the listing: {0}")]
struct PageError(Box<dyn std::error::Error + Send + Sync>);

fn is_listing(query: &str) -> bool {
    query
        .split('&')
        .any(|word| matches!(word, "list-type=2" | "comp=list"))
}

/// Removes objects from a page of a listing if `object_store` cannot parse their keys, such as
/// `blobs//x`: it would reject the whole page. landfall writes no such keys.
fn remove_invalid_paths(page: Bytes) -> Bytes {
    let Ok(text) = std::str::from_utf8(&page) else {
        return page;
    };
    let (entry, key) = if text.contains("<Contents>") {
        ("Contents", "Key")
    } else {
        ("Blob", "Name")
    };
    let begin = format!("<{entry}>");
    let end = format!("</{entry}>");

    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&begin)
        && let Some(length) = rest[at..].find(&end)
    {
        let (before, from_entry) = rest.split_at(at);
        let (entry, after) = from_entry.split_at(length + end.len());
        kept.push_str(before);
        // an entry that cannot be read is left for `object_store` to report
        if is_valid_path(entry, key) != Some(false) {
            kept.push_str(entry);
        }
        rest = after;
    }
    if kept.len() + rest.len() == text.len() {
        return page;
    }
    kept.push_str(rest);
    kept.into()
}

/// Whether the text of the element `name` in `entry` is a path for `object_store`, or `None` if it
/// cannot be read.
fn is_valid_path(entry: &str, name: &str) -> Option<bool> {
    let (_, after) = entry.split_once(&format!("<{name}>"))?;
    let (key, _) = after.split_once(&format!("</{name}>"))?;
    Some(Path::parse(quick_xml::escape::unescape(key).ok()?).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_invalid_paths_are_removed_from_a_listing() {
        let page = |entry: &str, key: &str, keys: &[&str]| {
            let entries = keys
                .iter()
                .map(|name| format!("<{entry}><{key}>{name}</{key}><S>1</S></{entry}>"));
            format!(
                "<List><P>a</P>{}<N>t</N></List>",
                entries.collect::<String>()
            )
        };
        for (entry, key) in [("Contents", "Key"), ("Blob", "Name")] {
            let all = [
                "a/index//x",
                "a/index/1",
                "a//",
                "a/../b",
                "a/&amp;&lt;",
                "a/x&#10;y",
                "a/folder/",
                "a/./b",
            ];
            let read = remove_invalid_paths(page(entry, key, &all).into());
            let left = ["a/index/1", "a/&amp;&lt;", "a/folder/"];
            assert_eq!(std::str::from_utf8(&read).unwrap(), page(entry, key, &left));
            assert_eq!(
                remove_invalid_paths(page(entry, key, &left).into()),
                page(entry, key, &left)
            );
        }
        for odd in [
            "",
            "<Contents>",
            "<Contents><Key>a//b</Key>",
            "<Contents></Contents>",
            "\u{fffd}",
        ] {
            assert_eq!(remove_invalid_paths(odd.to_owned().into()), odd);
        }
        assert!(
            is_listing("prefix=a&list-type=2")
                && is_listing("comp=list")
                && !is_listing("uploads=")
        );
    }
}
