//! The versions in manifests that `landfall update` may move: where they stand, and edits that keep
//! every other byte.

use super::items::{ListSource, Located};
use super::load::{Edited, Error, Read, each};
use crate::{ItemKind, Moving, Step, WantedPackages, kinds, tag_of};
use landfall_model::document::{
    ChartVersions, Location, MovingVar, Node, SourceSpan, VersionsFrom, read_text_input, yaml,
};
use landfall_model::report::EntryKind;
use landfall_model::{Digest, ImageRef, UpdatePolicy};
use serde_yaml::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A version in a manifest that has an update policy.
#[derive(Debug, Clone)]
pub struct Slot {
    /// What people call it: the variable, or the item without its version.
    pub name: String,
    /// What has its versions: images, charts, or a document.
    pub kind: EntryKind,
    /// The manifest.
    pub file: PathBuf,
    /// Where it stands there.
    pub at: Location,
    /// What it may move to.
    pub policy: UpdatePolicy,
    /// The same as it is written.
    pub written: String,
    /// The version that stands there.
    pub current: String,
    /// Other values of the same variable.
    pub others: Vec<String>,
    /// Where its versions come from, or why nothing says so.
    pub versions: Result<Versions, String>,
    key: SlotKey,
    /// The text around the version, as YAML reads it, and the version in it.
    text: String,
    version: Range<usize>,
}

/// Where a version stands in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SlotKey {
    /// A variable's value, or the nth of its values.
    Var(String, Option<usize>),
    /// A text of the nth entry of a section, by the way to it.
    Entry(&'static str, usize, Vec<Step>),
}

/// Where versions come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Versions {
    /// The tags of a repository, with what stands before and after the version in them.
    Tags(ImageRef, String, String),
    /// The index of a chart repository, which a chart's own version follows to the letter.
    Chart(ChartVersions),
    /// The sources of a machine, which have a package.
    Packages(Box<PackageVersions>),
    /// What a variable names as the source: a text, a JSON document or a chart's index.
    Document(VersionsFrom),
}

/// The versions of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageVersions {
    /// The machine whose sources have it.
    pub machine: WantedPackages,
    /// Its name, with the architecture where that is written.
    pub package: String,
    /// What stands before and after the version that moves, in that of the package.
    pub around: (String, String),
}

/// The lists of the manifests at `paths` that have a source.
///
/// # Errors
/// When a manifest has a fault.
pub fn list_sources(paths: &[PathBuf], edited: &Edited) -> Result<Vec<ListSource>, Error> {
    Ok(each(paths, edited)?
        .into_iter()
        .flat_map(|read| read.items.list_sources)
        .collect())
}

/// The versions with a policy in the manifests at `paths`, in the order of the files; variables
/// before entries. What shares an anchor is one version, and the first policy for it counts.
///
/// # Errors
/// When a manifest has a fault.
pub fn slots(paths: &[PathBuf], edited: &Edited) -> Result<Vec<Slot>, Error> {
    let mut all = Vec::new();
    for read in each(paths, edited)? {
        let mut known = BTreeSet::new();
        let slots = of_vars(&read).into_iter().chain(of_entries(&read));
        all.extend(slots.filter(|slot| known.insert((slot.at.line, slot.at.column))));
    }
    Ok(all)
}

/// The policy, where it lets a version move.
fn moving_policy(text: &str) -> Option<UpdatePolicy> {
    text.parse().ok().filter(UpdatePolicy::moves)
}

