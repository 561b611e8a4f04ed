//! Certificates and private keys in PEM form for rendered files.

use super::error::RenderError;
use landfall_model::config::Site;
use landfall_model::document::read_text_input;
use std::path::Path;

/// Returns the certificates in the file `path` of `site`. A private key in the file is omitted, so
/// that it cannot get into a rendered file.
///
/// Fails if the file cannot be read or contains no certificate. The message names the setting of
/// the site that refers to the file.
pub(super) fn read_certificates(site: &Site, path: &Path) -> Result<String, RenderError> {
    let text = read_site_file(site, path)?;
    let found = only_certificates(&text);
    if found.is_empty() {
        let error = RenderError::NoCertificate(site.resolve(path));
        return Err(with_site_key(site, path, &error));
    }
    Ok(found)
}

/// Reads the file `path` of `site`. Error messages name the setting of the site that refers to the
/// file.
pub(super) fn read_site_file(site: &Site, path: &Path) -> Result<String, RenderError> {
    read_pem(&site.resolve(path)).map_err(|error| with_site_key(site, path, &error))
}

/// Prefixes the message of `error` with the setting of the site that refers to the file.
fn with_site_key(site: &Site, path: &Path, error: &RenderError) -> RenderError {
    let key = site
        .trust_key(&site.resolve(path))
        .unwrap_or_else(|| site.key("a path"));
    RenderError::Site(format!("{key}: {error}"))
}

pub(super) fn read_pem(path: &Path) -> Result<String, RenderError> {
    read_text_input(path).map_err(|source| RenderError::Read {
        path: path.into(),
        source,
    })
}

/// Splits a text that contains only certificates, for systems that require a file per certificate.
pub(super) fn split_certificates(certificates: &str) -> impl Iterator<Item = String> {
    let blocks = certificates.split_inclusive(END).map(str::trim_start);
    blocks
        .filter(|block| !block.is_empty())
        .map(|block| format!("{block}\n"))
}

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

fn only_certificates(text: &str) -> String {
    let blocks = text
        .split(BEGIN)
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(END)?.0));
    blocks
        .map(|block| format!("{BEGIN}{}{END}\n", block.replace('\r', "")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_keys_and_other_text_are_left_out() {
        let key = "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----\n";
        let one = format!("{BEGIN}\nabc\n{END}\n");
        assert_eq!(
            only_certificates(&format!("CA of x\n{one}{key}{one}")),
            format!("{one}{one}")
        );
        assert_eq!(only_certificates(key), "");
        assert_eq!(
            split_certificates(&format!("{one}{one}")).collect::<Vec<_>>(),
            [one.clone(), one]
        );
    }
}
