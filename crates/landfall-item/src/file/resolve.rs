//! Resolves a file: finds its digest and size, and verifies checksum and signature.

use super::checksum;
use super::locked::{LockedFile, LockedSidecar};
use super::request::{Checksum, FileRequest};
use super::signatures::descriptor;
use crate::resolver::{ResolveError, Resolver};
use bytes::Bytes;
use futures_util::StreamExt;
use landfall_content::BlobRead;
use landfall_content::upstream::{expect_file, get_file, head_file};
use landfall_http::{BodyFailure, ErrorKind, HttpError, HttpResponse};
use landfall_model::sign::{FileKey, SignatureTime};
use landfall_model::{Algorithm, Digest, Hasher};
use std::io::Write;

/// Resolves `request`. If the SHA-256 of the file is known and the server reports the size, the
/// file is downloaded here only to verify a signature: `pull` verifies the digest.
pub(super) async fn resolve(
    resolver: &Resolver,
    request: &FileRequest,
) -> Result<LockedFile, ResolveError> {
    let mut file = LockedFile {
        name: request.url.clone(),
        digest: Digest::sha256(b""),
        size: 0,
        checksum: request.checksum.as_ref().map(Checksum::to_string),
        sidecars: Vec::new(),
        also: request.also.clone(),
        mode: request.mode.clone(),
        signed_by: None,
        verified: Vec::new(),
        log_entry: None,
        unpack: request.unpack.clone(),
    };
    let expected = match &request.checksum {
        None => None,
        Some(Checksum::Digest(digest)) => Some(digest.clone()),
        Some(Checksum::Sidecar(url)) => {
            let (sidecar, bytes) = download_sidecar(resolver, url)
                .await
                .map_err(|error| ResolveError::from(error).about("its checksum file"))?;
            file.sidecars.push(sidecar);
            let digest = checksum::find(&checksum::text_of(&bytes), &request.url)
                .map_err(|why| ResolveError::from(format!("its checksum file {why}")))?;
            Some(digest)
        }
    };
    let mut signatures = Vec::new();
    for url in &request.signatures {
        let (sidecar, bytes) = download_sidecar(resolver, url)
            .await
            .map_err(|error| ResolveError::from(error).about("its signature"))?;
        file.sidecars.push(sidecar);
        signatures.push((url, bytes));
    }
    // the lock names files by SHA-256, so a file with a SHA-512 checksum must be downloaded and
    // hashed
    let known = expected
        .as_ref()
        .filter(|digest| digest.algorithm() == Algorithm::Sha256);
    let size = match known {
        Some(_) => size_of(resolver, &request.url).await?,
        None => None,
    };
    (file.digest, file.size) = match (known, size) {
        (Some(digest), Some(size)) => (digest.clone(), size),
        _ => download(resolver, &request.url, expected.as_ref()).await?,
    };
    if let Some(key) = &request.key {
        file.signed_by = Some(verify_signatures(resolver, &file, key, &signatures).await?);
    }
    Ok(file)
}

/// Verifies the signatures with `key` and returns the name of the key that made one. A signature
/// whose URL begins with the URL of the checksum file signs the checksum file; any other signs the
/// file, which must then be downloaded.
async fn verify_signatures(
    resolver: &Resolver,
    file: &LockedFile,
    key: &FileKey,
    signatures: &[(&String, Bytes)],
) -> Result<String, ResolveError> {
    let checksum = file.checksum_sidecar();
    let mut failures = Vec::new();
    for (url, signature) in signatures {
        // certificates and signatures of other formats are carried without being verified
        if !key.may_check(signature) {
            continue;
        }
        let signed = match checksum.filter(|sidecar| url.starts_with(&sidecar.url)) {
            Some(sidecar) => sidecar.digest.clone(),
            None => {
                ensure_downloaded(resolver, file).await?;
                file.digest.clone()
            }
        };
        // one valid signature is enough
        match verify_stored(resolver, signed, key, signature).await? {
            Ok(name) => return Ok(name),
            Err(why) => failures.push(format!("{url}: {why}")),
        }
    }
    if failures.is_empty() {
        failures.push(format!("none of its signatures has the format of {key}"));
    }
    Err(format!("its signature is not valid: {}", failures.join("; ")).into())
}

