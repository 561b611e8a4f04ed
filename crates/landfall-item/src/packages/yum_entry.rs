//! Packages for yum and dnf in a manifest, and how they expand to requests.

use super::fields::{
    OneOrMore, PinnedVersion, SharedFields, is_word, mirror_list_url, read_bases, repository_url,
    source_fields,
};
use super::resolvable::{
    MachineBase, MirrorsRequest, OfferedIndex, PackageSetRequest, PackageSourceRequest,
};
use crate::item_kind::{EntryFields, EntryReader, ManifestResult};
use landfall_model::document::{SourceSpan, UpdateRule};
use landfall_packages::yum::{Architectures, Pool, RpmPin, read_base};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Packages for yum and dnf, for one kind of machine, from one repository or from `sources`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct YumEntry {
    /// The name in the lock, after `yum:`. The default is the URL of the first source.
    #[serde(default)]
    pub name: Option<String>,
    /// The URL of the repository, the parent of `repodata/repomd.xml`.
    #[serde(default)]
    pub url: Option<String>,
    /// A file with OpenPGP public keys, one of which must have signed the packages, and
    /// `repomd.xml` if that is signed.
    #[serde(default)]
    pub key: Option<String>,
    /// The URL of a metalink, which contains the digest of `repomd.xml`. Its mirrors are used if
    /// `url` fails.
    #[serde(default)]
    pub metalink: Option<String>,
    /// The URL of a list of mirrors, which are used if `url` fails.
    #[serde(default)]
    pub mirrorlist: Option<String>,
    /// Other hosts (`host` or `host:port`) from which packages may come. A repository can list the
    /// URLs of its packages, which may be on another host than its metadata.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Whether module streams hide no package of the repository (`module_hotfixes` of dnf).
    #[serde(default, rename = "moduleHotfixes")]
    pub module_hotfixes: bool,
    /// All repositories of the machine, instead of `url`, `key`, `metalink`, `mirrorlist`, `hosts`
    /// and `moduleHotfixes`.
    #[serde(default)]
    pub sources: Vec<YumSourceEntry>,
    /// The architecture of the machine, as RPM or images call it. The default is that of
    /// `platforms`.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// The packages to install, as `dnf install` accepts them: a name, `name-version`, `name.arch`,
    /// `*` for any text, a file path, `capability >= 1`, `@group` or `@module:stream/profile`.
    pub install: Vec<String>,
    /// The module streams that are enabled on the machine without a profile, as `dnf module enable`
    /// accepts them, such as `nodejs:20`. Packages in `install` and their dependencies come from
    /// these streams.
    #[serde(default)]
    pub modules: Vec<String>,
    /// The policy by which `landfall update` may change the versions in `install`, such as `patch`,
    /// `minor`, `"~1.7"` or `"*"`.
    #[serde(default)]
    pub update: Option<UpdateRule>,
    /// Whether weak dependencies are installed as well, as dnf does by default.
    #[serde(default = "yes")]
    pub weak: bool,
    /// The metadata that machines see: `signed` is that of the repository, `trimmed` lists only the
    /// carried packages and is signed by the site.
    #[serde(default)]
    pub index: OfferedIndex,
    /// What is installed on the machine already: `none`, the output of `rpm -qa`, or a list of
    /// these for several kinds of machines. By default, packages that no source offers are expected
    /// to be installed.
    #[serde(default)]
    pub base: Option<OneOrMore<YumBaseEntry>>,
}

/// A yum repository in `sources` of an entry.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct YumSourceEntry {
    /// The URL of the repository.
    pub url: String,
    /// A file with OpenPGP public keys, one of which must have signed the packages, and
    /// `repomd.xml` if that is signed.
    pub key: String,
    /// The URL of a metalink, which contains the digest of `repomd.xml`. Its mirrors are used if
    /// `url` fails.
    #[serde(default)]
    pub metalink: Option<String>,
    /// The URL of a list of mirrors, which are used if `url` fails.
    #[serde(default)]
    pub mirrorlist: Option<String>,
    /// Other hosts (`host` or `host:port`) from which packages may come. A repository can list the
    /// URLs of its packages, which may be on another host than its metadata.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Whether module streams hide no package of the repository (`module_hotfixes` of dnf).
    #[serde(default, rename = "moduleHotfixes")]
    pub module_hotfixes: bool,
}

/// What is installed on a machine already.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum YumBaseEntry {
    /// The word `none`.
    Word(YumBaseWord),
    /// The packages that a file lists.
    Listed(ListedRpms),
}

/// A predefined set of installed packages.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum YumBaseWord {
    /// Nothing is installed.
    None,
}

/// A file that lists the installed packages.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedRpms {
    /// The output of `rpm -qa` on the machine, plain or in the format that
    /// `docs/how-to/packages.md` describes.
    pub rpms: String,
}

