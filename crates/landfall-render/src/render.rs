//! Renders a platform: checks the destinations from which it pulls, and adds the header to each
//! file. If the platform has the setting `cluster` and the user does not give it, each cluster of
//! the site is rendered into a separate folder.

use crate::merge_into::cluster_of;
use crate::platform::{
    CLUSTER, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig, RenderedOutput,
    wrong_value,
};
use landfall_item::lockfile::Lock;
use landfall_model::config::{ClusterNoProxy, SiteCluster};
use landfall_model::{Consumer, Destination, DestinationMap, Failure, ImageRef};
use std::collections::BTreeSet;
use std::fmt;

/// Renders the configuration of `platform`.
///
/// # Errors
/// The errors of [`RenderPlatform::render`]. Also fails if a locked image lacks a destination from
/// which the platform pulls, or if the name of a cluster is invalid or not unique.
pub fn render(
    platform: &RenderPlatform,
    request: &RenderRequest<'_>,
) -> Result<RenderedConfig, Failure> {
    if let Some(missing) = platform
        .consumer
        .and_then(|consumer| missing_destinations(consumer, request.mapping, request.lock))
    {
        return Err(Failure::refused(missing.to_string()));
    }
    let command = format!(
        "landfall render {}{}",
        platform.name,
        request.settings.written()
    );
    let clusters = request
        .site
        .map(|site| site.clusters.as_slice())
        .unwrap_or_default();
    if clusters.is_empty() || !request.settings.wants_clusters() {
        let cluster = chosen_cluster(request, clusters)?;
        let site = cluster.and_then(|cluster| Some(request.site?.of_cluster(cluster)));
        let mut rendered = (platform.render)(&RenderRequest {
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
        rendered
            .notes
            .extend(scheme_note(platform.consumer, request)?);
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
            return Err(Failure::usage(format!("{why}; rename one of them")));
        }
        let settings = request.settings.of_cluster(cluster)?;
        let site = request.site.map(|site| site.of_cluster(cluster));
        let one = (platform.render)(&RenderRequest {
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
    all.notes.extend(scheme_note(platform.consumer, request)?);
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
) -> Result<Option<&'s SiteCluster>, Failure> {
    let is_once = request.settings.takes_site_cluster();
    if let Some(name) = request.settings.get(CLUSTER.key) {
        let cluster = clusters.iter().find(|cluster| cluster.name == name);
        if cluster.is_none() && is_once {
            let names: Vec<&str> = clusters.iter().map(|cluster| &*cluster.name).collect();
            let why = match &names[..] {
                [] => "the site has no `clusters`".into(),
                names => format!("the clusters of the site are {}", names.join(", ")),
            };
            return Err(wrong_value(CLUSTER.key, name, why));
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
) -> Result<Option<String>, Failure> {
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

/// Images that lack destinations from which a consumer pulls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingDestinations {
    consumer: Consumer,
    pub(super) images: Vec<(ImageRef, Vec<Destination>)>,
    /// The lines for `registry.paths` that add the destinations.
    lines: Vec<String>,
}

/// Returns the locked images that lack a destination from which `consumer` pulls. These pulls would
/// fail on the nodes, long after the configuration was applied.
pub(super) fn missing_destinations(
    consumer: Consumer,
    mapping: &DestinationMap,
    lock: &Lock,
) -> Option<MissingDestinations> {
    let prefix = &mapping.target().prefix;
    let mut images = Vec::new();
    let mut lines = Vec::new();
    for image in lock.images.iter().map(|image| &image.name) {
        let present = mapping.destinations(image);
        let mut missing = mapping.consumer_destinations(consumer, image);
        missing.retain(|destination| !present.contains(destination));
        if missing.is_empty() {
            continue;
        }
        let paths: Vec<String> = present
            .iter()
            .chain(&missing)
            .map(|destination| {
                let repository = destination.repository.as_str();
                let path = repository
                    .strip_prefix(prefix.as_str())
                    .unwrap_or(repository);
                path.trim_start_matches('/').to_owned()
            })
            .collect();
        lines.push(format!("    {}: [{}]", image.name(), paths.join(", ")));
        images.push((image.clone(), missing));
    }
    if images.is_empty() {
        return None;
    }
    // the tags of one repository give the same line
    lines.dedup();
    Some(MissingDestinations {
        consumer,
        images,
        lines,
    })
}

impl MissingDestinations {
    /// The reason why pulls of an image fail: the site does not give it the destinations `missing`.
    pub(super) fn reason(&self, missing: &[Destination]) -> String {
        let missing: Vec<String> = missing.iter().map(Destination::to_string).collect();
        format!(
            "{} pulls it from {}, which the image's destinations do not include",
            self.consumer,
            missing.join(" and ")
        )
    }
}

impl fmt::Display for MissingDestinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingDestinations {
            consumer,
            images,
            lines,
        } = self;
        for (image, missing) in images {
            writeln!(f, "{image}: {}", self.reason(missing))?;
        }
        let lines = lines.join("\n");
        write!(
            f,
            "Add the destinations to the site, and push again. To add all of them, use `consumers: \
             [{consumer}]`; to add single ones, use these lines under registry.paths:\n{lines}"
        )
    }
}

/// Selects the sandbox image if several images are named `pause`.
pub(super) const SANDBOX: PlatformSetting = PlatformSetting::new(
    "sandbox",
    "IMAGE",
    "The locked sandbox image of pods, if several images are named pause",
);

/// Returns the sandbox image of pods by its name at the registry, or `None` with a reason in
/// `notes`. Fails if `--set sandbox` does not name a locked image.
pub(super) fn sandbox_image(
    request: &RenderRequest<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    let Some(image) = locked_sandbox_image(request, "containerd", notes)? else {
        return Ok(None);
    };
    let tag = image.tag_or_latest().map(|tag| format!(":{tag}"));
    let version = tag.or_else(|| image.digest.as_ref().map(|digest| format!("@{digest}")));
    let destination = request.mapping.destinations(image).into_iter().next();
    Ok(destination.map(|destination| format!("{destination}{}", version.unwrap_or_default())))
}

/// Returns the locked sandbox image of pods, or `None` with a reason in `notes`. `runtime` is the
/// program that needs the image. Fails if `--set sandbox` does not name a locked image.
pub(super) fn locked_sandbox_image<'r>(
    request: &RenderRequest<'r>,
    runtime: &str,
    notes: &mut Vec<String>,
) -> Result<Option<&'r ImageRef>, Failure> {
    let none = format!(
        "the lock has no image named pause: pod sandboxes need the one in {runtime}'s configuration"
    );
    let several = "the configuration has no sandbox image for pods";
    let is_it = |image: &ImageRef| image.repository.rsplit('/').next() == Some("pause");
    named_or_only_image(request, SANDBOX.key, is_it, [&none, several], notes)
}

/// Returns the locked image that the setting `key` names, or else the only one that `is_it`
/// accepts. Returns `None` with a note if there is none, or several; `notes_of` are the notes for
/// these cases. Fails if the setting does not name a locked image.
pub(super) fn named_or_only_image<'r>(
    request: &RenderRequest<'r>,
    key: &str,
    is_it: impl Fn(&ImageRef) -> bool,
    notes_of: [&str; 2],
    notes: &mut Vec<String>,
) -> Result<Option<&'r ImageRef>, Failure> {
    if let Some(locked) = request.named_image(key)? {
        return Ok(Some(locked));
    }
    let [none, several] = notes_of;
    let images: Vec<&ImageRef> = request.images().filter(|image| is_it(image)).collect();
    notes.push(match images[..] {
        [image] => return Ok(Some(image)),
        [] => none.to_owned(),
        ref images => {
            let names: Vec<String> = images.iter().map(ToString::to_string).collect();
            let names = names.join(", ");
            format!("{several}; choose one with --set {key}=IMAGE: {names}")
        }
    });
    Ok(None)
}
