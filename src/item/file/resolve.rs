//! Resolves a file: its digest and size, checked against its checksum.

use super::checksum;
use super::locked::{File, Sidecar};
use super::wish::{Checksum, WantedFile};
use crate::http::{Error, ErrorKind, Response};
use crate::item::resolver::{Cause, Resolver};
use crate::model::{Algorithm, Descriptor, Digest, Hasher, media_type};
use crate::upstream::{expect_file, get};
use futures_util::StreamExt;
use reqwest::Method;
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

async fn sidecar(resolver: &Resolver, url: &str) -> Result<Vec<u8>, Cause> {
    let fetch = async || {
        let response = expect_file(get(resolver.sessions(), Method::GET, url, None).await?, url).await?;
        response.bytes(resolver.limits().document_bytes).await
    };
    let bytes = again(resolver, fetch).await;
    let bytes = bytes.map_err(|error: Error| Cause::from(error).of("its checksum file"))?.to_vec();
    let descriptor = Descriptor {
        digest: Digest::sha256(&bytes),
        size: bytes.len() as u64,
        media_type: media_type::OCTETS.into(),
    };
    resolver.keep(&descriptor, &bytes);
    Ok(bytes)
}

/// The size that the server reports: by HEAD, or by GET if it refuses HEAD (signed URLs of object stores allow GET
/// only). `None` if it reports none, or compresses the body.
pub(super) async fn size_of(resolver: &Resolver, url: &str) -> Result<Option<u64>, Cause> {
    let sessions = resolver.sessions();
    let size = |response: &Response| match response.header("content-encoding") {
        None | Some("identity") => response.header("content-length").and_then(|length| length.parse().ok()),
        Some(_) => None,
    };
    let head = get(sessions, Method::HEAD, url, None).await?;
    // some servers answer HEAD with a length of 0
    if let Some(found) = size(&head).filter(|size| *size > 0 && head.status.is_success()) {
        expect_file(head, url).await?;
        return Ok(Some(found));
    }
    drop(head);
    let full = expect_file(get(sessions, Method::GET, url, None).await?, url).await?;
    Ok(size(&full).filter(|size| *size > 0))
}

/// Tries again while the body breaks off.
async fn again<T>(resolver: &Resolver, work: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    let mut attempts = resolver.sessions().transport().retries().start();
    loop {
        match work().await {
            Err(error) if error.is_transient() && attempts.again().await => {}
            result => return result,
        }
    }
}

/// Downloads the file into the store, hashing it. Returns its SHA-256 and size.
async fn download(resolver: &Resolver, url: &str, expected: Option<&Digest>) -> Result<(Digest, u64), Cause> {
    let mut attempts = resolver.sessions().transport().retries().start();
    loop {
        match download_once(resolver, url, expected).await {
            Err(Download::Cut(_)) if attempts.again().await => {}
            Err(Download::Cut(why) | Download::Final(why)) => return Err(why),
            Ok(found) => return Ok(found),
        }
    }
}

enum Download {
    Cut(Cause),
    Final(Cause),
}

async fn download_once(
    resolver: &Resolver,
    url: &str,
    expected: Option<&Digest>,
) -> Result<(Digest, u64), Download> {
    let from_http = |error: Error| match error.is_transient() {
        true => Download::Cut(error.into()),
        false => Download::Final(error.into()),
    };
    let local = |error: String| Download::Final(Cause::local(error));
    let response = get(resolver.sessions(), Method::GET, url, None).await.map_err(from_http)?;
    let response = expect_file(response, url).await.map_err(from_http)?;
    let length: Option<u64> = response.header("content-length").and_then(|length| length.parse().ok());
    let mut temporary = resolver.disk().temporary().map_err(|error| local(error.to_string()))?;
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut check = expected.map(|digest| Hasher::new(digest.algorithm()));
    let mut size = 0;
    let mut stream = response.stream();
    while let Some(bytes) = stream.next().await {
        let bytes = bytes.map_err(from_http)?;
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
        return Err(from_http(Error::new(ErrorKind::Network, why)));
    }
    if let (Some(expected), Some(check)) = (expected, check) {
        let found = check.finish();
        if found != *expected {
            let why = format!("its checksum says {expected}, the file that came is {found}");
            return Err(Download::Final(why.into()));
        }
    }
    let digest = hasher.finish();
    resolver.disk().adopt(temporary, &digest).map_err(|error| local(error.to_string()))?;
    Ok((digest, size))
}
