//! The list of all files of a repository, read for the few that somebody requires and the primary index does not name.

use super::error::YumError;
use super::pool::{PackageId, Pool};
use super::xml::{Step, walk};
use std::collections::{BTreeSet, HashMap};
use std::io::BufRead;

const WHAT: &str = "list of files of a repository";

/// Notes in `pool` which packages of `source` have one of `wanted`, as `reader` says.
///
/// # Errors
/// When it is malformed or cut short.
pub(crate) fn read_filelists(
    reader: impl BufRead,
    source: u16,
    wanted: &BTreeSet<String>,
    pool: &mut Pool,
) -> Result<(), YumError> {
    let own = pool.ids().filter(|id| pool.package(*id).source == Some(source));
    let by_digest: HashMap<String, PackageId> =
        own.filter_map(|id| Some((pool.package(id).digest.as_ref()?.hex(), id))).collect();
    let mut package = None;
    walk(reader, WHAT, &mut |step| {
        match step {
            Step::Start(element) if element.name() == "package" => {
                package = element.attribute("pkgid")?.and_then(|id| by_digest.get(&id).copied());
            }
            Step::End("file", path) => {
                if let Some(package) = package.filter(|_| wanted.contains(path)) {
                    pool.add_file(package, path);
                }
            }
            _ => {}
        }
        Ok(())
    })
}
