//! Fetches and verifies the metadata of an apt suite: the release by its signature, each index by
//! its digest in the release.

use super::consistent::read_consistent;
use super::locked::{PackageIndex, PackageSource};
use super::request::PackageSourceRequest;
use super::suites::Suite;
use crate::resolver::{ResolveError, Resolver};
use bytes::Bytes;
use landfall_content::BlobRead;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::sign::SignatureTime;
use landfall_model::{Descriptor, Digest, media_type};
use landfall_packages::apt::{AptRelease, target_paths};
use landfall_packages::{COMPRESSIONS, Compression, PackagesError, decompress, file_url};

/// The order in which apt prefers compressed forms of an index (`Acquire::CompressionTypes`).
const APTS_ORDER: [&str; 7] = [".xz", ".bz2", ".lzma", ".gz", ".lz4", ".zst", ""];
const NOT_SIGNED: &str = "it is not signed: it has a Release, but neither InRelease nor \
                          Release.gpg; landfall locks only signed repositories, so ask its owner \
                          to sign it, or sign a mirror of it yourself";
/// The language of the descriptions that apt always downloads.
pub(super) const LANGUAGE: &str = "en";

impl From<PackagesError> for ResolveError {
    fn from(error: PackagesError) -> ResolveError {
        error.to_string().into()
    }
}

