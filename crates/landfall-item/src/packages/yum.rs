//! Locks packages of yum repositories: fetches and verifies the metadata of all sources, then
//! chooses packages as dnf does.

use super::chosen_packages::{check_chosen, choice_error, first_few, notes};
use super::kind;
use super::locked::{LockedPackage, LockedPackageSet, PackageSource};
use super::resolvable::{MachineBase, OfferedIndex, PackageSetRequest};
use super::yum_source::{YumRepository, repository};
use crate::resolver::{ResolveError, Resolver};
use futures_util::future::try_join_all;
use landfall_model::Limits;
use landfall_packages::host_of;
use landfall_packages::yum::{
    Architectures, AvailablePackages, PackageId, Pool, SelectionRequest, SourceMetadata, choose,
    read_base,
};
use std::collections::{BTreeMap, BTreeSet};

/// Resolves `request`. Returns the set, and notes for people. `old` is the set of this name in the
/// last lock, which may have been locked for other packages.
pub(super) async fn resolve(
    resolver: &Resolver,
    request: &PackageSetRequest,
    old: Option<&LockedPackageSet>,
) -> Result<(LockedPackageSet, Vec<String>), ResolveError> {
    let mut repositories = repositories(resolver, request, old).await?;
    let (mut outcome, unlisted) = choose_packages(request, &repositories).await?;
    // The full file lists are fetched only if the choice depends on a path that the primary index
    // does not list. Then the choice is made again.
    if !unlisted.is_empty() {
        for repository in &mut repositories {
            let fetched = repository.fetch_files(resolver).await;
            fetched.map_err(|cause| cause.about(&repository.source.url))?;
        }
        (outcome, _) = choose_packages(request, &repositories).await?;
    }
    outcome
}

/// Fetches the metadata of all sources.
async fn repositories(
    resolver: &Resolver,
    request: &PackageSetRequest,
    old: Option<&LockedPackageSet>,
) -> Result<Vec<YumRepository>, ResolveError> {
    let has_group_words = request.install.iter().any(|word| word.starts_with('@'));
    let found = request.sources.iter().map(async |source| {
        let old = old.and_then(|old| old.sources.iter().find(|old| old.url == source.url));
        let mut found = repository(resolver, source, old).await;
        if let Ok(found) = &mut found
            && has_group_words
        {
            found.fetch_groups(resolver).await?;
        }
        found.map_err(|cause| cause.about(&source.url))
    });
    try_join_all(found).await
}

/// The packages of all sources that dnf would consider.
pub(super) async fn visible_packages(
    resolver: &Resolver,
    request: &PackageSetRequest,
) -> Result<Pool, ResolveError> {
    let found = repositories(resolver, request, None).await?;
    let metadata: Vec<SourceMetadata> = found
        .into_iter()
        .map(|repository| repository.metadata)
        .collect();
    let native = request.architectures.first().cloned().unwrap_or_default();
    let (install, modules) = (request.install.clone(), request.modules.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let native = Architectures::of(&native);
        let mut offered = AvailablePackages::read(&metadata, &native, &install, &modules)?;
        offered.pool.index();
        Ok(offered.pool)
    });
    reading.await?
}

/// The set and notes for people, or why no packages can be chosen.
type Outcome = Result<(LockedPackageSet, Vec<String>), ResolveError>;

/// Chooses the packages on a blocking thread. Returns the outcome, and the paths of files whose
/// packages are not known without the full file lists.
async fn choose_packages(
    request: &PackageSetRequest,
    repositories: &[YumRepository],
) -> Result<(Outcome, BTreeSet<String>), ResolveError> {
    let request = request.clone();
    let repositories = repositories.to_vec();
    let locking = tokio::task::spawn_blocking(move || {
        let mut unlisted = BTreeSet::new();
        let outcome = lock(&request, &repositories, &mut unlisted);
        (outcome, unlisted)
    });
    Ok(locking.await?)
}

/// The packages that the solver chose, by the position of their source in the request and their
/// path, with the positions of the bases that need them.
type ChosenPackages = BTreeMap<(usize, String), (LockedPackage, BTreeSet<usize>)>;

