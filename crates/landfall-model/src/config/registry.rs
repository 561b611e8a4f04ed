//! The private registry of a site, and the destination paths in it.

use super::SiteCredentials;
use crate::document::{Diagnostic, YamlNode};
use crate::{ImageRef, TargetRegistry, is_repository};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The private registry of a site.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RegistrySite {
    /// `host[:port][/prefix]`; the default of `--to`.
    pub address: String,
    /// Certificate authority in PEM form, added to the system's; relative to the site file.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Client certificate in PEM form.
    #[serde(default)]
    pub client_cert: Option<PathBuf>,
    /// Private key of the client certificate in PEM form.
    #[serde(default)]
    pub client_key: Option<PathBuf>,
    /// Use plain http, also for credentials.
    #[serde(default, rename = "plainHTTP")]
    pub plain_http: bool,
    /// Accept any certificate. Every run warns about this.
    #[serde(default)]
    pub skip_verify: bool,
    /// Reach the registry through the proxy.
    #[serde(default)]
    pub via_proxy: bool,
    /// The source of user name and password.
    #[serde(default)]
    pub credentials: Option<SiteCredentials>,
    /// The destination path or paths for each source prefix. The longest matching prefix of whole
    /// components wins.
    #[serde(default)]
    pub paths: BTreeMap<String, PathDestinations>,
    /// Put the source host first in the destination path.
    #[serde(default)]
    pub keep_host: bool,
    /// What to do if the target refuses an index with missing children.
    #[serde(default)]
    pub index: IndexPolicy,
    /// Whether nodes may pull an image from upstream if the registry lacks it.
    #[serde(default)]
    pub upstream_fallback: bool,
}

/// The destinations of a source prefix: one path, several paths, or paths with their own
/// credentials.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PathDestinations {
    /// A single path, to which content is pushed and references point.
    One(String),
    /// Several paths: all are pushed, the first is written into references.
    Many(Vec<String>),
    /// Paths with their own credentials.
    Entry(PathEntry),
}

/// Destination paths with their own credentials.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathEntry {
    /// The destination paths: all are pushed, the first is written into references.
    pub to: Vec<String>,
    /// The source of user name and password for these paths.
    #[serde(default)]
    pub credentials: Option<SiteCredentials>,
}

impl PathDestinations {
    /// The destination paths, in order.
    pub fn paths(&self) -> &[String] {
        match self {
            PathDestinations::One(path) => std::slice::from_ref(path),
            PathDestinations::Many(paths) => paths,
            PathDestinations::Entry(entry) => &entry.to,
        }
    }
}

/// What a push does with signatures and other referrers. Those that `verify` of the site demands
/// are always required.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReferrerPolicy {
    /// An item gets its tag only after its referrers were delivered.
    Required,
    /// An item is delivered even if the registry refuses some of its referrers. These are reported
    /// as failed.
    #[default]
    Try,
    /// Referrers are not delivered.
    Skip,
}

/// What to do if a target refuses an index with missing children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IndexPolicy {
    /// Send the trimmed index, report it, and record the old and the new digest.
    #[default]
    Trimmed,
    /// Refuse the push before the first blob is sent.
    Exact,
}

/// Reports an address that is not a registry. If the address is valid, reports the first prefix of
/// `paths` that no image can have, that has no destination path, or that has a path that is not a
/// valid repository name. The error has the position in the site `text`.
pub(super) fn check_registry(
    registry: &RegistrySite,
    file: &str,
    text: &str,
) -> Result<(), Box<Diagnostic>> {
    let root = YamlNode::parse(text).unwrap_or_default();
    let node = root.get("registry");
    let fault = |node: &YamlNode<'_>, message: String, help: Option<&str>| {
        Diagnostic::new(file, text, node.span(), message, help)
    };
    if let Err(error) = registry.address.parse::<TargetRegistry>() {
        return Err(fault(node.get("address"), error.to_string(), None));
    }
    for (prefix, to) in &registry.paths {
        let node = node.get("paths").get(prefix);
        // such an entry would be ignored without a message
        if !is_source_prefix(prefix) {
            let message = format!("`registry.paths` has '{prefix}', with which no image begins");
            let help = "write a host or the beginning of a name, as in quay.io or quay.io/team: \
                        in lower case, and without a scheme, a tag or *";
            return Err(fault(node, message, Some(help)));
        }
        // an image without a destination would be omitted without a message
        if to.paths().is_empty() {
            let message = format!("`registry.paths` maps {prefix} to no path");
            let help = "write at least one path, or remove the entry: a path that is \"\" is the \
                        root of the registry";
            return Err(fault(node, message, Some(help)));
        }
        let Some(bad) = to.paths().iter().position(|path| !is_path(path)) else {
            continue;
        };
        let list = match to {
            PathDestinations::Entry(_) => node.get("to"),
            _ => node,
        };
        let message = format!(
            "`registry.paths` maps {prefix} to '{}', which is not a valid repository name",
            to.paths()[bad]
        );
        let help = "use lower-case letters and digits, with single separators . _ __ - between \
                    them, and / between components";
        return Err(fault(list.item(bad), message, Some(help)));
    }
    Ok(())
}

