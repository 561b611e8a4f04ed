//! Resolves a file: finds its digest and size, and verifies checksum and signature.

use super::checksum;
use super::locked::{LockedFile, LockedSidecar};
use super::request::{Checksum, FileRequest};
use crate::resolver::{ResolveError, Resolver};
use bytes::Bytes;
use futures_util::StreamExt;
use landfall_content::BlobRead;
use landfall_content::upstream::{expect_file, get_file, head_file};
use landfall_http::{BodyFailure, ErrorKind, HttpError, HttpResponse};
use landfall_model::sign::FileKey;
use landfall_model::{Algorithm, Descriptor, Digest, Hasher, media_type};
use std::io::Write;

/// Resolves `wanted`. If its SHA-256 is known, the file is not downloaded here: `pull` verifies it.
pub(super) async fn resolve(
    resolver: &Resolver,
    wanted: &FileRequest,
) -> Result<LockedFile, ResolveError> {
    let mut file = LockedFile {
        name: wanted.url.clone(),
        digest: Digest::sha256(b""),
        size: 0,
        checksum: wanted.checksum.as_ref().map(Checksum::to_string),
        sidecars: Vec::new(),
        also: wanted.also.clone(),
        mode: wanted.mode.clone(),
        signed_by: None,
        unpack: wanted.unpack.clone(),
    };
    let expected = match &wanted.checksum {
        None => None,
        Some(Checksum::Digest(digest)) => Some(digest.clone()),
        Some(Checksum::Sidecar(url)) => {
            let bytes = beside(resolver, url, "its checksum file").await?;
            let digest = checksum::find(&String::from_utf8_lossy(&bytes), &wanted.url)
                .map_err(|why| ResolveError::from(format!("its checksum file {why}")))?;
            file.sidecars.push(LockedSidecar {
                url: url.clone(),
                digest: Digest::sha256(&bytes),
                size: bytes.len() as u64,
            });
            Some(digest)
        }
    };
    let mut signatures = Vec::new();
    for url in &wanted.signatures {
        let bytes = beside(resolver, url, "its signature").await?;
        let (digest, size) = (Digest::sha256(&bytes), bytes.len() as u64);
        file.sidecars.push(LockedSidecar {
            url: url.clone(),
            digest,
            size,
        });
        signatures.push((url, bytes));
    }
    let known = expected
        .as_ref()
        .filter(|digest| digest.algorithm() == Algorithm::Sha256);
    let size = match known {
        Some(_) => size_of(resolver, &wanted.url).await?,
        None => None,
    };
    match (known, size) {
        (Some(digest), Some(size)) => (file.digest, file.size) = (digest.clone(), size),
        _ => (file.digest, file.size) = download(resolver, &wanted.url, expected.as_ref()).await?,
    }
    if let Some(key) = &wanted.key {
        file.signed_by = Some(signer(resolver, wanted, &file, key, &signatures).await?);
    }
    Ok(file)
}

/// Whether `old` has the signatures that `wanted` names, verified with its key.
pub(super) fn is_signed_as_asked(old: &LockedFile, wanted: &FileRequest) -> bool {
    let has = |url: &String| old.sidecars.iter().any(|sidecar| sidecar.url == *url);
    let is_checksum = |url: &String| old.checksum.as_ref() == Some(url);
    let asked = |sidecar: &LockedSidecar| {
        is_checksum(&sidecar.url) || wanted.signatures.contains(&sidecar.url)
    };
    let is_by = |key: &FileKey| old.signed_by.as_ref().is_some_and(|name| key.has(name));
    wanted.signatures.iter().all(has)
        && old.sidecars.iter().all(asked)
        && wanted.key.as_ref().is_none_or(is_by)
}

/// Verifies the signatures with `key` and returns who made one. A signature whose URL begins with
/// that of the checksum file signs the checksum file; any other signs the file, which must then be
/// downloaded.
async fn signer(
    resolver: &Resolver,
    wanted: &FileRequest,
    file: &LockedFile,
    key: &FileKey,
    signatures: &[(&String, Bytes)],
) -> Result<String, ResolveError> {
    let checksum = file
        .sidecars
        .first()
        .filter(|sidecar| file.checksum.as_ref() == Some(&sidecar.url));
    let mut why = Vec::new();
    for (url, signature) in signatures {
        if !key.may_check(signature) {
            continue;
        }
        let of_checksum = checksum.filter(|sidecar| url.starts_with(&sidecar.url));
        let content = match of_checksum {
            Some(sidecar) => sidecar.digest.clone(),
            None => {
                let (disk, digest, size) =
                    (resolver.disk().clone(), file.digest.clone(), file.size);
                let looking = tokio::task::spawn_blocking(move || disk.has(&digest, size));
                if !looking.await.is_ok_and(|has| has.unwrap_or(false)) {
                    download(resolver, &wanted.url, Some(&file.digest)).await?;
                }
                file.digest.clone()
            }
        };
        let (disk, key, signature) = (resolver.disk().clone(), key.clone(), signature.clone());
        let checking = tokio::task::spawn_blocking(move || {
            let open = || disk.open(&content, 0).map_err(std::io::Error::other);
            key.verify(&signature, open)
                .map_err(|error| error.to_string())
        });
        match checking
            .await
            .map_err(|error| ResolveError::local(error.to_string()))?
        {
            Ok(name) => return Ok(name),
            Err(error) => why.push(format!("{url}: {error}")),
        }
    }
    if why.is_empty() {
        why.push(format!(
            "none of its signatures is of the kind that {key} makes"
        ));
    }
    Err(format!("its signature does not count: {}", why.join("; ")).into())
}

