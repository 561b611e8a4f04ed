//! Mappings and lists.
//!
//! Keys that are there get the new values, missing ones are added behind the others of their
//! mapping. An item of a list that has a `name` or a `path` stands for the item with the same one;
//! any other is added unless it is there. What comes out is read again: if it is not what was
//! meant, nothing is returned.

use super::edits::{Edits, block_text, flow_text};
use super::error::MergeError;
use super::ordered::{is_ordered, ordered, shown};
use crate::document::yaml;
use crate::document::yaml_tree::{Kind, Member, Tree, trees};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};

/// Text with values set, and the paths of what is new in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// The text.
    pub text: String,
    /// What was set, as dotted paths.
    pub paths: Vec<String>,
    /// Texts in base64 that were changed.
    pub decoded: Vec<DecodedText>,
}

/// A text that a document holds in base64, before and after a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText {
    /// Its dotted path.
    pub path: String,
    /// The text before.
    pub old: String,
    /// The text after.
    pub new: String,
}

/// How a merge treats what is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct MergeRules {
    /// Replace texts and lists that cannot be merged, and so remove content.
    pub replace: bool,
    /// The key at the top whose texts are in base64: `data` of a Secret. New values are plain text.
    pub base64: Option<&'static str>,
}

/// Keys that cannot stand beside another one: the key, and the other.
const EXCLUSIVE: [(&str, &str); 5] = [
    ("content", "contentFrom"),
    ("encoding", "contentFrom"),
    ("contentFrom", "content"),
    ("valueFrom", "value"),
    ("value", "valueFrom"),
];

/// The documents of `text` as values.
///
/// # Errors
/// When it is no YAML.
pub fn documents(text: &str) -> Result<Vec<Value>, MergeError> {
    yaml::documents(text.trim_start_matches('\u{feff}'))
        .collect::<Result<_, _>>()
        .map_err(|error| MergeError::NotYaml(error.to_string()))
}

/// `text` with `values` set in its document number `document`, counted from 0.
///
/// # Errors
/// When it is no YAML, where kinds of values differ, where its form is not understood, where
/// content would be removed and `rules` do not allow it, or where a list has another order.
pub fn merge(
    text: &str,
    document: usize,
    values: &Mapping,
    rules: MergeRules,
) -> Result<Merged, MergeError> {
    let old = documents(text)?;
    let roots = trees(text).ok_or_else(|| MergeError::NotYaml("it does not parse".into()))?;
    let (Some(root), Some(value)) = (roots.get(document), old.get(document)) else {
        return Err(MergeError::NotYaml("it has too few documents".into()));
    };
    let edits = Edits::of(text);
    let (path, merged, lost) = (Vec::new(), Merged::default(), Vec::new());
    let mut merger = Merger {
        rules,
        edits,
        path,
        merged,
        lost,
    };
    let wanted = merger.mapping(root, value, values)?;
    if !merger.lost.is_empty() {
        return Err(MergeError::Lost(merger.lost));
    }
    let (text, mut merged) = (merger.edits.apply(), merger.merged);
    let mut expected = old;
    expected[document] = wanted;
    match documents(&text) {
        Ok(found) if found == expected => {
            merged.text = text;
            Ok(merged)
        }
        _ => Err(MergeError::Form(
            merged
                .paths
                .first()
                .cloned()
                .unwrap_or_else(|| "its top".into()),
        )),
    }
}

/// A merge under way.
pub(super) struct Merger<'t> {
    pub(super) rules: MergeRules,
    edits: Edits<'t>,
    /// The keys above the value that is merged now.
    pub(super) path: Vec<String>,
    pub(super) merged: Merged,
    /// What would be removed, one line for each place.
    pub(super) lost: Vec<String>,
}

