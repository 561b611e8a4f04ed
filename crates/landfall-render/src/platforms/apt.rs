//! `apt`: package sources and keys with which machines install exactly the locked packages.

use crate::platform::{OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig};
use crate::rendered_file::RenderedFile;
use crate::signature_policy::{PACKAGES_KEY, packages_key};
use landfall_item::{LockedPackageSet, OfferedIndex, PackageSource};
use landfall_model::{Failure, without_brackets, without_scheme};
use landfall_packages::apt;
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

const URL: PlatformSetting = PlatformSetting::new(
    "url",
    "URL",
    "The server that has each file at /<host>/<path>, such as http://mirror:5000 of \
           `landfall serve` [default: `files` of the site]",
);

const OTHERS: PlatformSetting = PlatformSetting::new(
    "others",
    "WORD",
    "Whether other sources of the machine are disabled (off) or kept (stay)",
)
.one_of(&["off", "stay"]);

/// The folder of the rendered sources if all other sources are disabled.
const ONLY: &str = "etc/apt/landfall.sources.d";

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "apt",
    about: "apt: sources for the locked packages, with the keys of their repositories",
    details: "Paths in the output folder are the paths on a machine. If the lock has \
              several sets of packages, each has its own folder.",
    inputs: &[PACKAGES_KEY],
    settings: &[URL, OTHERS],
    writes: OutputForm::Files {
        not_into: Some("sources are separate files and not YAML; write them with -o DIR"),
    },
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let sets: Vec<&LockedPackageSet> = request
        .lock
        .packages
        .iter()
        .filter(|set| set.is_apt())
        .collect();
    if sets.is_empty() {
        let notes = vec!["the lock has no apt packages, so there is nothing to write".into()];
        return Ok(RenderedConfig::of_files(Vec::new(), notes));
    }
    let url = request.files_url("packages")?;
    let only = request.settings.get(OTHERS.key) != Some("stay");
    let site_key = packages_key(request, &sets)?;
    let folders = folder_names(sets.iter().map(|set| set.name.as_str()))?;
    let mut files = Vec::new();
    for (set, folder) in sets.iter().zip(&folders) {
        let is_direct = request.has_bypass_for(url);
        let own = source_files(set, url, only, site_key.as_deref(), is_direct);
        files.extend(own.into_iter().map(|file| {
            if sets.len() > 1 {
                file.in_folder(folder)
            } else {
                file
            }
        }));
    }
    Ok(RenderedConfig::of_files(files, Vec::new()))
}

/// Returns the files with which machines install `set` from `url`, and only from there if `only` is
/// set. If the index of `set` is trimmed, it is verified with `site_key`. If `is_direct`, apt uses
/// no proxy for `url`.
pub(super) fn source_files(
    set: &LockedPackageSet,
    url: &str,
    only: bool,
    site_key: Option<&str>,
    is_direct: bool,
) -> Vec<RenderedFile> {
    let site_key = site_key.filter(|_| set.index == OfferedIndex::Trimmed);
    let keys: BTreeMap<&str, &str> = match site_key {
        Some(key) => BTreeMap::from([(SITE, key)]),
        None => set
            .sources
            .iter()
            .map(|source| (source.signed_by.as_str(), source.key.as_str()))
            .collect(),
    };
    let mut files: Vec<RenderedFile> = keys
        .into_iter()
        .map(|(name, key)| RenderedFile::without_comments(key_path(name), key))
        .collect();
    let sources: Vec<String> = set
        .sources
        .iter()
        .map(|source| stanza(set, source, url))
        .collect();
    let folder = if only { ONLY } else { "etc/apt/sources.list.d" };
    files.push(RenderedFile::new(
        format!("{folder}/landfall.sources"),
        sources.join("\n"),
    ));
    let mut settings = String::new();
    if only {
        settings +=
            &format!("Dir::Etc::sourcelist \"/dev/null\";\nDir::Etc::sourceparts \"/{ONLY}\";\n");
    }
    if !set.recommends {
        settings += "APT::Install-Recommends \"false\";\n";
    }
    if is_direct {
        settings.extend(without_proxy(url));
    }
    if !settings.is_empty() {
        files.push(RenderedFile::new("etc/apt/apt.conf.d/99landfall", settings));
    }
    // a trimmed index lists only the mirrored packages, so nothing has to be pinned
    if set.index == OfferedIndex::Signed {
        files.push(RenderedFile::new(
            "etc/apt/preferences.d/landfall.pref",
            preferences(set, url, only),
        ));
    }
    files
}

/// Returns the setting with which apt connects to the host of `url` directly: other files of the
/// machine may set a proxy for all hosts.
fn without_proxy(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = without_brackets(url.host_str()?);
    let scheme = url.scheme();
    Some(format!("Acquire::{scheme}::Proxy::{host} \"DIRECT\";\n"))
}

