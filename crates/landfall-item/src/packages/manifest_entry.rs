//! Packages in a manifest: an entry for apt, or one for yum.

use super::apt_entry::{self, AptEntry};
use super::fields::VariablePin;
use super::request::PackageSetRequest;
use super::yum_entry::{self, YumEntry};
use crate::entry_reader::{EntryContext, ManifestResult};
use crate::{ManifestEntry, MovableVersion, UpdatableEntry};
use landfall_model::document::{SourceSpan, YamlNode};
use schemars::JsonSchema;
use serde::Deserialize;

/// The packages that one kind of machine installs, either from apt repositories or from yum
/// repositories.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackageEntry {
    /// Packages from apt repositories.
    #[serde(default)]
    pub apt: Option<AptEntry>,
    /// Packages from yum repositories.
    #[serde(default)]
    pub yum: Option<YumEntry>,
}

impl ManifestEntry for PackageEntry {
    type Request = PackageSetRequest;

    fn expand(
        &self,
        node: &YamlNode<'_>,
        reader: &EntryContext<'_>,
    ) -> ManifestResult<Vec<(PackageSetRequest, SourceSpan)>> {
        match (&self.apt, &self.yum) {
            (Some(apt), None) => apt_entry::read_apt(apt, node.get("apt"), reader),
            (None, Some(yum)) => yum_entry::read_yum(yum, node.get("yum"), reader),
            // a set of packages is chosen by one package manager
            (Some(_), Some(_)) | (None, None) => {
                let help = "write `- apt: {…}` and `- yum: {…}` as separate entries";
                Err(reader.here(node).fault(
                    "an entry of `packages` needs either `apt` or `yum`",
                    Some(help.into()),
                ))
            }
        }
    }
}

impl UpdatableEntry for PackageEntry {
    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        match (&self.apt, &self.yum) {
            (_, Some(yum)) => yum_entry::movable_versions(yum),
            (Some(apt), None) => apt_entry::movable_versions(apt),
            (None, None) => Vec::new(),
        }
    }
}

impl PackageEntry {
    /// The first package whose version contains `variable`, in the form `${NAME}`. Packages with
    /// another variable or a `*` in their name or version are skipped.
    pub(crate) fn pin_with_variable(&self, variable: &str) -> Option<VariablePin> {
        match (&self.apt, &self.yum) {
            (_, Some(yum)) => yum_entry::pin_with_variable(yum, variable),
            (Some(apt), None) => apt_entry::pin_with_variable(apt, variable),
            (None, None) => None,
        }
    }
}
