//! Resolves a file: its digest and size, checked against its checksum.

use super::checksum;
use super::locked::{File, Sidecar};
use super::wish::{Checksum, WantedFile};
use crate::http::{BodyFailure, Error, ErrorKind, Response};
use crate::item::resolver::{Cause, Resolver};
use crate::model::{Algorithm, Descriptor, Digest, Hasher, media_type};
use crate::upstream::{expect_file, get, head};
use bytes::Bytes;
use futures_util::StreamExt;
use std::io::Write;

/// Resolves `wanted`. If its SHA-256 is known already, it is not downloaded here; `pull` checks it.
pub(super) async fn resolve(resolver: &Resolver, wanted: &WantedFile) -> Result<File, Cause> {
    let mut file = File {
        name: wanted.url.clone(),
        digest: Digest::sha256(b""),
        size: 0,
        checksum: wanted.checksum.as_ref().map(Checksum::to_string),
        sidecars: Vec::new(),
        also: wanted.also.clone(),
        mode: wanted.mode.clone(),
    };
    let expected = match &wanted.checksum {
        None => None,
        Some(Checksum::Digest(digest)) => Some(digest.clone()),
        Some(Checksum::Sidecar(url)) => {
            let bytes = sidecar(resolver, url).await?;
            let digest = checksum::find(&String::from_utf8_lossy(&bytes), &wanted.url)
                .map_err(|why| Cause::from(format!("its checksum file {why}")))?;
            file.sidecars.push(Sidecar {
                url: url.clone(),
                digest: Digest::sha256(&bytes),
                size: bytes.len() as u64,
            });
            Some(digest)
        }
    };
    let known = expected.as_ref().filter(|digest| digest.algorithm() == Algorithm::Sha256);
    let size = match known {
        Some(_) => size_of(resolver, &wanted.url).await?,
        None => None,
    };
    match (known, size) {
        (Some(digest), Some(size)) => (file.digest, file.size) = (digest.clone(), size),
        _ => (file.digest, file.size) = download(resolver, &wanted.url, expected.as_ref()).await?,
    }
    Ok(file)
}

async fn sidecar(resolver: &Resolver, url: &str) -> Result<Bytes, Cause> {
    let most = resolver.limits().document_bytes;
    let bytes = resolver.small_file(url, most, None).await;
    let bytes = bytes.map_err(|error| Cause::from(error).of("its checksum file"))?;
    let descriptor = Descriptor {
        digest: Digest::sha256(&bytes),
        size: bytes.len() as u64,
        media_type: media_type::OCTETS.into(),
    };
    resolver.keep(&descriptor, &bytes);
    Ok(bytes)
}

/// The size that the server reports: by HEAD, or by GET where that gives none (signed URLs of object stores allow GET
/// only, and some servers hang up on HEAD). `None` if it reports none, or compresses the body.
pub(super) async fn size_of(resolver: &Resolver, url: &str) -> Result<Option<u64>, Cause> {
    let sessions = resolver.sessions();
    let size = |response: &Response| match response.compressed("the file") {
        None => response.header("content-length").and_then(|length| length.parse().ok()),
        Some(_) => None,
    };
    match head(sessions, url).await {
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
    let full = expect_file(get(sessions, url, None).await?, url).await?;
    Ok(size(&full).filter(|size| *size > 0))
}

/// Downloads the file into the store, hashing it. Returns its SHA-256 and size.
async fn download(resolver: &Resolver, url: &str, expected: Option<&Digest>) -> Result<(Digest, u64), Cause> {
    let mut attempts = resolver.sessions().transport().retries().bodies();
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
) -> Result<(Digest, u64), BodyFailure<Cause>> {
    let local = |error: String| BodyFailure::Final(Cause::local(error));
    let response = expect_file(get(resolver.sessions(), url, None).await?, url).await?;
    // a checksum knows whether these are the file's bytes: servers that call a .tgz's own form an encoding send it as it is
    let compressed = response.compressed("the file");
    if let Some(error) = compressed.clone().filter(|_| expected.is_none()) {
        return Err(error.hint("; a `checksum` in the manifest says which bytes are right").into());
    }
    let length: Option<u64> = response.header("content-length").and_then(|length| length.parse().ok());
    let mut temporary = resolver.disk().temporary().map_err(|error| local(error.to_string()))?;
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
        temporary.write_all(&bytes).map_err(|error| local(format!("cannot write to the store: {error}")))?;
        resolver.progress().bytes(bytes.len() as u64);
    }
    if length.is_some_and(|length| length != size) {
        let why = format!("{url}: the answer ended after {size} of {} bytes", length.unwrap_or(0));
        return Err(BodyFailure::reading(Error::new(ErrorKind::Network, why)));
    }
    if let (Some(expected), Some(check)) = (expected, check) {
        let found = check.finish();
        if found != *expected {
            let why = format!("its checksum says {expected}, the file that came is {found}");
            return Err(compressed.map_or_else(|| BodyFailure::Wrong(why.into()), BodyFailure::from));
        }
    }
    let digest = hasher.finish();
    resolver.disk().adopt(temporary, &digest).map_err(|error| local(error.to_string()))?;
    Ok((digest, size))
}