/// Returns preferences (`apt_preferences(5)`) for the mirrored versions: the signed index also
/// lists versions that are not mirrored, and apt would choose the newest version. With `only`, apt
/// installs no other version from the server. Without `only`, other sources of the machine may use
/// the same host, so only the mirrored versions are pinned.
fn preferences(set: &LockedPackageSet, url: &str, only: bool) -> String {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in set.sources.iter().flat_map(|source| &source.packages) {
        names
            .entry(&package.version)
            .or_default()
            .insert(&package.name);
    }
    // from priority 1000 on, apt would downgrade a newer version that is installed
    let carried = names.into_iter().map(|(version, names)| {
        let names: Vec<&str> = names.into_iter().collect();
        format!(
            "Package: {}\nPin: version {version}\nPin-Priority: 999\n",
            names.join(" ")
        )
    });
    let host = Url::parse(url)
        .ok()
        .and_then(|url| Some(without_brackets(url.host_str()?).to_owned()));
    let others = format!(
        "Package: *\nPin: origin \"{}\"\nPin-Priority: -1\n",
        host.unwrap_or_default()
    );
    carried
        .chain(only.then_some(others))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The name of the site's key in `key_path`. The names of other keys are fingerprints.
const SITE: &str = "site";

fn key_path(name: &str) -> String {
    format!("etc/apt/keyrings/landfall-{name}.asc")
}

/// Returns a source in deb822 format (sources.list(5)), limited to the mirrored indexes: if an
/// index that apt requests is missing, `apt-get update` discards everything that it fetched.
fn stanza(set: &LockedPackageSet, source: &PackageSource, url: &str) -> String {
    let PackageSource {
        suite,
        components,
        signed_by,
        valid_until,
        ..
    } = source;
    let path = without_scheme(&source.url);
    let (languages, targets) = wanted_indexes(source);
    let mut text = format!("Types: deb\nURIs: {url}/{path}\nSuites: {suite}\n");
    if !components.is_empty() {
        text += &format!("Components: {}\n", components.join(" "));
    }
    text += &format!("Architectures: {}\n", set.architectures.join(" "));
    text += &format!("Targets: {targets}\nLanguages: {languages}\nPDiffs: no\n");
    // An upstream Release file may expire (for a security suite, after a week), and a mirror serves
    // it unchanged. The Release file of a trimmed index, which the site signs, does not expire.
    let is_trimmed = set.index == OfferedIndex::Trimmed;
    if valid_until.is_some() && !is_trimmed {
        text += "Check-Valid-Until: no\n";
    }
    text + &format!(
        "Signed-By: /{}\n",
        key_path(if is_trimmed { SITE } else { signed_by })
    )
}

/// Returns the languages in which package descriptions of `source` are mirrored, and the targets
/// (apt's kinds of index) that are mirrored. Both are lists separated by blanks; if there are no
/// languages, the list is `none`.
fn wanted_indexes(source: &PackageSource) -> (String, String) {
    let (texts, others): (Vec<&str>, Vec<&str>) = source
        .targets
        .iter()
        .map(String::as_str)
        .partition(|target| apt::target_language(target).is_some());
    // indexes are compared without their endings: `Translation-en.xz` is `Translation-en`
    let texts = ["Translation-en"].into_iter().chain(texts).filter(|text| {
        source
            .indexes
            .iter()
            .any(|index| target_name(&index.path).as_deref() == Some(*text))
    });
    let languages: Vec<&str> = texts.filter_map(apt::target_language).collect();
    let texts = (!languages.is_empty()).then_some("Translations");
    let targets: Vec<&str> = ["Packages"]
        .into_iter()
        .chain(texts)
        .chain(others)
        .collect();
    let languages = if languages.is_empty() {
        "none".to_owned()
    } else {
        languages.join(" ")
    };
    (languages, targets.join(" "))
}

/// Returns the name of the target of the index at `path`: the name of its file without endings.
fn target_name(path: &str) -> Option<String> {
    path.rsplit('/')
        .next()
        .and_then(|name| name.split('.').next())
        .map(str::to_owned)
}

/// Returns the folder of each set. Fails if two sets have the same folder.
fn folder_names<'s>(names: impl Iterator<Item = &'s str>) -> Result<Vec<String>, Failure> {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    let mut folders = Vec::new();
    for name in names {
        let folder = word(name);
        if let Some(other) = owners.insert(folder.clone(), name) {
            return Err(Failure::refused(format!(
                "the package sets {other} and {name} have the same folder, {folder}; rename one \
                 of them in the manifest"
            )));
        }
        folders.push(folder);
    }
    Ok(folders)
}

/// Returns the name of a set as a folder name.
fn word(name: &str) -> String {
    let name = name.strip_prefix("apt:").unwrap_or(name);
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let word = without_scheme(name).replace(|c: char| !is_allowed(c), "-");
    // an empty name, `.` and `..` do not name a separate folder
    if word.trim_matches('.').is_empty() {
        format!("apt{word}")
    } else {
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_names_become_folder_names() {
        for (name, folder) in [
            ("apt:nodes", "nodes"),
            ("apt:https://h.test/debian/dists/s", "h.test-debian-dists-s"),
            ("apt:", "apt"),
            ("apt:.", "apt."),
            ("apt:..", "apt.."),
            ("apt:../x", "..-x"),
        ] {
            assert_eq!(word(name), folder, "{name}");
        }
    }

    #[test]
    fn two_sets_with_the_same_folder_are_refused() {
        let folders = |names: [&'static str; 2]| folder_names(names.into_iter());
        assert_eq!(folders(["apt:a/b", "apt:c"]).unwrap(), ["a-b", "c"]);
        let refused = folders(["apt:a/b", "apt:a-b"]).unwrap_err().to_string();
        let both = "the package sets apt:a/b and apt:a-b have the same folder, a-b";
        assert!(refused.contains(both), "{refused}");
    }
}
