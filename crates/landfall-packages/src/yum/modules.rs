//! `modules.yaml`: packages that belong to a stream of a module, as in RHEL 8 and 9.
//!
//! dnf hides the packages of every stream that is not enabled. By default, the default stream of
//! each module is enabled. A package outside of modules is then hidden if a package of an enabled
//! stream has the same name. landfall does the same. It cannot enable other streams. If only a
//! hidden stream contains a package, the error names the stream.

use super::metadata::malformed;
use super::pool::{PackageId, Pool, RpmRelationKind};
use super::relation::{RpmRelation, VersionSense};
use super::solve::is_named;
use landfall_model::Failure;
use landfall_model::document::yaml;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

const WHAT: &str = "modules.yaml";

/// The module streams that the sources define.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Modules {
    /// The packages of each stream as `name-epoch:version-release.arch`, by `module:stream`.
    streams: BTreeMap<String, BTreeSet<String>>,
    /// The default stream of each module that has one, as `module:stream`.
    defaults: BTreeSet<String>,
}

#[derive(Deserialize)]
struct ModuleDocument {
    document: String,
    #[serde(default)]
    data: ModuleData,
}

/// The data of a document; empty if it is not a mapping. dnf skips such a document, too.
#[derive(Default)]
struct ModuleData(ModuleFields);

#[derive(Deserialize, Default)]
struct ModuleFields {
    name: Option<String>,
    module: Option<String>,
    stream: Option<String>,
    #[serde(default)]
    artifacts: Option<ModuleArtifacts>,
}

#[derive(Deserialize, Default)]
struct ModuleArtifacts {
    #[serde(default)]
    rpms: Option<Vec<String>>,
}

impl<'de> Deserialize<'de> for ModuleData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ModuleData, D::Error> {
        struct ModuleDataVisitor;
        impl<'de> Visitor<'de> for ModuleDataVisitor {
            type Value = ModuleData;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the data of a module")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModuleData, A::Error> {
                ModuleFields::deserialize(MapAccessDeserializer::new(map)).map(ModuleData)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ModuleData, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(ModuleData::default())
            }
            fn visit_str<E: de::Error>(self, _: &str) -> Result<ModuleData, E> {
                Ok(ModuleData::default())
            }
            fn visit_unit<E: de::Error>(self) -> Result<ModuleData, E> {
                Ok(ModuleData::default())
            }
        }
        deserializer.deserialize_any(ModuleDataVisitor)
    }
}

/// Splits a `modules.yaml` before each line that begins a document, so that one odd document does
/// not hide the others.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\n---") {
        let (part, next) = rest.split_at(at + 1);
        parts.push(part);
        rest = next;
    }
    parts.push(rest);
    parts
}

impl Modules {
    /// Adds the module streams and defaults of a `modules.yaml`.
    pub(super) fn read(&mut self, text: &str) -> Result<(), Failure> {
        for part in parts(text) {
            self.read_part(part)?;
        }
        Ok(())
    }

    /// Adds the module streams and defaults of a part of a `modules.yaml`. A document of another
    /// form is skipped, as by dnf.
    fn read_part(&mut self, text: &str) -> Result<(), Failure> {
        // read as text, not as values: as a number, the unquoted stream `1.20` would become `1.2`
        for document in yaml::documents::<Option<ModuleDocument>>(text) {
            let document = match document {
                Ok(document) => document,
                Err(error) if yaml::documents::<IgnoredAny>(text).any(|one| one.is_err()) => {
                    return Err(malformed(WHAT, error));
                }
                Err(_) => return Ok(()),
            };
            // `None` is an empty document before the first or after the last `---`
            let Some(ModuleDocument { document, data }) = document else {
                continue;
            };
            let ModuleData(data) = data;
            match (document.as_str(), data.name, data.module, data.stream) {
                ("modulemd" | "modulemd-stream-v2", Some(name), _, Some(stream)) => {
                    self.streams
                        .entry(format!("{name}:{stream}"))
                        .or_default()
                        .extend(
                            data.artifacts
                                .and_then(|one| one.rpms)
                                .into_iter()
                                .flatten(),
                        );
                }
                ("modulemd-defaults", _, Some(module), Some(stream)) => {
                    self.defaults.insert(format!("{module}:{stream}"));
                }
                // other kinds, such as translations and obsoletes, do not affect the selection
                _ => {}
            }
        }
        Ok(())
    }