/// Downloads a small file that belongs to the file, and stores it for `pull`. `what` is its name in
/// messages.
async fn beside(resolver: &Resolver, url: &str, what: &str) -> Result<Bytes, ResolveError> {
    let most = resolver.limits().document_bytes;
    let bytes = resolver.small_file(url, most, None).await;
    let bytes = bytes.map_err(|error| ResolveError::from(error).of(what))?;
    let descriptor = Descriptor {
        digest: Digest::sha256(&bytes),
        size: bytes.len() as u64,
        media_type: media_type::OCTETS.into(),
    };
    resolver.keep(descriptor, bytes.clone()).await;
    Ok(bytes)
}

/// The size that the server reports: by HEAD, or by GET if that fails (signed URLs of object stores
/// allow GET only, and some servers close the connection on HEAD). `None` if it reports none, or
/// compresses the body.
pub(super) async fn size_of(resolver: &Resolver, url: &str) -> Result<Option<u64>, ResolveError> {
    let sessions = resolver.sessions();
    let size = |response: &HttpResponse| match response.compression_error("the file") {
        None => response
            .header("content-length")
            .and_then(|length| length.parse().ok()),
        Some(_) => None,
    };
    match head_file(sessions, url).await {
        // some servers answer HEAD with a length of 0
        Ok(head) if head.status.is_success() && size(&head).is_some_and(|size: u64| size > 0) => {
            let found = size(&head);
            expect_file(head, url).await?;
            return Ok(found);
        }
        Ok(_) => {}
        Err(error) if error.is_transient() => {}
        Err(error) => return Err(error.into()),
    }
    let full = expect_file(get_file(sessions, url, None).await?, url).await?;
    Ok(size(&full).filter(|size| *size > 0))
}

/// Downloads the file into the store, hashing it. Returns its SHA-256 and size.
async fn download(
    resolver: &Resolver,
    url: &str,
    expected: Option<&Digest>,
) -> Result<(Digest, u64), ResolveError> {
    let mut attempts = resolver
        .sessions()
        .transport()
        .retry_policy()
        .body_attempts();
    loop {
        match download_once(resolver, url, expected).await {
            Ok(found) => return Ok(found),
            Err(failure) => attempts.after(failure).await?,
        }
    }
}

async fn download_once(
    resolver: &Resolver,
    url: &str,
    expected: Option<&Digest>,
) -> Result<(Digest, u64), BodyFailure<ResolveError>> {
    let local = |error: String| BodyFailure::Final(ResolveError::local(error));
    let response = expect_file(get_file(resolver.sessions(), url, None).await?, url).await?;
    // With a checksum, the bytes are verified anyway: some servers declare a .tgz as a compressed
    // encoding of its content, and send it unchanged.
    let compressed = response.compression_error("the file");
    if let Some(error) = compressed.clone().filter(|_| expected.is_none()) {
        return Err(error
            .hint("; a `checksum` in the manifest says which bytes are right")
            .into());
    }
    let length: Option<u64> = response
        .header("content-length")
        .and_then(|length| length.parse().ok());
    let mut temporary = resolver
        .disk()
        .temporary_file()
        .map_err(|error| local(error.to_string()))?;
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut check = expected.map(|digest| Hasher::new(digest.algorithm()));
    let mut size = 0;
    let mut stream = response.stream();
    while let Some(bytes) = stream.next().await {
        let bytes = bytes.map_err(BodyFailure::reading)?;
        hasher.update(&bytes);
        if let Some(check) = &mut check {
            check.update(&bytes);
        }
        size += bytes.len() as u64;
        temporary
            .write_all(&bytes)
            .map_err(|error| local(format!("cannot write to the store: {error}")))?;
        resolver.progress().bytes(bytes.len() as u64);
    }
    if length.is_some_and(|length| length != size) {
        let why = format!(
            "{url}: the answer ended after {size} of {} bytes",
            length.unwrap_or(0)
        );
        return Err(BodyFailure::reading(HttpError::new(
            ErrorKind::Network,
            why,
        )));
    }
    if let (Some(expected), Some(check)) = (expected, check) {
        let found = check.finish();
        if found != *expected {
            let why = format!("its checksum says {expected}, the file that came is {found}");
            return Err(
                compressed.map_or_else(|| BodyFailure::Wrong(why.into()), BodyFailure::from)
            );
        }
    }
    let digest = hasher.finish();
    let (disk, adopted) = (resolver.disk().clone(), digest.clone());
    // writing a large file to disk may block for long
    let adopting = tokio::task::spawn_blocking(move || disk.adopt(temporary, &adopted)).await;
    adopting
        .map_err(|error| local(error.to_string()))?
        .map_err(|error| local(error.to_string()))?;
    Ok((digest, size))
}
