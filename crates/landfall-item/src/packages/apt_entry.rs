//! Packages for apt in a manifest, and how they expand to requests.

use super::fetch::LANGUAGE;
use super::fields::{
    OneOrMore, PinnedVersion, SharedFields, is_word, read_bases, repository_url, source_fields,
};
use super::resolvable::{
    MachineBase, OfferedIndex, PackageSetRequest, PackageSourceRequest, add_request,
};
use crate::item_kind::{EntryFields, EntryReader, ManifestResult};
use landfall_model::document::{SourceSpan, UpdateRule};
use landfall_packages::apt::{
    is_request, is_target, pinned_version, target_language, target_names,
};
use landfall_packages::is_plain_path;
use schemars::JsonSchema;
use serde::Deserialize;

/// Packages for apt, for one kind of machine, from one repository or from `sources`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AptEntry {
    /// The name in the lock, after `apt:`. The default is the URL of the first source's suite.
    #[serde(default)]
    pub name: Option<String>,
    /// The URL of the repository.
    #[serde(default)]
    pub url: Option<String>,
    /// The suite, or several. A suite that ends with `/` is the path of a flat repository.
    #[serde(default)]
    pub suite: Option<OneOrMore<String>>,
    /// The `Codename` or `Suite` in the Release file, if it differs from the name of the suite, as
    /// on some mirrors.
    #[serde(default)]
    pub codename: Option<String>,
    /// `false` accepts a release whose `Valid-Until` has passed: for archives and snapshots, whose
    /// releases are not renewed.
    #[serde(default, rename = "checkValidUntil")]
    pub check_valid_until: Option<bool>,
    /// The components. A flat repository has none.
    #[serde(default)]
    pub components: Vec<String>,
    /// A file with OpenPGP public keys, one of which must have signed the repository.
    #[serde(default)]
    pub key: Option<String>,
    /// All repositories of the machine, instead of `url`, `suite`, `codename`, `checkValidUntil`,
    /// `components` and `key`.
    #[serde(default)]
    pub sources: Vec<AptSourceEntry>,
    /// The architectures by their Debian names, the native one first. The default is that of
    /// `platforms`.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// The packages to install, in the order in which apt processes them: `name`, `name=version`
    /// (`*` matches any text), `name/suite` or `name:architecture`.
    pub install: Vec<String>,
    /// The policy by which `landfall update` may change the versions in `install`, such as `patch`,
    /// `minor`, `"~1.7"` or `"*"`.
    #[serde(default)]
    pub update: Option<UpdateRule>,
    /// Whether recommended packages are installed as well.
    #[serde(default)]
    pub recommends: bool,
    /// The metadata that machines see: `signed` is that of the repository, `trimmed` lists only the
    /// carried packages and is signed by the site.
    #[serde(default)]
    pub index: OfferedIndex,
    /// Indexes to carry in addition to the package indexes, by the names of apt's targets:
    /// `Contents-deb` for apt-file, `CNF` for command-not-found, `DEP-11` for appstream and its
    /// icons, `Translation-de` for descriptions in German.
    #[serde(default)]
    pub targets: Vec<String>,
    /// What is installed on the machine already: `none`, `minimal`, `standard`, a dpkg status file,
    /// or a list of these for several kinds of machines. By default, packages that no source offers
    /// are expected to be installed.
    #[serde(default)]
    pub base: Option<OneOrMore<BaseEntry>>,
}

/// An apt repository in `sources` of an entry.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AptSourceEntry {
    /// The URL of the repository.
    pub url: String,
    /// The suite, or several. A suite that ends with `/` is the path of a flat repository.
    pub suite: OneOrMore<String>,
    /// The `Codename` or `Suite` in the Release file, if it differs from the name of the suite.
    #[serde(default)]
    pub codename: Option<String>,
    /// `false` accepts a release whose `Valid-Until` has passed: for archives and snapshots, whose
    /// releases are not renewed.
    #[serde(default, rename = "checkValidUntil")]
    pub check_valid_until: Option<bool>,
    /// The components. A flat repository has none.
    #[serde(default)]
    pub components: Vec<String>,
    /// A file with OpenPGP public keys, one of which must have signed the repository.
    pub key: String,
}

/// What is installed on a machine already.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BaseEntry {
    /// One of the words `none`, `minimal` and `standard`.
    Word(BaseWord),
    /// The packages that a file lists.
    Listed(ListedBase),
}

/// A predefined set of installed packages.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BaseWord {
    /// Nothing is installed.
    None,
    /// The packages that `debootstrap --variant=minbase` installs from the first source.
    Minimal,
    /// The packages that debootstrap installs by default, and those of the priority `standard`.
    Standard,
}

