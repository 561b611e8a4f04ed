//! The connected side as a source: registries for images, web servers for files, git servers for
//! repositories, and content next to the lock.

mod file;
mod git_remote;
mod lfs_transfer;

use self::file::get_content;
use self::git_remote::FileFrom;
use self::lfs_transfer::open_large_file;
use crate::archives::ArchivedImages;
use crate::registry::{RegistrySession, RegistrySessions};
use crate::{
    EntryPart, GitPacks, LocalContent, LocalForm, OpenedPart, PartOrigin, PartSource, read_blocking,
};
use futures_util::future::BoxFuture;
use landfall_http::{ErrorKind, HttpError, HttpRequest, OnceMap, RequestPurpose, send_from_offset};
use landfall_model::{Descriptor, Digest, JsonText, locked};
use reqwest::Method;
use reqwest::header::RANGE;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::task::spawn_blocking;

pub use self::file::{
    expect_file, expect_success, expect_whole_file, get_current_file, get_file, head_file, is_page,
    post_json,
};
pub use self::git_remote::{
    GitPush, GitReceiver, fetch_pack, git_error, list_refs, push_refs, pushed_refs,
    write_pack_file, write_packs,
};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use self::lfs_transfer::fuzz;
pub use self::lfs_transfer::{missing_large_files, offered_large_files, upload_large_files};

/// Registries, web servers and git servers, addressed by the names in the lock.
pub struct Upstreams {
    sessions: Arc<RegistrySessions>,
    /// The packs of git repositories that this run wrote: one fetch yields all packs of a
    /// repository.
    git: OnceMap<Arc<GitPacks>, Vec<Arc<File>>>,
    /// The folder of the lock, to which the paths of local content are relative.
    folder: PathBuf,
    archived: ArchivedImages,
    /// The URLs that files were requested from.
    requested: Mutex<BTreeSet<String>>,
}

impl Upstreams {
    /// Returns a source that uses these sessions. Paths of local content are relative to the
    /// current folder.
    pub fn new(sessions: Arc<RegistrySessions>) -> Upstreams {
        Upstreams {
            sessions,
            git: OnceMap::default(),
            folder: ".".into(),
            archived: ArchivedImages::default(),
            requested: Mutex::default(),
        }
    }

    /// Sets the folder of the lock, to which the paths of local content are relative.
    #[must_use]
    pub fn beside_lock_in(self, folder: &Path) -> Upstreams {
        Upstreams {
            folder: folder.into(),
            ..self
        }
    }

    /// Opens content next to the lock, and verifies its digest first: content that was changed is
    /// not worth a retry.
    async fn open_local(
        &self,
        content: &LocalContent,
        descriptor: &Descriptor,
        offset: u64,
    ) -> Result<OpenedPart, HttpError> {
        let (folder, content, descriptor) =
            (self.folder.clone(), content.clone(), descriptor.clone());
        let busy = self.sessions.transport().activity().busy();
        let opening = spawn_blocking(move || content.open(&folder, &descriptor));
        let file = opening.await?;
        drop(busy);
        let file = file.map_err(|error| HttpError::new(ErrorKind::Local, error))?;
        Ok(file_from(Arc::new(file), offset))
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
                git_remote::fetch_packs(&self.sessions, &self.folder, repository.clone())
            })
            .await?;
        let file = packs
            .get(pack)
            .ok_or_else(|| HttpError::new(ErrorKind::Invalid, "the repository has no such pack"))?;
        Ok(file_from(file.clone(), offset))
    }
}

