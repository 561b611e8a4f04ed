//! `yum`: repositories at the site's file server, from which dnf installs the locked packages.

use super::apt;
use crate::platform::{
    OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig, wrong_value,
};
use crate::rendered_file::RenderedFile;
use crate::signature_policy::{PACKAGES_KEY, packages_key};
use landfall_item::{LockedPackageSet, OfferedIndex, PackageSource};
use landfall_model::{Digest, Failure, without_scheme};
use std::collections::{BTreeMap, BTreeSet};

const OTHERS: PlatformSetting = PlatformSetting::new(
    "others",
    "WHAT",
    "Whether other repositories of the machines are kept (keep), or disabled by a rendered \
           dnf.conf (off)",
)
.one_of(&["keep", "off"]);

/// The folder of keys on a machine.
const KEYS: &str = "etc/pki/rpm-gpg";

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "yum",
    about: "yum and dnf: repositories for the locked packages, with their keys",
    details: "The packages come from the site's file server (`files`), which can be `landfall \
              serve`. Signatures are verified with the keys in the lock.",
    inputs: &[PACKAGES_KEY],
    settings: &[OTHERS],
    writes: OutputForm::Files {
        not_into: Some("a repository is a separate file and not YAML; write it with -o DIR"),
    },
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let sets: Vec<&LockedPackageSet> = request
        .lock
        .packages
        .iter()
        .filter(|set| set.is_yum())
        .collect();
    if sets.is_empty() {
        let notes = vec!["the lock has no yum packages, so there is no repository to write".into()];
        return Ok(RenderedConfig::of_files(Vec::new(), notes));
    }
    let files = request.file_server().ok_or_else(|| {
        Failure::usage(
            "the site has no `files`, the server from which machines install packages; add it",
        )
    })?;
    let is_alone = request.settings.get(OTHERS.key) == Some("off");
    let has_weak = has_weak(&sets);
    let site_key = packages_key(request, &sets)?;
    let mut notes = Vec::new();
    if !has_weak && !is_alone {
        notes.push(
            "weak dependencies are not mirrored: set install_weak_deps=False in \
             /etc/dnf/dnf.conf"
                .into(),
        );
    }
    let is_direct = request.has_bypass_for(files);
    Ok(RenderedConfig::of_files(
        source_files(&sets, files, is_alone, site_key.as_deref(), is_direct),
        notes,
    ))
}

/// Whether the recommended packages of all `sets` are mirrored too.
fn has_weak(sets: &[&LockedPackageSet]) -> bool {
    sets.iter().all(|set| set.recommends)
}

/// Returns the files with which machines install `sets` from `url`, and only from there if
/// `is_alone`. Trimmed metadata is verified with `site_key`. If `is_direct`, dnf does not use the
/// proxy of its configuration for `url`.
pub(super) fn source_files(
    sets: &[&LockedPackageSet],
    url: &str,
    is_alone: bool,
    site_key: Option<&str>,
    is_direct: bool,
) -> Vec<RenderedFile> {
    let folder = if is_alone {
        "etc/landfall/yum.repos.d"
    } else {
        "etc/yum.repos.d"
    };
    let mut rendered: BTreeMap<String, String> = BTreeMap::new();
    let carried = carried(sets);
    for (set, source) in sets
        .iter()
        .flat_map(|set| set.sources.iter().map(move |source| (set, source)))
    {
        let id = id(source);
        let mut keys = vec![format!("{KEYS}/{id}.asc")];
        rendered.insert(keys[0].clone(), source.key.clone());
        let is_signed = source
            .indexes
            .iter()
            .any(|index| index.path == "repodata/repomd.xml.asc");
        let site_key = site_key.filter(|_| set.index == OfferedIndex::Trimmed);
        if let Some(key) = site_key {
            keys.push(format!("{KEYS}/landfall-site.asc"));
            rendered.insert(keys[1].clone(), key.to_owned());
        }
        let mut text = repository(&id, source, url, &keys, is_signed || site_key.is_some());
        if is_direct {
            text += "proxy=_none_\n";
        }
        text += &match carried.get(source.url.as_str()) {
            None => String::new(),
            // an empty `includepkgs` would not exclude anything; yum of RHEL 7 knows only this name
            // of `excludepkgs`
            Some(packages) if packages.is_empty() => "exclude=*\n".to_owned(),
            Some(packages) => {
                let lines: String = packages
                    .iter()
                    .map(|package| format!(" {package}\n"))
                    .collect();
                format!("includepkgs=\n{lines}")
            }
        };
        rendered.insert(format!("{folder}/{id}.repo"), text);
    }
    if is_alone {
        rendered.insert(
            "etc/dnf/dnf.conf".into(),
            configuration(folder, has_weak(sets)),
        );
    }
    // a header before a key would make the file invalid
    rendered
        .into_iter()
        .map(|(path, text): (String, String)| RenderedFile {
            comments: !path.ends_with(".asc"),
            ..RenderedFile::new(path, text)
        })
        .collect()
}

