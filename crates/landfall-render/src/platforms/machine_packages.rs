//! Package sources for the machines of a platform: the files of `render apt` and `render yum`.

use super::{apt, yum};
use crate::error::RenderError;
use crate::packages_key::packages_key;
use crate::rendered_file::RenderedFile;
use crate::request::RenderRequest;
use crate::settings::PlatformSetting;
use landfall_item::LockedPackageSet;

/// Selects the package sets of the machines.
pub(super) const PACKAGE_SET: PlatformSetting = PlatformSetting {
    key: "package-set",
    value_name: "NAME,...",
    help: "The locked sets of packages from which machines install, if the lock has several for \
           one kind of machine",
    default: None,
    choices: &[],
};

/// The locked packages for machines.
pub(super) struct MachinePackages<'r> {
    sets: Vec<&'r LockedPackageSet>,
    /// The URL of the file server.
    files: Option<&'r str>,
    /// Whether the user named the sets.
    is_chosen: bool,
    /// The OpenPGP key with which the site signs metadata.
    site_key: Option<String>,
}

impl<'r> MachinePackages<'r> {
    /// Returns the sets that the user named, or all sets of the lock. Fails if the lock lacks a
    /// named set, or if the site signs the metadata of a set and the user did not name the key.
    pub(super) fn of(request: &'r RenderRequest<'_>) -> Result<MachinePackages<'r>, RenderError> {
        let all = &request.lock.packages;
        let given = request.settings.get(PACKAGE_SET.key);
        let sets: Vec<&LockedPackageSet> = match given {
            None => all.iter().collect(),
            Some(names) => {
                let find = |name: &str| {
                    all.iter()
                        .find(|set| set.name == name)
                        .ok_or_else(|| RenderError::Value {
                            key: PACKAGE_SET.key.into(),
                            value: name.into(),
                            why: match listed(all.iter()).as_str() {
                                "" => "the lock has no packages".into(),
                                names => format!("the lock has {names}"),
                            },
                        })
                };
                names
                    .split(',')
                    .map(|name| find(name.trim()))
                    .collect::<Result<_, _>>()?
            }
        };
        let site_key = packages_key(request, &sets)?;
        Ok(MachinePackages {
            sets,
            files: request.file_server(),
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
            apt::source_files(set, url, true, site_key)
        } else {
            yum::source_files(&[set], url, true, site_key)
        }
    }
}

fn listed<'s>(sets: impl Iterator<Item = &'s LockedPackageSet>) -> String {
    sets.map(|set| set.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