impl Merger<'_> {
    /// Sets `values` in the mapping `tree`, which reads as `old`; what it reads as then.
    fn mapping(&mut self, tree: &Tree, old: &Value, values: &Mapping) -> Result<Value, MergeError> {
        let (Kind::Mapping { flow, members }, Value::Mapping(old)) = (&tree.kind, old) else {
            return Err(self.mismatch(tree, old, "a mapping"));
        };
        let mut new = old.clone();
        let mut missing = Mapping::new();
        for (key, value) in values {
            let name = key.as_str().unwrap_or_default().to_owned();
            self.path.push(name.clone());
            match (
                members.iter().find(|member| member.key == name),
                old.get(key),
            ) {
                (Some(member), Some(there)) => {
                    let in_base64 = self.is_base64(old);
                    let value = self.value(tree, member, there, value, in_base64)?;
                    new.insert(key.clone(), value);
                }
                _ => {
                    self.merged.paths.push(self.path.join("."));
                    let value = match value.as_str().filter(|_| self.is_base64(old)) {
                        Some(text) => STANDARD.encode(text).into(),
                        None => value.clone(),
                    };
                    missing.insert(key.clone(), value.clone());
                    new.insert(key.clone(), value);
                }
            }
            self.path.pop();
        }
        self.without_others(tree, old, values, &mut new);
        if *flow {
            let pairs = missing
                .iter()
                .map(|(key, value)| format!("{}: {}", flow_text(key), flow_text(value)));
            let last = members.last().map(|last| last.value.end());
            self.edits.add_flow(tree, last, &pairs.collect::<Vec<_>>());
        } else if !missing.is_empty() {
            let first = members
                .first()
                .ok_or_else(|| MergeError::Form(self.path.join(".")))?;
            let lines = block_text(&missing, self.edits.column(first.at.start))?;
            self.edits.add_lines(tree.end(), &lines);
        }
        Ok(Value::Mapping(new))
    }

    /// Removes from `new` what a mapping cannot have beside one of `values`.
    fn without_others(&mut self, tree: &Tree, old: &Mapping, values: &Mapping, new: &mut Mapping) {
        let Kind::Mapping { flow, members } = &tree.kind else {
            return;
        };
        let mut removed = Vec::new();
        for (other, key) in EXCLUSIVE {
            let is_there = old.contains_key(other) && !values.contains_key(other);
            if !is_there || !values.contains_key(key) {
                continue;
            }
            let path = [&self.path[..], &[other.to_owned()]].concat().join(".");
            match members.iter().position(|member| member.key == other) {
                Some(at) if self.rules.replace => {
                    removed.push(at);
                    new.shift_remove(other);
                    self.merged.paths.push(path);
                }
                _ => self.lost.push(format!(
                    "{path}: it cannot stand beside {key}, which is new"
                )),
            }
        }
        removed.sort_unstable();
        self.edits.remove_members(members, &removed, *flow);
    }

    /// Whether the text at the path is in base64; `parent` is the mapping that it belongs to.
    fn is_base64(&self, parent: &Mapping) -> bool {
        let is_in =
            |encoding: &str| parent.get("encoding").and_then(Value::as_str) == Some(encoding);
        match &self.path[..] {
            [top, _] if Some(top.as_str()) == self.rules.base64 => true,
            [.., key] => key == "content" && is_in("base64"),
            [] => false,
        }
    }

    /// Sets the value of a member of `parent`.
    fn value(
        &mut self,
        parent: &Tree,
        member: &Member,
        old: &Value,
        new: &Value,
        in_base64: bool,
    ) -> Result<Value, MergeError> {
        if old == new && !in_base64 {
            return Ok(new.clone());
        }
        let is_empty = match old {
            Value::Null => true,
            Value::Mapping(mapping) => mapping.is_empty(),
            Value::Sequence(list) => list.is_empty(),
            _ => false,
        };
        let at = &member.value;
        if at.kind == Kind::Alias {
            return Err(self.mismatch(at, old, kind_of(new)));
        }
        match (old, new) {
            (Value::Mapping(_), Value::Mapping(new)) if !is_empty => {
                return self.mapping(at, old, new);
            }
            (Value::Sequence(old), Value::Sequence(new)) if !is_empty => {
                return self.list(at, old, new);
            }
            (Value::Mapping(_) | Value::Sequence(_), _) if !is_empty => {
                return Err(self.mismatch(at, old, kind_of(new)));
            }
            (_, Value::Mapping(_) | Value::Sequence(_)) if !is_empty => {
                return Err(self.mismatch(at, old, kind_of(new)));
            }
            _ => {}
        }
        let new = match (old.as_str().unwrap_or_default(), new) {
            ("", Value::String(new)) if in_base64 => Value::from(STANDARD.encode(new)),
            (old, Value::String(new)) if in_base64 => self.base64(old, new)?,
            (old, Value::String(new)) => Value::from(self.text(old, new)?),
            _ => new.clone(),
        };
        if *old == new {
            return Ok(new);
        }
        // what was set in YAML in the text has paths of its own
        let path = self.path.join(".");
        if !self
            .merged
            .paths
            .last()
            .is_some_and(|last| last.starts_with(&format!("{path}: ")))
        {
            self.merged.paths.push(path);
        }
        let in_flow = matches!(parent.kind, Kind::Mapping { flow: true, .. });
        self.edits.set_value(member, in_flow, old, &new)?;
        Ok(new)
    }

    /// Adds to the list `tree` what `new` has more than it.
    fn list(&mut self, tree: &Tree, old: &[Value], new: &[Value]) -> Result<Value, MergeError> {
        let Kind::List { items, .. } = &tree.kind else {
            return Err(MergeError::Form(self.path.join(".")));
        };
        let key = self.path.last().map(String::as_str).unwrap_or_default();
        if is_ordered(key) && old.iter().chain(new).all(Value::is_string) {
            return self.ordered(tree, old, new);
        }
        if ["command", "args"].contains(&key) && old != new {
            self.lose("it is one command, to which no part can be added");
            self.merged.paths.push(self.path.join("."));
            self.edits.replace_items(tree, new)?;
            return Ok(Value::Sequence(new.to_vec()));
        }
        let (mut all, mut missing) = (old.to_vec(), Vec::new());
        for item in new {
            let same = |there: &Value| {
                there == item || (identity(item).is_some() && identity(there) == identity(item))
            };
            match (old.iter().position(same), item) {
                (Some(at), Value::Mapping(values)) if old[at] != *item => {
                    self.path
                        .push(identity(item).unwrap_or_default().to_owned());
                    let tree = items
                        .get(at)
                        .ok_or_else(|| MergeError::Form(self.path.join(".")))?;
                    all[at] = self.mapping(tree, &old[at], values)?;
                    self.path.pop();
                }
                (Some(_), _) => {}
                (None, _) => missing.push(item.clone()),
            }
        }
        if missing.is_empty() {
            return Ok(Value::Sequence(all));
        }
        self.merged.paths.push(self.path.join("."));
        self.edits.add_items(tree, items.len(), &missing)?;
        all.extend(missing);
        Ok(Value::Sequence(all))
    }

    /// Adds to the list `tree` what `new` has more than it, each item at its position.
    fn ordered(&mut self, tree: &Tree, old: &[Value], new: &[Value]) -> Result<Value, MergeError> {
        let Kind::List { flow, items } = &tree.kind else {
            return Err(MergeError::Form(self.path.join(".")));
        };
        let texts = |list: &[Value]| {
            list.iter()
                .filter_map(|item| Some(item.as_str()?.to_owned()))
                .collect()
        };
        let (old_texts, new_texts): (Vec<String>, Vec<String>) = (texts(old), texts(new));
        let [old_texts, new_texts] = [&old_texts, &new_texts]
            .map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
        let Some(merge) = ordered(&old_texts, &new_texts) else {
            return Err(MergeError::Order {
                path: self.path.join("."),
                items: shown(&new_texts),
            });
        };
        let mut all = old.to_vec();
        for (at, text) in merge.changed {
            all[at] = text.into();
            let tree = items
                .get(at)
                .ok_or_else(|| MergeError::Form(self.path.join(".")))?;
            self.edits.set_item(tree, *flow, &all[at])?;
            self.merged
                .paths
                .push(format!("{}[{at}]", self.path.join(".")));
        }
        if !merge.inserted.is_empty() {
            self.merged.paths.push(self.path.join("."));
        }
        for run in merge
            .inserted
            .chunk_by(|(_, one), (_, other)| one == other)
            .rev()
        {
            let Some((_, place)) = run.first() else {
                continue;
            };
            let run: Vec<Value> = run.iter().map(|(at, _)| new[*at].clone()).collect();
            self.edits.add_items(tree, *place, &run)?;
            all.splice(place..place, run);
        }
        Ok(Value::Sequence(all))
    }

    fn mismatch(&self, at: &Tree, old: &Value, wanted: &'static str) -> MergeError {
        let there = if at.kind == Kind::Alias {
            "an alias"
        } else {
            kind_of(old)
        };
        let path = if self.path.is_empty() {
            "its top".to_owned()
        } else {
            self.path.join(".")
        };
        MergeError::Kind {
            path,
            there,
            wanted,
        }
    }
}

/// What an item of a list is told apart by.
fn identity(item: &Value) -> Option<&str> {
    ["mountPath", "name", "path", "source"]
        .iter()
        .find_map(|key| item.get(key)?.as_str())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Mapping(_) => "a mapping",
        Value::Sequence(_) => "a list",
        _ => "a single value",
    }
}