/// Returns the mirrored packages of each repository in `sets` with signed metadata. Signed metadata
/// also lists packages that are not mirrored, and dnf would choose the newest package. Trimmed
/// metadata lists only the mirrored packages.
fn carried<'s>(sets: &[&'s LockedPackageSet]) -> BTreeMap<&'s str, BTreeSet<String>> {
    let mut carried: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for set in sets.iter().filter(|set| set.index == OfferedIndex::Signed) {
        for source in &set.sources {
            let packages = source.packages.iter();
            let names = packages
                .map(|package| format!("{}-{}.{}", package.name, package.version, package.arch));
            carried.entry(&source.url).or_default().extend(names);
        }
    }
    carried
}

/// Returns the identifier of a repository, `landfall-HOST-…`. The identifier depends only on the
/// URL, so that a new lock does not rename the repository.
fn id(source: &PackageSource) -> String {
    let host = without_scheme(&source.url);
    let host = host.split('/').next().unwrap_or_default();
    let host = host.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
    format!(
        "landfall-{host}-{}",
        Digest::sha256(source.url.as_bytes()).short(8)
    )
}

fn repository(
    id: &str,
    source: &PackageSource,
    files: &str,
    keys: &[String],
    is_signed: bool,
) -> String {
    let below = without_scheme(&source.url);
    let keys: Vec<String> = keys.iter().map(|key| format!("file:///{key}")).collect();
    // the sqlite forms of the metadata, which yum of RHEL 7 otherwise downloads, are not carried
    format!(
        "[{id}]\nname={url}, carried by landfall\nbaseurl={files}/{below}\nenabled=1\ngpgcheck=1\n\
         repo_gpgcheck={signed}\ngpgkey={keys}\nskip_if_unavailable=0\n\
         mddownloadpolicy=xml\n",
        url = source.url,
        keys = keys.join(" "),
        signed = u8::from(is_signed),
    ) + if source.module_hotfixes {
        "module_hotfixes=1\n"
    } else {
        ""
    }
}

/// Returns a dnf.conf that uses only the repositories in `folder`.
fn configuration(folder: &str, has_weak: bool) -> String {
    let weak = if has_weak { "True" } else { "False" };
    format!(
        "[main]\nreposdir=/{folder}\ngpgcheck=1\ninstall_weak_deps={weak}\n\
         installonly_limit=3\nclean_requirements_on_remove=True\nskip_if_unavailable=False\n"
    )
}

// Package sources for the machines of a platform: the files of `render apt` and `render yum`.

/// Selects the package sets of the machines.
pub(super) const PACKAGE_SET: PlatformSetting = PlatformSetting::new(
    "package-set",
    "NAME,...",
    "The locked sets of packages from which machines install, if the lock has several for \
           one kind of machine",
);