/// Fetches the metadata of the source `requested`. It must not be older than `after`, the date of
/// the metadata in the last lock.
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
    release.check_time(&signed.name, jiff::Timestamp::now())?;
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
        let index = listed.index;
        if let Some((compression, most)) = listed.read {
            let bytes = fetch(resolver, &source, &index, &[]).await?;
            let name = index.path.clone();
            let text =
                tokio::task::spawn_blocking(move || decompress(&name, &bytes, compression, most))
                    .await
                    .map_err(|error| ResolveError::local(error.to_string()))??;
            let text =
                String::from_utf8(text).map_err(|_| format!("{} is not UTF-8 text", index.path))?;
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

/// Rejects a release of another suite. One key signs all suites of a repository, so a hostile
/// mirror could serve the valid release of an older suite. A flat repository has a path instead of
/// a suite name, so it cannot be checked.
fn check_suite(
    requested: &PackageSourceRequest,
    name: &str,
    release: &AptRelease,
) -> Result<(), ResolveError> {
    let suite = requested.codename.as_ref().unwrap_or(&requested.suite);
    if suite.ends_with('/') || release.is_of_suite(suite) {
        return Ok(());
    }
    let (names, codename) = (
        release.names(),
        release.codename.as_ref().or(release.suite.as_ref()),
    );
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
        // both are timestamps in UTC of the same form, so they compare as texts
        (Some(date), Some(after)) if date < after => Err(format!(
            "{name} has the date {date}, older than {after} in the lock: the mirror is behind, or \
             somebody replays an old file"
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
    /// The Release file, and its signature if that is a file of its own.
    files: Vec<PackageIndex>,
}

/// Fetches `InRelease`, or `Release` with `Release.gpg`.
async fn fetch_release(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    folder: &str,
) -> Result<SignedRelease, ResolveError> {
    let name = below(folder, "InRelease");
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
        // some object stores answer 403 for a missing file
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Denied) => {
            let name = below(folder, "Release");
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

/// The release in `bytes`, the content of `Release`, after verifying it with `Release.gpg`.
async fn detached_release(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    folder: &str,
    bytes: &Bytes,
) -> Result<SignedRelease, ResolveError> {
    let (name, signature_name) = (below(folder, "Release"), below(folder, "Release.gpg"));
    let signature = fetch_small(resolver, requested, &signature_name)
        .await
        .map_err(|error| match error.kind {
            ErrorKind::NotFound => ResolveError::from(NOT_SIGNED),
            _ => ResolveError::from(error).about("the signature of its release"),
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
    let most = resolver.limits().document_bytes;
    resolver
        .small_file(&file_url(&requested.url, path), most, None)
        .await
}

fn release_text(bytes: &Bytes) -> Result<String, ResolveError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "its release is not UTF-8 text".into())
}

/// An index that the release names.
struct ListedIndex {
    index: PackageIndex,
    /// How it is decompressed, and its size limit after that; `None` if it is carried without being
    /// read.
    read: Option<(Compression, u64)>,
}

impl ListedIndex {
    /// An index that is carried without being read.
    fn unread(index: PackageIndex) -> ListedIndex {
        ListedIndex { index, read: None }
    }
}

/// The indexes of a release, as its file names them.
struct ReleaseIndexes<'r> {
    /// The URL of the repository.
    url: &'r str,
    /// The folder of the Release file.
    folder: &'r str,
    release: &'r AptRelease,
}

impl ReleaseIndexes<'_> {
    /// The index `path` in the compressed form with this ending, if the release names it.
    fn find(&self, path: &str, ending: &str) -> Option<PackageIndex> {
        let path = format!("{path}{ending}");
        let file = self.release.files.get(&path)?;
        let (digest, size, path) = (file.digest.clone(), file.size, below(self.folder, &path));
        Some(PackageIndex {
            digest,
            size,
            url: file_url(self.url, &path),
            path,
        })
    }

    /// The index `path` in the form that apt downloads.
    fn preferred(&self, path: &str) -> Option<PackageIndex> {
        APTS_ORDER.iter().find_map(|ending| self.find(path, ending))
    }

    /// The package index `path`: a form that landfall can read, and that which apt downloads if it
    /// is another one. Empty if the release does not name the index. At most `most` bytes are
    /// decompressed.
    fn packages(&self, path: &str, most: u64) -> Vec<ListedIndex> {
        let Some((index, compression)) = COMPRESSIONS
            .iter()
            .find_map(|(ending, compression)| Some((self.find(path, ending)?, *compression)))
        else {
            return Vec::new();
        };
        // the signed size of the uncompressed form is the best protection against a compressed file
        // that expands without end
        let plain = self.release.files.get(path).map(|file| file.size);
        let carried = self
            .preferred(path)
            .filter(|carried| carried.path != index.path);
        let mut listed = vec![ListedIndex {
            index,
            read: Some((compression, plain.unwrap_or(most).min(most))),
        }];
        listed.extend(carried.map(ListedIndex::unread));
        listed
    }
}

/// Selects the indexes that apt downloads, and marks those that are read here.
fn indexes(
    requested: &PackageSourceRequest,
    folder: &str,
    architectures: &[String],
    release: &AptRelease,
    most: u64,
) -> Result<Vec<ListedIndex>, ResolveError> {
    let indexes = ReleaseIndexes {
        url: &requested.url,
        folder,
        release,
    };
    if requested.suite.ends_with('/') {
        let packages = indexes.packages("Packages", most);
        if packages.is_empty() {
            return Err("its release names no Packages".into());
        }
        return Ok(packages);
    }
    let mut all = Vec::new();
    for component in &requested.components {
        for arch in architectures {
            let packages = indexes.packages(&format!("{component}/binary-{arch}/Packages"), most);
            if packages.is_empty() {
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
            all.extend(packages);
        }
        // otherwise the packages for all architectures are in each of the indexes above
        if release.has_index_of_all {
            all.extend(indexes.packages(&format!("{component}/binary-all/Packages"), most));
        }
    }
    for component in &requested.components {
        let index = indexes.preferred(&format!("{component}/i18n/Translation-{LANGUAGE}"));
        all.extend(index.map(ListedIndex::unread));
    }
    // These are optional in a release and not read here. For an architecture that the release
    // lacks, apt uses `all`.
    let with_all = release.architectures.iter().filter(|one| *one == "all");
    let architectures: Vec<String> = architectures.iter().chain(with_all).cloned().collect();
    for target in &requested.targets {
        let paths = target_paths(target, &requested.components, &architectures);
        let found = paths.iter().filter_map(|path| indexes.preferred(path));
        all.extend(found.map(ListedIndex::unread));
    }
    Ok(all)
}

/// The path of `path` in the folder `folder`, which may be empty.
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
    let (disk, stored) = (resolver.disk().clone(), descriptor.clone());
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
    if by_hash.is_some() && matches!(&found, Err(error) if error.kind == ErrorKind::NotFound) {
        found = resolver.small_file(url, *size as usize, Some(digest)).await;
    }
    let mut found = found.map_err(|error| ResolveError::from(error).about(path));
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
        url: file_url(&requested.url, &path),
        path,
    }
}