/// Whether the name of an image can begin with the components of `prefix`.
fn is_source_prefix(prefix: &str) -> bool {
    let name = format!("{}/x", prefix.trim_end_matches('/'));
    name.parse::<ImageRef>().is_ok()
}

/// Whether images can be put below `path`, which is empty for the root of the registry.
fn is_path(path: &str) -> bool {
    let path = path.trim_matches('/');
    path.is_empty() || is_repository(path)
}

#[cfg(test)]
mod tests {
    use super::super::Site;
    use std::path::Path;

    fn message(registry: &str) -> Option<String> {
        let text = format!("apiVersion: landfall/v1\nkind: Site\nregistry: {registry}\n");
        let error = Site::parse(Path::new("site.yaml"), &text).err()?;
        Some(error.to_string())
    }

    #[test]
    fn an_address_that_is_not_a_registry_is_reported_with_its_position() {
        let message = message("{address: \"http://r:5000\"}").unwrap();
        assert!(
            message.starts_with("site.yaml:3:21: error: 'http://r:5000' is not a registry: write"),
            "{message}"
        );
    }

    #[test]
    fn source_prefixes_are_those_of_images() {
        let with = |prefix: &str| {
            message(&format!(
                "{{address: \"r:5000\", paths: {{\"{prefix}\": x}}}}"
            ))
        };
        for good in [
            "quay.io",
            "Quay.io:443/",
            "quay.io/team/app",
            "localhost:5000",
            "[fd00::2]:5000/team",
            "bitnami",
        ] {
            assert_eq!(with(good), None);
        }
        for wrong in [
            "",
            "https://quay.io",
            "//quay.io",
            " quay.io",
            "quay.io/*",
            "*",
            "quay.io/Team",
            "quay.io/team/app:v1",
        ] {
            let message = with(wrong).unwrap();
            let words = format!("`registry.paths` has '{wrong}', with which no image begins");
            assert!(
                message.contains(&words) && message.contains("help: "),
                "{message}"
            );
        }
    }

    #[test]
    fn destination_paths_are_repositories_or_the_root_and_there_is_at_least_one() {
        let none = "`registry.paths` maps quay.io to no path";
        for (to, column, expected) in [
            ("[]", 48, none),
            ("{to: []}", 48, none),
            ("UP", 48, "maps quay.io to 'UP', which is not"),
            ("", 38, "this has none of the structures"),
            ("[a, b//c]", 52, "maps quay.io to 'b//c', which is not"),
            (
                "{to: [a, ../b]}",
                57,
                "maps quay.io to '../b', which is not",
            ),
        ] {
            let message = message(&format!(
                "{{address: \"r:5000\", paths: {{quay.io: {to}}}}}"
            ));
            let message = message.unwrap();
            let start = format!("site.yaml:3:{column}: error: ");
            assert!(
                message.starts_with(&start)
                    && message.contains(expected)
                    && message.contains("help: "),
                "{message}"
            );
        }
        for good in ["''", "/a/", "[a, a/b]", "{to: ['']}"] {
            let registry = format!("{{address: \"r:5000\", paths: {{quay.io/team: {good}}}}}");
            assert_eq!(message(&registry), None);
        }
    }
}
