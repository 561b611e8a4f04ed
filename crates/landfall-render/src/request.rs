//! What a platform makes configuration from.

use super::error::RenderError;
use super::no_proxy::{self, NoProxyEntries};
use super::node_proxy::NodeProxy;
use super::node_registry::NodeRegistry;
use super::settings::PlatformSettings;
use landfall_item::lockfile::Lock;
use landfall_model::config::Site;
use landfall_model::{DestinationMap, ImageRef, Limits, TargetRegistry};
use serde_yaml::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to write configuration from.
#[derive(Debug, Clone)]
pub struct RenderRequest<'r> {
    /// The lock.
    pub lock: &'r Lock,
    /// Where its items go.
    pub mapping: &'r DestinationMap,
    /// The registry of the mapping; `None` if no registry is known, and the platform needs none.
    pub target: Option<&'r TargetRegistry>,
    /// The documents of the file of `--into`; none without it.
    pub existing: &'r [Value],
    /// The site, where there is one.
    pub site: Option<&'r Site>,
    /// Hosts that speak plain http, by the command line.
    pub plain_http: &'r [String],
    /// Shows a variable of the environment.
    pub environment: fn(&str) -> Option<String>,
    /// The day, `YYYY-MM-DD`.
    pub today: &'r str,
    /// Bounds of what is read.
    pub limits: &'r Limits,
    /// The files that the user named, by the names of the platform's inputs.
    pub inputs: &'r BTreeMap<&'static str, Vec<PathBuf>>,
    /// What the user set.
    pub settings: PlatformSettings,
}

impl<'r> RenderRequest<'r> {
    /// The files of the input `name`.
    pub fn paths(&self, name: &str) -> &[PathBuf] {
        self.inputs.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The names of the locked images.
    pub fn images(&self) -> impl Iterator<Item = &'r ImageRef> {
        self.lock.images.iter().map(|image| &image.name)
    }

    /// The site's registry as nodes see it.
    ///
    /// # Errors
    /// When a certificate or key of it cannot be read.
    pub fn registry(&self) -> Result<NodeRegistry<'r>, RenderError> {
        NodeRegistry::of(
            self.mapping.target(),
            self.site,
            self.plain_http,
            self.environment,
        )
    }

    /// The site's proxy, where it has one.
    ///
    /// # Errors
    /// When its account or certificates cannot be read, or an entry of its NO_PROXY covers nothing.
    pub fn proxy(&self) -> Result<Option<NodeProxy>, RenderError> {
        let Some(site) = self.site else {
            return Ok(None);
        };
        no_proxy::check(site)?;
        NodeProxy::of(site, self.environment)
    }

    /// The site's file server, without a slash at its end.
    pub fn file_server(&self) -> Option<&'r str> {
        self.site
            .and_then(|site| site.files.as_deref())
            .map(|files| files.trim_end_matches('/'))
    }

    /// What goes past the proxy.
    pub fn no_proxy(&self) -> NoProxyEntries {
        NoProxyEntries::of(self.site, self.target)
    }

    /// Whether nodes may ask upstream for what the registry lacks.
    pub fn upstream_fallback(&self) -> bool {
        let registry = self.site.and_then(|site| site.registry.as_ref());
        registry.is_some_and(|registry| registry.upstream_fallback)
    }
}
