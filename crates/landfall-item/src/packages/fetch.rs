//! Fetches and verifies the metadata of an apt suite: the release by its signature, each index by
//! its digest in the release.

use super::consistent::read_consistent;
use super::locked::{PackageIndex, PackageSource};
use super::request::PackageSourceRequest;
use super::suites::Suite;
use crate::resolver::{ResolveError, Resolver};
use bytes::Bytes;
use landfall_content::BlobRead;
use landfall_http::ErrorKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{Descriptor, Digest, media_type};
use landfall_packages::apt::{AptRelease, target_paths};
use landfall_packages::{COMPRESSIONS, Compression, PackagesError, decompress, file_url};

/// The order in which apt prefers compressed forms of an index (`Acquire::CompressionTypes`).
const APTS_ORDER: [&str; 7] = [".xz", ".bz2", ".lzma", ".gz", ".lz4", ".zst", ""];
const NOT_SIGNED: &str = "it is not signed: it has a Release, but neither InRelease nor \
                          Release.gpg; landfall locks \
                          signed repositories alone, so ask its owner to sign it, or sign a mirror of it yourself";
/// The language of the descriptions that apt always downloads.
pub(super) const LANGUAGE: &str = "en";

impl From<PackagesError> for ResolveError {
    fn from(error: PackagesError) -> ResolveError {
        error.to_string().into()
    }
}

/// Fetches the metadata of `wanted`. It must not be older than `after`, the metadata in the last
/// lock.
pub(super) async fn suite(
    resolver: &Resolver,
    wanted: &PackageSourceRequest,
    architectures: &[String],
    after: Option<&str>,
) -> Result<Suite, ResolveError> {
    let folder = match wanted.suite.strip_suffix('/') {
        Some(path) => path.to_owned(),
        None => format!("dists/{}", wanted.suite),
    };
    read_consistent(
        async || release(resolver, wanted, &folder).await,
        async |signed: &SignedRelease| {
            indexed(resolver, wanted, &folder, architectures, after, signed).await
        },
    )
    .await
}