fn of_vars(read: &Read) -> Vec<Slot> {
    let mut found = Vec::new();
    for (name, value) in &read.document.vars {
        let Ok(var) = serde_yaml::from_value::<MovingVar>(value.clone()) else {
            continue;
        };
        let Some(policy) = moving_policy(&var.update) else {
            continue;
        };
        let texts: Vec<(Option<usize>, String)> = match &var.value {
            Value::Sequence(values) => {
                let texts = values
                    .iter()
                    .map(|value| value.as_str().unwrap_or_default().to_owned());
                texts
                    .enumerate()
                    .map(|(at, text)| (Some(at), text))
                    .collect()
            }
            value => vec![(None, value.as_str().unwrap_or_default().to_owned())],
        };
        let versions = match var.from {
            Some(VersionsFrom::Text(text)) if !text.contains("://") => repository(&text),
            Some(from) => Ok(Versions::Document(from)),
            None => tagged_by(read, name).ok_or_else(|| {
                format!("nothing says where versions of `{name}` come from; add `from:`, as no image and no package has it as its version")
            }),
        };
        for (index, current) in &texts {
            let key = SlotKey::Var(name.clone(), *index);
            let others = texts
                .iter()
                .filter(|(at, _)| at != index)
                .map(|(_, text)| text.clone());
            found.push(Slot {
                name: name.clone(),
                kind: match versions {
                    Ok(Versions::Document(_)) => EntryKind::File,
                    Ok(Versions::Packages(_)) => EntryKind::Package,
                    _ => EntryKind::Image,
                },
                file: read.path.clone(),
                at: key.place(read),
                policy: policy.clone(),
                written: var.update.clone(),
                current: current.clone(),
                others: others.collect(),
                versions: versions.clone(),
                key,
                text: current.clone(),
                version: 0..current.len(),
            });
        }
    }
    found.sort_by_key(|slot| slot.key.node(&read.text.root).span().start);
    found
}

/// The tags of the repository that `text` names.
fn repository(text: &str) -> Result<Versions, String> {
    let image: ImageRef = text
        .parse()
        .map_err(|error| format!("`from: {text}` is no URL and no repository: {error}"))?;
    Ok(Versions::Tags(image, String::new(), String::new()))
}

