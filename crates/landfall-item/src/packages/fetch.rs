//! Fetches and verifies the metadata of an apt suite: the release by its signature, each index by
//! its digest in the release.

use super::consistent::read_consistent;
use super::locked::{PackageIndex, PackageSource};
use super::release_indexes::{ListedIndex, in_folder, indexes};
use super::request::PackageSourceRequest;
use super::suites::Suite;
use crate::resolver::{ResolveError, Resolver};
use bytes::Bytes;
use landfall_content::BlobRead;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::sign::SignatureTime;
use landfall_model::{Descriptor, Digest, media_type};
use landfall_packages::apt::{AptRelease, check_index_size};
use landfall_packages::{Compression, PackagesError, decompress, file_url};

const NOT_SIGNED: &str = "it is not signed: it has a Release, but neither InRelease nor \
                          Release.gpg; landfall locks only signed repositories, so ask its owner \
                          to sign it, or sign a mirror of it yourself";
impl From<PackagesError> for ResolveError {
    fn from(error: PackagesError) -> ResolveError {
        error.to_string().into()
    }
}

/// Fetches the metadata of the source `requested`. The metadata must not be older than `after`, the
/// date of the metadata in the last lock.
pub(super) async fn suite(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    architectures: &[String],
    after: Option<&str>,
) -> Result<Suite, ResolveError> {
    // a flat repository has its Release file in the folder that the suite names, not below `dists`
    let folder = match requested.suite.strip_suffix('/') {
        Some(path) => path.to_owned(),
        None => format!("dists/{}", requested.suite),
    };
    read_consistent(
        async || fetch_release(resolver, requested, &folder).await,
        async |signed: &SignedRelease| {
            fetch_suite(resolver, requested, &folder, architectures, after, signed).await
        },
    )
    .await
}

/// Checks the signed release of a suite and fetches the indexes that it names.
async fn fetch_suite(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    folder: &str,
    architectures: &[String],
    after: Option<&str>,
    signed: &SignedRelease,
) -> Result<Suite, ResolveError> {
    let release = AptRelease::parse(&signed.name, &signed.text)?;
    if requested.check_valid_until {
        release
            .check_time(&signed.name, jiff::Timestamp::now())
            .map_err(|expired| {
                format!(
                    "{expired}; if this is an archive or a snapshot, write `checkValidUntil: \
                     false` in its source"
                )
            })?;
    }
    let date = release.date.map(|date| date.to_string());
    check_age(&signed.name, date.as_deref(), after)?;
    check_suite(requested, &signed.name, &release)?;
    let mut source = PackageSource {
        url: requested.url.clone(),
        suite: requested.suite.clone(),
        components: requested.components.clone(),
        targets: requested.targets.clone(),
        by_hash: release.by_hash,
        snapshot: None,
        date,
        valid_until: release.valid_until.map(|until| until.to_string()),
        key: requested
            .keys
            .certificate(&signed.by)
            .ok_or("the key that signed it cannot be encoded")?,
        signed_by: signed.by.clone(),
        indexes: signed.files.clone(),
        packages: Vec::new(),
    };
    let mut texts = Vec::new();
    for listed in indexes(
        requested,
        folder,
        architectures,
        &release,
        resolver.limits().package_index_bytes,
    )? {
        let name = listed.index.path.clone();
        let read = listed.read.map(|(_, limit)| limit);
        let Some((index, compression, bytes)) = fetch_form(resolver, &source, listed).await? else {
            resolver.note_once(&format!(
                "{}: {name} is not carried: the server lacks it, and apt does not need it",
                requested.describe()
            ));
            continue;
        };
        if let Some((limit, compression)) = read.zip(compression) {
            let unpacked =
                tokio::task::spawn_blocking(move || decompress(&name, &bytes, compression, limit));
            let text = unpacked
                .await
                .map_err(|error| ResolveError::local(error.to_string()))??;
            // like apt, accept bytes that are not UTF-8, as in the name of a maintainer
            let text = String::from_utf8_lossy(&text).into_owned();
            check_index_size(&index.path, &text)?;
            texts.push(text);
        }
        source.indexes.push(index);
    }
    source.indexes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Suite {
        source,
        name: signed.name.clone(),
        release,
        texts,
    })
}

