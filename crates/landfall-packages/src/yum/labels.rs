//! The licences and vendors of packages in the primary index, for SBOMs. The solver does not need
//! them, so they are not in the pool.

use super::error::YumError;
use super::xml::{XmlEvent, walk};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

/// The licence and the vendor of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageLabels {
    /// The licence: an expression of SPDX identifiers or of Fedora's older names.
    pub license: Option<String>,
    /// The vendor, such as `Fedora Project`.
    pub vendor: Option<String>,
}

/// Reads the primary index in `reader`. Returns the labels of each package whose digest
/// (hexadecimal) is in `digests`, by digest.
pub(super) fn read_labels(
    reader: impl BufRead,
    digests: &BTreeSet<String>,
) -> Result<BTreeMap<String, PackageLabels>, YumError> {
    let mut found = BTreeMap::new();
    let mut labels = PackageLabels::default();
    let mut digest = String::new();
    walk(reader, "primary index", &mut |step| {
        let XmlEvent::End(name, text) = step else {
            return Ok(());
        };
        match name {
            // `rpm:license` and `rpm:vendor`: the reader removes the prefix
            "license" => labels.license = non_empty(text),
            "vendor" => labels.vendor = non_empty(text),
            "checksum" => digest = text.to_ascii_lowercase(),
            "package" => {
                let labels = std::mem::take(&mut labels);
                if digests.contains(&digest) {
                    found.insert(std::mem::take(&mut digest), labels);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

fn non_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_given_packages_are_read() {
        let package = |digest: &str, format: &str| {
            format!(
                "<package type=\"rpm\"><checksum type=\"sha256\" pkgid=\"YES\">{digest}</checksum>\
                 <format>{format}</format></package>"
            )
        };
        let text = format!(
            "<metadata>{}{}{}</metadata>",
            package(
                "AA",
                "<rpm:license>MIT AND X&amp;Y</rpm:license><rpm:vendor>V</rpm:vendor>"
            ),
            package("bb", "<rpm:license>GPL</rpm:license>"),
            package("cc", "<rpm:license></rpm:license>"),
        );
        let wanted = BTreeSet::from(["aa".to_owned(), "cc".to_owned()]);
        let found = read_labels(text.as_bytes(), &wanted).unwrap();
        let label = |text: &str| Some(text.to_owned());
        let first = PackageLabels {
            license: label("MIT AND X&Y"),
            vendor: label("V"),
        };
        assert_eq!(
            found,
            BTreeMap::from([
                ("aa".into(), first),
                ("cc".into(), PackageLabels::default())
            ])
        );
    }
}
