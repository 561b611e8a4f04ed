//! Packages in a manifest, and how they expand to requests.

use super::fetch::LANGUAGE;
use super::fields::{
    self, OneOrMore, VariablePin, bases_of, beside, check_policy, is_word, keys, name_of,
    own_architecture, repository,
};
use super::request::{
    MachineBase, OfferedIndex, PackageSetRequest, PackageSourceRequest, add_request,
};
use super::yum_entry::{self, YumEntry, read_yum};
use crate::entry_reader::{EntryContext, ManifestResult};
use crate::{ManifestEntry, MovableVersion, UpdatableEntry};
use landfall_model::document::{SourceSpan, TemplateField, YamlNode};
use landfall_packages::apt::{is_request, is_target, pinned, target_language, target_names};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::Range;

/// The packages that one kind of machine installs: `apt`, or `yum`.
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

/// Packages for apt, for one kind of machine, from one repository or from `sources`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AptEntry {
    /// The name in the lock, after `apt:`. The default is the first source.
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
    /// The components. A flat repository has none.
    #[serde(default)]
    pub components: Vec<String>,
    /// A file with OpenPGP public keys, one of which must have signed the repository.
    #[serde(default)]
    pub key: Option<String>,
    /// All repositories of the machine, instead of `url`, `suite`, `codename`, `components` and
    /// `key`.
    #[serde(default)]
    pub sources: Vec<AptSourceEntry>,
    /// The architectures by their Debian names, the native one first. The default is that of
    /// `platforms`.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// The packages to install, in the order in which apt processes them: `name`, `name=version`
    /// (`*` matches any text), `name/suite` or `name:architecture`.
    pub install: Vec<String>,
    /// What `landfall update` may move the versions in `install` to: a policy such as `patch`,
    /// `minor`, `"~1.7"` or `"*"`.
    #[serde(default)]
    pub update: Option<String>,
    /// Whether recommended packages are installed as well.
    #[serde(default)]
    pub recommends: bool,
    /// The metadata that machines see: `signed` is that of the repository, `trimmed` lists only the
    /// carried packages and is signed by the site.
    #[serde(default)]
    pub index: OfferedIndex,
    /// Indexes to carry in addition to those of packages, by the names of apt's targets:
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

/// An apt repository.
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

impl ManifestEntry for PackageEntry {
    type Request = PackageSetRequest;

    fn expand(
        &self,
        node: &YamlNode<'_>,
        reader: &EntryContext<'_>,
    ) -> ManifestResult<Vec<(PackageSetRequest, SourceSpan)>> {
        read(self, node, reader)
    }
}

impl UpdatableEntry for PackageEntry {
    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        moving(self)
    }
}

/// Expands `entry` to one request for each combination of its variables.
pub(super) fn read(
    entry: &PackageEntry,
    node: &YamlNode<'_>,
    reader: &EntryContext<'_>,
) -> ManifestResult<Vec<(PackageSetRequest, SourceSpan)>> {
    match (&entry.apt, &entry.yum) {
        (Some(apt), None) => read_apt(apt, node.get("apt"), reader),
        (None, Some(yum)) => read_yum(yum, node.get("yum"), reader),
        _ => {
            let help = Some("write `- apt: {…}`, and `- yum: {…}` as an entry of its own".into());
            Err(reader
                .here(node)
                .fault("an entry of packages has either `apt` or `yum`", help))
        }
    }
}

/// The versions that the update policy of `entry` may change.
pub(super) fn moving(entry: &PackageEntry) -> Vec<MovableVersion<'_>> {
    if let Some(yum) = &entry.yum {
        return yum_entry::moving(yum);
    }
    entry
        .apt
        .iter()
        .flat_map(|apt| fields::moving("apt", apt.update.as_ref(), &apt.install, pin))
        .collect()
}

impl PackageEntry {
    /// The first package whose version contains `variable`, which is written `${NAME}`, and no
    /// other variable.
    pub(crate) fn pin_with_variable(&self, variable: &str) -> Option<VariablePin> {
        if let Some(yum) = &self.yum {
            let mut all = yum.install.iter();
            return all.find_map(|text| fields::pin_with_variable("yum", '-', text, variable));
        }
        let mut all = self.apt.iter().flat_map(|apt| &apt.install);
        all.find_map(|text| fields::pin_with_variable("apt", '=', text, variable))
    }
}

/// The name of a pinned package, and the bytes of `text` that are its version.
fn pin(text: &str) -> Option<(String, Range<usize>)> {
    pinned(text).map(|(name, version)| (name.to_owned(), version))
}

