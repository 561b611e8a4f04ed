//! The input of a platform.

use crate::no_proxy::{self, NoProxyEntries};
use crate::node_proxy::NodeProxy;
use crate::node_registry::NodeRegistry;
use crate::settings::PlatformSettings;
use crate::settings::wrong_value;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_item::lockfile::Lock;
use landfall_model::config::Site;
use landfall_model::{DestinationMap, Failure, ImageRef, Limits, ReferenceError, TargetRegistry};
use serde_yaml::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The input from which a platform renders configuration.
#[derive(Debug, Clone)]
pub struct RenderRequest<'r> {
    /// The lock whose items are at the registry.
    pub lock: &'r Lock,
    /// The destinations of the items.
    pub mapping: &'r DestinationMap,
    /// The registry of the mapping, or `None` if no registry is known and the platform needs none.
    pub target: Option<&'r TargetRegistry>,
    /// The documents in the file of `--into`; empty without it.
    pub existing: &'r [Value],
    /// The site, if there is one.
    pub site: Option<&'r Site>,
    /// The hosts that `--plain-http` names.
    pub plain_http: &'r [String],
    /// Returns a variable of the environment.
    pub environment: fn(&str) -> Option<String>,
    /// The date of today, as `YYYY-MM-DD`.
    pub today: &'r str,
    /// The limits for files that are read.
    pub limits: &'r Limits,
    /// The files that the user named, by the names of the platform's inputs.
    pub inputs: &'r BTreeMap<&'static str, Vec<PathBuf>>,
    /// The settings that the user gave with `--set`.
    pub settings: PlatformSettings,
}

impl<'r> RenderRequest<'r> {
    /// Returns the files of the input `name`.
    pub fn paths(&self, name: &str) -> &[PathBuf] {
        self.inputs.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the names of the locked images.
    pub fn images(&self) -> impl Iterator<Item = &'r ImageRef> {
        self.lock.images.iter().map(|image| &image.name)
    }

    /// Returns the locked image that the user named with the setting `key`, if the setting is given.
    ///
    /// # Errors
    /// If the value is not the name of a locked image.
    pub fn named_image(&self, key: &str) -> Result<Option<&'r ImageRef>, Failure> {
        let Some(named) = self.settings.get(key) else {
            return Ok(None);
        };
        let wrong = |why: String| wrong_value(key, named, why);
        let image: ImageRef = named
            .parse()
            .map_err(|error: ReferenceError| wrong(error.to_string()))?;
        let locked = self.images().find(|locked| **locked == image);
        match locked {
            Some(locked) => Ok(Some(locked)),
            None => Err(wrong("the lock has no such image".into())),
        }
    }

    /// Returns the site's registry in the form that nodes need.
    ///
    /// # Errors
    /// If a certificate or key of the registry cannot be read.
    pub fn registry(&self) -> Result<NodeRegistry<'r>, Failure> {
        NodeRegistry::of(
            self.mapping.target(),
            self.site,
            self.plain_http,
            self.environment,
        )
    }

    /// Returns the site's proxy, if it has one.
    ///
    /// # Errors
    /// If its credentials or certificates cannot be read, or an entry of its NO_PROXY is
    /// ineffective.
    pub fn proxy(&self) -> Result<Option<NodeProxy>, Failure> {
        let Some(site) = self.site else {
            return Ok(None);
        };
        no_proxy::check(site)?;
        NodeProxy::of(site, self.environment)
    }

    /// Returns the URL of the site's file server, without a slash at the end.
    pub fn file_server(&self) -> Option<&'r str> {
        let files = self.site?.files.as_deref()?;
        Some(files.trim_end_matches('/'))
    }

    /// Returns the hosts that bypass the proxy.
    pub fn no_proxy(&self) -> NoProxyEntries {
        NoProxyEntries::of(self.site, self.target)
    }

    /// Whether nodes may pull an image from upstream if the registry lacks it. By default they may
    /// not: in an air gap, each such pull would wait for a timeout.
    pub fn upstream_fallback(&self) -> bool {
        let registry = self.site.and_then(|site| site.registry.as_ref());
        registry.is_some_and(|registry| registry.upstream_fallback)
    }
}

// Credentials of registries and proxies.

/// A user name and a password. `Debug` is not implemented, so that no message prints them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BasicCredentials {
    pub(crate) username: String,
    pub(crate) password: String,
}

impl BasicCredentials {
    /// The value of `Authorization: Basic` (RFC 7617) and of `auth` in auth files.
    pub(crate) fn encoded(&self) -> String {
        STANDARD.encode(format!("{}:{}", self.username, self.password))
    }
}

impl From<(String, String)> for BasicCredentials {
    fn from((username, password): (String, String)) -> BasicCredentials {
        BasicCredentials { username, password }
    }
}
