//! Resolves the dependencies of a chart to exact charts.

use super::metadata::ChartDependency;
use super::name::ChartName;
use super::repository;
use crate::resolver::{ResolveError, Resolver};
use landfall_model::{ChartVersion, ChartVersionRange, ImageRef};

/// Resolves the dependencies `lacking`, sorted. `source` is the URL of the chart that needs them. A
/// repository that the manifest does not name is asked without credentials.
pub(super) async fn resolve(
    resolver: &Resolver,
    lacking: &[ChartDependency],
    source: &str,
) -> Result<Vec<ChartName>, ResolveError> {
    let most = resolver.limits().chart_dependencies;
    if lacking.len() > most {
        return Err(
            format!("it depends on more than {most} charts that it does not contain").into(),
        );
    }
    let mut found = Vec::new();
    for dependency in lacking {
        let ChartDependency {
            name,
            version,
            repository,
        } = dependency;
        let what = format!("its dependency {name} {version}");
        found.push(
            newest(resolver, dependency, source)
                .await
                .map_err(|cause| {
                    let cause = cause.about(&format!("{what} of '{repository}'"));
                    // a dependency on another chart in the same repository
                    ResolveError {
                        is_gone: false,
                        ..cause
                    }
                })?,
        );
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
    let range: ChartVersionRange = if version.is_empty() {
        "*"
    } else {
        version.as_str()
    }
    .parse()
    .map_err(|()| "this is no range of versions".to_owned())?;
    let url = repository.trim_end_matches('/');
    let oci = url.strip_prefix("oci://");
    if ["oci://", "http://", "https://"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
    {
        resolver.sessions().check_named_target(url, source).await?;
    }
    let versions: Vec<String> = match oci {
        Some(place) => {
            let at: ImageRef = format!("{place}/{name}")
                .parse()
                .map_err(|_| "this is no registry")?;
            let resolver = resolver.for_charts_at(url, &at.registry);
            let tags = resolver.tags(&at, resolver.limits().pages).await?;
            let tags = tags.ok_or("its registry does not list its versions")?;
            tags.iter().map(|tag| tag.replace('_', "+")).collect()
        }
        None if url.starts_with("http://") || url.starts_with("https://") => {
            // only repository and host matter here, so any version will do
            let like =
                ChartName::in_repository(url, name, "0.0.0").map_err(|error| error.to_string())?;
            let resolver = resolver.for_charts_at(&like.place(), &like.reference.registry);
            repository::versions(resolver, url, name).await?
        }
        None => return Err("it is not in the archive, and nothing says where it is".into()),
    };
    let known = versions
        .iter()
        .filter_map(|text| Some((text.parse::<ChartVersion>().ok()?, text)));
    let newest = known
        .filter(|(version, _)| range.has(version))
        .max_by(|a, b| a.0.cmp(&b.0));
    let (_, version) = newest.ok_or("no version there is in this range")?;
    let name = match oci {
        Some(place) => ChartName::try_from(format!("oci://{place}/{name}:{version}")),
        None => ChartName::in_repository(url, name, version),
    };
    name.map_err(|error| error.to_string().into())
}
