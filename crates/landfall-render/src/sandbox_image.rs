//! Finds the sandbox image of pods: the locked image named `pause`.

use super::error::RenderError;
use super::request::RenderRequest;
use super::settings::PlatformSetting;
use landfall_model::ImageRef;

/// Selects the sandbox image if several images are named `pause`.
pub(super) const SANDBOX: PlatformSetting = PlatformSetting {
    key: "sandbox",
    value_name: "IMAGE",
    help: "The locked sandbox image of pods, if several images are named pause",
    default: None,
    choices: &[],
};

/// Returns the sandbox image of pods by its name at the registry, or `None` with a reason in
/// `notes`. Fails if `--set sandbox` does not name a locked image.
pub(super) fn sandbox_image(
    request: &RenderRequest<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<String>, RenderError> {
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
) -> Result<Option<&'r ImageRef>, RenderError> {
    if let Some(locked) = request.named_image(SANDBOX.key)? {
        return Ok(Some(locked));
    }
    let images: Vec<&ImageRef> = request
        .images()
        .filter(|image| image.repository.rsplit('/').next() == Some("pause"))
        .collect();
    match images[..] {
        [] => {
            notes.push(format!(
                "the lock has no image named pause: pod sandboxes need the one in {runtime}'s \
                 configuration"
            ));
            Ok(None)
        }
        [image] => Ok(Some(image)),
        ref several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            notes.push(format!(
                "the configuration has no sandbox image for pods; choose one with --set \
                 sandbox=IMAGE: {}",
                names.join(", ")
            ));
            Ok(None)
        }
    }
}
