//! What the protocols have and the crate `object_store` does not: a condition for a deletion, and
//! listings in which a key is not one of its paths.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method};
use http_body_util::{BodyExt, Limited};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};
use object_store::path::Path;

/// Google's condition: the generation that an object must have.
const GENERATION: HeaderName = HeaderName::from_static("x-goog-if-generation-match");
/// The most that one page of a listing may have, in bytes.
const PAGE: usize = 64 << 20;

tokio::task_local! {
    /// The generation that an object must have to be deleted.
    static ONLY_GENERATION: HeaderValue;
}

/// Carries out `deletion`: Google Cloud Storage deletes only an object of this generation.
pub(super) async fn if_generation<T>(
    generation: HeaderValue,
    deletion: impl Future<Output = T>,
) -> T {
    ONLY_GENERATION.scope(generation, deletion).await
}

/// Between `object_store` and what sends its requests.
#[derive(Debug)]
pub(super) struct ProtocolFixes<C>(pub C);

impl<C: HttpConnector> HttpConnector for ProtocolFixes<C> {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(FixedService(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct FixedService(HttpClient);

impl HttpService for FixedService {
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
                && let Ok(generation) = ONLY_GENERATION.try_with(Clone::clone)
            {
                request.headers_mut().insert(GENERATION, generation);
            }
            let is_listing = is_listing(request.uri().query().unwrap_or_default());
            let answer = self.0.execute(request).await?;
            if !is_listing || !answer.status().is_success() {
                return Ok(answer);
            }
            let (head, body) = answer.into_parts();
            let page = Limited::new(body, PAGE).collect().await;
            let page =
                page.map_err(|error| HttpError::new(HttpErrorKind::Decode, PageError(error)))?;
            Ok(HttpResponse::from_parts(
                head,
                with_paths_only(page.to_bytes()).into(),
            ))
        })
    }
}

/// A page of a listing that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the listing: {0}")]
struct PageError(Box<dyn std::error::Error + Send + Sync>);

fn is_listing(query: &str) -> bool {
    query
        .split('&')
        .any(|word| matches!(word, "list-type=2" | "comp=list"))
}

/// A page of a listing without the objects whose keys `object_store` cannot express, such as
/// `blobs//x`: it would refuse the whole page. landfall writes no such keys.
fn with_paths_only(page: Bytes) -> Bytes {
    let Ok(text) = std::str::from_utf8(&page) else {
        return page;
    };
    let (entry, key) = if text.contains("<Contents>") {
        ("Contents", "Key")
    } else {
        ("Blob", "Name")
    };
    let (begin, end) = (format!("<{entry}>"), format!("</{entry}>"));
    let is_path = |entry: &str| {
        let (_, after) = entry.split_once(&format!("<{key}>"))?;
        let (key, _) = after.split_once(&format!("</{key}>"))?;
        Some(Path::parse(quick_xml::escape::unescape(key).ok()?).is_ok())
    };
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(&begin)
        && let Some(length) = rest[at..].find(&end)
    {
        let (before, from_entry) = rest.split_at(at);
        let (entry, after) = from_entry.split_at(length + end.len());
        kept.push_str(before);
        if is_path(entry) != Some(false) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_loses_only_the_keys_that_are_no_paths() {
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
            let read = with_paths_only(page(entry, key, &all).into());
            let left = ["a/index/1", "a/&amp;&lt;", "a/folder/"];
            assert_eq!(std::str::from_utf8(&read).unwrap(), page(entry, key, &left));
            assert_eq!(
                with_paths_only(page(entry, key, &left).into()),
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
            assert_eq!(with_paths_only(odd.to_owned().into()), odd);
        }
        assert!(
            is_listing("prefix=a&list-type=2")
                && is_listing("comp=list")
                && !is_listing("uploads=")
        );
    }
}