    /// Hides the packages of `pool` that dnf hides. Returns the hidden packages that belong to a
    /// stream.
    pub(super) fn hide(&self, pool: &mut Pool) -> Vec<HiddenPackage> {
        let mut streams_of: HashMap<&str, Vec<&str>> = HashMap::new();
        for (stream, packages) in &self.streams {
            packages
                .iter()
                .for_each(|package| streams_of.entry(package).or_default().push(stream));
        }
        let mut hidden: Vec<PackageId> = Vec::new();
        let mut of_streams: Vec<HiddenPackage> = Vec::new();
        let mut enabled_names: BTreeSet<String> = BTreeSet::new();
        let mut plain: Vec<PackageId> = Vec::new();
        // installed packages are never hidden
        for id in pool.ids().filter(|id| pool.package(*id).source.is_some()) {
            match streams_of.get(full_name(pool, id).as_str()) {
                None => plain.push(id),
                Some(streams) if streams.iter().any(|stream| self.defaults.contains(*stream)) => {
                    enabled_names.insert(pool.name(id).to_owned());
                }
                Some(streams) => {
                    hidden.push(id);
                    of_streams.push(HiddenPackage::new(pool, id, streams.join(" or ")));
                }
            }
        }
        // a package outside of modules could otherwise replace the package of the enabled stream
        hidden.extend(
            plain
                .into_iter()
                .filter(|id| enabled_names.contains(pool.name(*id))),
        );
        pool.hide(&hidden);
        of_streams
    }
}

/// A package of a stream that is not enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HiddenPackage {
    /// The package as `name-evr.arch`.
    pub nevra: String,
    /// The streams that contain it, as `module:stream`.
    pub streams: String,
    /// The name, operator and version of each capability and file that it provides.
    provides: Vec<(String, VersionSense, String)>,
    /// The name, version and architecture, to match requests.
    identity: [String; 3],
}

impl HiddenPackage {
    fn new(pool: &Pool, id: PackageId, streams: String) -> HiddenPackage {
        let provides = [RpmRelationKind::Provides, RpmRelationKind::Files]
            .into_iter()
            .flat_map(|kind| pool.relations(id, kind));
        let provides = provides.map(|one| (one.name.to_owned(), one.sense, one.evr.to_owned()));
        HiddenPackage {
            nevra: pool.nevra(id),
            streams,
            provides: provides.collect(),
            identity: [pool.name(id), pool.evr(id), pool.arch(id)].map(str::to_owned),
        }
    }

    /// Whether `wanted`, a relation or a request, matches the package.
    pub(super) fn matches(&self, wanted: &str) -> bool {
        let [name, evr, arch] = &self.identity;
        let relation = RpmRelation::parse(wanted);
        is_named(wanted, name, evr, arch)
            || relation.is_some_and(|relation| {
                self.provides.iter().any(|(name, sense, evr)| {
                    name == relation.name && sense.meets(evr, relation.sense, relation.evr)
                })
            })
    }
}

