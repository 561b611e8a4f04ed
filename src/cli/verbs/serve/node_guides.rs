//! The node configuration on the page of `landfall serve`, as `landfall render` would write it.

use crate::cli::shared::Context;
use landfall_item::lockfile::Lock;
use landfall_model::config;
use landfall_model::{TargetRegistry, today};
use landfall_render::{
    self as render, PLATFORMS, PlatformSettings, RenderPlatform, RenderRequest, RenderedOutput,
};
use landfall_serve::{NodeGuide, NodeGuides, ServedBundle};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The platforms on the page: programs that pull images on a node.
const RUNTIMES: [&str; 6] = ["containerd", "docker", "podman", "crio", "k3s", "rke2"];

/// Returns the guides for the images of `bundles`. They point to `target`, or to this server under
/// the name by which the reader of the page reached it.
pub(crate) fn node_guides(
    context: &Context,
    bundles: &[ServedBundle],
    target: Option<&TargetRegistry>,
) -> NodeGuides {
    let mut lock = Lock::default();
    bundles
        .iter()
        .for_each(|bundle| lock.append(bundle.lock.clone()));
    lock.sort();
    let site = context.site.clone();
    let limits = context.limits;
    let plain_http = context.global.plain_http.clone();
    let target = target.cloned();
    Arc::new(move |host, is_tls| {
        let Some(registry) = target.clone().or_else(|| host.parse().ok()) else {
            return Vec::new();
        };
        let mut plain_http = plain_http.clone();
        // The reader reached this server over http, so nodes can too.
        if target.is_none() && !is_tls {
            plain_http.push(host.to_owned());
        }
        let mapping = config::destination_map(registry, site.as_ref());
        let request = RenderRequest {
            lock: &lock,
            mapping: &mapping,
            target: Some(mapping.target()),
            existing: &[],
            site: site.as_ref(),
            plain_http: &plain_http,
            environment: |_| None,
            today: &today().to_string(),
            limits: &limits,
            inputs: &BTreeMap::new(),
            settings: PlatformSettings::default(),
        };
        guides(&request)
    })
}

fn guides(request: &RenderRequest<'_>) -> Vec<NodeGuide> {
    if request.images().next().is_none() {
        return Vec::new();
    }
    PLATFORMS
        .iter()
        .filter(|platform| RUNTIMES.contains(&platform.name))
        .filter_map(|platform| guide(platform, request))
        .collect()
}

fn guide(platform: &RenderPlatform, request: &RenderRequest<'_>) -> Option<NodeGuide> {
    let request = RenderRequest {
        settings: PlatformSettings::parse(platform.settings, &[]).ok()?,
        ..request.clone()
    };
    let rendered = render::render(platform, &request).ok()?;
    let RenderedOutput::Files(files) = rendered.output else {
        return None;
    };
    let mut notes = rendered.notes;
    if files.iter().any(|file| file.secret) {
        notes.push(format!(
            "files with credentials are not shown here; `landfall render {}` writes them",
            platform.name
        ));
    }
    let files = files
        .into_iter()
        .filter(|file| !file.secret)
        .map(|file| (file.path, file.text));
    Some(NodeGuide {
        title: platform.name.into(),
        about: about_files(platform.about).into(),
        files: files.collect(),
        notes,
    })
}

/// The part of a platform's description after its name. The name is already the title of the guide.
fn about_files(about: &str) -> &str {
    about.split_once(": ").map_or(about, |(_, files)| files)
}