macro_rules! of_entries {
    ($($(#[doc = $doc:tt])* $section:ident: $kind:ty,)*) => {
        /// The versions with a policy of their own.
        fn of_entries(read: &Read) -> Vec<Slot> {
            let mut found = Vec::new();
            $(
                {
                    let sources = sources::<$kind>(&read.items.$section);
                    for (index, entry) in read.document.$section.iter().enumerate() {
                        for moving in <$kind as ItemKind>::moving(entry) {
                            let item = read.text.root.get(stringify!($section)).item(index).get(moving.item_at);
                            let at = SourceSpan::new(&read.text, item.span()).location();
                            let versions = sources.get(&(at.line, at.column)).cloned();
                            let key = SlotKey::Entry(stringify!($section), index, moving.path.clone());
                            found.extend(of_entry(read, key, <$kind as ItemKind>::KIND, moving, versions));
                        }
                    }
                }
            )*
            found
        }

        /// The repository of the first item whose tag is made of the variable `name` alone; else
        /// the sources of the first package whose version is.
        fn tagged_by(read: &Read, name: &str) -> Option<Versions> {
            let variable = format!("${{{name}}}");
            $(
                for (index, entry) in read.document.$section.iter().enumerate() {
                    let Some(text) = <$kind as ItemKind>::reference(entry) else { continue };
                    let Some((before, after)) = tag_of(text).and_then(|tag| tag.split_once(&variable)) else { continue };
                    if before.contains("${") || after.contains("${") {
                        continue;
                    }
                    let node = read.text.root.get(stringify!($section)).item(index).get("ref");
                    let at = SourceSpan::new(&read.text, node.span()).location();
                    let source = sources::<$kind>(&read.items.$section).remove(&(at.line, at.column));
                    if let Some(Versions::Tags(image, ..)) = source {
                        return Some(Versions::Tags(image, before.into(), after.into()));
                    }
                }
            )*
            $(
                for (index, entry) in read.document.$section.iter().enumerate() {
                    let Some(pinned) = <$kind as ItemKind>::pinned_by(entry, &variable) else { continue };
                    let node = read.text.root.get(stringify!($section)).item(index).get(pinned.item_at);
                    let at = SourceSpan::new(&read.text, node.span()).location();
                    let source = sources::<$kind>(&read.items.$section).remove(&(at.line, at.column));
                    if let Some(Versions::Packages(of)) = source {
                        let (package, around) = (pinned.package, (pinned.before, pinned.after));
                        return Some(Versions::Packages(Box::new(PackageVersions { package, around, ..*of })));
                    }
                }
            )*
            None
        }
    };
}
kinds!(of_entries);

/// What the versions of a section's items are, each by the line and column where the item is
/// written.
fn sources<K: ItemKind>(items: &[Located<K::Wish>]) -> BTreeMap<(usize, usize), Versions> {
    let at = |item: &Located<K::Wish>| {
        let at = item.span.location();
        (at.line, at.column)
    };
    let source = |wish: &K::Wish| {
        let tags = K::tagged(wish)
            .map(|image| Versions::Tags(image.clone(), String::new(), String::new()));
        let machine = || {
            let (machine, package, around) =
                (K::machine(wish)?.clone(), String::new(), Default::default());
            Some(Versions::Packages(Box::new(PackageVersions {
                machine,
                package,
                around,
            })))
        };
        tags.or_else(|| K::indexed(wish).map(Versions::Chart))
            .or_else(machine)
    };
    // of several at one place the first counts
    items
        .iter()
        .rev()
        .filter_map(|item| Some((at(item), source(&item.value)?)))
        .collect()
}

fn of_entry(
    read: &Read,
    key: SlotKey,
    kind: EntryKind,
    moving: Moving<'_>,
    versions: Option<Versions>,
) -> Option<Slot> {
    let Moving {
        policy: written,
        name,
        text,
        version,
        ..
    } = moving;
    let no_source = || format!("nothing says where versions of `{name}` come from");
    let versions = match versions {
        Some(Versions::Packages(of)) => {
            let package = name.clone();
            Some(Versions::Packages(Box::new(PackageVersions {
                package,
                ..*of
            })))
        }
        versions => versions,
    };
    Some(Slot {
        versions: versions.ok_or_else(no_source),
        file: read.path.clone(),
        at: key.place(read),
        policy: moving_policy(written)?,
        written: written.into(),
        current: text[version.clone()].into(),
        others: Vec::new(),
        text: text.into(),
        key,
        kind,
        version,
        name,
    })
}

impl Slot {
    /// Whether both stand in one entry of a manifest: a machine, whose packages may have to move
    /// together.
    pub fn is_beside(&self, other: &Slot) -> bool {
        match (&self.key, &other.key) {
            (SlotKey::Entry(section, index, _), SlotKey::Entry(others, other_index, _)) => {
                (section, index, &self.file) == (others, other_index, &other.file)
            }
            _ => false,
        }
    }
}

impl SlotKey {
    fn node<'a>(&self, root: &'a Node) -> &'a Node {
        match self {
            SlotKey::Var(name, index) => {
                let value = root.get("vars").get(name).get("value");
                index.map_or(value, |index| value.item(index))
            }
            SlotKey::Entry(section, index, path) => {
                let entry = root.get(section).item(*index);
                path.iter().fold(entry, |node, step| match step {
                    Step::Key(key) => node.get(key),
                    Step::Item(at) => node.item(*at),
                })
            }
        }
    }

    /// Where the bytes of the text are: those of the anchor, where an alias stands there.
    fn bytes(&self, body: &str, root: &Node) -> Range<usize> {
        let span = self.node(root).span();
        match body.get(span.clone()) {
            Some(text) if text.starts_with('*') => Node::anchored(body, &span).unwrap_or(span),
            _ => span,
        }
    }

    /// The same as a place for people.
    fn place(&self, read: &Read) -> Location {
        SourceSpan::new(&read.text, self.bytes(&read.text.text, &read.text.root)).location()
    }

    /// The text there, as YAML reads it.
    fn read(&self, document: &Value) -> Option<String> {
        let value = match self {
            SlotKey::Var(name, index) => {
                let value = document.get("vars")?.get(name.as_str())?.get("value")?;
                index.map_or(Some(value), |index| value.get(index))?
            }
            SlotKey::Entry(section, index, path) => {
                let entry = document.get(*section)?.get(*index)?;
                path.iter().try_fold(entry, |value, step| match step {
                    Step::Key(key) => value.get(*key),
                    Step::Item(at) => value.get(*at),
                })?
            }
        };
        value.as_str().map(str::to_owned)
    }
}

