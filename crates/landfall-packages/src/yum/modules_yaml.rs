//! The documents of a `modules.yaml`, with the fields that affect the selection of packages.

use super::metadata::malformed;
use landfall_model::Failure;
use landfall_model::document::yaml;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

const WHAT: &str = "modules.yaml";

/// A document of any kind.
#[derive(Deserialize)]
struct ModuleDocument {
    document: String,
    data: Option<ModuleFields>,
}

/// The data of a document: a version of a stream, or the defaults of a module.
#[derive(Deserialize, Default)]
pub(super) struct ModuleFields {
    pub(super) name: Option<String>,
    pub(super) module: Option<String>,
    pub(super) stream: Option<String>,
    pub(super) version: Option<String>,
    pub(super) context: Option<String>,
    pub(super) arch: Option<String>,
    pub(super) modified: Option<String>,
    pub(super) artifacts: Option<NameList>,
    pub(super) demodularized: Option<NameList>,
    /// The packages of each profile, or the default profiles of each stream.
    pub(super) profiles: Option<BTreeMap<String, NameList>>,
    pub(super) dependencies: Option<DependencyList>,
}

/// The modules that a stream requires, each with its streams.
#[derive(Deserialize, Default)]
pub(super) struct ModuleDependencies {
    pub(super) requires: Option<BTreeMap<String, NameList>>,
}

/// A list of names: a list, the list `rpms` of a mapping, or one name.
#[derive(Default)]
pub(super) struct NameList(pub(super) Vec<String>);

/// The dependencies of a stream: a list of mappings, or one mapping in version 1 of the format.
#[derive(Default)]
pub(super) struct DependencyList(pub(super) Vec<ModuleDependencies>);

impl<'de> Deserialize<'de> for NameList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NameList, D::Error> {
        #[derive(Deserialize)]
        struct RpmNames {
            rpms: Option<Vec<String>>,
        }
        struct NameListVisitor;
        impl<'de> Visitor<'de> for NameListVisitor {
            type Value = NameList;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of names")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NameList, A::Error> {
                let names = RpmNames::deserialize(MapAccessDeserializer::new(map))?;
                Ok(NameList(names.rpms.unwrap_or_default()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<NameList, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(NameList)
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<NameList, E> {
                Ok(NameList(vec![name.to_owned()]))
            }
            fn visit_u64<E: de::Error>(self, name: u64) -> Result<NameList, E> {
                Ok(NameList(vec![name.to_string()]))
            }
            fn visit_f64<E: de::Error>(self, name: f64) -> Result<NameList, E> {
                Ok(NameList(vec![name.to_string()]))
            }
            fn visit_unit<E: de::Error>(self) -> Result<NameList, E> {
                Ok(NameList::default())
            }
        }
        deserializer.deserialize_any(NameListVisitor)
    }
}

impl<'de> Deserialize<'de> for DependencyList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DependencyList, D::Error> {
        struct DependencyListVisitor;
        impl<'de> Visitor<'de> for DependencyListVisitor {
            type Value = DependencyList;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the dependencies of a module")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DependencyList, A::Error> {
                // each module with one stream, which is text: as a number, `5.30` would be `5.3`
                #[derive(Deserialize)]
                struct OldDependencies {
                    requires: Option<BTreeMap<String, String>>,
                }
                let old = OldDependencies::deserialize(MapAccessDeserializer::new(map))?;
                let streams = old.requires.unwrap_or_default().into_iter();
                let requires = streams.map(|(module, stream)| (module, NameList(vec![stream])));
                Ok(DependencyList(vec![ModuleDependencies {
                    requires: Some(requires.collect()),
                }]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<DependencyList, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(DependencyList)
            }
        }
        deserializer.deserialize_any(DependencyListVisitor)
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

/// Calls `each` with the kind and the data of each document in `text`. A document of another form
/// is skipped, as by dnf.
pub(super) fn read_documents(
    text: &str,
    each: &mut dyn FnMut(&str, ModuleFields),
) -> Result<(), Failure> {
    for part in parts(text) {
        // read as text, not as values: as a number, the unquoted stream `1.20` would become `1.2`
        for document in yaml::documents::<Option<ModuleDocument>>(part) {
            match document {
                Ok(Some(ModuleDocument { document, data })) => {
                    each(&document, data.unwrap_or_default());
                }
                // an empty document before the first or after the last `---`
                Ok(None) => {}
                Err(error) if yaml::documents::<IgnoredAny>(part).any(|one| one.is_err()) => {
                    return Err(malformed(WHAT, error));
                }
                Err(_) => break,
            }
        }
    }
    Ok(())
}
