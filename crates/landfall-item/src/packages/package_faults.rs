//! Verifies package files against the lock: name, version and architecture must match, and RPM
//! packages must be signed by a key of their source. Debian packages have no signatures of their
//! own; the signed index covers them.

use super::locked::{LockedPackage, LockedPackageSet, PackageSource};
use landfall_content::BlobRead;
use landfall_model::Limits;
use landfall_model::sign::{OpenPgpKeys, SignatureTime};
use landfall_packages::yum::{Evr, verify_package};
use landfall_packages::{PackageIdentity, apt};
use std::io::{BufReader, Read};

/// Compares the packages in `blobs` with the lock. Returns one sentence for each contradiction.
/// Signatures are checked as of `time`.
pub(super) fn package_faults(
    set: &LockedPackageSet,
    blobs: &dyn BlobRead,
    time: SignatureTime,
) -> Vec<String> {
    let mut faults = Vec::new();
    for source in &set.sources {
        let keys = match keys_of(set, source) {
            Ok(keys) => keys,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        for package in &source.packages {
            // missing packages are reported elsewhere
            let Ok(reader) = blobs.open(&package.digest, 0) else {
                continue;
            };
            let read = identity(&mut BufReader::new(reader), keys.as_ref(), time);
            if let Err(fault) = read.and_then(|identity| compare(package, &identity)) {
                faults.push(format!("{}: {fault}", package.path));
            }
        }
    }
    faults
}

/// The keys of `source`, one of which must have signed each package. `None` for apt.
fn keys_of(set: &LockedPackageSet, source: &PackageSource) -> Result<Option<OpenPgpKeys>, String> {
    if !set.is_yum() {
        return Ok(None);
    }
    let keys = OpenPgpKeys::parse(source.key.as_bytes());
    keys.map(Some)
        .map_err(|error| format!("the key of {}: {error}", source.url))
}

/// Verifies a package file and reads its identity.
fn identity(
    file: &mut dyn Read,
    keys: Option<&OpenPgpKeys>,
    time: SignatureTime,
) -> Result<PackageIdentity, String> {
    match keys {
        Some(keys) => {
            verify_package(file, keys, time, &Limits::default()).map_err(|error| error.to_string())
        }
        None => apt::package_identity(file).map_err(|error| error.to_string()),
    }
}

/// Rejects a package whose header differs from its index entry. The index may be unsigned, so a
/// mirror could offer an older package of the same signer as a newer one.
fn compare(locked: &LockedPackage, found: &PackageIdentity) -> Result<(), String> {
    let LockedPackage {
        name,
        version,
        arch,
        ..
    } = locked;
    // versions are parsed because an epoch of 0 may be omitted in one of the two
    let has_version =
        found.version == *version || Evr::parse(&found.version) == Evr::parse(version);
    if found.name == *name && found.arch == *arch && has_version {
        return Ok(());
    }
    Err(format!(
        "its index offers it as {name} {version} {arch}, but the file is {found}"
    ))
}