/// Fetches the first form of `listed` that the server has, as apt does. Returns the form with its
/// compression. `None` if the server has none and apt does not need the index.
async fn fetch_form(
    resolver: &Resolver,
    source: &PackageSource,
    listed: ListedIndex,
) -> Result<Option<(PackageIndex, Option<Compression>, Bytes)>, ResolveError> {
    let ListedIndex {
        index,
        read,
        others,
        is_optional,
    } = listed;
    // Contents are larger than all that landfall reads; `pull` streams them
    if read.is_none() && index.size > resolver.limits().package_index_bytes {
        return Ok(Some((index, None, Bytes::new())));
    }
    let mut forms = vec![(index, read.map(|(compression, _)| compression))];
    forms.extend(others);
    let mut first_error = None;
    for (index, compression) in forms {
        match fetch(resolver, source, &index, &[]).await {
            Ok(bytes) => return Ok(Some((index, compression, bytes))),
            Err(cause) if cause.is_gone => drop(first_error.get_or_insert(cause)),
            // the error is about the preferred form
            Err(cause) => return Err(first_error.unwrap_or(cause)),
        }
    }
    first_error.filter(|_| !is_optional).map_or(Ok(None), Err)
}

/// Rejects a release of another suite. One key signs all suites of a repository, so a hostile
/// mirror could serve the valid release of an older suite. A flat repository has a path instead of
/// a suite name, so it is checked only if the manifest has a `codename`.
fn check_suite(
    requested: &PackageSourceRequest,
    name: &str,
    release: &AptRelease,
) -> Result<(), ResolveError> {
    let suite = requested.codename.as_ref().unwrap_or(&requested.suite);
    if suite.ends_with('/') || release.is_of_suite(suite) {
        return Ok(());
    }
    let names = release.names();
    let codename = release.codename.as_ref().or(release.suite.as_ref());
    Err(format!(
        "{name} is the release of {names}, not of {suite}; if the mirror is right, write \
         `codename: {}` in its source",
        codename.map_or("", String::as_str)
    )
    .into())
}

/// Rejects metadata that is older than that of the last lock. Otherwise a mirror could hide
/// security updates by serving an old, validly signed release.
pub(super) fn check_age(
    name: &str,
    date: Option<&str>,
    after: Option<&str>,
) -> Result<(), ResolveError> {
    match (date, after) {
        // both are UTC timestamps in the same format, so they can be compared as texts
        (Some(date), Some(after)) if date < after => Err(format!(
            "{name} has the date {date}, older than {after} in the lock: the mirror is behind, or \
             an old file is being replayed"
        )
        .into()),
        _ => Ok(()),
    }
}

/// A release with a valid signature.
#[derive(PartialEq)]
struct SignedRelease {
    /// The path of the Release file.
    name: String,
    /// The text whose signature was verified.
    text: String,
    /// The fingerprint of the key that signed it.
    by: String,
    /// The Release file, and its signature if that is a separate file.
    files: Vec<PackageIndex>,
}

/// Fetches `InRelease`, or `Release` with `Release.gpg`.
async fn fetch_release(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    folder: &str,
) -> Result<SignedRelease, ResolveError> {
    let name = in_folder(folder, "InRelease");
    match fetch_small(resolver, requested, &name).await {
        Ok(bytes) => {
            let (text, by) = requested
                .keys
                .verify(&release_text(&bytes)?, SignatureTime::Now)
                .map_err(|error| ResolveError::from(format!("{name}: {error}")))?;
            let files = vec![store_index(resolver, requested, name.clone(), bytes).await];
            Ok(SignedRelease {
                name,
                text,
                by,
                files,
            })
        }
        Err(error) if error.may_be_missing() => {
            let name = in_folder(folder, "Release");
            // two files are read, and the mirror may be updated between them
            read_consistent(
                async || Ok(fetch_small(resolver, requested, &name).await?),
                async |bytes: &Bytes| detached_release(resolver, requested, folder, bytes).await,
            )
            .await
        }
        Err(error) => Err(error.into()),
    }
}

