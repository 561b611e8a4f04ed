//! Simulates dnf on a node, with the carried indexes and the node's list of RPM packages.

use super::{CarriedIndexes, SimulatedInstall};
use landfall_item::{LockedPackageSet, PackageSource};
use landfall_model::{Digest, Failure, Limits};
use landfall_packages::yum::{
    Architectures, AvailablePackages, PackageId, PackedIndex, Pool, Repomd, SelectionRequest,
    SourceMetadata, choose, is_plain_list, read_base,
};
use std::collections::BTreeSet;

/// Simulates the installation of `set` by dnf on the node.
pub(super) fn simulate_install(
    set: &LockedPackageSet,
    carried: &CarriedIndexes<'_>,
    rpms: &str,
) -> Result<SimulatedInstall, Failure> {
    let architectures =
        Architectures::of(set.architectures.first().map_or("x86_64", String::as_str));
    let mut sources = set
        .sources
        .iter()
        .map(|source| YumMetadata::read(source, carried))
        .collect::<Result<Vec<_>, _>>()?;
    let mut has_files = false;
    loop {
        let metadata: Vec<SourceMetadata> = sources
            .iter()
            .map(|source| source.metadata.clone())
            .collect();
        let mut offered =
            AvailablePackages::read(&metadata, &architectures, &set.install, &set.modules)?;
        read_base(rpms, &mut offered.pool)
            .map_err(|error| Failure::failed(format!("the list of RPM packages: {error}")))?;
        offered.pool.index();
        let question = SelectionRequest {
            pool: &offered.pool,
            architectures: &architectures,
            install: &offered.requests,
            weak: set.recommends,
            // The list contains all installed packages, so no others are assumed to be installed.
            assume: false,
            steps: Limits::DEFAULT.solver_steps,
        };
        let outcome = choose(question);
        let unlisted = outcome
            .as_ref()
            .map_or_else(|why| &why.unlisted, |choice| &choice.unlisted);
        // The list of all files is large. It is read only if a package needs a file that the
        // primary index does not list, and then the selection starts again.
        if !has_files && !unlisted.is_empty() {
            has_files = true;
            sources
                .iter_mut()
                .try_for_each(|source| source.read_files(carried))?;
            continue;
        }
        return Ok(match outcome {
            Err(refusal) => {
                let help = "; the list has only names and versions, not what the packages provide; \
                            `landfall help packages` shows a format with both";
                let help = if is_plain_list(rpms) { help } else { "" };
                SimulatedInstall::refused(set, format!("{}{help}", offered.explain(&refusal)))
            }
            Ok(choice) => {
                let packages: BTreeSet<&Digest> = set
                    .sources
                    .iter()
                    .flat_map(|source| &source.packages)
                    .map(|one| &one.digest)
                    .collect();
                let pool = &offered.pool;
                let wanted = choice.packages.iter().map(|id| {
                    let digest = pool.package(*id).digest.as_ref();
                    let is_carried = digest.is_some_and(|digest| packages.contains(digest));
                    (package_text(pool, *id), is_carried)
                });
                let replaced = choice
                    .replaced
                    .iter()
                    .map(|(old, new)| replaced(pool, *old, *new));
                SimulatedInstall::of(wanted, replaced.collect())
            }
        });
    }
}

fn package_text(pool: &Pool, id: PackageId) -> String {
    format!("{} {}", pool.name(id), pool.evr(id))
}

fn replaced(pool: &Pool, old: PackageId, new: Option<PackageId>) -> String {
    match new {
        Some(new) if pool.name(new) == pool.name(old) => {
            format!("{} → {}", package_text(pool, old), pool.evr(new))
        }
        Some(new) => format!("{} → {}", package_text(pool, old), package_text(pool, new)),
        None => format!("{} would be removed", package_text(pool, old)),
    }
}

/// The metadata of a source, from the carried indexes.
struct YumMetadata<'a> {
    locked: &'a PackageSource,
    repomd: Repomd,
    metadata: SourceMetadata,
}

impl<'a> YumMetadata<'a> {
    fn read(
        locked: &'a PackageSource,
        carried: &CarriedIndexes<'_>,
    ) -> Result<YumMetadata<'a>, Failure> {
        let none = |what| Failure::failed(format!("{} has no {what} in the lock", locked.url));
        let repomd = locked
            .indexes
            .iter()
            .find(|index| index.path == "repodata/repomd.xml");
        let repomd = repomd
            .ok_or_else(|| none("repomd.xml"))?
            .read(carried.blobs)?;
        let repomd = Repomd::parse(&repomd).map_err(bad_repomd)?;
        let packed = |kind| packed(&repomd, locked, carried, kind);
        let primary = packed("primary")?.ok_or_else(|| none("primary index"))?;
        let metadata = SourceMetadata {
            url: locked.url.clone(),
            primary,
            modules: packed("modules")?,
            groups: match repomd.group_kind() {
                Some(kind) => packed(kind)?,
                None => None,
            },
            is_hotfixes: locked.module_hotfixes,
            files: None,
        };
        Ok(YumMetadata {
            locked,
            repomd,
            metadata,
        })
    }

    /// Also reads the list of all files. The primary index lists only some files.
    fn read_files(&mut self, carried: &CarriedIndexes<'_>) -> Result<(), Failure> {
        self.metadata.files = packed(&self.repomd, self.locked, carried, "filelists")?;
        Ok(())
    }
}

fn bad_repomd(error: Failure) -> Failure {
    Failure::failed(format!("repomd.xml: {error}"))
}

/// Returns the index of this kind, if `repomd` lists one and the lock contains it.
fn packed(
    repomd: &Repomd,
    locked: &PackageSource,
    carried: &CarriedIndexes<'_>,
    kind: &str,
) -> Result<Option<PackedIndex>, Failure> {
    let index = repomd.index(&locked.url, kind);
    let Some(index) = index.map_err(bad_repomd)? else {
        return Ok(None);
    };
    let Some(locked) = locked.indexes.iter().find(|one| one.path == index.path) else {
        return Ok(None);
    };
    let packed = PackedIndex::of(&index, carried.limits);
    let mut packed = packed.map_err(bad_repomd)?;
    packed.bytes = locked.read(carried.blobs)?.into();
    Ok(Some(packed))
}
