//! The providers as a network mirror: `/providers/<host>/<namespace>/<type>/…`.

use crate::response::RequestError;
use landfall_item::{LockedProvider, MirrorFile, ProviderMirror};
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The providers of all bundles.
#[derive(Default)]
pub(crate) struct ProviderTable {
    mirror: ProviderMirror,
    files: OnceLock<BTreeMap<String, MirrorFile>>,
}

impl ProviderTable {
    /// Adds a provider. Each package that replaces other content adds a warning.
    pub(crate) fn add(&mut self, provider: &LockedProvider, warnings: &mut Vec<String>) {
        warnings.extend(self.mirror.add(provider));
    }

    /// Whether there are no providers.
    pub(crate) fn is_empty(&self) -> bool {
        self.mirror.is_empty()
    }

    /// The file at `path` below `/providers/`.
    pub(crate) fn find(&self, path: &str) -> Result<&MirrorFile, RequestError> {
        let path = percent_decode_str(path).decode_utf8_lossy();
        let files = self.files.get_or_init(|| self.mirror.files());
        files.get(&*path).ok_or_else(|| {
            let message = format!("the provider file {path} is not served here; / lists all");
            RequestError::not_found("NAME_UNKNOWN", message)
        })
    }
}
