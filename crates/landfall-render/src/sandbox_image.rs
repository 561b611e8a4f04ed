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

/// Returns the locked images named `pause`.
pub(super) fn pause_images<'r>(request: &RenderRequest<'r>) -> Vec<&'r ImageRef> {
    request
        .images()
        .filter(|image| image.repository.rsplit('/').next() == Some("pause"))
        .collect()
}

/// Returns the sandbox image of pods by its name at the registry, or `None` with a reason in
/// `notes`. Fails if `--set sandbox` does not name a locked image.
pub(super) fn sandbox_image(
    request: &RenderRequest<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<String>, RenderError> {
    let at_registry = |image: &ImageRef| {
        let destination = request.mapping.destinations(image).into_iter().next()?;
        let tag = image.tag_or_latest().map(|tag| format!(":{tag}"));
        Some(format!(
            "{destination}{}",
            tag.or_else(|| image.digest.as_ref().map(|digest| format!("@{digest}")))
                .unwrap_or_default()
        ))
    };
    if let Some(locked) = request.named_image(SANDBOX.key)? {
        return Ok(at_registry(locked));
    }
    match pause_images(request)[..] {
        [] => {
            notes.push(
                "the lock has no image named pause: pod sandboxes need the one in containerd's \
                 configuration"
                    .into(),
            );
            Ok(None)
        }
        [image] => Ok(at_registry(image)),
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