/// Chooses the packages for `request`. Returns the set, and notes for people. Paths that the
/// primary metadata does not list are added to `unlisted`, so that the caller can fetch the full
/// file lists.
fn lock(
    request: &PackageSetRequest,
    repositories: &[YumRepository],
    unlisted: &mut BTreeSet<String>,
) -> Outcome {
    let architectures = Architectures::of(&request.architectures[0]);
    let bases = request.machines();
    // keyed by the position of the source and the path of the package; bases share most packages
    let mut chosen = ChosenPackages::new();
    let mut expected = BTreeSet::new();
    let mut skipped = BTreeMap::new();
    let mut at_urls = BTreeMap::new();
    let metadata: Vec<SourceMetadata> = repositories
        .iter()
        .map(|repository| repository.metadata.clone())
        .collect();
    for (number, base) in bases.iter().enumerate() {
        let mut offered = AvailablePackages::read(
            &metadata,
            &architectures,
            &request.install,
            &request.modules,
        )?;
        if let MachineBase::Rpms(text) = base {
            read_base(text, &mut offered.pool)?;
        }
        offered.pool.index();
        skipped.append(&mut offered.skipped);
        let pool = &offered.pool;
        let selection = SelectionRequest {
            pool,
            architectures: &architectures,
            install: &offered.requests,
            weak: request.recommends,
            assume: request.bases.is_empty(),
            steps: Limits::DEFAULT.solver_steps,
        };
        let choice = match choose(selection) {
            Ok(choice) => choice,
            Err(refusal) => {
                let why = offered.explain(&refusal);
                unlisted.extend(refusal.unlisted);
                return Err(choice_error(why, base, bases));
            }
        };
        unlisted.extend(choice.unlisted);
        expected.extend(choice.expected);
        for id in choice.packages {
            // a package without a source is installed already
            let Some(source) = pool.package(id).source else {
                continue;
            };
            let source = usize::from(source);
            let url = &repositories[source].source.url;
            let package = locked(pool, id, url, &hosts(request, source))?;
            if pool.path(id).contains("://") && request.index == OfferedIndex::Signed {
                let host = host_of(&package.url).to_owned();
                at_urls
                    .entry(host)
                    .or_insert_with(BTreeSet::new)
                    .insert(package.url.clone());
            }
            let key = (source, package.path.clone());
            let (_, needed_by) = chosen
                .entry(key)
                .or_insert_with(|| (package, BTreeSet::new()));
            needed_by.insert(number);
        }
    }
    let all: Vec<String> = expected.iter().cloned().collect();
    let mut notes = notes(&request.name, &first_few(&all), bases, |number| {
        let own = chosen
            .values()
            .filter(|(_, needed_by)| needed_by.contains(&number) && needed_by.len() < bases.len());
        own.map(|(package, _)| format!("{} {}", package.name, package.version))
            .collect()
    });
    notes.extend(skipped.iter().map(|(group, packages)| {
        let packages: Vec<String> = packages.iter().cloned().collect();
        format!(
            "{}: no source has these packages of the group @{group}, which dnf skips: {}",
            request.name,
            first_few(&packages)
        )
    }));
    notes.extend(
        at_urls
            .iter()
            .map(|(host, urls)| url_note(&request.name, host, urls.len())),
    );
    let mut sources: Vec<PackageSource> = repositories
        .iter()
        .map(|repository| repository.source.clone())
        .collect();
    for ((source, _), (package, _)) in chosen {
        sources[source].packages.push(package);
    }
    Ok((kind::set(request, expected, sources), notes))
}

/// The lock's record of a chosen package.
fn locked(
    pool: &Pool,
    id: PackageId,
    url: &str,
    hosts: &[&str],
) -> Result<LockedPackage, ResolveError> {
    let [name, version, arch] = [pool.name(id), pool.evr(id), pool.arch(id)];
    let package = pool.package(id);
    let digest = package.digest.as_ref().ok_or_else(|| {
        ResolveError::from(format!(
            "{} has no SHA-256 or SHA-512 in its index, so it cannot be verified",
            pool.nevra(id)
        ))
    })?;
    let package = LockedPackage {
        digest: digest.clone(),
        size: package.size,
        name: name.into(),
        version: version.into(),
        arch: arch.into(),
        path: String::new(),
        url: String::new(),
    };
    check_chosen(package, url, pool.path(id), hosts)
}

/// The hosts from which packages of the source at this position may come: those of its `hosts`, and
/// those of all sources.
fn hosts(request: &PackageSetRequest, source: usize) -> Vec<&str> {
    let named = request.sources[source].hosts.iter().map(String::as_str);
    let sources = request.sources.iter().map(|source| host_of(&source.url));
    named.chain(sources).collect()
}

/// The note about packages of the set `set` whose URLs are in the signed metadata.
fn url_note(set: &str, host: &str, packages: usize) -> String {
    format!(
        "{set}: the signed metadata has URLs of packages ({packages}), which dnf requests from \
         {host}: resolve that name to the server behind the gap, or write `index: trimmed`, whose \
         metadata has paths of the server"
    )
}
