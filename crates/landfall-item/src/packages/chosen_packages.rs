//! The parts of package selection that apt and dnf share: the check of each chosen package, and the
//! notes for people.

use super::locked::{LockedPackage, LockedPackageSet, PackageSource};
use super::resolvable::MachineBase;
use crate::resolver::ResolveError;
use landfall_content::BlobRead;
use landfall_model::Limits;
use landfall_model::report::and_more;
use landfall_model::sign::{OpenPgpKeys, SignatureTime};
use landfall_packages::yum::{Evr, verify_package};
use landfall_packages::{PackageIdentity, apt, file_url, host_of, location};
use std::io::{BufReader, Read};

/// The maximum number of packages that `first_few` names.
const NAMED: usize = 10;

/// Returns `package`, whose index lists it at the location `listed` of the repository `url`, with
/// its path and URL. `hosts` are the hosts from which packages may come, besides that of `url`.
/// Fails if a lock would not accept the package. An index may be unsigned or damaged, and its texts
/// become paths, and words in the configuration files of machines.
pub(super) fn check_chosen(
    package: LockedPackage,
    url: &str,
    listed: &str,
    hosts: &[&str],
) -> Result<LockedPackage, ResolveError> {
    let LockedPackage {
        name,
        version,
        arch,
        size,
        ..
    } = &package;
    let are_words = [name, version, arch]
        .iter()
        .all(|text| !text.is_empty() && is_safe(text));
    let described = format!(
        "{} {} ({})",
        name.escape_default(),
        version.escape_default(),
        arch.escape_default()
    );
    if !are_words {
        return Err(format!("its index has an invalid entry: {described}").into());
    }
    if *size == 0 {
        return Err(format!("its index has no size of {described}, so it cannot be locked").into());
    }
    let path = location(url, listed)
        .map_err(|error| format!("{described} cannot be mirrored: its location {error}"))?;
    let target = file_url(url, &path);
    if path.contains("://") && !hosts.contains(&host_of(&path)) {
        return Err(format!(
            "{described} cannot be mirrored: its location '{path}' is on another host than the \
             repository; if that host is to be trusted, write `hosts: [\"{}\"]` in its source",
            host_of(&path)
        )
        .into());
    }
    Ok(LockedPackage {
        path,
        url: target,
        ..package
    })
}

/// Whether `text` is empty, or a single word that no command interprets as an option.
pub(super) fn is_safe(text: &str) -> bool {
    !text.starts_with('-') && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Why no packages can be chosen for machines with `base`. If `base` is the only one of `bases`,
/// the message does not name it.
pub(super) fn choice_error(why: String, base: &MachineBase, bases: &[MachineBase]) -> ResolveError {
    match bases {
        [_] => why.into(),
        _ => format!("on a machine with {}: {why}", describe_base(base)).into(),
    }
}

/// The notes about packages of the set `set`: those that no source has, so machines must have them,
/// and for each of `bases`, those that only machines with it need, which `own` returns.
pub(super) fn notes(
    set: &str,
    expected: &str,
    bases: &[MachineBase],
    own: impl Fn(usize) -> Vec<String>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !expected.is_empty() {
        notes.push(format!(
            "{set}: no source has these packages, so the machines must have them already: \
             {expected} (add `sources` that have them, or `base` to name what is installed)"
        ));
    }
    for (number, base) in bases.iter().enumerate() {
        let own = own(number);
        if !own.is_empty() {
            notes.push(format!(
                "{set}: only machines with {} need {}",
                describe_base(base),
                first_few(&own)
            ));
        }
    }
    notes
}

/// The first `NAMED` of `packages`, and the number of the others.
pub(super) fn first_few(packages: &[String]) -> String {
    let named = packages[..packages.len().min(NAMED)].join(", ");
    named + &and_more(packages.len().saturating_sub(NAMED))
}

fn describe_base(base: &MachineBase) -> String {
    match base {
        // these display as the digest of a list, which says nothing to people
        MachineBase::Status(_) => "the packages of its status file".into(),
        MachineBase::Rpms(_) => "the packages of its `rpm -qa` list".into(),
        base => format!("the base `{base}`"),
    }
}

// Verifies package files against the lock: name, version and architecture must match, and RPM
// packages must be signed by a key of their source. Debian packages have no signatures of their
// own; the signed index covers them.

/// Compares the packages in `blobs` with the lock. Returns one sentence for each contradiction.
/// Signatures are checked as of `time`.
pub(crate) fn package_faults(
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

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Digest;

    #[test]
    fn names_and_versions_that_are_options_or_not_one_word_are_rejected() {
        let is_accepted = |name: &str, version: &str| {
            let package = LockedPackage {
                name: name.into(),
                version: version.into(),
                arch: "amd64".into(),
                path: String::new(),
                url: String::new(),
                digest: Digest::sha256(b"a"),
                size: 1,
            };
            check_chosen(package, "https://h.test", "pool/a.deb", &[]).is_ok()
        };
        assert!(is_accepted("_lib-a", "1:2~3-4"));
        for (name, version) in [("--root=x", "1"), ("a", "-1"), ("a b", "1"), ("", "1")] {
            assert!(!is_accepted(name, version), "{name} {version}");
        }
    }
}
