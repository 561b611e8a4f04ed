//! Runs a platform: the names it asks for are checked, each cluster of the site gets a folder, each
//! file its header.

use super::asked::unasked;
use super::error::RenderError;
use super::platform::{Output, Platform, Rendered};
use super::request::Request;
use landfall_model::Consumer;

/// The configuration of `platform`.
///
/// # Errors
/// Those of the platform; and where it asks for an image by a name that the registry does not have.
pub fn run(platform: &dyn Platform, request: &Request<'_>) -> Result<Rendered, RenderError> {
    let spec = platform.spec();
    if let Some(unasked) = spec
        .consumer
        .and_then(|consumer| unasked(consumer, request.mapping, request.lock))
    {
        return Err(RenderError::Unasked(unasked));
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
        let mut rendered = headed(platform.render(request)?, &command);
        rendered.notes.extend(scheme_note(spec.consumer, request)?);
        return Ok(rendered);
    }
    let (mut all, mut files) = (Rendered::default(), Vec::new());
    for cluster in clusters {
        let settings = request.settings.of_cluster(cluster)?;
        let one = platform.render(&Request {
            settings,
            ..request.clone()
        })?;
        if let Output::Files(made) = one.output {
            files.extend(made.into_iter().map(|file| file.below(&cluster.name)));
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
    Ok(headed(
        Rendered {
            output: Output::Files(files),
            ..all
        },
        &command,
    ))
}

/// What to say about the registry's scheme to whoever makes nodes ask it. Platforms that only
/// change names leave that to those that set up the nodes.
fn scheme_note(
    consumer: Option<Consumer>,
    request: &Request<'_>,
) -> Result<Option<String>, RenderError> {
    match consumer {
        None | Some(Consumer::Kustomize | Consumer::Kyverno) => Ok(None),
        Some(_) => Ok(request.registry()?.scheme_note()),
    }
}

fn headed(rendered: Rendered, command: &str) -> Rendered {
    let output = match rendered.output {
        Output::Text(text) => Output::Text(text),
        Output::Files(files) => {
            Output::Files(files.into_iter().map(|file| file.headed(command)).collect())
        }
    };
    Rendered { output, ..rendered }
}
