//! `--sign-images`: the key with which a site signs images.

use crate::cli::shared::CliError;
use clap::Args;
use landfall_model::document::read_text_input;
use landfall_signature::ImageSigningKey;
use std::path::PathBuf;

/// The environment variable with the password of the key. cosign reads it too.
const PASSWORD: &str = "COSIGN_PASSWORD";

#[derive(Args)]
pub(super) struct ImageSigningFlags {
    /// Sign the delivered images with this private key, so that `cosign verify --key` accepts them
    /// at the registry: ECDSA P-256 in PEM (PKCS#8), or a key of `cosign generate-key-pair`, whose
    /// password is read from `COSIGN_PASSWORD`
    #[arg(long, value_name = "KEY")]
    sign_images: Option<PathBuf>,
    /// Read the password of the key from the first line of this file
    #[arg(long, value_name = "FILE", requires = "sign_images")]
    sign_images_password: Option<PathBuf>,
}

impl ImageSigningFlags {
    /// Loads the key, if one is named.
    pub(super) fn key(&self) -> Result<Option<ImageSigningKey>, CliError> {
        let Some(path) = &self.sign_images else {
            return Ok(None);
        };
        let shown = path.display();
        let pem = read_text_input(path)
            .map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))?;
        let password = self.password()?;
        let password = password.as_ref().map(String::as_bytes);
        let key = ImageSigningKey::from_pem(&pem, password).map_err(|mut failure| {
            failure.message = format!("{shown} cannot sign images: {failure}");
            failure
        })?;
        Ok(Some(key))
    }

    fn password(&self) -> Result<Option<String>, CliError> {
        let Some(path) = &self.sign_images_password else {
            return Ok(std::env::var(PASSWORD).ok());
        };
        let text = read_text_input(path)
            .map_err(|error| CliError::usage(format!("cannot read {}: {error}", path.display())))?;
        Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
    }
}