/// Fetches the indexes that the signed release of a suite names.
async fn indexed(
    resolver: &Resolver,
    wanted: &PackageSourceRequest,
    folder: &str,
    architectures: &[String],
    after: Option<&str>,
    signed: &SignedRelease,
) -> Result<Suite, ResolveError> {
    let release = AptRelease::parse(&signed.name, &signed.text)?;
    release.check_time(&signed.name, jiff::Timestamp::now())?;
    let date = release.date.map(|date| date.to_string());
    check_age(&signed.name, date.as_deref(), after)?;
    check_suite(wanted, &signed.name, &release)?;
    let mut source = PackageSource {
        url: wanted.url.clone(),
        suite: wanted.suite.clone(),
        components: wanted.components.clone(),
        targets: wanted.targets.clone(),
        by_hash: release.by_hash,
        snapshot: None,
        date,
        valid_until: release.valid_until.map(|until| until.to_string()),
        key: wanted
            .keys
            .certificate(&signed.by)
            .ok_or("the key that signed it cannot be written")?,
        signed_by: signed.by.clone(),
        indexes: signed.files.clone(),
        packages: Vec::new(),
    };
    let mut texts = Vec::new();
    for listed in indexes(
        wanted,
        folder,
        architectures,
        &release,
        resolver.limits().package_index_bytes,
    )? {
        let index = listed.index;
        if let Some((compression, most)) = listed.read {
            let bytes = fetch(resolver, &source, &index, &[]).await?;
            let name = index.path.clone();
            let unpacking =
                tokio::task::spawn_blocking(move || decompress(&name, &bytes, compression, most));
            let text = unpacking
                .await
                .map_err(|error| ResolveError::local(error.to_string()))??;
            texts.push(String::from_utf8(text).map_err(|_| format!("{} is no text", index.path))?);
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

/// Refuses a release of another suite. One key signs all suites of a repository, so a hostile
/// mirror could serve the valid release of an older suite. A flat repository has a path instead of
/// a suite name, so it cannot be checked.
fn check_suite(
    wanted: &PackageSourceRequest,
    name: &str,
    release: &AptRelease,
) -> Result<(), ResolveError> {
    let suite = wanted.codename.as_ref().unwrap_or(&wanted.suite);
    if suite.ends_with('/') || release.is_of_suite(suite) {
        return Ok(());
    }
    let (names, codename) = (
        release.names(),
        release.codename.as_ref().or(release.suite.as_ref()),
    );
    Err(format!(
        "{name} is the release of {names}, not of {suite}: the mirror sends another suite; if \
         this is the right one, write \
         `codename: {}` in its source",
        codename.map_or("", String::as_str)
    )
    .into())
}

/// Refuses metadata that is older than that of the last lock. Otherwise a mirror could hide
/// security updates by serving an old, validly signed release.
pub(super) fn check_age(
    name: &str,
    date: Option<&str>,
    after: Option<&str>,
) -> Result<(), ResolveError> {
    match (date, after) {
        (Some(date), Some(after)) if date < after => Err(format!(
            "{name} is of {date}, older than the lock's of {after}: somebody replays it, or the \
             mirror is behind"
        )
        .into()),
        _ => Ok(()),
    }
}

/// A release with a valid signature.
#[derive(PartialEq)]
struct SignedRelease {
    name: String,
    text: String,
    by: String,
    files: Vec<PackageIndex>,
}

/// Fetches `InRelease`, or `Release` with `Release.gpg`.
async fn release(
    resolver: &Resolver,
    wanted: &PackageSourceRequest,
    folder: &str,
) -> Result<SignedRelease, ResolveError> {
    let most = resolver.limits().document_bytes;
    let path = |name: &str| below(folder, name);
    let get = async |name: &str| {
        let url = file_url(&wanted.url, &path(name));
        resolver.small_file(&url, most, None).await
    };
    let unsigned = |error: String| ResolveError::from(format!("{folder}/InRelease: {error}"));
    let text_of = |bytes: &Bytes| {
        String::from_utf8(bytes.to_vec()).map_err(|_| ResolveError::from("its release is no text"))
    };
    match get("InRelease").await {
        Ok(bytes) => {
            let (text, by) = wanted
                .keys
                .verify(&text_of(&bytes)?, SignatureTime::Now)
                .map_err(|error| unsigned(error.to_string()))?;
            let files = vec![kept(resolver, wanted, path("InRelease"), bytes).await];
            Ok(SignedRelease {
                name: path("InRelease"),
                text,
                by,
                files,
            })
        }
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Denied) => {
            let signed = async |bytes: &Bytes| {
                let signature = get("Release.gpg").await.map_err(|error| match error.kind {
                    ErrorKind::NotFound => ResolveError::from(NOT_SIGNED),
                    _ => ResolveError::from(error).of("the signature of its release"),
                })?;
                let by = wanted
                    .keys
                    .verify_detached(&signature, SignatureTime::Now, || Ok(&bytes[..]));
                let by = by.map_err(|error| {
                    ResolveError::from(format!("{folder}/Release.gpg: {error}"))
                })?;
                let files = vec![
                    kept(resolver, wanted, path("Release"), bytes.clone()).await,
                    kept(resolver, wanted, path("Release.gpg"), signature).await,
                ];
                Ok(SignedRelease {
                    name: path("Release"),
                    text: text_of(bytes)?,
                    by,
                    files,
                })
            };
            read_consistent(async || Ok(get("Release").await?), signed).await
        }
        Err(error) => Err(error.into()),
    }
}

/// An index that the release names.
struct ListedIndex {
    index: PackageIndex,
    /// How it is decompressed, and its size limit after that; `None` if it is carried without being
    /// read.
    read: Option<(Compression, u64)>,
}

/// Selects the indexes that apt downloads, and marks those that are read here.
fn indexes(
    wanted: &PackageSourceRequest,
    folder: &str,
    architectures: &[String],
    release: &AptRelease,
    most: u64,
) -> Result<Vec<ListedIndex>, ResolveError> {
    let find = |path: &str, form: &str| {
        let path = format!("{path}{form}");
        let file = release.files.get(&path)?;
        let (digest, size, path) = (file.digest.clone(), file.size, below(folder, &path));
        Some(PackageIndex {
            digest,
            size,
            url: file_url(&wanted.url, &path),
            path,
        })
    };
    let preferred = |path: &str| APTS_ORDER.iter().find_map(|form| find(path, form));
    let mut all = Vec::new();
    let mut packages = |path: &str| {
        let Some((index, compression)) = COMPRESSIONS
            .iter()
            .find_map(|(form, compression)| Some((find(path, form)?, *compression)))
        else {
            return false;
        };
        let plain = release.files.get(path).map(|file| file.size);
        let carried = preferred(path).filter(|carried| carried.path != index.path);
        all.push(ListedIndex {
            index,
            read: Some((compression, plain.unwrap_or(most).min(most))),
        });
        all.extend(carried.map(|index| ListedIndex { index, read: None }));
        true
    };
    if wanted.suite.ends_with('/') {
        if !packages("Packages") {
            return Err("its release names no Packages".into());
        }
        return Ok(all);
    }
    for component in &wanted.components {
        for arch in architectures {
            if !packages(&format!("{component}/binary-{arch}/Packages")) {
                let (what, listed) = if release.components.contains(component) {
                    ("architectures", &release.architectures)
                } else {
                    ("components", &release.components)
                };
                return Err(format!(
                    "its release names no Packages of {component} for {arch}; it has the {what} {}",
                    listed.join(", ")
                )
                .into());
            }
        }
        if release.has_index_of_all {
            packages(&format!("{component}/binary-all/Packages"));
        }
    }
    for component in &wanted.components {
        let index = preferred(&format!("{component}/i18n/Translation-{LANGUAGE}"));
        all.extend(index.map(|index| ListedIndex { index, read: None }));
    }
    // These are optional in a release and not read here. For an architecture that the release
    // lacks, apt uses `all`.
    let with_all = release.architectures.iter().filter(|one| *one == "all");
    let architectures: Vec<String> = architectures.iter().chain(with_all).cloned().collect();
    for target in &wanted.targets {
        let paths = target_paths(target, &wanted.components, &architectures);
        let found = paths.iter().filter_map(|path| preferred(path));
        all.extend(found.map(|index| ListedIndex { index, read: None }));
    }
    Ok(all)
}

fn below(folder: &str, path: &str) -> String {
    if folder.is_empty() {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    }
}

/// Fetches an index and verifies its digest: from the store, by digest at the source (`by-hash`),
/// by name, or from one of `mirrors`.
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
    let most = resolver.limits().package_index_bytes;
    if *size > most {
        return Err(format!("{path} has {size} bytes, more than {most}").into());
    }
    let descriptor = Descriptor {
        digest: digest.clone(),
        size: *size,
        media_type: media_type::OCTETS.into(),
    };
    let (disk, held) = (resolver.disk().clone(), descriptor.clone());
    let held = tokio::task::spawn_blocking(move || match disk.has(&held.digest, held.size) {
        Ok(true) => disk.read(&held).ok(),
        _ => None,
    });
    if let Ok(Some(bytes)) = held.await {
        return Ok(bytes.into());
    }
    let by_hash = source.by_hash_url(index);
    let first = by_hash.as_ref().unwrap_or(url);
    let mut found = resolver
        .small_file(first, *size as usize, Some(digest))
        .await;
    if by_hash.is_some() && matches!(&found, Err(error) if error.kind == ErrorKind::NotFound) {
        found = resolver.small_file(url, *size as usize, Some(digest)).await;
    }
    let mut found = found.map_err(|error| ResolveError::from(error).of(path));
    for mirror in mirrors {
        let Err(cause) = found else { break };
        let next = resolver
            .small_file(&file_url(mirror, path), *size as usize, Some(digest))
            .await;
        found = next.map_err(|error| cause.then(&error));
    }
    let bytes = found?;
    resolver.keep(descriptor, bytes.clone()).await;
    Ok(bytes)
}

/// Fetches a metadata file whose digest is not known beforehand, and stores it for `pull`.
pub(super) async fn kept(
    resolver: &Resolver,
    wanted: &PackageSourceRequest,
    path: String,
    bytes: Bytes,
) -> PackageIndex {
    let (digest, size) = (Digest::sha256(&bytes), bytes.len() as u64);
    let descriptor = Descriptor {
        digest: digest.clone(),
        size,
        media_type: media_type::OCTETS.into(),
    };
    resolver.keep(descriptor, bytes).await;
    PackageIndex {
        digest,
        size,
        url: file_url(&wanted.url, &path),
        path,
    }
}
