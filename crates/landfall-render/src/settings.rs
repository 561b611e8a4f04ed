//! The settings of platforms, for `--set KEY=VALUE`.

use super::kubernetes_objects::{OBJECT_NAME, is_object_name};
use landfall_model::Failure;
use landfall_model::config::SiteCluster;
use landfall_model::document::nearest;
use landfall_model::report::shell_word;
use std::collections::BTreeMap;
use std::fmt;

/// A setting of a platform.
#[derive(Debug, PartialEq, Eq)]
pub struct PlatformSetting {
    /// The key, which precedes `=` in `--set`.
    pub key: &'static str,
    /// The name of the value in the help.
    pub value_name: &'static str,
    /// The help of the setting.
    pub help: &'static str,
    /// The value without `--set`; `None` if the setting is then absent.
    pub default: Option<&'static str>,
    /// The allowed values; empty means any.
    pub choices: &'static [&'static str],
}

/// The name of a cluster. Without it, the platform is rendered for each cluster of the site.
pub(crate) const CLUSTER: PlatformSetting = PlatformSetting {
    key: "cluster",
    value_name: "NAME",
    help: "The cluster, instead of the site's `clusters`",
    default: None,
    choices: &[],
};

/// The cluster of the site whose part of NO_PROXY applies, for a platform that is rendered once.
pub(crate) const SITE_CLUSTER: PlatformSetting = PlatformSetting {
    help: "The cluster of the site whose part of NO_PROXY applies",
    ..CLUSTER
};

/// The namespace of a cluster's objects.
pub(crate) const NAMESPACE: PlatformSetting = PlatformSetting {
    key: "namespace",
    value_name: "NAME",
    help: "The namespace of the cluster's objects",
    default: None,
    choices: &[],
};

/// How the cluster's nodes connect to their cloud.
pub(crate) const CLOUD_PROVIDER: PlatformSetting = PlatformSetting {
    key: "cloud-provider",
    value_name: "KIND",
    help: "in-tree: the kubelet connects to the cloud itself, so it gets the proxy too",
    default: Some("external"),
    choices: &["external", "in-tree"],
};

/// The settings of one run of a platform.
#[derive(Debug, Clone, Default)]
pub struct PlatformSettings {
    known: &'static [PlatformSetting],
    given: BTreeMap<String, String>,
}

