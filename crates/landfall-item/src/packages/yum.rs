//! Locks packages of yum repositories: fetches and verifies the metadata of all sources, then
//! chooses packages as dnf does.

use super::locked::{LockedPackage, LockedPackageSet, PackageSource};
use super::parts;
use super::request::{MachineBase, PackageSetRequest};
use super::yum_source::{YumRepository, repository};
use crate::resolver::{ResolveError, Resolver};
use futures_util::future::try_join_all;
use landfall_model::Limits;
use landfall_packages::yum::{
    Architectures, AvailablePackages, PackageId, Pool, SelectionRequest, SourceMetadata,
    YumSelection, choose, read_base,
};
use landfall_packages::{file_url, is_plain_path};
use std::collections::{BTreeMap, BTreeSet};

/// Resolves `wish`. Returns the set, and notes for people. `old` is the set of this name in the
/// last lock; it may be for other packages.
pub(super) async fn resolve(
    resolver: &Resolver,
    wish: &PackageSetRequest,
    old: Option<&LockedPackageSet>,
) -> Result<(LockedPackageSet, Vec<String>), ResolveError> {
    let mut repositories = repositories(resolver, wish, old).await?;
    let (mut outcome, unlisted) = decided(wish, &repositories).await?;
    if !unlisted.is_empty() {
        for repository in &mut repositories {
            let fetched = repository.fetch_files(resolver).await;
            fetched.map_err(|cause| cause.of(&repository.source.url))?;
        }
        (outcome, _) = decided(wish, &repositories).await?;
    }
    outcome
}

/// Fetches the metadata of all sources.
async fn repositories(
    resolver: &Resolver,
    wish: &PackageSetRequest,
    old: Option<&LockedPackageSet>,
) -> Result<Vec<YumRepository>, ResolveError> {
    let found = wish.sources.iter().map(async |wanted| {
        let old = old.and_then(|old| old.sources.iter().find(|old| old.url == wanted.url));
        repository(resolver, wanted, old)
            .await
            .map_err(|cause| cause.of(&wanted.url))
    });
    try_join_all(found).await
}

/// The packages of all sources that dnf would consider.
pub(super) async fn visible(
    resolver: &Resolver,
    wish: &PackageSetRequest,
) -> Result<Pool, ResolveError> {
    let found = repositories(resolver, wish, None).await?;
    let metadata: Vec<SourceMetadata> = found
        .into_iter()
        .map(|repository| repository.metadata)
        .collect();
    let native = wish.architectures.first().cloned().unwrap_or_default();
    let reading = tokio::task::spawn_blocking(move || {
        let mut offered = AvailablePackages::read(&metadata, &Architectures::of(&native), &[])?;
        offered.pool.index();
        Ok(offered.pool)
    });
    reading
        .await
        .map_err(|error| ResolveError::local(error.to_string()))?
}

type Outcome = Result<(LockedPackageSet, Vec<String>), ResolveError>;

/// The result, and the paths of files whose providers are not known yet.
async fn decided(
    wish: &PackageSetRequest,
    repositories: &[YumRepository],
) -> Result<(Outcome, BTreeSet<String>), ResolveError> {
    let (wish, repositories) = (wish.clone(), repositories.to_vec());
    let deciding = tokio::task::spawn_blocking(move || {
        let mut unlisted = BTreeSet::new();
        let outcome = lock(&wish, &repositories, &mut unlisted);
        (outcome, unlisted)
    });
    deciding
        .await
        .map_err(|error| ResolveError::local(error.to_string()))
}

/// A chosen package, and the bases that need it.
struct ChosenPackages {
    package: LockedPackage,
    source: usize,
    bases: BTreeSet<usize>,
}

