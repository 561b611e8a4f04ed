//! The index `filelists`, a list of all files. It is downloaded only if a relation or a request
//! names a file that the primary index does not contain.

use super::error::YumError;
use super::pool::{PackageId, Pool, RpmRelationKind};
use super::rich::RichDependency;
use super::xml::{XmlEvent, walk};
use std::collections::{BTreeSet, HashMap};
use std::io::BufRead;

const WHAT: &str = "filelists index";

/// Whether createrepo lists `path` in the primary index: configuration and programs. Every other
/// file is only in the list of all files.
pub(super) fn is_in_primary(path: &str) -> bool {
    path.starts_with("/etc/") || path.contains("bin/") || path == "/usr/lib/sendmail"
}

/// The kinds of relations that may name files.
pub(super) const FILE_RELATIONS: [RpmRelationKind; 6] = [
    RpmRelationKind::Requires,
    RpmRelationKind::Conflicts,
    RpmRelationKind::Recommends,
    RpmRelationKind::Suggests,
    RpmRelationKind::Supplements,
    RpmRelationKind::Enhances,
];

/// Returns the paths that relations of the packages in `pool` name. Only these files and requested
/// files affect the selection.
pub(super) fn related_paths(pool: &Pool) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for id in pool.ids() {
        for relation in FILE_RELATIONS
            .into_iter()
            .flat_map(|kind| pool.relations(id, kind))
        {
            // most relations name no file: this check is much faster than parsing them all
            if !relation.name.contains('/') {
                continue;
            }
            let Some(rich) = RichDependency::parse_relation(&relation) else {
                continue;
            };
            rich.each_relation(&mut |one| {
                if one.name.starts_with('/') && !paths.contains(one.name) {
                    paths.insert(one.name.to_owned());
                }
            });
        }
    }
    paths
}

/// Records in `pool` which packages of `source` contain one of the paths `wanted`, according to the
/// `filelists.xml` in `reader`.
pub(super) fn read_filelists(
    reader: impl BufRead,
    source: u16,
    wanted: &BTreeSet<String>,
    pool: &mut Pool,
) -> Result<(), YumError> {
    let own = pool
        .ids()
        .filter(|id| pool.package(*id).source == Some(source));
    // `pkgid` is the checksum of the package in the primary index
    let by_digest: HashMap<String, PackageId> = own
        .filter_map(|id| Some((pool.package(id).digest.as_ref()?.hex(), id)))
        .collect();
    let mut package = None;
    walk(reader, WHAT, &mut |step| {
        match step {
            XmlEvent::Start(element) if element.name() == "package" => {
                package = element
                    .attribute("pkgid")?
                    .and_then(|id| by_digest.get(&id.to_ascii_lowercase()).copied());
            }
            // millions of files: only those of interest are kept
            XmlEvent::End("file", path) => {
                if let Some(package) = package.filter(|_| wanted.contains(path)) {
                    pool.add_file(package, path);
                }
            }
            _ => {}
        }
        Ok(())
    })
}
