//! `comps.xml`: the groups and environments of a repository, which `dnf install @NAME` installs.

use super::xml::{XmlElement, XmlEvent, walk};
use landfall_model::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

const WHAT: &str = "comps.xml";

/// The number of groups that a message names.
const NAMED: usize = 5;

/// The groups and environments of all sources. Those of the same id are merged.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: BTreeMap<String, Group>,
    environments: BTreeMap<String, Group>,
}

/// A group of packages, or an environment, which is a group of groups.
#[derive(Debug, Default, Clone)]
struct Group {
    /// The name in English.
    name: String,
    packages: BTreeMap<String, GroupPackage>,
    /// The ids of the groups that an environment always installs.
    groups: BTreeSet<String>,
}

/// A package of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupPackage {
    /// The name of the package.
    pub(super) name: String,
    /// Whether only the package for the machine's own architecture counts.
    pub(super) is_native: bool,
    /// The package that has to be installed too, for a conditional package.
    pub(super) requires: Option<String>,
    /// Whether dnf installs the package with the group. Optional packages are not installed.
    is_installed: bool,
}

/// The element that is being read.
#[derive(Default)]
struct Reading {
    id: String,
    group: Group,
    package: Option<GroupPackage>,
    /// Whether the element is an environment.
    is_environment: bool,
    /// Whether the list of optional groups of an environment is being read.
    is_optional: bool,
    /// Whether the name that is being read is in another language.
    is_translated: bool,
}

impl Groups {
    /// Adds the groups of a `comps.xml`. As dnf 4 does, it ignores `arch` attributes: packages that
    /// a source has not for the machine are skipped anyway.
    pub(super) fn read(&mut self, reader: impl BufRead) -> Result<(), Failure> {
        let mut reading: Option<Reading> = None;
        walk(reader, WHAT, &mut |step| {
            match step {
                XmlEvent::Start(element) => {
                    let name = element.name();
                    if let "group" | "environment" = name {
                        reading = Some(Reading {
                            is_environment: name == "environment",
                            ..Reading::default()
                        });
                    }
                    let Some(reading) = &mut reading else {
                        return Ok(());
                    };
                    match name {
                        "name" => reading.is_translated = element.attribute("xml:lang")?.is_some(),
                        "optionlist" => reading.is_optional = true,
                        "packagereq" => reading.package = Some(package(element)?),
                        _ => {}
                    }
                }
                XmlEvent::End(name @ ("group" | "environment"), _) => {
                    if let Some(reading) = reading.take() {
                        let all = match name {
                            "group" => &mut self.groups,
                            _ => &mut self.environments,
                        };
                        add(all, reading);
                    }
                }
                XmlEvent::End(name, text) => {
                    if let Some(reading) = &mut reading {
                        reading.end(name, text);
                    }
                }
            }
            Ok(())
        })
    }

    /// The packages that dnf installs for `@wanted`: those of each group and environment with this
    /// id or name. Fails if there is none, with the names of similar groups.
    pub(super) fn packages(&self, wanted: &str) -> Result<Vec<GroupPackage>, String> {
        let found = [&self.groups, &self.environments].map(|all| {
            let exact = matching(all, |text| text == wanted);
            match exact[..] {
                // as in dnf: upper and lower case count only if both exist
                [] => matching(all, |text| text.eq_ignore_ascii_case(wanted)),
                _ => exact,
            }
        });
        let [groups, environments] = found;
        if groups.is_empty() && environments.is_empty() {
            return Err(self.explain_no_match(wanted));
        }
        let members = environments.iter().flat_map(|one| &one.groups);
        // dnf reports a group that does not exist, and installs the others
        let members = members.filter_map(|id| self.groups.get(id));
        let packages = groups.into_iter().chain(members);
        Ok(packages
            .flat_map(|group| group.packages.values())
            .filter(|package| package.is_installed)
            .cloned()
            .collect())
    }

    /// Explains why no group matches `wanted`, with the most similar ones.
    fn explain_no_match(&self, wanted: &str) -> String {
        let all = self.groups.iter().chain(&self.environments);
        let wanted = wanted.to_lowercase();
        let mut near: Vec<(f64, &str)> = all
            .map(|(id, group)| {
                let likeness = |text: &str| strsim::jaro_winkler(&wanted, &text.to_lowercase());
                (likeness(id).max(likeness(&group.name)), id.as_str())
            })
            .collect();
        if near.is_empty() {
            return format!("'@{wanted}' is not a module, and the sources have no groups");
        }
        near.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
        let near: Vec<&str> = near.iter().take(NAMED).map(|(_, id)| *id).collect();
        format!(
            "no source has a group or a module '{wanted}'; similar groups are {}",
            near.join(", ")
        )
    }
}