/// A file that lists the installed packages.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedBase {
    /// A copy of `/var/lib/dpkg/status` of the machine.
    pub status: String,
}

impl AptEntry {
    /// Adds the texts that may use variables.
    pub(super) fn add_fields<'e>(&'e mut self, fields: &mut EntryFields<'_, 'e>) {
        fields.add("url", &mut self.url);
        fields.add("key", &mut self.key);
        fields.add("codename", &mut self.codename);
        let suites = self.suite.as_mut().map(OneOrMore::all_mut);
        fields.add("suite", suites.into_iter().flatten());
        fields.add("components", &mut self.components);
        for (index, source) in self.sources.iter_mut().enumerate() {
            fields.below(fields.node.get("sources").item(index), |fields| {
                fields.add("url", [&mut source.url]);
                fields.add("key", [&mut source.key]);
                fields.add("codename", &mut source.codename);
                fields.add("suite", source.suite.all_mut());
                fields.add("components", &mut source.components);
            });
        }
        fields.add_list("install", &mut self.install);
        fields.add("architectures", &mut self.architectures);
        fields.add("name", &mut self.name);
    }

    /// The sources with their positions.
    pub(super) fn source_fields<'e>(
        &self,
        reader: EntryReader<'e>,
    ) -> ManifestResult<Vec<(AptSourceEntry, EntryReader<'e>)>> {
        let own = || {
            Some(AptSourceEntry {
                url: self.url.clone()?,
                suite: self.suite.clone()?,
                codename: self.codename.clone(),
                check_valid_until: self.check_valid_until,
                components: self.components.clone(),
                key: self.key.clone()?,
            })
        };
        let has_own_keys = self.url.is_some()
            || self.suite.is_some()
            || self.key.is_some()
            || !self.components.is_empty()
            || self.codename.is_some()
            || self.check_valid_until.is_some();
        let keys = [
            "`url`, `suite` and `key`",
            "`url`, `suite`, `codename`, `checkValidUntil`, `components` or `key`",
        ];
        let sources = source_fields(own(), has_own_keys, keys, &self.sources, reader)?;
        let is_empty = |(source, _): &&(AptSourceEntry, _)| source.suite.all().is_empty();
        match sources.iter().find(is_empty) {
            Some((_, reader)) => Err(reader.at("suite").fault(
                "this list of suites is empty",
                Some("write a suite, as in `suite: bookworm`"),
            )),
            None => Ok(sources),
        }
    }

    pub(super) fn shared(&self) -> SharedFields<'_> {
        SharedFields {
            system: "apt",
            name: self.name.as_deref(),
            architectures: &self.architectures,
            install: &self.install,
            update: self.update.as_ref(),
            pin,
            // the first `=` ends the name, since the version may contain others
            split: |text| text.split_once('='),
        }
    }
}

/// The name of a pinned package, and the bytes of `text` that are its version.
fn pin(text: &str) -> Option<PinnedVersion> {
    pinned_version(text).map(|(name, version)| (name.to_owned(), version))
}

/// The request of `entry`, in which variables are filled in.
pub(super) fn request(
    entry: &AptEntry,
    reader: EntryReader<'_>,
) -> ManifestResult<PackageSetRequest> {
    let shared = entry.shared();
    let sources = entry.source_fields(reader)?;
    let bases = bases(entry, reader)?;
    let targets = targets(entry, &reader.at("targets"))?;
    let mut source_requests = Vec::new();
    for (source, reader) in sources {
        source_requests.extend(source.requests(&targets, reader)?);
    }
    let architectures = shared.architectures(reader)?;
    if let Some(bad) = architectures.iter().find(|text| !is_word(text)) {
        let help = Some("write its Debian name, such as amd64, arm64 or armhf");
        return Err(reader
            .at("architectures")
            .fault(format!("`{bad}` is not an architecture"), help));
    }
    let mut install = Vec::new();
    for (index, text) in entry.install.iter().enumerate() {
        if !is_request(text) {
            let help = Some("write name, name=version, name/suite or name:architecture");
            return Err(reader
                .item_at("install", index)
                .fault(format!("`{text}` is not a package"), help));
        }
        add_request(&mut install, text.clone());
    }
    let name = shared.lock_name(reader)?;
    Ok(PackageSetRequest {
        name: name.unwrap_or_else(|| default_name(&source_requests[0])),
        sources: source_requests,
        architectures,
        install,
        modules: Vec::new(),
        recommends: entry.recommends,
        index: entry.index,
        bases,
        at: reader.here().location(),
    })
}