/// The fields of a source, and its position.
struct AptSourceFields<'e> {
    url: &'e str,
    suites: &'e [String],
    codename: Option<&'e String>,
    components: &'e [String],
    key: &'e str,
    node: &'e YamlNode<'e>,
}

fn read_apt(
    entry: &AptEntry,
    node: &YamlNode<'_>,
    reader: &EntryContext<'_>,
) -> ManifestResult<Vec<(PackageSetRequest, SourceSpan)>> {
    let at = reader.here(node);
    let places = places(entry, node, reader)?;
    let install_at = |index: usize| reader.here(node.get("install").item(index));
    if entry.install.is_empty() {
        let help = Some("name them, as in `install: [containerd.io]`".into());
        return Err(at.fault("no package is asked for", help));
    }
    if let Some(policy) = &entry.update {
        let has_version = |text: &str| !text.contains("${") && pin(text).is_some();
        check_policy(
            policy,
            &entry.install,
            has_version,
            &reader.here(node.get("update")),
        )?;
    }
    let mut fields = Vec::new();
    for place in &places {
        fields.push(TemplateField::new(
            place.url,
            reader.here(place.node.get("url")),
        ));
        fields.push(TemplateField::new(
            place.key,
            reader.here(place.node.get("key")),
        ));
        fields.extend(
            place
                .codename
                .map(|text| TemplateField::new(text, reader.here(place.node.get("codename")))),
        );
        for (key, texts) in [("suite", place.suites), ("components", place.components)] {
            fields.extend(
                texts
                    .iter()
                    .map(|text| TemplateField::new(text, reader.here(place.node.get(key)))),
            );
        }
    }
    fields.extend(
        entry
            .install
            .iter()
            .enumerate()
            .map(|(index, text)| TemplateField::new(text, install_at(index))),
    );
    let architectures_at = reader.here(node.get("architectures"));
    fields.extend(
        entry
            .architectures
            .iter()
            .map(|text| TemplateField::new(text, architectures_at.clone())),
    );
    fields.extend(
        entry
            .name
            .iter()
            .map(|text| TemplateField::new(text, reader.here(node.get("name")))),
    );
    let bases = bases(entry, node, reader)?;
    let targets = targets(entry, &reader.here(node.get("targets")))?;
    let mut all = Vec::new();
    for binding in reader.vars.bindings(&fields)? {
        let mut sources = Vec::new();
        for place in &places {
            let url = repository(
                &binding.fill(place.url),
                &reader.here(place.node.get("url")),
            )?;
            let keys = keys(
                &binding.fill(place.key),
                &reader.here(place.node.get("key")),
                reader,
            )?;
            let components: Vec<String> = place
                .components
                .iter()
                .map(|text| binding.fill(text))
                .collect();
            for suite in place.suites {
                let suite = suite_of(
                    &binding.fill(suite),
                    &components,
                    &reader.here(place.node.get("suite")),
                )?;
                sources.push(PackageSourceRequest {
                    url: url.clone(),
                    suite,
                    codename: place.codename.map(|text| binding.fill(text)),
                    components: components.clone(),
                    targets: targets.clone(),
                    keys: keys.clone(),
                    mirrors: None,
                });
            }
        }
        let mut architectures: Vec<String> = entry
            .architectures
            .iter()
            .map(|text| binding.fill(text))
            .collect();
        if architectures.is_empty() {
            architectures = vec![own_architecture(reader, &at)?];
        }
        if let Some(bad) = architectures.iter().find(|text| !is_word(text)) {
            let help = Some("write Debian's name of it, as in amd64, arm64 or armhf".into());
            return Err(architectures_at.fault(format!("`{bad}` is no architecture"), help));
        }
        let mut install = Vec::new();
        for (index, text) in entry.install.iter().enumerate() {
            let text = binding.fill(text);
            if !is_request(&text) {
                let help = Some("write name, name=version, name/suite or name:architecture".into());
                return Err(install_at(index).fault(format!("`{text}` is no package"), help));
            }
            add_request(&mut install, text);
        }
        let name = match &entry.name {
            Some(name) => name_of("apt", &binding.fill(name), &reader.here(node.get("name")))?,
            None => default_name(&sources[0]),
        };
        let wanted = PackageSetRequest {
            name,
            sources,
            architectures,
            install,
            recommends: entry.recommends,
            index: entry.index,
            bases: bases.clone(),
            at: at.location(),
        };
        all.push((wanted, at.clone()));
    }
    Ok(all)
}

