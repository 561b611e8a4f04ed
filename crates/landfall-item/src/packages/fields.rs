//! Fields that apt and yum entries share.

use super::apt_entry::AptEntry;
use super::resolvable::{MachineBase, PackageSetRequest};
use super::yum_entry::YumEntry;
use super::{apt_entry, yum_entry};
use crate::file::is_file_url;
use crate::item_kind::{EntryFields, EntryReader, ManifestResult, check_no_userinfo};
use crate::text::check_keeps_one;
use crate::{EntryPathStep, ManifestEntry, MovableVersion};
use landfall_model::document::{SourceSpan, UpdateRule};
use landfall_model::{Failure, UpdatePolicy};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::Range;
use url::Url;

/// A pinned package whose version contains a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariablePin {
    /// `apt` or `yum`: the position of this key's value in the entry identifies the request.
    pub(crate) item_key: &'static str,
    /// The name of the package.
    pub(crate) package: String,
    /// The version up to the variable.
    pub(crate) before: String,
    /// The version after the variable.
    pub(crate) after: String,
}

/// One value, or a list of values.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMore<T> {
    /// A single value.
    One(T),
    /// A list of values.
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    pub(super) fn all(&self) -> &[T] {
        match self {
            OneOrMore::One(one) => std::slice::from_ref(one),
            OneOrMore::More(more) => more,
        }
    }

    pub(super) fn all_mut(&mut self) -> &mut [T] {
        match self {
            OneOrMore::One(one) => std::slice::from_mut(one),
            OneOrMore::More(more) => more,
        }
    }
}

/// The name of a pinned package, and the bytes of the version in its text.
pub(super) type PinnedVersion = (String, Range<usize>);

/// The fields that entries for apt and yum share.
pub(super) struct SharedFields<'e> {
    /// The key of the entry, which is also the prefix of its name in the lock: `apt` or `yum`.
    pub(super) system: &'static str,
    pub(super) name: Option<&'e str>,
    pub(super) architectures: &'e [String],
    pub(super) install: &'e [String],
    pub(super) update: Option<&'e UpdateRule>,
    /// Reads the text of a package with a version.
    pub(super) pin: fn(&str) -> Option<PinnedVersion>,
    /// Splits the text before a variable in a version into the name and the beginning of the
    /// version.
    pub(super) split: fn(&str) -> Option<(&str, &str)>,
}

impl<'e> SharedFields<'e> {
    /// Checks that packages are listed, and that the update policy applies to at least one of them.
    fn check(&self, reader: EntryReader<'_>) -> ManifestResult<()> {
        if self.install.is_empty() {
            let help = Some("list them, as in `install: [containerd.io]`");
            return Err(reader
                .here()
                .fault("this entry lists no packages to install", help));
        }
        match self.update {
            Some(rule) => {
                let reader = reader.below("update");
                check_keeps_one(rule, &reader.at("keep"))?;
                let at = reader.at("policy");
                self.check_policy(&rule.policy, &at)
            }
            None => Ok(()),
        }
    }

    /// Checks the update policy `text`.
    fn check_policy(&self, text: &str, at: &SourceSpan) -> ManifestResult<()> {
        let policy: UpdatePolicy = text
            .parse()
            .map_err(|error: Failure| at.fault(error.to_string(), error.help.as_deref()))?;
        let has_variable = |text: &String| text.contains("${");
        let is_pinned = |text: &String| !has_variable(text) && (self.pin)(text).is_some();
        let (message, help) = match policy {
            UpdatePolicy::Never => return Ok(()),
            // this policy follows image tags that are pushed again
            UpdatePolicy::Digest => (
                "the policy `digest` does not apply to packages, which have no tags",
                "write patch, minor or a range such as \"*\"; `landfall lock --refresh` updates \
                 packages without a version",
            ),
            _ if self.install.iter().any(is_pinned) => return Ok(()),
            _ if self.install.iter().any(has_variable) => (
                "the versions of these packages are in variables",
                "set the update policy at the variable",
            ),
            _ => (
                "none of these packages has a version that could be updated",
                "write one, as in containerd.io=1.7.24-1; `landfall lock --refresh` updates \
                 packages without a version",
            ),
        };
        Err(at.fault(message, Some(help)))
    }

    /// The architectures, or that of the manifest's `platforms` if none are written.
    pub(super) fn architectures(&self, reader: EntryReader<'_>) -> ManifestResult<Vec<String>> {
        if self.architectures.is_empty() {
            return Ok(vec![default_architecture(reader)?]);
        }
        Ok(self.architectures.to_vec())
    }

