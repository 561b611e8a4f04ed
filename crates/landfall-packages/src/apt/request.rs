//! What is asked for, as `apt-get install` takes it: `name`, `name:arch`, `name=version`,
//! `name/suite`.

use super::offer::{AptPackageId, AptVersionId};
use super::universe::Universe;
use super::version::fits;
use std::ops::Range;

/// How many providers of a virtual package are listed.
const PROVIDERS: usize = 10;

/// A package that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InstallRequest<'r> {
    name: &'r str,
    arch: Option<&'r str>,
    /// A version, in which `*` stands for any text.
    version: Option<&'r str>,
    suite: Option<&'r str>,
}

/// The package and version that an [`InstallRequest`] resolves to.
pub(super) struct ResolvedRequest {
    pub(super) package: AptPackageId,
    /// The version that is asked for.
    pub(super) version: Option<AptVersionId>,
    /// Whether it is asked for by its suite.
    pub(super) is_of_suite: bool,
}

/// Whether `text` can be what is asked for.
pub fn is_request(text: &str) -> bool {
    let request = InstallRequest::of(text);
    let is_name = |text: &str| {
        text.len() > 1
            && text.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte)
            })
    };
    let is_word = |text: &str| {
        !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    is_name(request.name)
        && [request.arch, request.version, request.suite]
            .into_iter()
            .flatten()
            .all(is_word)
}

/// The name in `text`, with its architecture, and its version as bytes of it; `None` where it has
/// none, or a pattern.
pub fn pinned(text: &str) -> Option<(&str, Range<usize>)> {
    let (name, version) = text.split_once('=').filter(|_| is_request(text))?;
    (!version.contains('*')).then_some((name, name.len() + 1..text.len()))
}

impl InstallRequest<'_> {
    pub(super) fn of(text: &str) -> InstallRequest<'_> {
        let (text, version) = match text.split_once('=') {
            Some((text, version)) => (text, Some(version)),
            None => (text, None),
        };
        let (text, suite) = match text.split_once('/').filter(|_| version.is_none()) {
            Some((text, suite)) => (text, Some(suite)),
            None => (text, None),
        };
        let (name, arch) = match text.split_once(':') {
            Some((name, arch)) => (name, Some(arch)),
            None => (text, None),
        };
        InstallRequest {
            name,
            arch,
            version,
            suite,
        }
    }

    /// What it means among `universe`; `suites` says by which names each source is known.
    pub(super) fn find(
        &self,
        universe: &Universe<'_>,
        suites: &[Vec<String>],
    ) -> Result<ResolvedRequest, String> {
        let name = self.name;
        let versions = |package: AptPackageId| &universe.packages[package as usize].versions;
        // `any` is no architecture: apt takes the package that allows it
        let arch = self.arch.filter(|arch| *arch != "any");
        let package = universe
            .find(name, arch)
            .filter(|package| !versions(*package).is_empty());
        let package = match package {
            Some(package) if arch == self.arch || universe.allows_any(package) => package,
            Some(_) => {
                return Err(format!(
                    "no source has {name} with `Multi-Arch: allowed`; ask for {name}"
                ));
            }
            None => self.provider(universe)?,
        };
        let meant = |version, is_of_suite| {
            Ok(ResolvedRequest {
                package,
                version,
                is_of_suite,
            })
        };
        let text = |version: AptVersionId| universe.offer_of(version).version;
        let has: Vec<&str> = versions(package)
            .iter()
            .map(|version| text(*version))
            .collect();
        if let Some(wanted) = self.version {
            let found = versions(package)
                .iter()
                .copied()
                .find(|version| fits(text(*version), wanted));
            return match found {
                Some(version) => meant(Some(version), false),
                None => Err(format!(
                    "no source has {name} {wanted}; they have {}",
                    has.join(", ")
                )),
            };
        }
        if let Some(suite) = self.suite {
            let found = versions(package)
                .iter()
                .copied()
                .find(|version| self.is_of_suite(universe, suites, *version));
            return match found {
                Some(version) => meant(Some(version), true),
                None => Err(format!("the suite {suite} has no {name}")),
            };
        }
        meant(None, false)
    }

    /// Whether a version is of the suite that is asked for.
    pub(super) fn is_of_suite(
        &self,
        universe: &Universe<'_>,
        suites: &[Vec<String>],
        version: AptVersionId,
    ) -> bool {
        let mut names = universe
            .sources_of(version)
            .filter_map(|at| suites.get(at as usize))
            .flatten();
        self.suite
            .is_some_and(|suite| names.any(|name| name == suite))
    }

    /// The one package that provides the name, where nothing has it. apt takes no choice among
    /// several.
    fn provider(&self, universe: &Universe<'_>) -> Result<AptPackageId, String> {
        let name = self.name;
        let mut all = universe.providers_named(name);
        all.sort_unstable();
        all.dedup();
        match all[..] {
            [only] => Ok(only),
            [] => Err(format!("no source has {name}")),
            _ => {
                let mut names: Vec<&str> = all
                    .iter()
                    .map(|package| universe.text(universe.packages[*package as usize].name))
                    .collect();
                names.sort_unstable();
                names.dedup();
                let few = names
                    .iter()
                    .take(PROVIDERS)
                    .copied()
                    .collect::<Vec<_>>()
                    .join(", ");
                let more = names.len().saturating_sub(PROVIDERS);
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                Err(format!(
                    "{name} is a virtual package, which {few}{more} provide; ask for one of them"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_several_suites_have_is_of_each_and_as_good_as_in_the_best() {
        let text =
            |version: &str| format!("Package: app\nVersion: {version}\nArchitecture: amd64\n\n");
        let (backports, stable) = (text("2") + &text("3"), text("1") + &text("2"));
        let mut universe = Universe::new(&["amd64".to_owned()]);
        for (pin, text) in [(100, &backports), (500, &stable)] {
            let source = universe.source(pin);
            universe.add(source, text);
        }
        let suites = ["backports", "stable"].map(|name| vec![name.to_owned()]);
        let version = |asked: &str| {
            let meant = InstallRequest::of(asked).find(&universe, &suites).unwrap();
            let version = meant
                .version
                .or_else(|| universe.candidate(meant.package))
                .unwrap();
            universe.offer_of(version).version
        };
        assert_eq!(
            ["app", "app/stable", "app/backports"].map(version),
            ["2", "2", "3"]
        );
    }
}