fn yes() -> bool {
    true
}

impl YumEntry {
    /// Adds the texts that may use variables.
    pub(super) fn add_fields<'e>(&'e mut self, fields: &mut EntryFields<'_, 'e>) {
        fields.add("url", &mut self.url);
        fields.add("key", &mut self.key);
        fields.add("metalink", &mut self.metalink);
        fields.add("mirrorlist", &mut self.mirrorlist);
        for (index, source) in self.sources.iter_mut().enumerate() {
            fields.below(fields.node.get("sources").item(index), |fields| {
                fields.add("url", [&mut source.url]);
                fields.add("key", [&mut source.key]);
                fields.add("metalink", &mut source.metalink);
                fields.add("mirrorlist", &mut source.mirrorlist);
            });
        }
        fields.add_list("install", &mut self.install);
        fields.add_list("modules", &mut self.modules);
        fields.add("architectures", &mut self.architectures);
        fields.add("name", &mut self.name);
    }

    /// The sources with their positions.
    pub(super) fn source_fields<'e>(
        &self,
        reader: EntryReader<'e>,
    ) -> ManifestResult<Vec<(YumSourceEntry, EntryReader<'e>)>> {
        let own = || {
            Some(YumSourceEntry {
                url: self.url.clone()?,
                key: self.key.clone()?,
                metalink: self.metalink.clone(),
                mirrorlist: self.mirrorlist.clone(),
                hosts: self.hosts.clone(),
                module_hotfixes: self.module_hotfixes,
            })
        };
        let texts = [&self.url, &self.key, &self.metalink, &self.mirrorlist];
        let has_own_keys = texts.iter().any(|text| text.is_some())
            || !self.hosts.is_empty()
            || self.module_hotfixes;
        let keys = [
            "`url` and `key`",
            "`url`, `key`, `metalink`, `mirrorlist`, `hosts` or `moduleHotfixes`",
        ];
        source_fields(own(), has_own_keys, keys, &self.sources, reader)
    }

    pub(super) fn shared(&self) -> SharedFields<'_> {
        SharedFields {
            system: "yum",
            name: self.name.as_deref(),
            architectures: &self.architectures,
            install: &self.install,
            update: self.update.as_ref(),
            pin,
            // the last `-` before the variable ends the name, since a name may contain others
            split: |text| text.rsplit_once('-'),
        }
    }
}

/// The name of a pinned package, with its architecture if that is written, and the byte range of
/// its version in `text`.
fn pin(text: &str) -> Option<PinnedVersion> {
    let RpmPin {
        name,
        arch,
        version,
    } = RpmPin::parse(text)?;
    let name = arch.map_or_else(|| name.to_owned(), |arch| format!("{name}.{arch}"));
    Some((name, version))
}

/// The request of `entry`, in which variables are filled in.
pub(super) fn request(
    entry: &YumEntry,
    reader: EntryReader<'_>,
) -> ManifestResult<PackageSetRequest> {
    let shared = entry.shared();
    let sources = entry.source_fields(reader)?;
    let bases = bases(entry, reader)?;
    let mut source_requests = Vec::new();
    for (source, reader) in sources {
        source_requests.push(source.request(reader)?);
    }
    let architectures = shared.architectures(reader)?;
    let architecture = one_architecture(&architectures, &reader.at("architectures"))?;
    // dnf ignores the order of the packages, so they are sorted: equal sets get equal locks
    let mut install = BTreeSet::new();
    for (index, text) in entry.install.iter().enumerate() {
        if let Some(why) = why_not_installable(text) {
            let help = "write it as for `dnf install`: name, name-version, name.arch, /a/file, \
                        @group or @module:stream/profile";
            return Err(reader
                .item_at("install", index)
                .fault(format!("`{text}` {why}"), Some(help)));
        }
        install.insert(text.clone());
    }
    let mut modules = BTreeSet::new();
    for (index, text) in entry.modules.iter().enumerate() {
        if let Some(help) = why_not_stream(text) {
            return Err(reader
                .item_at("modules", index)
                .fault(format!("`{text}` is not a module stream"), Some(&help)));
        }
        modules.insert(text.clone());
    }
    let name = shared.lock_name(reader)?;
    Ok(PackageSetRequest {
        name: name.unwrap_or_else(|| format!("yum:{}", source_requests[0].url)),
        sources: source_requests,
        architectures: vec![architecture],
        install: install.into_iter().collect(),
        modules: modules.into_iter().collect(),
        recommends: entry.weak,
        index: entry.index,
        bases,
        at: reader.here().location(),
    })
}