const NOT_PLAIN: &str = "it is written with escapes, or part of what an alias repeats, and cannot be edited in its place";

/// `text`, a manifest's, with `new` in place of the version of `slot`.
///
/// # Errors
/// Why that cannot be done by changing the version's bytes alone.
pub fn set_version(text: &str, slot: &Slot, new: &str) -> Result<String, String> {
    let (mark, body) = without_mark(text);
    let root = Node::parse(body).ok_or("the manifest cannot be read any more")?;
    let span = slot.key.bytes(body, &root);
    // an anchor may stand before it
    let at = body[span.clone()].rfind(&slot.text).ok_or(NOT_PLAIN)? + span.start;
    let (start, end) = (at + slot.version.start, at + slot.version.end);
    let edited = [&body[..start], new, &body[end..]].concat();
    let wanted = [
        &slot.text[..slot.version.start],
        new,
        &slot.text[slot.version.end..],
    ]
    .concat();
    let document: Option<Value> = yaml::from_str(&edited).ok();
    match document.and_then(|document| slot.key.read(&document)) {
        Some(read) if read == wanted => Ok([mark, &edited].concat()),
        _ => Err(format!(
            "`{new}` cannot be written in its place: YAML would read it as something else"
        )),
    }
}

/// `text`, a manifest's, with the digest `new` in place of `old` in the entry that is written at
/// `at`.
///
/// # Errors
/// Why that cannot be done.
pub fn set_digest(text: &str, at: &Location, old: &Digest, new: &Digest) -> Result<String, String> {
    let (mark, body) = without_mark(text);
    let root = Node::parse(body).ok_or("the manifest cannot be read any more")?;
    let source = landfall_model::document::SourceText::yaml(at.file.clone(), body.to_owned());
    let sections = ["images", "charts"]
        .into_iter()
        .filter(|section| root.key_span(section).is_some());
    let entries = sections.flat_map(|section| {
        let section = root.get(section);
        (0..section.count()).map(|index| section.item(index))
    });
    let is_there = |entry: &&Node| {
        let item = if entry.key_span("repo").is_some() {
            entry.get("repo")
        } else {
            entry.get("ref")
        };
        SourceSpan::new(&source, item.span()).location() == *at
    };
    let entry = entries
        .into_iter()
        .find(is_there)
        .ok_or("it is written in no `images` and no `charts`")?;
    let nodes = [entry.get("ref").span()]
        .into_iter()
        .chain(entry.key_span("digest").map(|_| entry.get("digest").span()));
    let old = old.to_string();
    let mut places: Vec<usize> = nodes
        .filter_map(|span| body[span.clone()].rfind(&old).map(|at| at + span.start))
        .collect();
    if places.is_empty() {
        return Err(
            "its digest stands in a variable or an alias, and cannot be edited in its place".into(),
        );
    }
    places.sort_unstable();
    let mut edited = body.to_owned();
    places
        .iter()
        .rev()
        .for_each(|&at| edited.replace_range(at..at + old.len(), &new.to_string()));
    Ok([mark, &edited].concat())
}

/// The byte order mark, and what follows it.
fn without_mark(text: &str) -> (&str, &str) {
    let body = text.trim_start_matches('\u{feff}');
    text.split_at(text.len() - body.len())
}

/// The text of the manifest at `path`, edited or not.
///
/// # Errors
/// When it cannot be read.
pub fn text_of(path: &Path, edited: &Edited) -> Result<String, Error> {
    match edited.get(path) {
        Some(text) => Ok(text.clone()),
        None => read_text_input(path).map_err(|source| Error::Open {
            path: path.into(),
            source,
        }),
    }
}
