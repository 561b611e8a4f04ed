//! The connected side as a source: registries for images, web servers for files.

use super::file::{expect_success, get_file, is_page};
use super::foreign_layer;
use crate::registry::{RegistrySession, RegistrySessions};
use crate::{EntryPart, OpenedPart, PartOrigin, PartSource};
use futures_util::future::BoxFuture;
use landfall_http::{ByteStream, ErrorKind, HttpError, send_from_offset};
use std::sync::Arc;

/// Registries and web servers, addressed by the names in the lock.
#[derive(Clone)]
pub struct Upstreams(pub Arc<RegistrySessions>);

impl PartSource for Upstreams {
    fn host<'a>(&self, part: &'a EntryPart) -> &'a str {
        part.host()
    }

    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        Box::pin(async move {
            match &part.origin {
                PartOrigin::Manifest {
                    registry,
                    repository,
                } => {
                    let session = self.0.upstream(registry).await?;
                    let manifest = session.manifest_of(repository, &part.descriptor).await?;
                    // always from byte 0: manifests are small and verified as a whole
                    Ok(OpenedPart::whole(manifest.bytes))
                }
                PartOrigin::Blob {
                    registry,
                    repository,
                } => {
                    let session = self.0.upstream(registry).await?;
                    let (start, stream) =
                        session.blob(repository, &part.descriptor, offset).await?;
                    Ok(registry_blob(session, start, stream))
                }
                PartOrigin::Foreign {
                    registry,
                    repository,
                    manifests,
                } => {
                    let session = self.0.upstream(registry).await?;
                    let (start, stream) =
                        foreign_layer::open(&self.0, &session, repository, manifests, part, offset)
                            .await?;
                    Ok(registry_blob(session, start, stream))
                }
                PartOrigin::Url(_) | PartOrigin::Urls(_) => {
                    // a transfer tries several URLs one by one, so here is only the first
                    let url = part.origin.url().unwrap_or_default();
                    let (target, _) = self.0.file_url(url)?;
                    let size = part.descriptor.size;
                    let transport = self.0.transport();
                    let (start, response) =
                        send_from_offset(transport, &target, offset, size, |range| {
                            get_file(&self.0, url, range)
                        })
                        .await?;
                    let response = expect_success(response)?;
                    // `content_stream` refuses HTML pages, which this file is
                    let stream = if is_page(url) {
                        response.stream()
                    } else {
                        response.content_stream(size - start, "the file").await?
                    };
                    let transport = self.0.transport().clone();
                    Ok(opened_at(start, stream, move || {
                        transport.distrust_ranges(&target);
                    }))
                }
                PartOrigin::Computed(bytes) => Ok(OpenedPart::whole(bytes.clone().into())),
                PartOrigin::Trimmed { of, .. } => {
                    let message = format!(
                        "the trimmed index of {} is computed, not fetched",
                        of.digest
                    );
                    Err(HttpError::new(ErrorKind::Local, message))
                }
            }
        })
    }
}

/// Returns an opened blob of a registry. If it turns out wrong, no more ranges are requested there.
fn registry_blob(session: Arc<RegistrySession>, start: u64, stream: ByteStream) -> OpenedPart {
    opened_at(start, stream, move || session.distrust_ranges())
}

/// Returns an opened part. If it started in the middle and turns out wrong, `distrust` is called: a
/// part made of two responses does not show which one was wrong, so it is fetched as a whole next.
fn opened_at(
    start: u64,
    stream: ByteStream,
    distrust: impl FnOnce() + Send + 'static,
) -> OpenedPart {
    let opened = OpenedPart::unchecked(start, stream);
    if start > 0 {
        opened.on_corrupt(distrust)
    } else {
        opened
    }
}
