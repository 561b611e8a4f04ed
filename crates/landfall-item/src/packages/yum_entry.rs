//! Packages of yum and dnf in a manifest, and how they expand to requests.

use super::fields::{
    self, OneOrMore, bases_of, beside, check_policy, is_word, keys, list_url, name_of,
    own_architecture, repository,
};
use super::request::{
    MachineBase, MirrorsRequest, OfferedIndex, PackageSetRequest, PackageSourceRequest,
};
use crate::MovableVersion;
use crate::entry_reader::{EntryContext, ManifestResult};
use landfall_model::document::{SourceSpan, TemplateField, VarBinding, YamlNode};
use landfall_packages::yum::{Architectures, Pool, RpmPin, read_base};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Packages for yum and dnf, for one kind of machine, from one repository or from `sources`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct YumEntry {
    /// The name in the lock, after `yum:`. The default is the first source.
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
    /// All repositories of the machine, instead of `url`, `key`, `metalink` and `mirrorlist`.
    #[serde(default)]
    pub sources: Vec<YumSourceEntry>,
    /// The architecture of the machine, as RPM or images call it. The default is that of
    /// `platforms`.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// The packages to install, as `dnf install` accepts them: a name, `name-version`, `name.arch`,
    /// `*` for any text, a file path, or `capability >= 1`.
    pub install: Vec<String>,
    /// What `landfall update` may move the versions in `install` to: a policy such as `patch`,
    /// `minor`, `"~1.7"` or `"*"`.
    #[serde(default)]
    pub update: Option<String>,
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

/// A yum repository.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct YumSourceEntry {
    /// The URL of the repository.
    pub url: String,
    /// A file with OpenPGP public keys, one of which must have signed the packages.
    pub key: String,
    /// The URL of a metalink, which contains the digest of `repomd.xml`. Its mirrors are used if
    /// `url` fails.
    #[serde(default)]
    pub metalink: Option<String>,
    /// The URL of a list of mirrors, which are used if `url` fails.
    #[serde(default)]
    pub mirrorlist: Option<String>,
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

/// The fields of a source, and its position.
struct YumSourceFields<'e> {
    url: &'e str,
    key: &'e str,
    metalink: Option<&'e str>,
    mirrorlist: Option<&'e str>,
    node: &'e YamlNode<'e>,
}

/// Expands `entry` to one request for each combination of its variables.
pub(super) fn read_yum(
    entry: &YumEntry,
    node: &YamlNode<'_>,
    reader: &EntryContext<'_>,
) -> ManifestResult<Vec<(PackageSetRequest, SourceSpan)>> {
    let at = reader.here(node);
    let places = places(entry, node, reader)?;
    if entry.install.is_empty() {
        let help = Some("name them, as in `install: [containerd.io]`".into());
        return Err(at.fault("no package is asked for", help));
    }
    if let Some(policy) = &entry.update {
        let has_version = |text: &str| !text.contains("${") && RpmPin::parse(text).is_some();
        check_policy(
            policy,
            &entry.install,
            has_version,
            &reader.here(node.get("update")),
        )?;
    }
    let install_at = |index: usize| reader.here(node.get("install").item(index));
    let architectures_at = reader.here(node.get("architectures"));
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
        for (key, text) in [
            ("metalink", place.metalink),
            ("mirrorlist", place.mirrorlist),
        ] {
            fields.extend(
                text.map(|text| TemplateField::new(text, reader.here(place.node.get(key)))),
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
    let mut all = Vec::new();
    for binding in reader.vars.bindings(&fields)? {
        let mut sources = Vec::new();
        for place in &places {
            let url_at = reader.here(place.node.get("url"));
            let key_at = reader.here(place.node.get("key"));
            sources.push(PackageSourceRequest {
                codename: None,
                targets: Vec::new(),
                url: repository(&binding.fill(place.url), &url_at)?,
                suite: String::new(),
                components: Vec::new(),
                keys: keys(&binding.fill(place.key), &key_at, reader)?,
                mirrors: mirrors(place, &binding, reader)?,
            });
        }
        let mut architectures: Vec<String> = entry
            .architectures
            .iter()
            .map(|text| binding.fill(text))
            .collect();
        if architectures.is_empty() {
            architectures = vec![own_architecture(reader, &at)?];
        }
        let is_name = |text: &String| is_word(&text.replace('_', "-"));
        let [architecture] = &architectures[..] else {
            let help = Some(
                "write one entry for each, with a `name`; dnf takes 32 bits along by itself".into(),
            );
            return Err(architectures_at.fault("a machine of dnf has one architecture", help));
        };
        if !is_name(architecture) {
            let help = Some("write RPM's name of it, as in x86_64 or aarch64".into());
            return Err(
                architectures_at.fault(format!("`{architecture}` is no architecture"), help)
            );
        }
        let architectures = vec![Architectures::of(architecture).native().to_owned()];
        let mut install = BTreeSet::new();
        for (index, text) in entry.install.iter().enumerate() {
            let text = binding.fill(text);
            if let Some(why) = refused(&text) {
                let help = Some(
                    "write what `dnf install` takes: name, name-version, name.arch, /a/file".into(),
                );
                return Err(install_at(index).fault(format!("`{text}` {why}"), help));
            }
            install.insert(text);
        }
        let name = match &entry.name {
            Some(name) => name_of("yum", &binding.fill(name), &reader.here(node.get("name")))?,
            None => format!("yum:{}", sources[0].url),
        };
        let wanted = PackageSetRequest {
            name,
            sources,
            architectures,
            install: install.into_iter().collect(),
            recommends: entry.weak,
            index: entry.index,
            bases: bases.clone(),
            at: at.location(),
        };
        all.push((wanted, at.clone()));
    }
    Ok(all)
}

/// Reads the fields `metalink` and `mirrorlist` of a source.
fn mirrors(
    place: &YumSourceFields<'_>,
    binding: &VarBinding,
    reader: &EntryContext<'_>,
) -> ManifestResult<Option<MirrorsRequest>> {
    let at = |key| reader.here(place.node.get(key));
    let url = |text: &str, key| list_url(&binding.fill(text), &at(key));
    match (place.metalink, place.mirrorlist) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some(MirrorsRequest::Metalink(url(text, "metalink")?))),
        (None, Some(text)) => Ok(Some(MirrorsRequest::List(url(text, "mirrorlist")?))),
        (Some(_), Some(_)) => {
            let help = Some("keep the metalink, which has digests too".into());
            Err(at("mirrorlist").fault("a source has either `metalink` or `mirrorlist`", help))
        }
    }
}

