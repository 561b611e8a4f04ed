//! The connected side as a source: registries for images, web servers for files.

use super::foreign;
use crate::content::{Opened, Origin, Part, Source};
use crate::http::{ByteStream, Error, ErrorKind, Purpose, Request, Response, from_offset};
use crate::registry::{Session, Sessions};
use futures_util::future::BoxFuture;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, RANGE};
use std::sync::Arc;

/// Registries and web servers, by the names in the lock.
#[derive(Clone)]
pub struct Upstreams(pub Arc<Sessions>);

impl Source for Upstreams {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(async move {
            match &part.origin {
                Origin::Manifest { registry, repository } => {
                    let session = self.0.upstream(registry).await?;
                    let manifest = session.manifest(repository, &part.descriptor.digest.to_string()).await?;
                    Ok(Opened::whole(manifest.bytes))
                }
                Origin::Blob { registry, repository } => {
                    let session = self.0.upstream(registry).await?;
                    let blob = session.blob(repository, &part.descriptor, offset).await?;
                    Ok(of_registry(session, blob))
                }
                Origin::Foreign { registry, repository, manifests } => {
                    let session = self.0.upstream(registry).await?;
                    let layer = foreign::open(&self.0, &session, repository, manifests, part, offset).await?;
                    Ok(of_registry(session, layer))
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
                    let transport = self.0.transport().clone();
                    Ok(resumed(start, stream, move || transport.distrust_ranges(&target)))
                }
                Origin::Computed(bytes) => Ok(Opened::whole(bytes.clone().into())),
                Origin::Trimmed { of, .. } => {
                    let message = format!("the trimmed index of {} is computed, not fetched", of.digest);
                    Err(Error::new(ErrorKind::Local, message))
                }
            }
        })
    }
}

/// A registry's blob. If ranges of it gave wrong bytes, none is asked for again.
fn of_registry(session: Arc<Session>, (start, stream): (u64, ByteStream)) -> Opened {
    resumed(start, stream, move || session.distrust_ranges())
}

/// An answer that may be a range: `distrust` is done if the content turns out wrong, as the beginning or the rest
/// was wrong, and the whole will tell.
fn resumed(start: u64, stream: ByteStream, distrust: impl FnOnce() + Send + 'static) -> Opened {
    let opened = Opened::unchecked(start, stream);
    if start > 0 { opened.on_wrong(distrust) } else { opened }
}

/// [`Upstreams`] for bytes that pass straight into uploads, maybe to the very registry that they come from: there
/// an upload holds a slot of its host while it waits for them.
pub struct UploadFeed(pub Upstreams);

impl Source for UploadFeed {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(async move {
            match &part.origin {
                Origin::Blob { registry, repository } => {
                    let session = self.0.0.upstream(registry).await?;
                    let blob = session.blob_to_send(repository, &part.descriptor, offset).await?;
                    Ok(of_registry(session, blob))
                }
                _ => self.0.open(part, offset).await,
            }
        })
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
    let mut request = Request::new(method, target, Purpose::File);
    request.origin = origin;
    if let Some(range) = range {
        request = request.header(RANGE, &range);
    }
    let account = sessions.keychain().find(&host, "").await?;
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
    let words = format!("answered {}", response.status);
    Err(Error::new(kind, words).at(&response.url).answered(response.status))
}
