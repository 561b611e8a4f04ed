//! The connected side as a source: registries for images, web servers for files.

use super::{From, Part, foreign};
use crate::http::{ByteStream, Error, ErrorKind, Request, Response, Why, from_offset, shown_url};
use crate::registry::Sessions;
use crate::store::{Source, whole};
use futures_util::future::BoxFuture;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, RANGE};
use std::sync::Arc;

/// Registries and web servers, by the names in the lock.
#[derive(Clone)]
pub struct Upstreams(pub Arc<Sessions>);

impl Source for Upstreams {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<(u64, ByteStream), Error>> {
        Box::pin(async move {
            match &part.from {
                From::Manifest { registry, repository } => {
                    let session = self.0.upstream(registry).await?;
                    let manifest = session.manifest(repository, &part.descriptor.digest.to_string()).await?;
                    Ok((0, whole(manifest.bytes)))
                }
                From::Blob { registry, repository } => {
                    let session = self.0.upstream(registry).await?;
                    session.blob(repository, &part.descriptor.digest, offset).await
                }
                From::Foreign { registry, repository, manifests } => {
                    let session = self.0.upstream(registry).await?;
                    foreign::open(&self.0, &session, repository, manifests, part, offset).await
                }
                From::Url(url) => {
                    let send = |range| get(&self.0, Method::GET, url, range);
                    let (start, response) = from_offset(offset, send).await?;
                    Ok((start, expect_file(response, url)?.stream()))
                }
                From::Computed(bytes) => Ok((0, whole(bytes.clone().into()))),
                From::Trimmed { of, .. } => {
                    let message = format!("the trimmed index of {} is computed, not fetched", of.digest);
                    Err(Error::new(ErrorKind::Local, message))
                }
            }
        })
    }

    fn is_checked(&self) -> bool {
        false
    }
}

/// Asks for a plain file, or for a range of it, with the account of its host where there is one.
///
/// # Errors
/// When there is no answer.
pub async fn get(
    sessions: &Sessions,
    method: Method,
    url: &str,
    range: Option<String>,
) -> Result<Response, Error> {
    let (target, origin) = sessions.file_url(url)?;
    let port = target.port().map(|port| format!(":{port}")).unwrap_or_default();
    let host = format!("{}{port}", target.host_str().unwrap_or_default());
    let mut request = Request::new(method, target, Why::File);
    request.origin = origin;
    if let Some(range) = range {
        request = request.header(RANGE, &range);
    }
    let account =
        sessions.keychain().find(&host, "").await.map_err(|why| Error::new(ErrorKind::Local, why))?;
    if let Some(header) = account.and_then(|account| account.secret.basic_header())
        && request.url.scheme() == "https"
    {
        request = request.header(AUTHORIZATION, &header);
    }
    sessions.transport().send(&request).await
}

/// The answer if it is the file; else an error. An HTML page in place of something that is none is the
/// page of a proxy or a sign-in, not the file.
///
/// # Errors
/// The status, by its class.
pub fn expect_file(response: Response, url: &str) -> Result<Response, Error> {
    let shown = shown_url(&response.url);
    let html = response.header(CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("text/html"));
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let kind = match response.status.as_u16() {
        200 | 206 if html && !(path.ends_with(".html") || path.ends_with(".htm") || path.ends_with('/')) => {
            let message =
                format!("{shown}: an HTML page came in place of the file: from a proxy or a sign-in?");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        200 | 206 => return Ok(response),
        404 | 410 => ErrorKind::NotFound,
        401 | 403 => ErrorKind::Denied,
        code => ErrorKind::Status(code),
    };
    Err(Error::new(kind, format!("{shown}: answered {}", response.status)))
}
