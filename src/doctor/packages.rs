//! Whether what is carried can be installed on a node: apt's choice for it, by the carried indexes and the node's own list.

use crate::content::{BlobRead, ContentError};
use crate::item::{LockedItem, PackageIndex, PackageSet, PackageSource};
use crate::model::{Descriptor, Limits, media_type};
use crate::packages::apt::{Release, Settings, Universe, choose};
use crate::packages::{COMPRESSIONS, PackagesError, decompress};
use crate::report::{Item, Kind, Status};
use crate::sign::OpenPgpKeys;
use std::collections::BTreeSet;

/// What would happen on a node.
#[derive(Debug, Default)]
pub(crate) struct Rehearsal {
    /// The packages that would be installed: present where they are carried, else missing; and a set that cannot be.
    pub items: Vec<Item>,
    /// What is installed and would be replaced or removed, a line each.
    pub replaced: Vec<String>,
}

/// Why the carried indexes cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RehearsalError {
    /// An index is not there, or damaged.
    #[error("{path}: {source}")]
    Index {
        /// Its path.
        path: String,
        /// Why.
        source: ContentError,
    },
    /// An index cannot be read.
    #[error(transparent)]
    Text(#[from] PackagesError),
}

/// Installs `set` in thought on a node whose dpkg status file is `status`.
///
/// # Errors
/// When `blobs` lack an index of it.
pub(crate) fn rehearse(
    set: &PackageSet,
    blobs: &dyn BlobRead,
    status: &str,
    limits: &Limits,
) -> Result<Rehearsal, RehearsalError> {
    let mut texts = Vec::new();
    for source in &set.sources {
        let mut read = Vec::new();
        let mut known = BTreeSet::new();
        for index in &source.indexes {
            let Some((stem, compression)) = COMPRESSIONS.iter().find_map(|(form, compression)| {
                let stem = index.path.strip_suffix(form)?;
                (stem == "Packages" || stem.ends_with("/Packages")).then_some((stem, *compression))
            }) else {
                continue;
            };
            if known.insert(stem.to_owned()) {
                let bytes = bytes(index, blobs)?;
                let text = decompress(&index.path, &bytes, compression, limits.package_index_bytes)?;
                read.push(String::from_utf8_lossy(&text).into_owned());
            }
        }
        texts.push(read);
    }
    let mut universe = Universe::new(&set.architectures);
    for (source, texts) in set.sources.iter().zip(&texts) {
        let number = universe.source(preference(source, blobs)?);
        texts.iter().for_each(|text| universe.add(number, text));
    }
    universe.install(status);
    let suites: Vec<Vec<String>> = set.sources.iter().map(|source| vec![source.suite.clone()]).collect();
    let carried: BTreeSet<(&str, &str)> = set
        .sources
        .iter()
        .flat_map(|source| &source.packages)
        .map(|package| (package.name.as_str(), package.version.as_str()))
        .collect();
    let settings = Settings { recommends: set.recommends, expects_rest: false };
    let item = |name: String, status, reason| Item {
        kind: Kind::Package,
        name,
        digest: None,
        bytes: None,
        status,
        reason,
    };
    let choice = match choose(&universe, &suites, &set.install, settings) {
        Ok(choice) => choice,
        Err(why) => {
            let failed = item(set.name().into_owned(), Status::Failed, Some(why));
            return Ok(Rehearsal { items: vec![failed], replaced: Vec::new() });
        }
    };
    let items = choice.versions.iter().map(|version| {
        let offer = universe.offer_of(*version);
        let name = universe.text(universe.packages[offer.package as usize].name);
        let label = format!("{name} {}", offer.version);
        match carried.contains(&(name, offer.version)) {
            true => item(label, Status::Present, None),
            false => {
                item(label, Status::Missing, Some("the node would ask for it, and it is not carried".into()))
            }
        }
    });
    Ok(Rehearsal { items: items.collect(), replaced: choice.replaced })
}

/// How much apt prefers the packages of a suite, as its release says.
fn preference(source: &PackageSource, blobs: &dyn BlobRead) -> Result<i16, RehearsalError> {
    let is_release =
        |index: &&PackageIndex| matches!(index.path.rsplit('/').next(), Some("InRelease" | "Release"));
    let Some(index) = source.indexes.iter().find(is_release) else { return Ok(500) };
    let text = String::from_utf8_lossy(&bytes(index, blobs)?).into_owned();
    // its digest is that of the lock, so the signature was checked; what stands around the text is cut off
    let signed = OpenPgpKeys::parse(source.key.as_bytes()).and_then(|keys| keys.verify(&text));
    let release = signed.map_or(text, |(signed, _)| signed);
    Ok(Release::parse(&index.path, &release)?.pin)
}

fn bytes(index: &PackageIndex, blobs: &dyn BlobRead) -> Result<Vec<u8>, RehearsalError> {
    let descriptor =
        Descriptor { digest: index.digest.clone(), size: index.size, media_type: media_type::OCTETS.into() };
    blobs.read(&descriptor).map_err(|source| RehearsalError::Index { path: index.path.clone(), source })
}
