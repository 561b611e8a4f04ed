//! The public key of `push --sign-images`, for policies that admit only images with its signature.

use super::error::RenderError;
use super::settings::{PlatformSetting, PlatformSettings};
use landfall_model::document::read_text_input;

/// The setting that names the file of the key.
pub(super) const IMAGE_KEY: PlatformSetting = PlatformSetting {
    key: "image-key",
    value_name: "FILE",
    help: "The public key (PEM) of `push --sign-images`: adds a policy that admits images \
           from the registry only if this key verifies their signatures",
    default: None,
    choices: &[],
};

/// Reads the key, if the setting is given. Fails if the file is not a public key in PEM.
pub(super) fn image_key(settings: &PlatformSettings) -> Result<Option<String>, RenderError> {
    let Some(path) = settings.get(IMAGE_KEY.key) else {
        return Ok(None);
    };
    let pem = read_text_input(path).map_err(|source| RenderError::Read {
        path: path.into(),
        source,
    })?;
    if pem.starts_with("-----BEGIN PUBLIC KEY-----") {
        return Ok(Some(pem.trim_end().to_owned()));
    }
    Err(RenderError::Value {
        key: IMAGE_KEY.key.into(),
        value: path.into(),
        why: "the file is not a public key in PEM".into(),
    })
}
