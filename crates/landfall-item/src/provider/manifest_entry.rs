//! Providers in a manifest, and how they expand to requests.

use super::address::{ProviderAddress, ProviderName, ProviderPlatform};
use super::lock_file::read_lock_file;
use super::resolvable::ProviderRequest;
use crate::text::update_rule;
use crate::{
    EntryFields, EntryPathStep, EntryReader, ManifestEntry, ManifestResult, MovableVersion,
};
use landfall_model::document::{SourceSpan, SourceText, UpdateRule};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Providers of OpenTofu and Terraform in a manifest: all that a `.terraform.lock.hcl` lists, or
/// one version of one provider.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderEntry {
    /// The path of a `.terraform.lock.hcl`, relative to the folder of the manifest. The entry
    /// requests all providers in this file, each in the version that the file names. Each package
    /// must have one of the hashes in the file.
    pub lockfile: Option<String>,
    /// The source address of one provider, as in `registry.opentofu.org/hashicorp/aws`.
    pub source: Option<String>,
    /// The version of the provider, as in `5.1.0`.
    pub version: Option<String>,
    /// The platforms, as in `linux_amd64`. Overrides those of the manifest.
    pub platforms: Option<Vec<String>>,
    /// What `landfall update` may move `version` to: `patch`, `minor`, a range as in `~5.1`, or
    /// `never`; or a mapping with one of these as `policy`, and `minAge`.
    pub update: Option<UpdateRule>,
}

const FORMS: &str = "write `{lockfile: .terraform.lock.hcl}`, or \
                     `{source: registry.opentofu.org/hashicorp/aws, version: 5.1.0}`";

impl ManifestEntry for ProviderEntry {
    type Request = ProviderRequest;

    fn add_fields<'e>(&'e mut self, fields: &mut EntryFields<'_, 'e>) {
        fields.add("lockfile", &mut self.lockfile);
        fields.add("source", &mut self.source);
        fields.add("version", &mut self.version);
        fields.add_list("platforms", self.platforms.iter_mut().flatten());
        fields.add_policy("update", &mut self.update);
    }

    fn requests(
        &self,
        written: &ProviderEntry,
        reader: EntryReader<'_>,
    ) -> ManifestResult<Vec<(ProviderRequest, SourceSpan)>> {
        let (platforms, optional) = self.platforms(reader)?;
        let mut found = match (&self.lockfile, &self.source, &self.version) {
            (Some(path), None, None) => {
                if self.update.is_some() {
                    let help = "move the versions with `tofu init -upgrade`";
                    return Err(reader.at("update").fault(
                        "the versions of a lock file have no update policy",
                        Some(help),
                    ));
                }
                from_lock_file(path, &reader.at("lockfile"), reader)?
            }
            (None, Some(source), Some(version)) => {
                vec![self.one(source, version, written, reader)?]
            }
            _ => {
                let message = "providers need `lockfile`, or `source` and `version`";
                return Err(reader.here().fault(message, Some(FORMS)));
            }
        };
        for (request, _) in &mut found {
            request.platforms.clone_from(&platforms);
            request.optional.clone_from(&optional);
        }
        Ok(found)
    }

    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        let (Some(source), Some(version), Some(rule)) = (&self.source, &self.version, &self.update)
        else {
            return Vec::new();
        };
        vec![MovableVersion {
            rule,
            name: format!("{}{source}", ProviderName::PREFIX),
            item_key: "source",
            path: vec![EntryPathStep::Key("version")],
            text: version,
            version: 0..version.len(),
        }]
    }
}

impl ProviderEntry {
    /// The platforms, sorted, and those of them that the registry may lack.
    fn platforms(
        &self,
        reader: EntryReader<'_>,
    ) -> ManifestResult<(Vec<ProviderPlatform>, BTreeSet<ProviderPlatform>)> {
        let (mut required, mut optional) = (BTreeSet::new(), BTreeSet::new());
        let mut add = |platform, is_optional| {
            let set = if is_optional {
                &mut optional
            } else {
                &mut required
            };
            set.insert(platform);
        };
        match &self.platforms {
            None => {
                for one in &reader.context.platforms {
                    add(ProviderPlatform::from(&one.platform), one.optional);
                }
            }
            Some(texts) => {
                for (index, text) in texts.iter().enumerate() {
                    let name = text.strip_suffix('?').unwrap_or(text);
                    let platform = name.parse::<ProviderPlatform>().map_err(|error| {
                        let at = reader.item_at("platforms", index);
                        at.fault(error.to_string(), None)
                    })?;
                    add(platform, name != text);
                }
            }
        }
        optional.retain(|platform| !required.contains(platform));
        Ok((required.union(&optional).cloned().collect(), optional))
    }

    /// The request for `version` of `source`. `written` is the entry with its variables.
    fn one(
        &self,
        source: &str,
        version: &str,
        written: &ProviderEntry,
        reader: EntryReader<'_>,
    ) -> ManifestResult<(ProviderRequest, SourceSpan)> {
        let at = reader.at("source");
        let address = address_of(source, &at)?;
        let name = ProviderName::new(address, version).ok_or_else(|| {
            let help = match version.strip_prefix('v') {
                Some(bare) => format!("write {bare}"),
                None => "write one version, as in 5.1.0".to_owned(),
            };
            let at = reader.at("version");
            at.fault(
                format!("`{version}` is not a version of a provider"),
                Some(&help),
            )
        })?;
        let (rule, version) = (self.update.as_ref(), written.version.as_deref());
        let update = update_rule(rule, version, "a provider", reader.below("update"))?;
        let request = ProviderRequest {
            name,
            platforms: Vec::new(),
            optional: BTreeSet::new(),
            hashes: None,
            update,
            at: at.location(),
        };
        Ok((request, at))
    }
}

/// The requests for all providers of a lock file.
fn from_lock_file(
    path: &str,
    at: &SourceSpan,
    reader: EntryReader<'_>,
) -> ManifestResult<Vec<(ProviderRequest, SourceSpan)>> {
    let bytes = reader.read_file(path, at)?;
    let text =
        String::from_utf8(bytes).map_err(|_| at.fault(format!("{path} is not UTF-8"), None))?;
    let source = SourceText::plain(path.to_owned(), text.clone());
    let providers = read_lock_file(&text).map_err(|fault| {
        let help = "write it with `tofu init` or `terraform init`";
        SourceSpan::new(&source, fault.at).fault(fault.why, Some(help))
    })?;
    if providers.is_empty() {
        return Err(at.fault(format!("{path} contains no providers"), None));
    }
    let requests = providers.into_iter().map(|provider| {
        let request = ProviderRequest {
            name: provider.name,
            platforms: Vec::new(),
            optional: BTreeSet::new(),
            hashes: Some(provider.hashes),
            update: None,
            at: at.location(),
        };
        // its position in the lock file: several lock files may name the same version
        (request, SourceSpan::new(&source, provider.at))
    });
    Ok(requests.collect())
}

/// Parses a source address. The host must be written, since OpenTofu and Terraform have different
/// default hosts.
fn address_of(text: &str, span: &SourceSpan) -> ManifestResult<ProviderAddress> {
    text.parse().map_err(|()| {
        let help = match text.split('/').count() {
            2 => format!("add the host, as in registry.opentofu.org/{text}"),
            _ => "write <host>/<namespace>/<type> in lower case, as in \
                  registry.opentofu.org/hashicorp/aws"
                .to_owned(),
        };
        span.fault(
            format!("`{text}` is not the source address of a provider"),
            Some(&help),
        )
    })
}