/// Checks that there is one architecture, and returns its RPM name.
fn one_architecture(architectures: &[String], at: &SourceSpan) -> ManifestResult<String> {
    let [architecture] = architectures else {
        let help = "write an entry with a `name` for each architecture; dnf adds 32-bit packages \
                    by itself";
        return Err(at.fault("a machine that uses dnf has one architecture", Some(help)));
    };
    // unlike Debian's names, RPM's names may contain an underscore, as in x86_64
    if !is_word(&architecture.replace('_', "-")) {
        let help = Some("write its RPM name, such as x86_64 or aarch64");
        return Err(at.fault(format!("`{architecture}` is not an architecture"), help));
    }
    Ok(Architectures::of(architecture).native().to_owned())
}

/// The reason why `text` cannot be installed from any source.
fn why_not_installable(text: &str) -> Option<&'static str> {
    if text.starts_with('@') && text.contains(['*', '?', '[']) {
        return Some("has wildcards, which are not accepted in names of groups and modules");
    }
    if let Some(word) = text.strip_prefix('@')
        && (word.trim() != word || word.starts_with([':', '/', '@']) || word.is_empty())
    {
        return Some("is not the name of a group or a module");
    }
    let is_package =
        !text.is_empty() && !text.starts_with('-') && !text.chars().any(char::is_control);
    (!is_package).then_some("is not a package")
}

/// How to write `text` instead, if it is not a stream that `dnf module enable` accepts.
fn why_not_stream(text: &str) -> Option<String> {
    let name = text.trim_start_matches('@');
    if text.contains('/') {
        return Some(format!(
            "write the stream without a profile here, or \"@{name}\" in `install`"
        ));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._+:".contains(c);
    let is_stream = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_name)
        && text.split(':').all(|part| !part.is_empty())
        && text.split(':').count() <= 2;
    (!is_stream).then(|| "write it as for `dnf module enable`: nodejs:20".into())
}

impl YumSourceEntry {
    /// The request of the source.
    fn request(&self, reader: EntryReader<'_>) -> ManifestResult<PackageSourceRequest> {
        let url_at = reader.at("url");
        let key_at = reader.at("key");
        Ok(PackageSourceRequest {
            url: repository_url(&self.url, &url_at)?,
            suite: String::new(),
            codename: None,
            check_valid_until: true,
            components: Vec::new(),
            targets: Vec::new(),
            keys: reader.read_keys(&self.key, &key_at)?,
            mirrors: self.mirrors(reader)?,
            hosts: self.hosts(reader)?,
            module_hotfixes: self.module_hotfixes,
        })
    }

    /// Reads the field `hosts`.
    fn hosts(&self, reader: EntryReader<'_>) -> ManifestResult<Vec<String>> {
        let is_host =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        for (index, host) in self.hosts.iter().enumerate() {
            if host.is_empty() || !host.chars().all(is_host) {
                return Err(reader.item_at("hosts", index).fault(
                    format!("`{host}` is not a host"),
                    Some("write it without a scheme and path, as in cdn.example.com"),
                ));
            }
        }
        Ok(self
            .hosts
            .iter()
            .map(|host| host.to_ascii_lowercase())
            .collect())
    }

    /// Reads the fields `metalink` and `mirrorlist`.
    fn mirrors(&self, reader: EntryReader<'_>) -> ManifestResult<Option<MirrorsRequest>> {
        let metalink_at = reader.at("metalink");
        let list_at = reader.at("mirrorlist");
        match (&self.metalink, &self.mirrorlist) {
            (None, None) => Ok(None),
            (Some(text), None) => {
                let url = mirror_list_url(text, &metalink_at)?;
                Ok(Some(MirrorsRequest::Metalink(url)))
            }
            (None, Some(text)) => {
                let url = mirror_list_url(text, &list_at)?;
                Ok(Some(MirrorsRequest::List(url)))
            }
            (Some(_), Some(_)) => Err(list_at.fault(
                "a source has either `metalink` or `mirrorlist`",
                Some("keep the metalink, which also contains digests"),
            )),
        }
    }
}

fn bases(entry: &YumEntry, reader: EntryReader<'_>) -> ManifestResult<Vec<MachineBase>> {
    read_bases(
        entry.base.as_ref(),
        reader.below("base"),
        |base, reader| match base {
            YumBaseEntry::Word(YumBaseWord::None) => Ok(MachineBase::None),
            YumBaseEntry::Listed(ListedRpms { rpms }) => {
                let at = reader.at("rpms");
                let bytes = reader.read_file(rpms, &at)?;
                let text = String::from_utf8_lossy(&bytes);
                // The list is parsed again when packages are chosen. It is parsed here as well, so
                // that an error has a position.
                read_base(&text, &mut Pool::default()).map_err(|error| {
                    let help = "write it with `rpm -qa` on a node; `landfall help packages` has \
                                the most detailed format";
                    at.fault(format!("{rpms}: {error}"), Some(help))
                })?;
                Ok(MachineBase::Rpms(text.into()))
            }
        },
    )
}
