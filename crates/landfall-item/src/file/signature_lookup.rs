//! Verifies the signatures of a file while the file is locked. If the manifest names no signatures,
//! those next to the file are used. If a signature was published without its entry in a
//! transparency log, the log is queried for the entry.

use super::locked::{LockedFile, LockedSidecar};
use super::resolvable::FileRequest;
use super::resolve;
use super::resolve::{download_sidecar, ensure_downloaded};
use crate::image::{ItemSignatureError, ReadError, too_large};
use crate::resolver::{ResolveError, Resolver};
use crate::{PinPolicy, ResolveOutcome};
use landfall_content::{BlobRead, ContentError};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::sign::SignatureTime;
use landfall_model::{
    Algorithm, Descriptor, Digest, Failure, Limits, digest_of, local_path, media_type,
};
use landfall_signature::{
    FileSignatures, LogEntry, LogQuery, RuleSubject, SignaturePolicy, SignedFile, VerifiedSignature,
};
use std::io::{self, Read};

/// Replaces the verified signatures in `outcome` by those that meet the policy of `resolver`.
/// `old` is the file in the old lock. Without a rule for the file, nothing is requested.
pub(super) async fn verify_outcome(
    resolver: &Resolver,
    request: &FileRequest,
    outcome: ResolveOutcome<LockedFile>,
    old: Option<&LockedFile>,
    pins: PinPolicy,
) -> ResolveOutcome<LockedFile> {
    let policy = &resolver.signatures;
    let accepted = |file: &LockedFile| policy.accepts(file.rule_subject(), &file.verified);
    let (file, is_kept) = match outcome.item_to_verify(accepted) {
        Ok(found) => found,
        Err(outcome) => return outcome,
    };
    let verified = if !policy.applies_to(file.rule_subject()) {
        Ok(LockedFile {
            verified: Vec::new(),
            log_entry: None,
            ..file.clone()
        })
    } else if is_kept && accepted(&file) && pins == PinPolicy::Keep {
        // `--refresh` and `--check` verify again; otherwise the record in the lock is enough
        Ok(file.clone())
    } else {
        let mut unverified = file.clone();
        // a log signs its entry anew for each answer, so a known entry of the file is kept
        if let Some(old) = old.filter(|old| old.digest == file.digest) {
            unverified.log_entry.clone_from(&old.log_entry);
        }
        verify(resolver, request, unverified).await
    };
    match verified {
        Ok(verified) if is_kept && verified == file => ResolveOutcome::Kept(verified),
        Ok(verified) => ResolveOutcome::New(verified),
        Err(cause) => ResolveOutcome::unverified(old, accepted, &file.digest, cause),
    }
}

/// Whether [`look_up`] may have found the sidecar at `url` next to `file` or its checksum file.
pub(super) fn is_found(file: &LockedFile, url: &str, resolver: &Resolver) -> bool {
    let mut endings = resolver
        .signatures
        .signature_endings(file.rule_subject())
        .into_iter()
        .flatten();
    endings.any(|ending| bases(file).any(|base| url.strip_prefix(base) == Some(ending)))
}

/// The URLs of the file and of its checksum file, next to which signatures may be published.
fn bases(file: &LockedFile) -> impl Iterator<Item = &str> {
    let checksum = file.checksum_sidecar().map(|checksum| &*checksum.url);
    // after a query, an ending would be part of the query rather than of the file name
    [Some(&*file.name), checksum]
        .into_iter()
        .flatten()
        .filter(|url| !url.contains('?') && local_path(url).is_none())
}

/// Verifies the signatures of `file`, for which a rule exists, and records them.
async fn verify(
    resolver: &Resolver,
    request: &FileRequest,
    mut file: LockedFile,
) -> Result<LockedFile, ResolveError> {
    if request.signatures.is_empty() && !has_signature_files(&file) {
        let found = look_up(resolver, &file).await?;
        file.sidecars.extend(found);
    }
    for sidecar in &file.sidecars {
        ensure_stored(resolver, sidecar)
            .await
            .map_err(|error| ResolveError::from(error).about("its signature"))?;
    }
    let mut error = match verify_stored(resolver, &file).await {
        Ok(verified) => return Ok(LockedFile { verified, ..file }),
        Err(error) => error,
    };
    for query in log_queries(resolver, &file)? {
        let Some(entry) = ask(resolver, &query).await? else {
            continue;
        };
        file.log_entry = Some(entry);
        match verify_stored(resolver, &file).await {
            Ok(verified) => return Ok(LockedFile { verified, ..file }),
            Err(next) => error = next,
        }
    }
    // some signatures need the content; download it only if no signature was valid without it
    if has_signature_files(&file) && !is_stored(resolver, &file) {
        ensure_downloaded(resolver, &file).await?;
        let verified = verify_stored(resolver, &file).await.map_err(failure)?;
        return Ok(LockedFile { verified, ..file });
    }
    Err(failure(error))
}