fn places<'e>(
    entry: &'e AptEntry,
    node: &'e YamlNode<'e>,
    reader: &EntryContext<'_>,
) -> ManifestResult<Vec<AptSourceFields<'e>>> {
    let short = (&entry.url, &entry.suite, &entry.key);
    let help = "write `url`, `suite` and `key`; or `sources`, each with them";
    if entry.sources.is_empty() {
        let (Some(url), Some(suite), Some(key)) = short else {
            return Err(reader
                .here(node)
                .fault("a source has `url`, `suite` and `key`", Some(help.into())));
        };
        let (suites, components) = (suite.all(), entry.components.as_slice());
        let codename = entry.codename.as_ref();
        return Ok(vec![AptSourceFields {
            url,
            suites,
            codename,
            components,
            key,
            node,
        }]);
    }
    if let (None, None, None) = short
        && entry.components.is_empty()
        && entry.codename.is_none()
    {
        let all = entry
            .sources
            .iter()
            .enumerate()
            .map(|(index, source)| AptSourceFields {
                url: &source.url,
                suites: source.suite.all(),
                codename: source.codename.as_ref(),
                components: &source.components,
                key: &source.key,
                node: node.get("sources").item(index),
            });
        return Ok(all.collect());
    }
    let message = "beside `sources` there is no `url`, `suite`, `codename`, `components` and `key`";
    Err(reader
        .here(node.get("sources"))
        .fault(message, Some("make it one of the sources".into())))
}

fn suite_of(text: &str, components: &[String], at: &SourceSpan) -> ManifestResult<String> {
    let is_flat = text.ends_with('/');
    // apt's sources.list writes `./` or `/` for a flat repository at the URL itself
    let path = text.strip_prefix("./").unwrap_or(text).trim_matches('/');
    if !(landfall_packages::is_plain_path(path) || is_flat && path.is_empty()) {
        let help = "write a name, as in bookworm; or the path of a flat repository with a slash \
                    at its end, `/` \
                    for the URL itself";
        return Err(at.fault(format!("`{text}` is no suite"), Some(help.into())));
    }
    let refuse = |message: &str, help: &str| Err(at.fault(message.to_owned(), Some(help.into())));
    match (is_flat, components.is_empty()) {
        (true, false) => refuse(
            "a flat repository has no components",
            "take them out, or the slash behind the suite",
        ),
        (false, true) => refuse(
            "this suite has no components",
            "write them, as in `components: [main]`; a flat repository ends with /",
        ),
        _ => match components
            .iter()
            .find(|component| !landfall_packages::is_plain_path(component))
        {
            Some(bad) => Err(at.fault(format!("`{bad}` is no component"), None)),
            None => Ok(if is_flat {
                format!("{path}/")
            } else {
                path.to_owned()
            }),
        },
    }
}

/// The default name: `apt:<url>/dists/<suite>`, or the folder of a flat repository.
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
        let help = format!("those besides packages are {names}, and Translation-<language>");
        return Err(at
            .narrowed(bad)
            .fault(format!("`{bad}` is no target of apt"), Some(help)));
    }
    if entry.index == OfferedIndex::Trimmed && !entry.targets.is_empty() {
        let help = "take `targets` out, or `index: trimmed`".to_owned();
        return Err(at.fault(
            "metadata that the site signs has packages and descriptions alone",
            Some(help),
        ));
    }
    let mut targets = entry.targets.clone();
    targets.retain(|target| target_language(target) != Some(LANGUAGE));
    targets.sort();
    targets.dedup();
    Ok(targets)
}

fn bases(
    entry: &AptEntry,
    node: &YamlNode<'_>,
    reader: &EntryContext<'_>,
) -> ManifestResult<Vec<MachineBase>> {
    bases_of(
        entry.base.as_ref(),
        node.get("base"),
        |base, at| match base {
            BaseEntry::Word(BaseWord::None) => Ok(MachineBase::None),
            BaseEntry::Word(BaseWord::Minimal) => Ok(MachineBase::Minimal),
            BaseEntry::Word(BaseWord::Standard) => Ok(MachineBase::Standard),
            BaseEntry::Listed(listed) => {
                let at = reader.here(at.get("status"));
                let text =
                    String::from_utf8_lossy(&beside(&listed.status, &at, reader)?).into_owned();
                if text.contains("Status: ") {
                    Ok(MachineBase::Status(text.into()))
                } else {
                    Err(at.fault(
                        format!("{} is no status file of dpkg", listed.status),
                        Some("copy /var/lib/dpkg/status from a node".into()),
                    ))
                }
            }
        },
    )
}
