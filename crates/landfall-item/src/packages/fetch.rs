//! Fetches and verifies the metadata of an apt suite: the release by its signature, each index by
//! its digest in the release.

use super::locked::{PackageIndex, PackageSource};
use super::resolvable::PackageSourceRequest;
use super::suites::Suite;
use crate::resolver::{ResolveError, Resolver};
use crate::text::in_folder;
use bytes::Bytes;
use jiff::SignedDuration;
use landfall_content::BlobRead;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::sign::SignatureTime;
use landfall_model::{Descriptor, Digest, Failure, media_type};
use landfall_packages::apt::{AptRelease, check_index_size, target_paths};
use landfall_packages::{COMPRESSIONS, Compression, decompress, file_url};

const NOT_SIGNED: &str = "it is not signed: it has a Release, but neither InRelease nor \
                          Release.gpg; landfall locks only signed repositories, so ask its owner \
                          to sign it, or sign a mirror of it yourself";
/// How long before its expiry a key is reported.
const KEY_NOTICE: SignedDuration = SignedDuration::from_hours(180 * 24);

impl From<Failure> for ResolveError {
    fn from(error: Failure) -> ResolveError {
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
    let outdated = requested.keys.outdated();
    if let Some((key, why)) = outdated.iter().find(|(key, _)| *key == signed.by) {
        resolver.note_once(&format!(
            "{}: apt of Debian 13 and later refuses the key {key}, which {why}; get the renewed \
             key from its owner, or write `index: trimmed`",
            requested.url
        ));
    }
    if let Some(end) = requested.keys.expiry(&signed.by)
        && end < jiff::Timestamp::now() + KEY_NOTICE
    {
        resolver.note_once(&format!(
            "{}: the key {} expires at {end}; after that, apt with gpgv refuses the metadata of \
             this lock, so lock again when its owner has renewed it",
            requested.url, signed.by
        ));
    }
    let mut source = PackageSource {
        url: requested.url.clone(),
        suite: requested.suite.clone(),
        components: requested.components.clone(),
        targets: requested.targets.clone(),
        by_hash: release.by_hash,
        date,
        valid_until: release.valid_until.map(|until| until.to_string()),
        key: requested
            .keys
            .certificate(&signed.by)
            .ok_or("the key that signed it cannot be encoded")?,
        signed_by: signed.by.clone(),
        indexes: signed.files.clone(),
        ..PackageSource::default()
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
            let text = unpacked.await??;
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
    // Contents are larger than all that landfall reads; `pull` streams them
    if listed.read.is_none() && listed.index.size > resolver.limits().package_index_bytes {
        return Ok(Some((listed.index, None, Bytes::new())));
    }
    let compression = listed.read.map(|(compression, _)| compression);
    let mut forms = vec![(listed.index, compression)];
    forms.extend(listed.others);
    let mut first_error = None;
    for (index, compression) in forms {
        match fetch(resolver, source, &index, &[]).await {
            Ok(bytes) => return Ok(Some((index, compression, bytes))),
            Err(cause) if cause.is_gone => drop(first_error.get_or_insert(cause)),
            // the error is about the preferred form
            Err(cause) => return Err(first_error.unwrap_or(cause)),
        }
    }
    first_error
        .filter(|_| !listed.is_optional)
        .map_or(Ok(None), Err)
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
    match resolver.document(&file_url(&requested.url, &name)).await {
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
                async || Ok(resolver.document(&file_url(&requested.url, &name)).await?),
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
    let signature = resolver
        .document(&file_url(&requested.url, &signature_name))
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
    // every packet of OpenPGP begins with such a byte
    if signature.first().is_some_and(|first| first & 0x80 != 0) {
        resolver.note_once(&format!(
            "{}: apt refuses its {signature_name}, which is not armored; ask its owner for an \
             InRelease, or write `index: trimmed`",
            requested.url
        ));
    }
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
    let descriptor = Descriptor::new(digest.clone(), *size, media_type::OCTETS);
    let disk = resolver.disk.clone();
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
        resolver.sessions.note_named(mirror, &source.url);
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
    let descriptor = Descriptor::new(digest.clone(), size, media_type::OCTETS);
    resolver.keep(descriptor, bytes).await;
    PackageIndex {
        digest,
        size,
        url: file_url(&requested.url, &path),
        path,
    }
}

/// The order in which apt prefers compressed forms of an index (`Acquire::CompressionTypes`).
const APTS_ORDER: [&str; 7] = [".xz", ".bz2", ".lzma", ".gz", ".lz4", ".zst", ""];
/// The language of the descriptions that apt always downloads.
pub(super) const LANGUAGE: &str = "en";

/// An index that the release names.
pub(super) struct ListedIndex {
    pub(super) index: PackageIndex,
    /// How it is decompressed, and the maximum size of its decompressed content in bytes; `None` if
    /// it is carried without being read.
    pub(super) read: Option<(Compression, u64)>,
    /// Other compressed forms, which are used if the server lacks `index`, with their compression
    /// if landfall can read it.
    pub(super) others: Vec<(PackageIndex, Option<Compression>)>,
    /// Whether apt works without the index if the server lacks all of its forms.
    pub(super) is_optional: bool,
}

/// Finds indexes in the Release file of a suite.
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
        let digest = file.digest.clone();
        let size = file.size;
        let path = in_folder(self.folder, &path);
        Some(PackageIndex {
            digest,
            size,
            url: file_url(self.url, &path),
            path,
        })
    }

    /// The forms of the index `path`, in the order in which apt tries them.
    fn forms(&self, path: &str) -> impl Iterator<Item = PackageIndex> {
        APTS_ORDER
            .iter()
            .filter_map(move |ending| self.find(path, ending))
    }

    /// The index `path`, which is carried without being read, in the form that apt downloads.
    fn unread(&self, path: &str) -> Option<ListedIndex> {
        let mut forms = self.forms(path);
        Some(ListedIndex {
            index: forms.next()?,
            read: None,
            others: forms.map(|other| (other, None)).collect(),
            // apt requests only indexes whose uncompressed form the release names
            is_optional: !self.release.files.contains_key(path),
        })
    }

    /// The package index `path`: a form that landfall can read and, if apt downloads another form,
    /// that one as well. Empty if the release names no form that landfall can read. At most `limit`
    /// bytes are decompressed.
    fn packages(&self, path: &str, limit: u64) -> Vec<ListedIndex> {
        let mut forms = COMPRESSIONS
            .iter()
            .filter_map(|(ending, compression)| Some((self.find(path, ending)?, *compression)));
        let Some((index, compression)) = forms.next() else {
            return Vec::new();
        };
        let others = forms
            .map(|(index, compression)| (index, Some(compression)))
            .collect();
        // the signed size of the uncompressed form is the best protection against a compressed file
        // that expands without end
        let plain = self.release.files.get(path).map(|file| file.size);
        let carried = self
            .forms(path)
            .next()
            .filter(|carried| carried.path != index.path);
        let mut listed = vec![ListedIndex {
            index,
            read: Some((compression, plain.unwrap_or(limit).min(limit))),
            others,
            is_optional: false,
        }];
        listed.extend(carried.map(|index| ListedIndex {
            index,
            read: None,
            others: Vec::new(),
            // apt then downloads the form that landfall reads
            is_optional: true,
        }));
        listed
    }

    /// The error for a suite without the index `path` in a form that landfall can read.
    fn missing(&self, path: &str, what: &str) -> ResolveError {
        if let Some(odd) = self.release.odd_line(path) {
            return format!("{what}: {odd}").into();
        }
        match self.forms(path).next() {
            Some(form) => format!(
                "{what} that landfall can read: it has {}, and landfall reads xz, zst, gz, \
                 bz2, lzma and uncompressed indexes",
                form.path
            )
            .into(),
            None => what.into(),
        }
    }
}

/// Selects the indexes that apt downloads and those that landfall reads.
pub(super) fn indexes(
    requested: &PackageSourceRequest,
    folder: &str,
    architectures: &[String],
    release: &AptRelease,
    limit: u64,
) -> Result<Vec<ListedIndex>, ResolveError> {
    let indexes = ReleaseIndexes {
        url: &requested.url,
        folder,
        release,
    };
    if requested.suite.ends_with('/') {
        let packages = indexes.packages("Packages", limit);
        if packages.is_empty() {
            return Err(indexes.missing("Packages", "its release names no Packages"));
        }
        return Ok(packages);
    }
    let all_packages = |component: &str| {
        if release.has_index_of_all {
            indexes.packages(&format!("{component}/binary-all/Packages"), limit)
        } else {
            Vec::new()
        }
    };
    let mut all = Vec::new();
    for component in &requested.components {
        for arch in architectures {
            let packages = indexes.packages(&format!("{component}/binary-{arch}/Packages"), limit);
            // like apt, accept a component that has only packages for all architectures
            if packages.is_empty() && all_packages(component).is_empty() {
                let (what, listed) = if release.components.contains(component) {
                    ("architectures", &release.architectures)
                } else {
                    ("components", &release.components)
                };
                let why = format!(
                    "its release names no Packages of {component} for {arch}; it has the {what} {}",
                    listed.join(", ")
                );
                let path = format!("{component}/binary-{arch}/Packages");
                return Err(indexes.missing(&path, &why));
            }
            all.extend(packages);
        }
        // without a `binary-all` index, that of each architecture contains the packages of `all`
        all.extend(all_packages(component));
    }
    for component in &requested.components {
        all.extend(indexes.unread(&format!("{component}/i18n/Translation-{LANGUAGE}")));
    }
    // The indexes of targets are optional in a release, and landfall does not read them. For an
    // architecture that the release lacks, apt uses `all`.
    let with_all = release.architectures.iter().filter(|one| *one == "all");
    let architectures: Vec<String> = architectures.iter().chain(with_all).cloned().collect();
    for target in &requested.targets {
        let paths = target_paths(target, &requested.components, &architectures);
        all.extend(paths.iter().filter_map(|path| indexes.unread(path)));
    }
    Ok(all)
}

// Reads metadata files that must match each other, from a mirror that may be updated meanwhile.

/// The maximum number of times that metadata is read while its signed list keeps changing.
const READS: usize = 3;

/// Reads a signed list with `list`, and then the files that it names with `rest`. If `rest` fails
/// and the list has changed by then, the mirror was updated in between, so `rest` is called again
/// with the new list.
pub(super) async fn read_consistent<L: PartialEq, T>(
    list: impl AsyncFn() -> Result<L, ResolveError>,
    rest: impl AsyncFn(&L) -> Result<T, ResolveError>,
) -> Result<T, ResolveError> {
    let mut read = list().await?;
    for _ in 1..READS {
        let cause = match rest(&read).await {
            Err(cause) => cause,
            found => return found,
        };
        match list().await {
            Ok(next) if next != read => read = next,
            _ => return Err(cause),
        }
    }
    rest(&read).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn metadata_is_read_again_while_its_list_changes() {
        // the successive lists of the mirror, the list that matches its files, and how many lists
        // are read
        for (lists, good, reads) in [
            (&[1][..], 1, 1),
            (&[1, 2], 2, 2),
            (&[1, 2, 3], 3, 3),
            (&[1, 1], 2, 2),
        ] {
            let count = AtomicUsize::new(0);
            let found = read_consistent(
                async || Ok(lists[count.fetch_add(1, Ordering::Relaxed)]),
                async |list| {
                    if *list == good {
                        Ok(*list)
                    } else {
                        Err(ResolveError::from("the file does not match the list"))
                    }
                },
            );
            let found = found.await.ok();
            assert_eq!(
                (found, count.load(Ordering::Relaxed)),
                (lists.contains(&good).then_some(good), reads)
            );
        }
    }
}
