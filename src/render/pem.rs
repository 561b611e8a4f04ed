//! Certificates and keys that go into rendered files.

use super::error::RenderError;
use std::path::Path;

/// The certificates of the file at `path`, in PEM form, and nothing else that it holds: a key beside them stays there.
///
/// # Errors
/// When it cannot be read, or has none.
pub(super) fn read_certificates(path: &Path) -> Result<String, RenderError> {
    let text = read(path)?;
    let found = certificates(&text);
    if found.is_empty() { Err(RenderError::NoCertificate(path.into())) } else { Ok(found) }
}

/// The text of the file at `path`.
///
/// # Errors
/// When it cannot be read.
pub(super) fn read(path: &Path) -> Result<String, RenderError> {
    std::fs::read_to_string(path).map_err(|source| RenderError::Read { path: path.into(), source })
}

/// Each certificate of `certificates`, which holds nothing else.
pub(super) fn each(certificates: &str) -> impl Iterator<Item = String> {
    let blocks = certificates.split_inclusive(END).map(str::trim_start);
    blocks.filter(|block| !block.is_empty()).map(|block| format!("{block}\n"))
}

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

fn certificates(text: &str) -> String {
    let blocks = text.split(BEGIN).skip(1).filter_map(|rest| Some(rest.split_once(END)?.0));
    blocks.map(|block| format!("{BEGIN}{}{END}\n", block.replace('\r', ""))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certificates_are_taken() {
        let key = "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----\n";
        let one = format!("{BEGIN}\nabc\n{END}\n");
        assert_eq!(certificates(&format!("CA of x\n{one}{key}{one}")), format!("{one}{one}"));
        assert_eq!(certificates(key), "");
        assert_eq!(each(&format!("{one}{one}")).collect::<Vec<_>>(), [one.clone(), one]);
    }
}