/// The versions that the update policy of `entry` may change.
pub(super) fn moving(entry: &YumEntry) -> Vec<MovableVersion<'_>> {
    let pin = |text: &str| {
        let RpmPin {
            name,
            arch,
            version,
        } = RpmPin::parse(text)?;
        let name = arch.map_or_else(|| name.to_owned(), |arch| format!("{name}.{arch}"));
        Some((name, version))
    };
    fields::moving("yum", entry.update.as_ref(), &entry.install, pin)
}

/// Why `text` can never be installed, whatever the sources contain.
fn refused(text: &str) -> Option<&'static str> {
    match text {
        "" => Some("is no package"),
        text if text.starts_with('@') => Some(
            "is a group or the stream of a module, which landfall does not install; name the \
             packages",
        ),
        text if text.chars().any(char::is_control) || text.starts_with('-') => {
            Some("is no package")
        }
        _ => None,
    }
}

fn places<'e>(
    entry: &'e YumEntry,
    node: &'e YamlNode<'e>,
    reader: &EntryContext<'_>,
) -> ManifestResult<Vec<YumSourceFields<'e>>> {
    let help = "write `url` and `key`; or `sources`, each with them";
    if entry.sources.is_empty() {
        let (Some(url), Some(key)) = (&entry.url, &entry.key) else {
            return Err(reader
                .here(node)
                .fault("a source has `url` and `key`", Some(help.into())));
        };
        let (metalink, mirrorlist) = (entry.metalink.as_deref(), entry.mirrorlist.as_deref());
        return Ok(vec![YumSourceFields {
            url,
            key,
            metalink,
            mirrorlist,
            node,
        }]);
    }
    if let (None, None, None, None) = (&entry.url, &entry.key, &entry.metalink, &entry.mirrorlist) {
        let all = entry
            .sources
            .iter()
            .enumerate()
            .map(|(index, source)| YumSourceFields {
                url: &source.url,
                key: &source.key,
                metalink: source.metalink.as_deref(),
                mirrorlist: source.mirrorlist.as_deref(),
                node: node.get("sources").item(index),
            });
        return Ok(all.collect());
    }
    let message = "beside `sources` there is no `url`, `key`, `metalink` and `mirrorlist`";
    Err(reader
        .here(node.get("sources"))
        .fault(message, Some("make it one of the sources".into())))
}

fn bases(
    entry: &YumEntry,
    node: &YamlNode<'_>,
    reader: &EntryContext<'_>,
) -> ManifestResult<Vec<MachineBase>> {
    bases_of(
        entry.base.as_ref(),
        node.get("base"),
        |base, at| match base {
            YumBaseEntry::Word(YumBaseWord::None) => Ok(MachineBase::None),
            YumBaseEntry::Listed(listed) => {
                let at = reader.here(at.get("rpms"));
                let text =
                    String::from_utf8_lossy(&beside(&listed.rpms, &at, reader)?).into_owned();
                read_base(&text, &mut Pool::default()).map_err(|error| {
                    let help = Some(
                        "write it with `rpm -qa` on a node; `landfall help packages` has the form \
                     that says most"
                            .into(),
                    );
                    at.fault(format!("{}: {error}", listed.rpms), help)
                })?;
                Ok(MachineBase::Rpms(text.into()))
            }
        },
    )
}
