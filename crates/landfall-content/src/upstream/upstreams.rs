//! The connected side as a source: registries for images, web servers for files, git servers for
//! repositories.

use super::file::{expect_success, get_file, is_page};
use super::foreign_layer;
use super::git_writer::{self, WrittenPack};
use super::lfs_transfer::open_large_file;
use super::registry_blob::open_registry_blob;
use crate::registry::RegistrySessions;
use crate::{EntryPart, GitPacks, OpenedPart, PartOrigin, PartSource, read_blocking};
use futures_util::future::BoxFuture;
use landfall_http::{ErrorKind, HttpError, OnceMap, send_from_offset};
use std::sync::Arc;

/// Registries, web servers and git servers, addressed by the names in the lock.
pub struct Upstreams {
    sessions: Arc<RegistrySessions>,
    /// The packs of git repositories that this run wrote: one fetch yields all packs of a
    /// repository.
    git: OnceMap<Arc<GitPacks>, Arc<Vec<WrittenPack>>>,
}

impl Upstreams {
    /// Returns a source that uses these sessions.
    pub fn new(sessions: Arc<RegistrySessions>) -> Upstreams {
        Upstreams {
            sessions,
            git: OnceMap::default(),
        }
    }

    /// Opens a pack of a git repository. The first call for a repository fetches it and writes all
    /// its packs.
    async fn open_git(
        &self,
        repository: &Arc<GitPacks>,
        pack: usize,
        offset: u64,
    ) -> Result<OpenedPart, HttpError> {
        let packs = self
            .git
            .get_or_try_init(repository.clone(), || {
                git_writer::fetch_packs(&self.sessions, repository.clone())
            })
            .await?;
        let written = packs
            .get(pack)
            .ok_or_else(|| HttpError::new(ErrorKind::Invalid, "the repository has no such pack"))?;
        Ok(OpenedPart::unchecked(
            offset,
            read_blocking(written.reader(offset)),
        ))
    }
}

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
                    let session = self.sessions.upstream(registry).await?;
                    let manifest = session.manifest_of(repository, &part.descriptor).await?;
                    // always from byte 0: manifests are small and verified as a whole
                    Ok(OpenedPart::whole(manifest.bytes))
                }
                PartOrigin::Blob {
                    registry,
                    repository,
                } => {
                    let session = self.sessions.upstream(registry).await?;
                    open_registry_blob(&session, repository, &part.descriptor, offset).await
                }
                PartOrigin::Foreign {
                    registry,
                    repository,
                    manifests,
                } => {
                    let session = self.sessions.upstream(registry).await?;
                    foreign_layer::open(
                        &self.sessions,
                        &session,
                        repository,
                        manifests,
                        part,
                        offset,
                    )
                    .await
                }
                PartOrigin::Url(_) | PartOrigin::Urls(_) => {
                    // a transfer tries several URLs one by one, so only the first is used here
                    let url = part.origin.url().unwrap_or_default();
                    let (target, _) = self.sessions.file_url(url)?;
                    let size = part.descriptor.size;
                    let transport = self.sessions.transport();
                    let (start, response) =
                        send_from_offset(transport, &target, offset, size, |range| {
                            get_file(&self.sessions, url, range)
                        })
                        .await?;
                    let response = expect_success(response).await?;
                    // `content_stream` refuses HTML pages, but this file is one
                    let stream = if is_page(url) {
                        response.stream()
                    } else {
                        response.content_stream(size - start, "the file").await?
                    };
                    let transport = self.sessions.transport().clone();
                    Ok(OpenedPart::ranged(start, stream, move || {
                        transport.distrust_ranges(&target);
                    }))
                }
                PartOrigin::Git { repository, pack } => {
                    self.open_git(repository, *pack, offset).await
                }
                PartOrigin::LargeFile(server) => {
                    open_large_file(&self.sessions, server, &part.descriptor, offset).await
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
