//! The connected side as a source: registries for images, web servers for files.

use super::foreign;
use crate::content::{Origin, Part};
use crate::content::{Source, whole};
use crate::http::{ByteStream, Error, ErrorKind, Request, Response, Why, from_offset, shown_url};
use crate::model::Limits;
use crate::registry::Sessions;
use futures_util::future::BoxFuture;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, RANGE};
use std::sync::Arc;

/// Registries and web servers, by the names in the lock.
#[derive(Clone)]
pub struct Upstreams(pub Arc<Sessions>);

impl Source for Upstreams {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<(u64, ByteStream), Error>> {
        Box::pin(async move {
            match &part.from {
                Origin::Manifest { registry, repository } => {
                    let session = self.0.upstream(registry).await?;
                    let manifest = session.manifest(repository, &part.descriptor.digest.to_string()).await?;
                    Ok((0, whole(manifest.bytes)))
                }
                Origin::Blob { registry, repository } => {
                    let session = self.0.upstream(registry).await?;
                    session.blob(repository, &part.descriptor, offset).await
                }
                Origin::Foreign { registry, repository, manifests } => {
                    let session = self.0.upstream(registry).await?;
                    foreign::open(&self.0, &session, repository, manifests, part, offset).await
                }
                Origin::Url(url) => {
                    let (target, _) = self.0.file_url(url)?;
                    let size = part.descriptor.size;
                    let send = |range| get(&self.0, Method::GET, url, range);
                    let (start, response) =
                        from_offset(self.0.transport(), &target, offset, size, send).await?;
                    let response = answered(response)?;
                    let stream = match is_page(url) {
                        true => response.stream(),
                        false => response.content(size - start, "the file").await?,
                    };
                    Ok((start, stream))
                }
                Origin::Computed(bytes) => Ok((0, whole(bytes.clone().into()))),
                Origin::Trimmed { of, .. } => {
                    let message = format!("the trimmed index of {} is computed, not fetched", of.digest);
                    Err(Error::new(ErrorKind::Local, message))
                }
            }
        })
    }

    fn is_checked(&self) -> bool {
        false
    }

    fn limits(&self) -> Limits {
        *self.0.transport().limits()
    }

    fn distrust_ranges<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            match &part.from {
                Origin::Blob { registry, .. } | Origin::Foreign { registry, .. } => {
                    if let Ok(session) = self.0.upstream(registry).await {
                        session.distrust_ranges();
                    }
                }
                Origin::Url(url) => {
                    if let Ok((target, _)) = self.0.file_url(url) {
                        self.0.transport().distrust_ranges(&target);
                    }
                }
                Origin::Manifest { .. } | Origin::Computed(_) | Origin::Trimmed { .. } => {}
            }
        })
    }
}

/// [`Upstreams`] for bytes that pass straight into uploads, maybe to the very registry that they come from: there
/// an upload holds a slot of its host while it waits for them.
pub struct UploadFeed(pub Upstreams);

impl Source for UploadFeed {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<(u64, ByteStream), Error>> {
        Box::pin(async move {
            match &part.from {
                Origin::Blob { registry, repository } => {
                    let session = self.0.0.upstream(registry).await?;
                    session.blob_to_send(repository, &part.descriptor, offset).await
                }
                _ => self.0.open(part, offset).await,
            }
        })
    }

    fn is_checked(&self) -> bool {
        self.0.is_checked()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn distrust_ranges<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, ()> {
        self.0.distrust_ranges(part)
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
pub async fn expect_file(response: Response, url: &str) -> Result<Response, Error> {
    let response = answered(response)?;
    if response.is_page() && !is_page(url) { Err(response.page("the file").await) } else { Ok(response) }
}

/// Whether the file is an HTML page by its name.
fn is_page(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.ends_with(".html") || path.ends_with(".htm") || path.ends_with('/')
}

fn answered(response: Response) -> Result<Response, Error> {
    let kind = match response.status.as_u16() {
        200 | 206 => return Ok(response),
        404 | 410 => ErrorKind::NotFound,
        401 | 403 => ErrorKind::Denied,
        code => ErrorKind::Status(code),
    };
    Err(Error::new(kind, format!("{}: answered {}", shown_url(&response.url), response.status)))
}