/// The locked packages for machines.
pub(super) struct MachinePackages<'r> {
    sets: Vec<&'r LockedPackageSet>,
    /// The URL of the file server.
    files: Option<&'r str>,
    /// Whether machines use no proxy for the file server, although the site has one.
    is_direct: bool,
    /// Whether the user named the sets.
    is_chosen: bool,
    /// The OpenPGP key with which the site signs metadata.
    site_key: Option<String>,
}

impl<'r> MachinePackages<'r> {
    /// Returns the sets that the user named, or all sets of the lock. Fails if the lock lacks a
    /// named set, or if the site signs the metadata of a set and the user did not name the key.
    pub(super) fn of(request: &'r RenderRequest<'_>) -> Result<MachinePackages<'r>, Failure> {
        let all = &request.lock.packages;
        let given = request.settings.get(PACKAGE_SET.key);
        let sets: Vec<&LockedPackageSet> = match given {
            None => all.iter().collect(),
            Some(names) => {
                let find = |name: &str| {
                    all.iter().find(|set| set.name == name).ok_or_else(|| {
                        let why = match listed(all.iter()).as_str() {
                            "" => "the lock has no packages".into(),
                            names => format!("the lock has {names}"),
                        };
                        wrong_value(PACKAGE_SET.key, name, why)
                    })
                };
                names
                    .split(',')
                    .map(|name| find(name.trim()))
                    .collect::<Result<_, _>>()?
            }
        };
        let site_key = packages_key(request, &sets)?;
        let files = request.file_server();
        Ok(MachinePackages {
            sets,
            files,
            is_direct: files.is_some_and(|url| request.has_bypass_for(url)),
            is_chosen: given.is_some(),
            site_key,
        })
    }

    /// Returns the files with which machines install from the suitable set, with all other sources
    /// disabled. Returns no files if no set is suitable. Returns no files and adds a note that
    /// begins with `machines` if several sets are suitable, or if the site has no file server.
    pub(super) fn source_files(
        &self,
        machines: &str,
        suitable: impl Fn(&LockedPackageSet) -> bool,
        notes: &mut Vec<String>,
    ) -> Vec<RenderedFile> {
        let sets: Vec<&LockedPackageSet> = self
            .sets
            .iter()
            .copied()
            .filter(|set| suitable(set))
            .collect();
        let [set] = sets[..] else {
            if !sets.is_empty() {
                let names = listed(sets.iter().copied());
                let which = if self.is_chosen {
                    "several sets of packages are named"
                } else {
                    "the lock has several sets of packages"
                };
                notes.push(format!(
                    "{machines}: {which}, and machines use only one; select it with --set {}=NAME \
                     ({names})",
                    PACKAGE_SET.key
                ));
            }
            return Vec::new();
        };
        let Some(url) = self.files else {
            notes.push(format!(
                "{machines}: machines have no URL for the packages of {}; add `files: \
                 http://HOST:PORT` to the site",
                set.name
            ));
            return Vec::new();
        };
        let site_key = self.site_key.as_deref();
        if set.is_apt() {
            apt::source_files(set, url, true, site_key, self.is_direct)
        } else {
            source_files(&[set], url, true, site_key, self.is_direct)
        }
    }

    /// Returns a list of the only suitable set, separated by blanks; nothing if there are several
    /// sets.
    pub(super) fn words(
        &self,
        suitable: impl Fn(&LockedPackageSet) -> bool,
        list: impl Fn(&'r LockedPackageSet) -> &'r Vec<String>,
    ) -> String {
        let sets = self.sets.iter().copied().filter(|set| suitable(set));
        match sets.collect::<Vec<_>>()[..] {
            [set] => list(set).join(" "),
            _ => String::new(),
        }
    }
}

fn listed<'s>(sets: impl Iterator<Item = &'s LockedPackageSet>) -> String {
    sets.map(|set| set.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