/// Returns the name of a package as `modules.yaml` writes it: always with an epoch.
fn full_name(pool: &Pool, id: PackageId) -> String {
    let evr = pool.evr(id);
    let epoch = if evr.contains(':') { "" } else { "0:" };
    format!("{}-{epoch}{evr}.{}", pool.name(id), pool.arch(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yum::metadata::read_base;

    const MODULES: &str = "---
document: modulemd
version: 2
data:
  name: nginx
  stream: 1.20
  version: 9
  context: abc
  arch: x86_64
  artifacts:
    rpms: [nginx-1:1.20-1.x86_64]
...
---
document: modulemd
version: 2
data: {name: nginx, stream: '1.22', artifacts: {rpms: ['nginx-1:1.22-1.x86_64', 'nginx-mod-1:1.22-1.x86_64']}}
---
document: modulemd-defaults
version: 1
data: {module: nginx, stream: 1.20}
";

    #[test]
    fn packages_that_dnf_hides_are_hidden() {
        let mut pool = Pool::default();
        let packages = [
            "nginx 1:1.20-1",
            "nginx 1:1.22-1",
            "nginx 1:1.24-1",
            "nginx-mod 1:1.22-1",
            "other 0:1-1",
        ];
        let list: String = packages
            .iter()
            .map(|package| format!("package {package} x86_64\n"))
            .collect();
        read_base(&list, &mut pool).unwrap();
        pool.offer_all();
        let mut modules = Modules::default();
        modules.read(MODULES).unwrap();
        let of_streams = modules.hide(&mut pool);
        pool.index();
        let seen: Vec<&str> = pool.ids().map(|id| pool.evr(id)).collect();
        assert_eq!(seen, ["1:1.20-1", "1-1"]);
        let of_streams: Vec<(&str, &str)> = of_streams
            .iter()
            .map(|one| (one.nevra.as_str(), one.streams.as_str()))
            .collect();
        let hidden =
            ["nginx-1:1.22-1.x86_64", "nginx-mod-1:1.22-1.x86_64"].map(|name| (name, "nginx:1.22"));
        assert_eq!(of_streams, hidden);
        assert_eq!(pool.named("nginx").len(), 1);
    }

    #[test]
    fn malformed_documents_are_errors() {
        for text in ["document: [", "---\ndocument: x\n---\na: {"] {
            assert!(Modules::default().read(text).is_err(), "{text}");
        }
        assert!(Modules::default().read("---\n...\n").is_ok());
    }

    #[test]
    fn a_document_whose_data_is_not_a_mapping_hides_no_other() {
        let good = "---\ndocument: modulemd\ndata: {name: nginx, stream: '1'}\n";
        let mut expected = Modules::default();
        expected.read(good).unwrap();
        for data in ["[]", "", "text", "{name: a, stream: b, artifacts: null}"] {
            let mut modules = Modules::default();
            let text = format!("---\ndocument: modulemd\ndata: {data}\n{good}");
            modules.read(&text).unwrap();
            modules.streams.remove("a:b");
            assert_eq!(modules, expected, "{data}");
        }
        for odd in [
            "- a",
            "plain",
            "version: 2",
            "document: modulemd\ndata: {name: a, stream: [1]}",
            "document: modulemd\ndata: {name: a, stream: b, artifacts: {rpms: {a: b}}}",
        ] {
            let mut modules = Modules::default();
            modules.read(&format!("---\n{odd}\n{good}")).unwrap();
            assert_eq!(modules, expected, "{odd}");
        }
    }

    #[test]
    fn the_name_of_a_stream_is_its_text() {
        let stream = |stream: &str| {
            format!(
                "---\ndocument: modulemd\ndata: {{name: nginx, stream: {stream}, \
                 artifacts: {{rpms: ['nginx-1:{stream}-1.x86_64']}}}}\n"
            )
        };
        let default = "---\ndocument: modulemd-defaults\ndata: {module: nginx, stream: '1.20'}\n";
        let mut modules = Modules::default();
        modules
            .read(&(stream("1.2") + &stream("1.20") + default))
            .unwrap();
        assert_eq!(
            modules.streams.keys().collect::<Vec<_>>(),
            ["nginx:1.2", "nginx:1.20"]
        );
        assert_eq!(modules.defaults, BTreeSet::from(["nginx:1.20".to_owned()]));
    }
}
