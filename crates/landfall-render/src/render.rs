//! Runs a platform: the names it asks for are checked, each cluster of the site gets a folder, each
//! file its header.

use super::error::RenderError;
use super::missing_destinations::missing_destinations;
use super::platform::{RenderPlatform, RenderedConfig, RenderedOutput};
use super::request::RenderRequest;
use landfall_model::Consumer;

/// The configuration of `platform`.
///
/// # Errors
/// Those of the platform; and where it asks for an image by a name that the registry does not have.
pub fn render(
    platform: &dyn RenderPlatform,
    request: &RenderRequest<'_>,
) -> Result<RenderedConfig, RenderError> {
    let spec = platform.spec();
    if let Some(unasked) = spec
        .consumer
        .and_then(|consumer| missing_destinations(consumer, request.mapping, request.lock))
    {
        return Err(RenderError::MissingDestinations(unasked));
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
        let mut rendered = with_headers(platform.render(request)?, &command);
        rendered.notes.extend(scheme_note(spec.consumer, request)?);
        return Ok(rendered);
    }
    let (mut all, mut files) = (RenderedConfig::default(), Vec::new());
    for cluster in clusters {
        let settings = request.settings.of_cluster(cluster)?;
        let one = platform.render(&RenderRequest {
            settings,
            ..request.clone()
        })?;
        if let RenderedOutput::Files(made) = one.output {
            files.extend(made.into_iter().map(|file| file.in_folder(&cluster.name)));
        }
        // what is true of each cluster is said once
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

/// What to say about the registry's scheme to whoever makes nodes ask it. Platforms that only
/// change names leave that to those that set up the nodes.
fn scheme_note(
    consumer: Option<Consumer>,
    request: &RenderRequest<'_>,
) -> Result<Option<String>, RenderError> {
    match consumer {
        None | Some(Consumer::Kustomize | Consumer::Kyverno) => Ok(None),
        Some(_) => Ok(request.registry()?.scheme_note()),
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