impl AptSourceEntry {
    /// One request for each suite of the source.
    fn requests(
        &self,
        targets: &[String],
        reader: EntryReader<'_>,
    ) -> ManifestResult<Vec<PackageSourceRequest>> {
        let url_at = reader.at("url");
        let key_at = reader.at("key");
        let suite_at = reader.at("suite");
        let url = repository_url(&self.url, &url_at)?;
        let keys = reader.read_keys(&self.key, &key_at)?;
        let mut requests = Vec::new();
        for suite in self.suite.all() {
            requests.push(PackageSourceRequest {
                url: url.clone(),
                suite: parse_suite(suite, &self.components, &suite_at)?,
                codename: self.codename.clone(),
                check_valid_until: self.check_valid_until.unwrap_or(true),
                components: self.components.clone(),
                targets: targets.to_vec(),
                keys: keys.clone(),
                mirrors: None,
                hosts: Vec::new(),
                module_hotfixes: false,
            });
        }
        Ok(requests)
    }
}

/// Checks a suite, and returns it in the form of the lock: the path of a flat repository ends with
/// a slash.
fn parse_suite(text: &str, components: &[String], at: &SourceSpan) -> ManifestResult<String> {
    let is_flat = text.ends_with('/');
    // apt's sources.list writes `./` or `/` for a flat repository at the URL itself
    let path = text.strip_prefix("./").unwrap_or(text).trim_matches('/');
    if !(is_plain_path(path) || is_flat && path.is_empty()) {
        let help = "write a name such as bookworm, or the path of a flat repository, which ends \
                    with a slash: `/` for the URL itself";
        return Err(at.fault(format!("`{text}` is not a suite"), Some(help)));
    }
    if is_flat && !components.is_empty() {
        return Err(at.fault(
            "a flat repository has no components",
            Some("remove them, or the slash at the end of the suite"),
        ));
    }
    if !is_flat && components.is_empty() {
        let help = "write them, as in `components: [main]`; the suite of a flat repository ends \
                    with /";
        return Err(at.fault("this suite has no components", Some(help)));
    }
    if let Some(bad) = components.iter().find(|text| !is_plain_path(text)) {
        return Err(at.fault(format!("`{bad}` is not a component"), None));
    }
    Ok(if is_flat {
        format!("{path}/")
    } else {
        path.to_owned()
    })
}

/// The default name: `apt:<url>/dists/<suite>`, or `apt:<url>/<path>` for a flat repository.
fn default_name(source: &PackageSourceRequest) -> String {
    let PackageSourceRequest { url, suite, .. } = source;
    match suite.strip_suffix('/') {
        Some("") => format!("apt:{url}"),
        Some(path) => format!("apt:{url}/{path}"),
        None => format!("apt:{url}/dists/{suite}"),
    }
}

/// Checks and sorts the targets of `entry`.
fn targets(entry: &AptEntry, at: &SourceSpan) -> ManifestResult<Vec<String>> {
    if let Some(bad) = entry.targets.iter().find(|target| !is_target(target)) {
        let names = target_names().collect::<Vec<_>>().join(", ");
        let help = format!("the targets besides packages are {names}, and Translation-<language>");
        return Err(at
            .narrowed(bad)
            .fault(format!("`{bad}` is not a target of apt"), Some(&help)));
    }
    if entry.index == OfferedIndex::Trimmed && !entry.targets.is_empty() {
        return Err(at.fault(
            "metadata that the site signs contains only packages and descriptions",
            Some("remove `targets` or `index: trimmed`"),
        ));
    }
    let mut targets = entry.targets.clone();
    // descriptions in this language are carried anyway
    targets.retain(|target| target_language(target) != Some(LANGUAGE));
    targets.sort();
    targets.dedup();
    Ok(targets)
}

fn bases(entry: &AptEntry, reader: EntryReader<'_>) -> ManifestResult<Vec<MachineBase>> {
    read_bases(
        entry.base.as_ref(),
        reader.below("base"),
        |base, reader| match base {
            BaseEntry::Word(BaseWord::None) => Ok(MachineBase::None),
            BaseEntry::Word(BaseWord::Minimal) => Ok(MachineBase::Minimal),
            BaseEntry::Word(BaseWord::Standard) => Ok(MachineBase::Standard),
            BaseEntry::Listed(ListedBase { status }) => {
                let at = reader.at("status");
                let bytes = reader.read_file(status, &at)?;
                let text = String::from_utf8_lossy(&bytes);
                // a file without this field would mean that nothing is installed
                if text.contains("Status: ") {
                    Ok(MachineBase::Status(text.into()))
                } else {
                    Err(at.fault(
                        format!("{status} is not a status file of dpkg"),
                        Some("copy /var/lib/dpkg/status from a node"),
                    ))
                }
            }
        },
    )
}