/// Reads a part from its file.
fn file_from(file: Arc<File>, at: u64) -> OpenedPart {
    OpenedPart::unchecked(at, read_blocking(Box::new(FileFrom { file, at })))
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
                PartOrigin::Manifest { registry, .. } | PartOrigin::Blob { registry, .. } => {
                    let session = self.sessions.upstream(registry).await?;
                    RegistryParts(session).open(part, offset).await
                }
                PartOrigin::Foreign {
                    registry,
                    repository,
                    manifests,
                } => {
                    let session = self.sessions.upstream(registry).await?;
                    open(
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
                    // wrong bytes may be those of a cache, which would send them again
                    let is_repeated = !locked(&self.requested).insert(url.to_owned());
                    let (start, response) =
                        send_from_offset(transport, &target, offset, size, |range| {
                            get_content(&self.sessions, url, range, is_repeated)
                        })
                        .await?;
                    let response = expect_success(response).await?;
                    // `content_stream` refuses HTML pages, but this file is one
                    let stream = if is_page(url) {
                        response.stream()
                    } else {
                        response.content_stream(size - start, "the file").await?
                    };
                    Ok(OpenedPart::ranged(start, stream, transport, &target))
                }
                PartOrigin::Git { repository, pack } => {
                    self.open_git(repository, *pack, offset).await
                }
                PartOrigin::LargeFile(server) => {
                    open_large_file(&self.sessions, server, &part.descriptor, offset).await
                }
                PartOrigin::Local(LocalContent {
                    path: Some(path),
                    form: LocalForm::Image(name),
                }) => {
                    let transport = self.sessions.transport();
                    let archived = &self.archived;
                    archived
                        .open(transport, &self.folder, path, name, &part.descriptor)
                        .await
                }
                PartOrigin::Local(content) => {
                    self.open_local(content, &part.descriptor, offset).await
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

// Foreign layers, such as those of Windows base images: a registry need not have them, and the
// manifest lists URLs for them (image-spec, "Non-Distributable Layers").

/// Opens a foreign layer: from the registry, or else from the URLs in the manifests of the image,
/// in order. The digest is verified, so the servers of the URLs need not be trusted. They get no
/// credentials.
async fn open(
    sessions: &RegistrySessions,
    session: &Arc<RegistrySession>,
    repository: &str,
    manifests: &[Descriptor],
    part: &EntryPart,
    offset: u64,
) -> Result<OpenedPart, HttpError> {
    let digest = &part.descriptor.digest;
    let lacks = match session.blob(repository, &part.descriptor, offset).await {
        // a registry may deny a blob that it lacks; after other errors it may still have it
        Err(error) if error.may_be_missing() => error,
        other => return other,
    };
    let mut first = None;
    for manifest in manifests {
        // another manifest of the image may list the same layer
        let Ok(manifest) = session.manifest_of(repository, manifest).await else {
            continue;
        };
        for url in urls(&manifest.bytes, digest) {
            match open_url(sessions, session, &url, offset, part.descriptor.size).await {
                Err(error) => first = first.or(Some(error)),
                opened => return opened,
            }
        }
    }
    Err(match first {
        Some(error) => HttpError::new(error.kind, format!("{lacks}; from its URLs: {error}")),
        None => lacks,
    })
}

/// Returns the URLs that a manifest lists for a layer.
fn urls(manifest: &[u8], digest: &Digest) -> Vec<String> {
    let text = String::from_utf8_lossy(manifest);
    let [layers] = JsonText::new(&text).members_if_object(["layers"]);
    let layers = layers.and_then(JsonText::elements).unwrap_or_default();
    let of_it = layers.into_iter().filter_map(|layer| {
        let [own, urls] = layer.members_if_object(["digest", "urls"]);
        let own: Digest = own?.string()?.parse().ok()?;
        urls.filter(|_| own == *digest)?.elements()
    });
    of_it.flatten().filter_map(JsonText::string).collect()
}

async fn open_url(
    sessions: &RegistrySessions,
    session: &RegistrySession,
    url: &str,
    offset: u64,
    size: u64,
) -> Result<OpenedPart, HttpError> {
    let (target, origin) = sessions.file_url(url)?;
    let send = |range: Option<String>| {
        let mut request = HttpRequest::new(Method::GET, target.clone(), RequestPurpose::File);
        request.origin.clone_from(&origin);
        // the URL comes from a manifest of the registry, not from the user
        request.named_by = Some(session.address());
        let request = request.optional_header(RANGE, range.as_deref());
        async move { sessions.transport().send(&request).await }
    };
    let (start, response) =
        send_from_offset(sessions.transport(), &target, offset, size, send).await?;
    let stream = expect_file(response, url).await?.stream();
    // if the bytes turn out wrong, this host is distrusted, not the registry
    Ok(OpenedPart::ranged(
        start,
        stream,
        sessions.transport(),
        &target,
    ))
}

// Blobs of registries as parts.

/// The manifests and blobs of one registry as a [`PartSource`].
pub struct RegistryParts(pub Arc<RegistrySession>);

impl PartSource for RegistryParts {
    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        Box::pin(async move {
            let RegistryParts(session) = self;
            match &part.origin {
                PartOrigin::Manifest { repository, .. } => {
                    let manifest = session.manifest_of(repository, &part.descriptor).await?;
                    // always from byte 0: manifests are small and verified as a whole
                    Ok(OpenedPart::whole(manifest.bytes))
                }
                PartOrigin::Blob { repository, .. } => {
                    session.blob(repository, &part.descriptor, offset).await
                }
                _ => Err(HttpError::new(
                    ErrorKind::Local,
                    format!("{} is not in a registry", part.descriptor.digest),
                )),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_from_the_layer_with_that_digest() {
        let digest = Digest::sha256(b"x");
        let manifest = format!(
            r#"{{"layers":[{{"digest":"sha256:00","urls":["http://no"]}},{{"digest":"{digest}","urls":["http://a","http://b"]}}]}}"#
        );
        assert_eq!(urls(manifest.as_bytes(), &digest), ["http://a", "http://b"]);
        assert!(urls(b"{}", &digest).is_empty() && urls(b"<", &digest).is_empty());
    }
}
