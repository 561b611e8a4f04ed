//! Resolves the dependencies of a chart to exact charts.

use super::metadata::ChartDependency;
use super::name::ChartName;
use super::repository;
use crate::resolver::{ResolveError, Resolver};
use landfall_model::{ChartVersion, ChartVersionRange, ImageRef, is_web_url};

/// Resolves the dependencies `missing`, which the chart does not bundle; the result is sorted.
/// `source` is the repository URL of the chart that needs them. A repository that neither
/// the manifest nor the site names is queried without credentials.
pub(super) async fn resolve(
    resolver: &Resolver,
    missing: &[ChartDependency],
    source: &str,
) -> Result<Vec<ChartName>, ResolveError> {
    let limit = resolver.limits().chart_dependencies;
    if missing.len() > limit {
        return Err(
            format!("it depends on more than {limit} charts that it does not contain").into(),
        );
    }
    let mut found = Vec::new();
    for dependency in missing {
        let ChartDependency {
            name,
            version,
            repository,
        } = dependency;
        let newest = newest(resolver, dependency, source).await;
        found.push(newest.map_err(|cause| ResolveError {
            // the chart itself still exists, even if its dependency does not
            is_gone: false,
            ..cause.about(&format!(
                "its dependency {name} {version} of '{repository}'"
            ))
        })?);
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The newest version in the range of a dependency.
async fn newest(
    resolver: &Resolver,
    dependency: &ChartDependency,
    source: &str,
) -> Result<ChartName, ResolveError> {
    let ChartDependency {
        name,
        version,
        repository,
    } = dependency;
    // a missing version means any version
    let range: ChartVersionRange = if version.is_empty() {
        "*"
    } else {
        version.as_str()
    }
    .parse()
    .map_err(|()| "its version is not a range of versions".to_owned())?;
    let url = repository.trim_end_matches('/');
    let oci = url.strip_prefix("oci://");
    if oci.is_some() || is_web_url(url) {
        resolver.sessions().check_named_target(url, source).await?;
    }
    let versions: Vec<String> = match oci {
        Some(path) => {
            let image: ImageRef = format!("{path}/{name}")
                .parse()
                .map_err(|_| "its repository is not a registry")?;
            let resolver = resolver.for_dependency_at(url, &image.registry);
            let tags = resolver.all_tags(&image).await?;
            let tags = tags.ok_or("its registry does not list its versions, or too many")?;
            // tags cannot contain the `+` of a version
            tags.iter().map(|tag| tag.replace('_', "+")).collect()
        }
        None if is_web_url(url) => {
            // only repository and host are used here, so the version is a placeholder
            let like =
                ChartName::in_repository(url, name, "0.0.0").map_err(|error| error.to_string())?;
            let resolver =
                resolver.for_dependency_at(&like.repository_url(), &like.reference.registry);
            repository::versions(resolver, url, name).await?
        }
        // an empty repository, an alias as in `@stable`, or a path as in `file://../common`
        None => return Err("it is not in the archive, and its repository is not a URL".into()),
    };
    let newest = versions
        .iter()
        .filter_map(|text| Some((text.parse::<ChartVersion>().ok()?, text)))
        .filter(|(version, _)| range.has(version))
        .max_by(|a, b| a.0.cmp(&b.0));
    let (_, version) = newest.ok_or("its repository has no version in this range")?;
    let name = match oci {
        Some(path) => ChartName::try_from(format!("oci://{path}/{name}:{version}")),
        None => ChartName::in_repository(url, name, version),
    };
    name.map_err(|error| error.to_string().into())
}
