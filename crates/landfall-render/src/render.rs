//! Renders a platform: checks the destinations from which it pulls, and adds the header to each
//! file. If the platform has the setting `cluster` and the user does not give it, each cluster of
//! the site is rendered into a separate folder.

use super::error::RenderError;
use super::missing_destinations::missing_destinations;
use super::object_cluster::cluster_of;
use super::platform::{RenderPlatform, RenderedConfig, RenderedOutput};
use super::request::RenderRequest;
use super::settings::CLUSTER;
use landfall_model::Consumer;
use landfall_model::config::{ClusterNoProxy, SiteCluster};
use std::collections::BTreeSet;

/// Renders the configuration of `platform`.
///
/// # Errors
/// The errors of [`RenderPlatform::render`]. Also fails if a locked image lacks a destination from
/// which the platform pulls, or if the name of a cluster is invalid or not unique.
pub fn render(
    platform: &dyn RenderPlatform,
    request: &RenderRequest<'_>,
) -> Result<RenderedConfig, RenderError> {
    let spec = platform.spec();
    if let Some(missing) = spec
        .consumer
        .and_then(|consumer| missing_destinations(consumer, request.mapping, request.lock))
    {
        return Err(RenderError::MissingDestinations(missing));
    }
    let command = format!(
        "landfall render {}{}",
        spec.name,
        request.settings.written()
    );
    let clusters = request
        .site
        .map(|site| site.clusters.as_slice())
        .unwrap_or_default();
    if clusters.is_empty() || !request.settings.wants_clusters() {
        let cluster = chosen_cluster(request, clusters)?;
        let site = cluster.and_then(|cluster| Some(request.site?.of_cluster(cluster)));
        let mut rendered = platform.render(&RenderRequest {
            site: site.as_ref().or(request.site),
            ..request.clone()
        })?;
        if let (Some(cluster), RenderedOutput::Files(files)) =
            (request.settings.get(CLUSTER.key), &mut rendered.output)
        {
            *files = std::mem::take(files)
                .into_iter()
                .map(|file| file.of_cluster(cluster))
                .collect();
        }
        let mut rendered = with_headers(rendered, &command);
        rendered.notes.extend(scheme_note(spec.consumer, request)?);
        if cluster.is_none() && request.settings.takes_site_cluster() {
            rendered.notes.extend(cluster_note(request, clusters));
        }
        return Ok(rendered);
    }
    let mut all = RenderedConfig::default();
    let mut files = Vec::new();
    let mut names = BTreeSet::new();
    for cluster in clusters {
        if !names.insert(&cluster.name) {
            let why = format!("two clusters of the site are named {}", cluster.name);
            return Err(RenderError::Site(format!("{why}; rename one of them")));
        }
        let settings = request.settings.of_cluster(cluster)?;
        let site = request.site.map(|site| site.of_cluster(cluster));
        let one = platform.render(&RenderRequest {
            settings,
            site: site.as_ref(),
            ..request.clone()
        })?;
        if let RenderedOutput::Files(made) = one.output {
            let made = made.into_iter();
            files.extend(made.map(|file| file.in_folder(&cluster.name).of_cluster(&cluster.name)));
        }
        // a note that applies to every cluster is printed once
        for note in one.notes {
            if !all.notes.contains(&note) {
                all.notes.push(note);
            }
        }
        all.changes.extend(one.changes);
        all.items.extend(
            one.items
                .into_iter()
                .filter(|item| !all.items.contains(item))
                .collect::<Vec<_>>(),
        );
        all.failure = all.failure.or(one.failure);
    }
    all.notes.extend(scheme_note(spec.consumer, request)?);
    Ok(with_headers(
        RenderedConfig {
            output: RenderedOutput::Files(files),
            ..all
        },
        &command,
    ))
}

/// Returns the cluster of the site whose part of NO_PROXY applies to a platform that is rendered
/// once: the one that the user named, or the only one to which the objects in the file of `--into`
/// belong. A platform that is rendered for clusters also accepts a name that the site does not
/// have.
fn chosen_cluster<'s>(
    request: &RenderRequest<'_>,
    clusters: &'s [SiteCluster],
) -> Result<Option<&'s SiteCluster>, RenderError> {
    let is_once = request.settings.takes_site_cluster();
    if let Some(name) = request.settings.get(CLUSTER.key) {
        let cluster = clusters.iter().find(|cluster| cluster.name == name);
        if cluster.is_none() && is_once {
            let names: Vec<&str> = clusters.iter().map(|cluster| &*cluster.name).collect();
            return Err(RenderError::Value {
                key: CLUSTER.key.into(),
                value: name.into(),
                why: match &names[..] {
                    [] => "the site has no `clusters`".into(),
                    names => format!("the clusters of the site are {}", names.join(", ")),
                },
            });
        }
        return Ok(cluster);
    }
    let mut named: Vec<&SiteCluster> = Vec::new();
    for object in request.existing.iter().filter(|_| is_once) {
        let cluster = cluster_of(object, clusters);
        if let Some(cluster) = cluster.filter(|cluster| !named.contains(cluster)) {
            named.push(cluster);
        }
    }
    match named[..] {
        [one] => Ok(Some(one)),
        _ => Ok(None),
    }
}

/// The note that the clusters of the site have parts of NO_PROXY that the configuration lacks.
fn cluster_note(request: &RenderRequest<'_>, clusters: &[SiteCluster]) -> Option<String> {
    request.site?.proxy.as_ref()?;
    let own = clusters
        .iter()
        .filter(|cluster| cluster.no_proxy() != ClusterNoProxy::default());
    let names: Vec<&str> = own.map(|cluster| &*cluster.name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "NO_PROXY has the site's own values, not those of the clusters {}; --set cluster=NAME \
             applies those of one",
            names.join(", ")
        )
    })
}

/// The note about the scheme of the registry, for platforms that set up nodes. Platforms that only
/// change names do not need it.
fn scheme_note(
    consumer: Option<Consumer>,
    request: &RenderRequest<'_>,
) -> Result<Option<String>, RenderError> {
    if request.target.is_none() {
        return Ok(None);
    }
    match consumer {
        None | Some(Consumer::Kustomize | Consumer::Kyverno) => Ok(None),
        Some(consumer) => {
            // TKG refuses plain HTTP
            let takes_plain_http = consumer != Consumer::Tkg;
            Ok(request.registry()?.scheme_note(takes_plain_http))
        }
    }
}

fn with_headers(rendered: RenderedConfig, command: &str) -> RenderedConfig {
    let output = match rendered.output {
        RenderedOutput::Text(text) => RenderedOutput::Text(text),
        RenderedOutput::Files(files) => RenderedOutput::Files(
            files
                .into_iter()
                .map(|file| file.with_header(command))
                .collect(),
        ),
    };
    RenderedConfig { output, ..rendered }
}