    /// The name in the lock, `apt:NAME` or `yum:NAME`, if the entry has a `name`.
    pub(super) fn lock_name(&self, reader: EntryReader<'_>) -> ManifestResult<Option<String>> {
        let Some(name) = self.name else {
            return Ok(None);
        };
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(is_good) {
            return Err(reader.at("name").fault(
                format!("`{name}` is not a valid name"),
                Some("use letters, digits, `-`, `_` and `.`"),
            ));
        }
        Ok(Some(format!("{}:{name}", self.system)))
    }

    /// The versions that the update policy may change.
    fn movable_versions(&self) -> Vec<MovableVersion<'e>> {
        let Some(rule) = self.update else {
            return Vec::new();
        };
        let mut versions = Vec::new();
        for (index, text) in self.install.iter().enumerate() {
            // a version in a variable is updated by the policy of that variable
            let pin = (self.pin)(text).filter(|_| !text.contains("${"));
            versions.extend(pin.map(|(name, version)| MovableVersion {
                rule,
                name,
                item_key: self.system,
                path: vec![
                    EntryPathStep::Key(self.system),
                    EntryPathStep::Key("install"),
                    EntryPathStep::Index(index),
                ],
                text,
                version,
            }));
        }
        versions
    }

    /// The first package whose version contains `variable`. Packages with another variable or a
    /// `*` in their name or version are skipped.
    fn pin_with_variable(&self, variable: &str) -> Option<VariablePin> {
        self.install.iter().find_map(|text| {
            let (front, after) = text.split_once(variable)?;
            let (package, before) = (self.split)(front)?;
            let parts = [package, before, after];
            if parts
                .iter()
                .any(|text| text.contains("${") || text.contains('*'))
            {
                return None;
            }
            Some(VariablePin {
                item_key: self.system,
                package: package.into(),
                before: before.into(),
                after: after.into(),
            })
        })
    }
}

/// The sources of an entry with their positions: `own`, the one that is written in the entry
/// itself, or those of `sources`. `keys` are the names of the keys that it needs, and of all keys
/// that it may have; `has_own_keys` says whether the entry has any of the latter.
pub(super) fn source_fields<'e, S: Clone>(
    own: Option<S>,
    has_own_keys: bool,
    [needed, all]: [&str; 2],
    sources: &[S],
    reader: EntryReader<'e>,
) -> ManifestResult<Vec<(S, EntryReader<'e>)>> {
    if sources.is_empty() {
        let own = own.ok_or_else(|| {
            let help = "write them here, or in each entry of `sources`";
            let message = format!("a source needs {needed}");
            reader.here().fault(message, Some(help))
        })?;
        return Ok(vec![(own, reader)]);
    }
    let list = reader.below("sources");
    if has_own_keys {
        let message = format!("`sources` cannot be combined with {all}");
        let help = "move them into an entry of `sources`";
        return Err(list.here().fault(message, Some(help)));
    }
    let sources = sources.iter().cloned().enumerate();
    Ok(sources
        .map(|(index, source)| (source, list.item(index)))
        .collect())
}