/// Downloads `file` unless the store has it.
pub(super) async fn ensure_downloaded(
    resolver: &Resolver,
    file: &LockedFile,
) -> Result<(), ResolveError> {
    let disk = resolver.disk().clone();
    let digest = file.digest.clone();
    let size = file.size;
    let has_file = tokio::task::spawn_blocking(move || disk.has(&digest, size)).await;
    if !has_file.is_ok_and(|has| has.unwrap_or(false)) {
        download(resolver, &file.name, Some(&file.digest)).await?;
    }
    Ok(())
}

/// Verifies `signature` of the stored blob `signed`. Returns the name of the key, or why the
/// signature is not valid.
async fn verify_stored(
    resolver: &Resolver,
    signed: Digest,
    key: &FileKey,
    signature: &Bytes,
) -> Result<Result<String, String>, ResolveError> {
    let disk = resolver.disk().clone();
    let key = key.clone();
    let signature = signature.clone();
    tokio::task::spawn_blocking(move || {
        let open = || disk.open(&signed, 0).map_err(std::io::Error::other);
        key.verify(&signature, SignatureTime::Now, open)
            .map_err(|error| error.to_string())
    })
    .await
    .map_err(|error| ResolveError::local(error.to_string()))
}

/// Downloads a sidecar and stores it for `pull`.
pub(super) async fn download_sidecar(
    resolver: &Resolver,
    url: &str,
) -> Result<(LockedSidecar, Bytes), HttpError> {
    let limit = resolver.limits().document_bytes;
    let bytes = resolver.small_file(url, limit, None).await?;
    let sidecar = LockedSidecar {
        url: url.to_owned(),
        digest: Digest::sha256(&bytes),
        size: bytes.len() as u64,
    };
    resolver.keep(descriptor(&sidecar), bytes.clone()).await;
    Ok((sidecar, bytes))
}

/// The size that the server reports: by HEAD, or by GET if HEAD fails or reports no size. `None` if
/// GET reports none either, or the server compresses the body.
pub(super) async fn size_of(resolver: &Resolver, url: &str) -> Result<Option<u64>, ResolveError> {
    let sessions = resolver.sessions();
    // Signed URLs of object stores allow GET only, and some servers close the connection on HEAD,
    // so such failures of HEAD say nothing about the file.
    match head_file(sessions, url).await {
        Ok(head) if head.status.is_success() => {
            let size = reported_size(&head);
            if size.is_some() {
                expect_file(head, url).await?;
                return Ok(size);
            }
        }
        Ok(_) => {}
        Err(error) if error.is_transient() => {}
        Err(error) => return Err(error.into()),
    }
    let full = expect_file(get_file(sessions, url, None).await?, url).await?;
    Ok(reported_size(&full))
}

/// The size of the file according to the header of `response`. `None` if the body is compressed,
/// since the header then counts compressed bytes, or if the size is 0, as some servers report for
/// HEAD.
fn reported_size(response: &HttpResponse) -> Option<u64> {
    if response.compression_error("the file").is_some() {
        return None;
    }
    response
        .header("content-length")
        .and_then(|length| length.parse().ok())
        .filter(|size| *size > 0)
}

/// Downloads the file into the store and hashes it meanwhile. Returns its SHA-256 and size.
pub(crate) async fn download(
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
    // With a checksum, a declared compression is accepted, since the bytes are verified. Some
    // servers declare a .tgz as a compressed encoding of its content, but send it unchanged.
    let compressed = response.compression_error("the file");
    if let Some(error) = compressed.clone().filter(|_| expected.is_none()) {
        return Err(error
            .hint("; add a `checksum` to the manifest so that the bytes can be verified")
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
    if let Some(length) = length.filter(|length| *length != size) {
        let why = format!("{url}: the response ended after {size} of {length} bytes");
        return Err(BodyFailure::reading(HttpError::new(
            ErrorKind::Network,
            why,
        )));
    }
    if let (Some(expected), Some(check)) = (expected, check) {
        let found = check.finish();
        if found != *expected {
            let why = format!("its checksum is {expected}, but the downloaded file is {found}");
            return Err(
                compressed.map_or_else(|| BodyFailure::Wrong(why.into()), BodyFailure::from)
            );
        }
    }
    let digest = hasher.finish();
    let disk = resolver.disk().clone();
    let adopted = digest.clone();
    // flushing a large file to disk may block for long
    let adopting = tokio::task::spawn_blocking(move || disk.adopt(temporary, &adopted)).await;
    adopting
        .map_err(|error| local(error.to_string()))?
        .map_err(|error| local(error.to_string()))?;
    Ok((digest, size))
}
