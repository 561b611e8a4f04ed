//! Fields that apt and yum entries share.

use super::request::MachineBase;
use crate::entry_reader::{EntryContext, ManifestResult, without_account};
use crate::file::is_file_url;
use crate::{EntryPathStep, MovableVersion};
use landfall_model::document::{SourceSpan, YamlNode, read_input};
use landfall_model::sign::OpenPgpKeys;
use landfall_model::{PolicyError, UpdatePolicy};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;
use url::Url;

/// A pinned package whose version contains a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariablePin {
    /// The key of the entry whose position identifies the request.
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
}

/// Reads the field `base`, one value or a list; `base` reads one value.
pub(super) fn bases_of<T>(
    written: Option<&OneOrMore<T>>,
    node: &YamlNode<'_>,
    base: impl Fn(&T, &YamlNode<'_>) -> ManifestResult<MachineBase>,
) -> ManifestResult<Vec<MachineBase>> {
    match written {
        None => Ok(Vec::new()),
        Some(OneOrMore::One(one)) => Ok(vec![base(one, node)?]),
        Some(OneOrMore::More(all)) => all
            .iter()
            .enumerate()
            .map(|(index, one)| base(one, node.item(index)))
            .collect(),
    }
}

/// Parses the URL of a repository and removes trailing slashes.
pub(super) fn repository(text: &str, at: &SourceSpan) -> ManifestResult<String> {
    let refuse = |message: &str, help: &str| Err(at.fault(message.to_owned(), Some(help.into())));
    without_variables(text, at)?;
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = url.filter(|_| !text.contains(char::is_whitespace)) else {
        return refuse(
            "this is no URL of a repository",
            "write it as https://host/path",
        );
    };
    without_account(&url, at)?;
    if url.query().is_some() || url.fragment().is_some() {
        return refuse(
            "the URL of a repository has no `?` and no `#`",
            "take it out",
        );
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Refuses variables such as `$releasever`, which only the package manager of a machine knows.
pub(super) fn without_variables(text: &str, at: &SourceSpan) -> ManifestResult<()> {
    let Some((_, rest)) = text.split_once('$') else {
        return Ok(());
    };
    let name: String = rest
        .trim_start_matches('(')
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    let help = format!("write its value, or `${{{name}}}` with `vars: {{{name}: …}}` in this file");
    let message = format!("`${name}` is a variable of the machines, which landfall does not know");
    Err(at.narrowed(&format!("${name}")).fault(message, Some(help)))
}

/// Parses the URL of a list of mirrors.
pub(super) fn list_url(text: &str, at: &SourceSpan) -> ManifestResult<String> {
    without_variables(text, at)?;
    let url = Url::parse(text).ok().filter(|_| is_file_url(text));
    let url = url.ok_or_else(|| {
        at.fault(
            "this is no URL",
            Some("write it as https://host/path".into()),
        )
    })?;
    without_account(&url, at)?;
    Ok(text.to_owned())
}

pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The architecture of the manifest's `platforms`, which must be a single one.
pub(super) fn own_architecture(
    reader: &EntryContext<'_>,
    at: &SourceSpan,
) -> ManifestResult<String> {
    let mut all: Vec<String> = reader
        .platforms
        .iter()
        .map(|platform| debian_name(&platform.to_string()))
        .collect();
    all.sort();
    all.dedup();
    match &all[..] {
        [] => Ok("amd64".into()),
        [only] => Ok(only.clone()),
        _ => {
            let help = "write one entry for each kind of machine, with `architectures: [amd64]` \
                        and a `name`";
            Err(at.fault(
                format!("the platforms are of several machines: {}", all.join(", ")),
                Some(help.into()),
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

/// Checks a name that people chose, and returns it with the prefix `system` for the lock.
pub(super) fn name_of(system: &str, text: &str, at: &SourceSpan) -> ManifestResult<String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || !text.chars().all(is_good) {
        return Err(at.fault(
            format!("`{text}` is no name"),
            Some("use letters, digits, `-`, `_` and `.`".into()),
        ));
    }
    Ok(format!("{system}:{text}"))
}

/// Checks the update policy `text`. `install` is the list of packages, and `has_version` returns
/// whether one is pinned.
pub(super) fn check_policy(
    text: &str,
    install: &[String],
    has_version: impl Fn(&str) -> bool,
    at: &SourceSpan,
) -> ManifestResult<()> {
    let policy: UpdatePolicy = text
        .parse()
        .map_err(|error: PolicyError| at.fault(error.to_string(), Some(error.help().into())))?;
    let refuse = |message: &str, help: &str| Err(at.fault(message.to_owned(), Some(help.into())));
    match policy {
        UpdatePolicy::Never => Ok(()),
        UpdatePolicy::Digest => refuse(
            "packages have no tag that could move",
            "write patch, minor or a range as in \"*\"; `landfall lock --refresh` takes what is \
             new of the others",
        ),
        _ if install.iter().any(|text| has_version(text)) => Ok(()),
        _ if install.iter().any(|text| text.contains("${")) => refuse(
            "the versions of these packages stand in variables",
            "give the policy to the variable",
        ),
        _ => refuse(
            "none of these packages has a version that could move",
            "write one, as in containerd.io=1.7.24-1; `landfall lock --refresh` takes what is \
             new of the others",
        ),
    }
}

/// The versions that the policy `update` may change: those that `pinned` finds in `install`.
/// `system` is the key of the entry.
pub(super) fn moving<'e>(
    system: &'static str,
    update: Option<&'e String>,
    install: &'e [String],
    pinned: impl Fn(&'e str) -> Option<(String, Range<usize>)>,
) -> Vec<MovableVersion<'e>> {
    let Some(policy) = update else {
        return Vec::new();
    };
    let one = |(index, text): (usize, &'e String)| {
        let (name, version) = pinned(text).filter(|_| !text.contains("${"))?;
        let path = vec![
            EntryPathStep::Key(system),
            EntryPathStep::Key("install"),
            EntryPathStep::Index(index),
        ];
        Some(MovableVersion {
            policy,
            name,
            item_key: system,
            path,
            text,
            version,
        })
    };
    install.iter().enumerate().filter_map(one).collect()
}

/// The package in `text`, if its version, after `sign`, contains `variable` and no other variable.
pub(super) fn pin_with_variable(
    system: &'static str,
    sign: char,
    text: &str,
    variable: &str,
) -> Option<VariablePin> {
    let (front, after) = text.split_once(variable)?;
    // a yum package name may contain `-`, and an apt version may start with an epoch
    let (package, before) = if sign == '=' {
        front.split_once(sign)?
    } else {
        front.rsplit_once(sign)?
    };
    let is_whole = |text: &str| !text.contains("${") && !text.contains('*');
    [package, before, after]
        .into_iter()
        .all(is_whole)
        .then(|| VariablePin {
            item_key: system,
            package: package.into(),
            before: before.into(),
            after: after.into(),
        })
}

pub(super) fn keys(
    path: &str,
    at: &SourceSpan,
    reader: &EntryContext<'_>,
) -> ManifestResult<OpenPgpKeys> {
    OpenPgpKeys::parse(&beside(path, at, reader)?)
        .map_err(|error| at.fault(format!("{path}: {error}"), None))
}

/// Reads a file whose path is relative to the manifest.
pub(super) fn beside(
    path: &str,
    at: &SourceSpan,
    reader: &EntryContext<'_>,
) -> ManifestResult<Vec<u8>> {
    let path = Path::new(&reader.text.file)
        .parent()
        .unwrap_or(Path::new(""))
        .join(path);
    read_input(&path).map_err(|error| {
        let help = "the path starts from the folder of this manifest".into();
        at.fault(
            format!("cannot read {}: {error}", path.display()),
            Some(help),
        )
    })
}