/// Reads the field `base`, one value or a list. `read_one` reads one value.
pub(super) fn read_bases<T>(
    value: Option<&OneOrMore<T>>,
    reader: EntryReader<'_>,
    read_one: impl Fn(&T, EntryReader<'_>) -> ManifestResult<MachineBase>,
) -> ManifestResult<Vec<MachineBase>> {
    match value {
        None => Ok(Vec::new()),
        Some(OneOrMore::One(one)) => Ok(vec![read_one(one, reader)?]),
        Some(OneOrMore::More(all)) => all
            .iter()
            .enumerate()
            .map(|(index, one)| read_one(one, reader.item(index)))
            .collect(),
    }
}

/// Parses the URL of a repository and removes trailing slashes.
pub(super) fn repository_url(text: &str, at: &SourceSpan) -> ManifestResult<String> {
    check_no_variables(text, at)?;
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = url.filter(|_| !text.contains(char::is_whitespace)) else {
        return Err(at.fault(
            "this is not the URL of a repository",
            Some("write it as https://host/path"),
        ));
    };
    check_no_userinfo(&url, at)?;
    // the paths of indexes and packages are appended to this URL
    if url.query().is_some() || url.fragment().is_some() {
        return Err(at.fault(
            "the URL of a repository must not contain `?` or `#`",
            Some("remove it and the text after it"),
        ));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Rejects variables such as `$releasever`, which only the package manager of a machine knows.
fn check_no_variables(text: &str, at: &SourceSpan) -> ManifestResult<()> {
    let Some((_, rest)) = text.split_once('$') else {
        return Ok(());
    };
    let name: String = rest
        .trim_start_matches('(')
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    let help = format!("write its value, or `${{{name}}}` with `vars: {{{name}: …}}` in this file");
    let message =
        format!("`${name}` is a variable of the package manager, whose value landfall cannot know");
    Err(at.narrowed(&format!("${name}")).fault(message, Some(&help)))
}

/// Parses the URL of a list of mirrors. Unlike the URL of a repository, it may have a query.
pub(super) fn mirror_list_url(text: &str, at: &SourceSpan) -> ManifestResult<String> {
    check_no_variables(text, at)?;
    let url = Url::parse(text).ok().filter(|_| is_file_url(text));
    let url =
        url.ok_or_else(|| at.fault("this is not a URL", Some("write it as https://host/path")))?;
    check_no_userinfo(&url, at)?;
    Ok(text.to_owned())
}

/// Whether `text` consists of letters, digits and dashes.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The Debian name of the architecture of the manifest's `platforms`; `amd64` if there are none.
/// Platforms that images may lack count only if there are no others. Several architectures are an
/// error, because a set of packages has one native architecture.
fn default_architecture(reader: EntryReader<'_>) -> ManifestResult<String> {
    let requested = &reader.context.platforms;
    let are_all_optional = requested.iter().all(|one| one.optional);
    let mut all: Vec<String> = requested
        .iter()
        .filter(|one| are_all_optional || !one.optional)
        .map(|one| debian_name(&one.platform.to_string()))
        .collect();
    all.sort();
    all.dedup();
    match &all[..] {
        [] => Ok("amd64".into()),
        [only] => Ok(only.clone()),
        _ => {
            let help = "write one entry for each kind of machine, with `architectures: [amd64]` \
                        and a `name`";
            Err(reader.here().fault(
                format!(
                    "the platforms have several architectures: {}",
                    all.join(", ")
                ),
                Some(help),
            ))
        }
    }
}

/// The Debian name of a platform's architecture.
fn debian_name(platform: &str) -> String {
    match platform.split_once('/').map_or(platform, |(_, arch)| arch) {
        "386" => "i386",
        "arm/v7" | "arm" => "armhf",
        "arm/v6" | "arm/v5" => "armel",
        "arm64/v8" => "arm64",
        "ppc64le" => "ppc64el",
        "mips64le" => "mips64el",
        arch => arch,
    }
    .to_owned()
}

/// The packages that one kind of machine installs, either from apt repositories or from yum
/// repositories.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PackageEntry {
    /// Packages from apt repositories.
    pub apt: Option<AptEntry>,
    /// Packages from yum repositories.
    pub yum: Option<YumEntry>,
}

impl ManifestEntry for PackageEntry {
    type Request = PackageSetRequest;

    fn check(&self, reader: EntryReader<'_>) -> ManifestResult<()> {
        match (&self.apt, &self.yum) {
            (Some(apt), None) => {
                apt.source_fields(reader.below("apt"))?;
                apt.shared().check(reader.below("apt"))
            }
            (None, Some(yum)) => {
                yum.source_fields(reader.below("yum"))?;
                yum.shared().check(reader.below("yum"))
            }
            // a set of packages is chosen by one package manager
            (Some(_), Some(_)) | (None, None) => {
                let help = "write `- apt: {…}` and `- yum: {…}` as separate entries";
                Err(reader.here().fault(
                    "an entry of `packages` needs either `apt` or `yum`",
                    Some(help),
                ))
            }
        }
    }

    fn add_fields<'e>(&'e mut self, fields: &mut EntryFields<'_, 'e>) {
        if let Some(apt) = &mut self.apt {
            fields.below(fields.node.get("apt"), |fields| apt.add_fields(fields));
        }
        if let Some(yum) = &mut self.yum {
            fields.below(fields.node.get("yum"), |fields| yum.add_fields(fields));
        }
    }

    fn requests(
        &self,
        _written: &PackageEntry,
        reader: EntryReader<'_>,
    ) -> ManifestResult<Vec<(PackageSetRequest, SourceSpan)>> {
        let mut requests = Vec::new();
        if let Some(apt) = &self.apt {
            let reader = reader.below("apt");
            requests.push((apt_entry::request(apt, reader)?, reader.here()));
        }
        if let Some(yum) = &self.yum {
            let reader = reader.below("yum");
            requests.push((yum_entry::request(yum, reader)?, reader.here()));
        }
        Ok(requests)
    }

    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        let shared = self.shared();
        shared.map_or(Vec::new(), |shared| shared.movable_versions())
    }
}

impl PackageEntry {
    fn shared(&self) -> Option<SharedFields<'_>> {
        let yum = self.yum.as_ref().map(YumEntry::shared);
        yum.or_else(|| self.apt.as_ref().map(AptEntry::shared))
    }

    /// The first package whose version contains `variable`, in the form `${NAME}`. Packages with
    /// another variable or a `*` in their name or version are skipped.
    pub(crate) fn pin_with_variable(&self, variable: &str) -> Option<VariablePin> {
        self.shared()?.pin_with_variable(variable)
    }
}