/// Verifies `bytes`, the content of `Release`, with `Release.gpg`, and returns the release.
async fn detached_release(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    folder: &str,
    bytes: &Bytes,
) -> Result<SignedRelease, ResolveError> {
    let name = in_folder(folder, "Release");
    let signature_name = in_folder(folder, "Release.gpg");
    let signature = fetch_small(resolver, requested, &signature_name)
        .await
        .map_err(|error| {
            if error.may_be_missing() {
                ResolveError::from(NOT_SIGNED)
            } else {
                ResolveError::from(error).about("the signature of its release")
            }
        })?;
    let by = requested
        .keys
        .verify_detached(&signature, SignatureTime::Now, || Ok(&bytes[..]))
        .map_err(|error| ResolveError::from(format!("{signature_name}: {error}")))?;
    let files = vec![
        store_index(resolver, requested, name.clone(), bytes.clone()).await,
        store_index(resolver, requested, signature_name, signature).await,
    ];
    Ok(SignedRelease {
        name,
        text: release_text(bytes)?,
        by,
        files,
    })
}

/// Downloads the small file at `path` of a source.
async fn fetch_small(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    path: &str,
) -> Result<Bytes, HttpError> {
    let limit = resolver.limits().document_bytes;
    resolver
        .small_file(&file_url(&requested.url, path), limit, None)
        .await
}

fn release_text(bytes: &Bytes) -> Result<String, ResolveError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "its release is not UTF-8 text".into())
}

/// Fetches an index and verifies its digest. The index is read from the store, or else downloaded:
/// from the source by digest (`by-hash`) or by name, or from one of `mirrors`.
pub(super) async fn fetch(
    resolver: &Resolver,
    source: &PackageSource,
    index: &PackageIndex,
    mirrors: &[String],
) -> Result<Bytes, ResolveError> {
    let PackageIndex {
        digest,
        size,
        path,
        url,
    } = index;
    let limit = resolver.limits().package_index_bytes;
    if *size > limit {
        return Err(format!("{path} has {size} bytes, more than {limit}").into());
    }
    let descriptor = Descriptor {
        digest: digest.clone(),
        size: *size,
        media_type: media_type::OCTETS.into(),
    };
    let disk = resolver.disk().clone();
    let stored = descriptor.clone();
    let stored = tokio::task::spawn_blocking(move || match disk.has(&stored.digest, stored.size) {
        Ok(true) => disk.read(&stored).ok(),
        _ => None,
    });
    if let Ok(Some(bytes)) = stored.await {
        return Ok(bytes.into());
    }
    // like apt, request the `by-hash` file first: it does not change when the repository is updated
    let by_hash = source.by_hash_url(index);
    let first = by_hash.as_ref().unwrap_or(url);
    let mut found = resolver
        .small_file(first, *size as usize, Some(digest))
        .await;
    // the release may announce `by-hash` files that this mirror does not have
    if by_hash.is_some() && found.as_ref().is_err_and(HttpError::may_be_missing) {
        found = resolver.small_file(url, *size as usize, Some(digest)).await;
    }
    let mut found = found.map_err(|error| {
        let is_other_content = error.kind == ErrorKind::Invalid;
        let mut cause = ResolveError::from(error).about(path);
        if is_other_content {
            cause.message += "; the signed list names other content: the mirror or CDN is behind, \
                              or is being updated; lock again later";
        }
        cause
    });
    for mirror in mirrors {
        let Err(cause) = found else { break };
        let next = resolver
            .small_file(&file_url(mirror, path), *size as usize, Some(digest))
            .await;
        found = next.map_err(|error| cause.followed_by(&error));
    }
    let bytes = found?;
    resolver.keep(descriptor, bytes.clone()).await;
    Ok(bytes)
}

/// Stores the metadata file `path` with the content `bytes` for `pull`, and returns its record for
/// the lock.
pub(super) async fn store_index(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    path: String,
    bytes: Bytes,
) -> PackageIndex {
    let digest = Digest::sha256(&bytes);
    let size = bytes.len() as u64;
    let descriptor = Descriptor {
        digest: digest.clone(),
        size,
        media_type: media_type::OCTETS.into(),
    };
    resolver.keep(descriptor, bytes).await;
    PackageIndex {
        digest,
        size,
        url: file_url(&requested.url, &path),
        path,
    }
}
