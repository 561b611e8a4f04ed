//! Certificates and keys that go into rendered files.

use super::error::RenderError;
use landfall_model::config::Site;
use landfall_model::document::read_text_input;
use std::path::Path;

/// The certificates of the file that `site` names at `path`, in PEM form, and nothing else that it
/// holds: a key beside them stays there.
///
/// # Errors
/// When it cannot be read, or has none; the message names the key of the site.
pub(super) fn read_certificates(site: &Site, path: &Path) -> Result<String, RenderError> {
    let text = read_site_file(site, path)?;
    let found = certificates(&text);
    match found.is_empty() {
        true => Err(named(
            site,
            path,
            &RenderError::NoCertificate(site.resolve(path)),
        )),
        false => Ok(found),
    }
}

/// The text of the file that `site` names at `path`.
///
/// # Errors
/// When it cannot be read; the message names the key of the site.
pub(super) fn read_site_file(site: &Site, path: &Path) -> Result<String, RenderError> {
    read_pem(&site.resolve(path)).map_err(|error| named(site, path, &error))
}

/// The error with the key of the site before it.
fn named(site: &Site, path: &Path, error: &RenderError) -> RenderError {
    let key = site
        .trust_key(&site.resolve(path))
        .unwrap_or_else(|| site.key("a path"));
    RenderError::Site(format!("{key}: {error}"))
}

/// The text of the file at `path`.
///
/// # Errors
/// When it cannot be read.
pub(super) fn read_pem(path: &Path) -> Result<String, RenderError> {
    read_text_input(path).map_err(|source| RenderError::Read {
        path: path.into(),
        source,
    })
}

/// Each certificate of `certificates`, which holds nothing else.
pub(super) fn split_certificates(certificates: &str) -> impl Iterator<Item = String> {
    let blocks = certificates.split_inclusive(END).map(str::trim_start);
    blocks
        .filter(|block| !block.is_empty())
        .map(|block| format!("{block}\n"))
}

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

fn certificates(text: &str) -> String {
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
    fn only_certificates_are_taken() {
        let key = "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----\n";
        let one = format!("{BEGIN}\nabc\n{END}\n");
        assert_eq!(
            certificates(&format!("CA of x\n{one}{key}{one}")),
            format!("{one}{one}")
        );
        assert_eq!(certificates(key), "");
        assert_eq!(
            split_certificates(&format!("{one}{one}")).collect::<Vec<_>>(),
            [one.clone(), one]
        );
    }
}