impl PlatformSettings {
    /// Parses `pairs`, each `KEY=VALUE`, for a platform with the settings `known`.
    ///
    /// # Errors
    /// For a pair without `=`, an unknown key, or a value that the setting does not allow.
    pub fn parse(
        known: &'static [PlatformSetting],
        pairs: &[String],
    ) -> Result<PlatformSettings, Failure> {
        let mut given = BTreeMap::new();
        for pair in pairs {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| Failure::usage(format!("--set {pair}: write --set KEY=VALUE")))?;
            let Some(setting) = known.iter().find(|setting| setting.key == key) else {
                return Err(unknown(known, key));
            };
            let wrong = |why: String| wrong_value(key, value, why);
            if !setting.choices.is_empty() && !setting.choices.contains(&value) {
                return Err(wrong(format!(
                    "it must be one of {}",
                    setting.choices.join(", ")
                )));
            }
            // a line feed in a value would add lines to the rendered files
            if value.is_empty() || value.chars().any(char::is_control) {
                return Err(wrong("it must be a single line of text".into()));
            }
            if [CLUSTER.key, NAMESPACE.key].contains(&key) && !is_label(value) {
                return Err(wrong(LABEL.into()));
            }
            given.insert(key.to_owned(), value.to_owned());
        }
        Ok(PlatformSettings { known, given })
    }

    /// Returns the value of `key`: the given one or the default.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(String::as_str).or_else(|| {
            self.known
                .iter()
                .find(|setting| setting.key == key)?
                .default
        })
    }

    /// Returns the services of nodes that get the proxy, by [`CLOUD_PROVIDER`]: the kubelet gets it
    /// only if it connects to the cloud itself.
    pub(super) fn proxied_services(&self) -> &'static [&'static str] {
        match self.get(CLOUD_PROVIDER.key) {
            Some("in-tree") => &["containerd", "kubelet"],
            _ => &["containerd"],
        }
    }

    /// Returns the value of `key`, which the platform requires.
    ///
    /// # Errors
    /// If there is no value.
    pub fn need(&self, key: &'static str) -> Result<&str, Failure> {
        self.get(key).ok_or_else(|| {
            let help = self
                .known
                .iter()
                .find(|setting| setting.key == key)
                .map_or("", |one| one.help);
            Failure::usage(format!("--set {key}=… is missing: {help}"))
        })
    }

    /// Returns the value of `key`, which is the name of an object: the given one or the default.
    /// Fails if Kubernetes does not accept the name.
    pub(super) fn object_name(&self, key: &str) -> Result<Option<&str>, Failure> {
        match self.get(key) {
            Some(name) if !is_object_name(name) => Err(wrong_value(key, name, OBJECT_NAME)),
            name => Ok(name),
        }
    }

    /// Returns the given settings as flags of a command line.
    pub(super) fn written(&self) -> String {
        self.given
            .iter()
            .map(|(key, value)| format!(" --set {}", shell_word(&format!("{key}={value}"))))
            .collect()
    }

    /// Whether the platform has the setting `cluster`, and the user did not give it. If so, the
    /// platform is rendered for each cluster of the site.
    pub(super) fn wants_clusters(&self) -> bool {
        self.known.contains(&CLUSTER) && !self.given.contains_key(CLUSTER.key)
    }

    /// Whether the platform is rendered once, with the NO_PROXY of one cluster of the site.
    pub(super) fn takes_site_cluster(&self) -> bool {
        self.known.contains(&SITE_CLUSTER)
    }

    /// Returns the settings for this cluster of the site. A namespace given with `--set` overrides
    /// that of the site. Fails if the name or the namespace of the cluster is not valid.
    pub(super) fn of_cluster(&self, cluster: &SiteCluster) -> Result<PlatformSettings, Failure> {
        let names = [
            (CLUSTER.key, Some(&cluster.name)),
            (NAMESPACE.key, cluster.namespace.as_ref()),
        ];
        let mut settings = self.clone();
        for (key, name) in names
            .into_iter()
            .filter_map(|(key, name)| Some((key, name?)))
        {
            if !is_label(name) {
                return Err(wrong_value(key, name, LABEL));
            }
            if self.known.iter().any(|setting| setting.key == key) {
                settings
                    .given
                    .entry(key.to_owned())
                    .or_insert_with(|| name.clone());
            }
        }
        Ok(settings)
    }
}

/// The rule for names of clusters and namespaces (RFC 1123 label).
const LABEL: &str = "a name has at most 63 characters, only lower-case letters, digits and -, and \
                     starts and ends with a letter or digit";

fn is_label(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty()
        && name.len() <= 63
        && name.chars().all(is_allowed)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

fn unknown(known: &'static [PlatformSetting], key: &str) -> Failure {
    let keys = || known.iter().map(|setting| setting.key);
    let near = nearest(key, keys())
        .map(|near| format!(", did you mean '{near}'?"))
        .unwrap_or_default();
    let all = match keys().collect::<Vec<_>>()[..] {
        [] => "this platform has none".to_owned(),
        ref all => format!("it takes {}", all.join(", ")),
    };
    Failure::usage(format!(
        "--set {key}: there is no such setting{near} ({all})"
    ))
}

/// The failure of a setting whose value is not allowed.
pub(super) fn wrong_value(key: &str, value: impl fmt::Display, why: impl fmt::Display) -> Failure {
    Failure::usage(format!("{key} cannot be '{value}': {why}"))
}