impl LockedFile {
    /// Downloads the signatures that the lock lists for the file, and the file itself if its
    /// digest is not enough to verify them.
    pub(crate) async fn download_signatures(
        &self,
        resolver: &Resolver,
    ) -> Result<(), ResolveError> {
        for sidecar in &self.sidecars {
            ensure_stored(resolver, sidecar).await?;
        }
        if has_signature_files(self) && verify_stored(resolver, self).await.is_err() {
            ensure_downloaded(resolver, self).await?;
        }
        Ok(())
    }
}

fn has_signature_files(file: &LockedFile) -> bool {
    let checksums = file.checksum_sidecar().iter().count();
    file.sidecars.len() > checksums
}

fn is_stored(resolver: &Resolver, file: &LockedFile) -> bool {
    let has = resolver.disk.has(&file.digest, file.size);
    has.unwrap_or(false)
}

/// Finds the signature files next to `file`, or else next to its checksum file.
async fn look_up(
    resolver: &Resolver,
    file: &LockedFile,
) -> Result<Vec<LockedSidecar>, ResolveError> {
    let groups = resolver.signatures.signature_endings(file.rule_subject());
    let mut found = Vec::new();
    for base in bases(file) {
        for group in &groups {
            for ending in group {
                let url = format!("{base}{ending}");
                match download_sidecar(resolver, &url).await {
                    Ok((sidecar, _)) => found.push(sidecar),
                    Err(error) if is_absent(&error) => {}
                    Err(error) => {
                        return Err(ResolveError::from(error).about("its signature"));
                    }
                }
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// Whether `error` means that the file does not exist. Some object stores answer 403 for missing
/// files, and some sites answer with an HTML page.
pub(crate) fn is_absent(error: &HttpError) -> bool {
    matches!(
        error.kind,
        ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Invalid
    )
}

/// Downloads a sidecar of the lock unless the store has it.
pub(crate) async fn ensure_stored(
    resolver: &Resolver,
    sidecar: &LockedSidecar,
) -> Result<(), HttpError> {
    let has = resolver.disk.has(&sidecar.digest, sidecar.size);
    if has.unwrap_or(false) {
        return Ok(());
    }
    let limit = resolver.limits().document_bytes;
    let bytes = resolver
        .small_file(&sidecar.url, limit, Some(&sidecar.digest))
        .await?;
    resolver.keep(descriptor(sidecar), bytes).await;
    Ok(())
}

/// Verifies the signatures with the blobs in the store.
async fn verify_stored(
    resolver: &Resolver,
    file: &LockedFile,
) -> Result<Vec<VerifiedSignature>, ItemSignatureError> {
    let file = file.clone();
    let policy = resolver.signatures.clone();
    let disk = resolver.disk.clone();
    // a large file may have to be hashed
    let verifying = tokio::task::spawn_blocking(move || {
        file.verified_signatures(&policy, &disk, SignatureTime::Now)
    });
    verifying.await?
}

fn log_queries(resolver: &Resolver, file: &LockedFile) -> Result<Vec<LogQuery>, ResolveError> {
    let signatures = file.signatures(&resolver.disk).map_err(failure)?;
    let policy = &resolver.signatures;
    Ok(policy.log_queries(file.rule_subject(), &signatures))
}

/// Asks a log for the entry of a signature; `None` if the log has none or uses another API.
async fn ask(resolver: &Resolver, query: &LogQuery) -> Result<Option<LogEntry>, ResolveError> {
    let limit = resolver.limits().document_bytes;
    let about = |error| ResolveError::from(error).about("the transparency log");
    match resolver.post_json(&query.url, query.request(), limit).await {
        Ok(answer) => query.find(&answer).map_err(ResolveError::from),
        // the log has another API than version 1 of Rekor
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(about(error)),
    }
}

fn failure(error: ItemSignatureError) -> ResolveError {
    error.into_resolve_error("; `signatures` names none, and there is none next to the file")
}

// Verifies the signatures of a file by the rules of `verify:`. The signatures are read from the
// file's sidecars. They are verified when the file is locked, and later from a bundle or store
// alone.

impl From<ContentError> for ItemSignatureError {
    fn from(error: ContentError) -> ItemSignatureError {
        ItemSignatureError::Read(error.into())
    }
}

impl LockedFile {
    /// Verifies the signatures of the file, which are read from `blobs`. Returns those that meet
    /// the policy; empty if the file needs none. OpenPGP signatures must be valid at `time`.
    ///
    /// # Errors
    /// If the file does not meet the policy, or a signature cannot be read.
    pub fn verified_signatures(
        &self,
        policy: &SignaturePolicy,
        blobs: &dyn BlobRead,
        time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, ItemSignatureError> {
        if !policy.applies_to(self.rule_subject()) {
            return Ok(Vec::new());
        }
        let signatures = self.signatures(blobs)?;
        Ok(policy.verify_file(self.rule_subject(), &signatures, time)?)
    }

    /// The URLs by which rules match the file: clients get it under each of them.
    pub fn rule_subject(&self) -> RuleSubject {
        let urls = std::iter::once(&self.name).chain(&self.also);
        RuleSubject::Addresses(urls.cloned().collect())
    }

    /// The checksum file, if the manifest names one.
    pub(super) fn checksum_sidecar(&self) -> Option<&LockedSidecar> {
        self.sidecars
            .iter()
            .find(|sidecar| self.checksum.as_ref() == Some(&sidecar.url))
    }

    /// The signature files of the checksum file, and those of the file itself. The URL of a
    /// signature of the checksum file begins with the URL of the checksum file.
    pub(super) fn signatures<'a>(
        &'a self,
        blobs: &'a dyn BlobRead,
    ) -> Result<Vec<FileSignatures<'a>>, ItemSignatureError> {
        let checksum = self.checksum_sidecar();
        let mut own = Vec::new();
        let mut about_checksum = Vec::new();
        for sidecar in &self.sidecars {
            if checksum.is_some_and(|checksum| checksum.url == sidecar.url) {
                continue;
            }
            let bytes = read_sidecar(sidecar, blobs)?;
            if checksum.is_some_and(|checksum| sidecar.url.starts_with(&checksum.url)) {
                about_checksum.push(bytes);
            } else {
                own.push(bytes);
            }
        }
        let mut found = Vec::new();
        if let Some(checksum) = checksum.filter(|_| !about_checksum.is_empty()) {
            self.check_listed(checksum, blobs)?;
            found.push(self.about(&checksum.digest, about_checksum, blobs));
        }
        if !own.is_empty() {
            found.push(self.about(&self.digest, own, blobs));
        }
        Ok(found)
    }

    fn about<'a>(
        &'a self,
        digest: &'a Digest,
        documents: Vec<Vec<u8>>,
        blobs: &'a dyn BlobRead,
    ) -> FileSignatures<'a> {
        let open = move || -> io::Result<Box<dyn Read + Send>> {
            blobs.open(digest, 0).map_err(io::Error::other)
        };
        FileSignatures {
            file: SignedFile {
                digest,
                open: Box::new(open),
            },
            documents,
            log_entry: self.log_entry.as_ref(),
        }
    }

    /// Checks that a checksum file contains the digest of the file. Otherwise a signature of the
    /// checksum file says nothing about the file.
    fn check_listed(
        &self,
        checksum: &LockedSidecar,
        blobs: &dyn BlobRead,
    ) -> Result<(), ItemSignatureError> {
        let text = read_sidecar(checksum, blobs)?;
        let listed =
            resolve::find(&resolve::text_of(&text), &self.name).map_err(bad_checksum_file)?;
        let found = match listed.algorithm() {
            Algorithm::Sha256 => self.digest.clone(),
            other @ Algorithm::Sha512 => {
                let mut content = blobs.open(&self.digest, 0)?;
                digest_of(&mut content, other)
                    .map_err(|error| bad_checksum_file(format!("cannot be checked: {error}")))?
            }
        };
        if listed == found {
            return Ok(());
        }
        let why = format!("has {listed}, but the file is {found}");
        Err(bad_checksum_file(why).into())
    }
}

/// The failure of a signed checksum file that lists no digest of the file, or a different one.
fn bad_checksum_file(why: String) -> Failure {
    Failure::failed(format!("its signed checksum file {why}"))
}

/// Reads a sidecar into memory. The size in the lock is untrusted, so it is bounded first.
pub(crate) fn read_sidecar(
    sidecar: &LockedSidecar,
    blobs: &dyn BlobRead,
) -> Result<Vec<u8>, ReadError> {
    if sidecar.size > Limits::default().document_bytes as u64 {
        return Err(too_large(&sidecar.digest));
    }
    Ok(blobs.read(&descriptor(sidecar))?)
}

/// The descriptor of a sidecar as a layer.
pub(super) fn descriptor(sidecar: &LockedSidecar) -> Descriptor {
    Descriptor::new(sidecar.digest.clone(), sidecar.size, media_type::OCTETS)
}