/// Chooses the packages for `wish`. Returns the set, and notes for people. Paths that the primary
/// metadata does not list are added to `unlisted`, so that the caller can fetch the full file
/// lists.
fn lock(
    wish: &PackageSetRequest,
    repositories: &[YumRepository],
    unlisted: &mut BTreeSet<String>,
) -> Outcome {
    let install: Vec<String> = wish.install.clone();
    let architectures = Architectures::of(&wish.architectures[0]);
    let nothing = [MachineBase::None];
    let bases = if wish.bases.is_empty() {
        &nothing[..]
    } else {
        &wish.bases
    };
    let mut chosen: BTreeMap<(usize, String), ChosenPackages> = BTreeMap::new();
    let mut expected = BTreeSet::new();
    let metadata: Vec<SourceMetadata> = repositories
        .iter()
        .map(|repository| repository.metadata.clone())
        .collect();
    for (number, base) in bases.iter().enumerate() {
        let mut offered = AvailablePackages::read(&metadata, &architectures, &install)?;
        if let MachineBase::Rpms(text) = base {
            read_base(text, &mut offered.pool)?;
        }
        offered.pool.index();
        let pool = &offered.pool;
        let question = SelectionRequest {
            pool,
            architectures: &architectures,
            install: &install,
            weak: wish.recommends,
            assume: wish.bases.is_empty(),
            steps: Limits::DEFAULT.solver_steps,
        };
        let choice = match choose(question) {
            Ok(choice) => choice,
            Err(refusal) => {
                let told = offered.told(&refusal);
                unlisted.extend(refusal.unlisted);
                return Err(match bases.len() {
                    1 => told,
                    _ => format!("where the machine has {}: {told}", shown(base)),
                }
                .into());
            }
        };
        let YumSelection {
            packages,
            expected: missing,
            unlisted: files,
            ..
        } = choice;
        unlisted.extend(files);
        expected.extend(missing);
        for id in packages {
            let Some(source) = pool.package(id).source() else {
                continue;
            };
            let source = usize::from(source);
            let package = locked(pool, id, &repositories[source].source.url)?;
            let key = (source, package.path.clone());
            let chosen = chosen.entry(key).or_insert_with(|| ChosenPackages {
                package,
                source,
                bases: BTreeSet::new(),
            });
            chosen.bases.insert(number);
        }
    }
    let notes = notes(wish, bases, &expected, &chosen);
    let mut sources: Vec<PackageSource> = repositories
        .iter()
        .map(|repository| repository.source.clone())
        .collect();
    for ChosenPackages {
        package, source, ..
    } in chosen.into_values()
    {
        sources[source].packages.push(package);
    }
    Ok((parts::set(wish, expected, sources), notes))
}

/// The lock's record of a chosen package.
fn locked(pool: &Pool, id: PackageId, url: &str) -> Result<LockedPackage, ResolveError> {
    let [name, version, arch, path] = [pool.name(id), pool.evr(id), pool.arch(id), pool.path(id)];
    let package = pool.package(id);
    let digest = package.digest().ok_or_else(|| {
        ResolveError::from(format!(
            "{} has no SHA-256 in its index, so it cannot be checked",
            pool.nevra(id)
        ))
    })?;
    let is_word = |text: &&str| {
        !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    if !is_plain_path(path) || ![name, version, arch].iter().all(is_word) || package.size() == 0 {
        let path = path.escape_default();
        let why = format!(
            "its index names {} as '{path}' of {} bytes, which is refused",
            pool.nevra(id).escape_default(),
            package.size()
        );
        return Err(why.into());
    }
    Ok(LockedPackage {
        digest: digest.clone(),
        size: package.size(),
        name: name.into(),
        version: version.into(),
        arch: arch.into(),
        path: path.into(),
        url: file_url(url, path),
    })
}

fn shown(base: &MachineBase) -> String {
    match base {
        MachineBase::Rpms(_) => "what its list of packages says".into(),
        base => format!("the base `{base}`"),
    }
}

/// The packages that are expected on the machines, with notes where several bases lead to different
/// choices.
fn notes(
    wish: &PackageSetRequest,
    bases: &[MachineBase],
    expected: &BTreeSet<String>,
    chosen: &BTreeMap<(usize, String), ChosenPackages>,
) -> Vec<String> {
    let few = |all: Vec<String>| {
        let more = all.len().saturating_sub(10);
        let few = all.into_iter().take(10).collect::<Vec<_>>().join(", ");
        if more > 0 {
            format!("{few} and {more} more")
        } else {
            few
        }
    };
    let mut notes = Vec::new();
    if !expected.is_empty() {
        notes.push(format!(
            "{}: no source has {}; the machines must have it (with `base` or more `sources` it \
             is carried)",
            wish.name,
            few(expected.iter().cloned().collect())
        ));
    }
    for (number, base) in bases.iter().enumerate() {
        let own = chosen
            .values()
            .filter(|chosen| chosen.bases.contains(&number) && chosen.bases.len() < bases.len());
        let own: Vec<String> = own
            .map(|chosen| format!("{} {}", chosen.package.name, chosen.package.version))
            .collect();
        if !own.is_empty() {
            notes.push(format!(
                "{}: only a machine that has {} takes {}",
                wish.name,
                shown(base),
                few(own)
            ));
        }
    }
    notes
}