/// The groups of `all` whose id or name `matches`.
fn matching(all: &BTreeMap<String, Group>, matches: impl Fn(&str) -> bool) -> Vec<&Group> {
    all.iter()
        .filter(|(id, group)| matches(id) || matches(&group.name))
        .map(|(_, group)| group)
        .collect()
}

/// Adds a group to `all`, or its packages to the group of the same id.
fn add(all: &mut BTreeMap<String, Group>, reading: Reading) {
    let known = all.entry(reading.id).or_default();
    if known.name.is_empty() {
        known.name = reading.group.name;
    }
    known.packages.extend(reading.group.packages);
    known.groups.extend(reading.group.groups);
}

/// The package of a `packagereq`, still without its name.
fn package(element: &XmlElement<'_>) -> Result<GroupPackage, Failure> {
    let kind = element.attribute("type")?;
    let requires = element.attribute("requires")?;
    let is_conditional = kind.as_deref() == Some("conditional");
    Ok(GroupPackage {
        name: String::new(),
        is_native: element.attribute("basearchonly")?.as_deref() == Some("true"),
        requires: requires.filter(|_| is_conditional),
        // as in libcomps, a package without a type is mandatory
        is_installed: kind.is_none_or(|kind| kind != "optional"),
    })
}

impl Reading {
    /// Records the text of a child element.
    fn end(&mut self, name: &str, text: &str) {
        match name {
            "id" => text.clone_into(&mut self.id),
            "name" if !self.is_translated => text.clone_into(&mut self.group.name),
            "groupid" if !self.is_optional && self.is_environment => {
                self.group.groups.insert(text.to_owned());
            }
            "optionlist" => self.is_optional = false,
            "packagereq" => {
                if let Some(mut package) = self.package.take() {
                    text.clone_into(&mut package.name);
                    self.group.packages.insert(text.to_owned(), package);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPS: &str = r#"<?xml version="1.0"?><comps>
  <group><id>core</id><name>Core</name><name xml:lang="de">Kern</name>
    <packagelist>
      <packagereq type="mandatory">bash</packagereq>
      <packagereq type="default">less</packagereq>
      <packagereq type="optional">zsh</packagereq>
      <packagereq type="conditional" requires="lang">lang-de</packagereq>
      <packagereq type="mandatory" basearchonly="true">glibc</packagereq>
      <packagereq arch="x86_64,i386">dmidecode</packagereq>
    </packagelist></group>
  <group><id>tools</id><name>Development Tools</name><packagelist><packagereq>gcc</packagereq></packagelist></group>
  <category><id>base</id><name>Base</name><grouplist><groupid>core</groupid></grouplist></category>
  <environment><id>server</id><name>Server</name><grouplist><groupid>core</groupid><groupid>gone</groupid></grouplist>
    <optionlist><groupid default="true">tools</groupid></optionlist></environment>
</comps>"#;

    fn groups() -> Groups {
        let mut groups = Groups::default();
        groups.read(COMPS.as_bytes()).unwrap();
        groups
    }

    fn names(wanted: &str) -> Vec<String> {
        let found = groups().packages(wanted).unwrap();
        found.into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn a_group_has_the_packages_that_dnf_installs() {
        let core = ["bash", "dmidecode", "glibc", "lang-de", "less"];
        for wanted in ["core", "Core", "CORE", "server"] {
            assert_eq!(names(wanted), core, "{wanted}");
        }
        assert_eq!(names("development tools"), ["gcc"]);
        let core = groups().packages("core").unwrap();
        let of = |name: &str| core.iter().find(|one| one.name == name).unwrap().clone();
        assert_eq!(of("lang-de").requires.as_deref(), Some("lang"));
        assert!(of("glibc").is_native && !of("bash").is_native);
    }

    #[test]
    fn a_name_that_is_no_group_is_explained() {
        let why = groups().packages("coer").unwrap_err();
        assert!(
            why.contains("'coer'") && why.contains("groups are core, "),
            "{why}"
        );
        assert!(groups().packages("base").is_err(), "a category");
        let none = Groups::default().packages("core").unwrap_err();
        assert!(none.contains("no groups"), "{none}");
    }

    #[test]
    fn groups_of_several_sources_are_merged() {
        let mut groups = groups();
        let more = "<comps><group><id>core</id><name>Other</name><packagelist>\
                    <packagereq type='optional'>less</packagereq><packagereq>vim</packagereq>\
                    </packagelist></group></comps>";
        groups.read(more.as_bytes()).unwrap();
        let found = groups.packages("Core").unwrap();
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["bash", "dmidecode", "glibc", "lang-de", "vim"]);
        assert!(groups.read("<comps><group>".as_bytes()).is_err());
    }
}
