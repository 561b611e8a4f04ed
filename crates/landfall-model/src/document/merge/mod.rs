//! Sets values in YAML text and keeps every other byte.
//!
//! This file merges mappings and lists, also with entries that a mapping inherits.
//!
//! - `scalars.rs`: scalars, plain or base64. A scalar that contains YAML is merged like a document,
//!   and certificates and systemd drop-ins by their own rules.
//! - `ordered.rs`: lists whose order matters, such as commands.
//! - `no_proxy_lists.rs`: NO_PROXY lists, which are equal in all of a document.
//! - `edits.rs`: the edits of the text, the YAML of new values, the facts of the site that may
//!   replace existing values, and the errors.

mod edits;
mod no_proxy_lists;
mod ordered;
mod scalars;
#[cfg(test)]
mod tests;

use self::edits::{NO_FACTS, TextEdits, block_text, flow_text};
use self::no_proxy_lists::NoProxyLists;
use self::ordered::{OrderedConflict, is_ordered, merge_ordered, quoted_items};
use crate::document::yaml;
use crate::document::yaml_tree::{YamlEntry, YamlMapping, YamlNode, YamlSequence, document_roots};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};

pub use self::edits::{MergeError, SiteFacts};

/// The result of a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedText {
    /// The text with the new values.
    pub text: String,
    /// The dotted paths of the values that changed.
    pub paths: Vec<String>,
    /// The changed texts that the document holds in base64.
    pub decoded: Vec<DecodedText>,
}

/// A text that a document holds in base64, before and after a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText {
    /// The dotted path of the value.
    pub path: String,
    /// The decoded text before the merge.
    pub old: String,
    /// The decoded text after the merge.
    pub new: String,
}

/// How a merge treats existing content.
#[derive(Debug, Clone, Copy)]
pub struct MergeRules<'r> {
    /// Replace any existing value, and remove keys that conflict with new ones.
    pub replace: bool,
    /// A top-level key whose values are base64, such as `data` of a Secret. New values are given as
    /// plain text.
    pub base64: Option<&'static str>,
    /// The values that replace existing ones even without `replace`.
    pub facts: &'r SiteFacts,
}

impl Default for MergeRules<'_> {
    fn default() -> Self {
        MergeRules {
            replace: false,
            base64: None,
            facts: &NO_FACTS,
        }
    }
}

/// The position of an object in a text: a document, or an item of a document that is a list of
/// objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectPosition {
    /// The number of the document, counted from 0.
    pub document: usize,
    /// The number of the item in the `items` of a `List`, as `kubectl get -o yaml` prints for
    /// several objects.
    pub item: Option<usize>,
}

/// Pairs of keys that the APIs of Kubernetes (`env`) and Cluster API (`files`) refuse in one
/// mapping, and kubeadm (`etcd`): the key to remove, and the new key that excludes it.
const EXCLUSIVE: [(&str, &str); 6] = [
    ("external", "local"),
    ("content", "contentFrom"),
    ("encoding", "contentFrom"),
    ("contentFrom", "content"),
    ("valueFrom", "value"),
    ("value", "valueFrom"),
];

/// The documents of `text` as values.
///
/// # Errors
/// If the text is not YAML or exceeds the limits of [`yaml`].
pub fn documents(text: &str) -> Result<Vec<Value>, MergeError> {
    yaml::documents(text.trim_start_matches('\u{feff}'))
        .collect::<Result<_, _>>()
        .map_err(|error| MergeError::NotYaml(error.to_string()))
}

/// The objects of `text` with their positions: its documents, or the items of a document that is a
/// list of objects.
///
/// # Errors
/// Like [`documents`].
pub fn objects(text: &str) -> Result<Vec<(ObjectPosition, Value)>, MergeError> {
    let mut all = Vec::new();
    for (number, document) in documents(text)?.into_iter().enumerate() {
        let at = |item| ObjectPosition {
            document: number,
            item,
        };
        match listed_objects(&document) {
            Some(items) => all.extend(
                (0..)
                    .zip(items)
                    .map(|(item, object)| (at(Some(item)), object.clone())),
            ),
            None => all.push((at(None), document)),
        }
    }
    Ok(all)
}

/// The items of a `List`, or of a list of one kind, such as `SecretList`.
fn listed_objects(document: &Value) -> Option<&Vec<Value>> {
    let is_list = document.get("kind")?.as_str()?.ends_with("List");
    let items = document.get("items")?.as_sequence()?;
    let are_objects = items.iter().all(|item| item.get("kind").is_some());
    (is_list && are_objects && !items.is_empty()).then_some(items)
}

/// Sets `values` in the object of `text` at this position.
///
/// # Errors
/// If `text` is not YAML or has no such object; if a new value has another kind than the existing
/// one; if the notation cannot be edited; if content would be removed although `rules` forbid it;
/// if an ordered list has common items in another order, or has an item whose value cannot be
/// changed.
pub fn merge(
    text: &str,
    position: ObjectPosition,
    values: &Mapping,
    rules: MergeRules<'_>,
) -> Result<MergedText, MergeError> {
    let mut lists = NoProxyLists::default();
    let merged = merge_once(text, position, values, rules, &mut lists)?;
    match lists.common(values) {
        Some((mut lists, values)) => merge_once(text, position, &values, rules, &mut lists),
        None => Ok(merged),
    }
}

/// Like [`merge`], but NO_PROXY lists become equal only if `lists` says so.
fn merge_once(
    text: &str,
    position: ObjectPosition,
    values: &Mapping,
    rules: MergeRules<'_>,
    lists: &mut NoProxyLists,
) -> Result<MergedText, MergeError> {
    let mut expected = documents(text)?;
    let roots =
        document_roots(text).ok_or_else(|| MergeError::NotYaml("it does not parse".into()))?;
    let (Some(mut node), Some(mut value)) = (
        roots.get(position.document),
        expected.get_mut(position.document),
    ) else {
        return Err(MergeError::NotYaml("it has too few documents".into()));
    };
    let mut path = Vec::new();
    if let Some(item) = position.item {
        path.push(format!("items[{item}]"));
        let listed = node.get("items").items().get(item);
        let found = listed.zip(value["items"].get_mut(item));
        (node, value) = found.ok_or_else(|| MergeError::Form(path.join(".")))?;
    }
    let mut merger = ValueMerger {
        rules,
        edits: TextEdits::new(text),
        depth: path.len(),
        path,
        merged: MergedText::default(),
        lost: Vec::new(),
        lists,
    };
    *value = merger.merge_mapping(node, &value.clone(), values)?;
    if !merger.lost.is_empty() {
        return Err(MergeError::Lost(merger.lost));
    }
    let text = merger.edits.apply();
    // the edits depend on the notation, of which YAML has many: only reading the result shows
    // whether the edits are right
    if !documents(&text).is_ok_and(|found| found == expected) {
        let path = merger.merged.paths.first().cloned();
        return Err(MergeError::Form(
            path.unwrap_or_else(|| "its top level".into()),
        ));
    }
    Ok(MergedText {
        text,
        ..merger.merged
    })
}

/// The state of a merge.
struct ValueMerger<'t> {
    rules: MergeRules<'t>,
    edits: TextEdits<'t>,
    /// The keys that lead to the value that is being merged.
    path: Vec<String>,
    /// How many of these keys lead to the object.
    depth: usize,
    merged: MergedText,
    /// The content that would be removed, one line for each value.
    lost: Vec<String>,
    lists: &'t mut NoProxyLists,
}

impl ValueMerger<'_> {
    /// Sets `values` in the mapping `node`, whose value is `old`. Returns the new value.
    fn merge_mapping(
        &mut self,
        node: &YamlNode<'_>,
        old: &Value,
        values: &Mapping,
    ) -> Result<Value, MergeError> {
        let (YamlNode::Mapping(mapping), Value::Mapping(old)) = (node, old) else {
            return Err(self.mismatch(node, old, "a mapping"));
        };
        let mut new = old.clone();
        let mut missing = Mapping::new();
        for (key, value) in values {
            let name = key.as_str().unwrap_or_default().to_owned();
            self.path.push(name.clone());
            let is_base64 = self.is_base64(old);
            if let (Some(entry), Some(existing)) = (mapping.entry(&name), old.get(key)) {
                let value = self.merge_value(mapping, entry, existing, value, is_base64)?;
                new.insert(key.clone(), value);
            } else {
                // the new key would hide all of the inherited value, not only a part of it
                let hidden = inherited_value(old, key);
                if hidden.is_some_and(|hidden| hidden != value && !hidden.is_null()) {
                    return Err(MergeError::Kind {
                        path: self.dotted_path(),
                        there: "inherited by a merge key (`<<`)",
                        wanted: kind_of(value),
                    });
                }
                self.merged.paths.push(self.dotted_path());
                let value = match value.as_str() {
                    Some(text) if is_base64 => STANDARD.encode(text).into(),
                    _ => value.clone(),
                };
                missing.insert(key.clone(), value.clone());
                new.insert(key.clone(), value);
            }
            self.path.pop();
        }
        self.remove_excluded(mapping, old, values, &mut new);
        if mapping.flow {
            let pairs: Vec<String> = missing
                .iter()
                .map(|(key, value)| format!("{}: {}", flow_text(key), flow_text(value)))
                .collect();
            let last = mapping.entries.last();
            let last = last.map(|entry| entry.content_end(self.edits.text));
            self.edits.add_flow(&mapping.span, last, &pairs);
        } else if !missing.is_empty() {
            let first = mapping
                .entries
                .first()
                .ok_or_else(|| MergeError::Form(self.dotted_path()))?;
            let column = self.edits.column(first.key.span().start);
            let lines = block_text(&missing, column)?;
            self.edits
                .add_lines(node.content_end(self.edits.text), &lines);
        }
        Ok(Value::Mapping(new))
    }

    /// Removes from `new` the existing keys that one of `values` excludes.
    fn remove_excluded(
        &mut self,
        mapping: &YamlMapping<'_>,
        old: &Mapping,
        values: &Mapping,
        new: &mut Mapping,
    ) {
        let mut removed = Vec::new();
        for (other, key) in EXCLUSIVE {
            let exists = old.contains_key(other) && !values.contains_key(other);
            if !exists || !values.contains_key(key) {
                continue;
            }
            let path = [&self.path[..], &[other.to_owned()]].concat().join(".");
            let mut entries = mapping.entries.iter();
            match entries.position(|entry| entry.key.is_text(other)) {
                Some(at) if self.rules.replace => {
                    removed.push(at);
                    new.shift_remove(other);
                    self.merged.paths.push(path);
                }
                _ => self
                    .lost
                    .push(format!("{path}: it conflicts with {key}, which is new")),
            }
        }
        removed.sort_unstable();
        self.edits.remove_entries(mapping, &removed);
    }

    /// Whether the value at the path is base64; `parent` is the mapping that contains it.
    fn is_base64(&self, parent: &Mapping) -> bool {
        match &self.path[self.depth..] {
            [top, _] if Some(top.as_str()) == self.rules.base64 => true,
            // a file of Cluster API
            [.., key] => {
                let encoding = parent.get("encoding").and_then(Value::as_str);
                key == "content" && encoding == Some("base64")
            }
            [] => false,
        }
    }

    /// Sets the value of an entry of `parent`.
    fn merge_value(
        &mut self,
        parent: &YamlMapping<'_>,
        entry: &YamlEntry<'_>,
        old: &Value,
        new: &Value,
        is_base64: bool,
    ) -> Result<Value, MergeError> {
        // for base64, `old` is encoded and `new` is not
        if old == new && !is_base64 {
            return Ok(new.clone());
        }
        let is_empty = match old {
            Value::Null => true,
            Value::Mapping(mapping) => mapping.is_empty(),
            Value::Sequence(list) => list.is_empty(),
            _ => false,
        };
        let node = &entry.value;
        // an edit would also change every other value that refers to the anchor
        if matches!(node, YamlNode::Alias(_)) {
            return Err(self.mismatch(node, old, kind_of(new)));
        }
        if !is_empty {
            match (old, new) {
                (Value::Mapping(_), Value::Mapping(new)) => {
                    return self.merge_mapping(node, old, new);
                }
                (Value::Sequence(old), Value::Sequence(new)) => {
                    return self.merge_list(node, old, new);
                }
                (Value::Mapping(_) | Value::Sequence(_), _)
                | (_, Value::Mapping(_) | Value::Sequence(_)) => {
                    return Err(self.mismatch(node, old, kind_of(new)));
                }
                _ => {}
            }
        }
        let is_blank = is_empty || old.as_str().is_some_and(|old| old.trim().is_empty());
        let new = match (old, new) {
            (_, Value::String(new)) if is_base64 && is_blank => STANDARD.encode(new).into(),
            (Value::String(old), Value::String(new)) if is_base64 => self.merge_base64(old, new)?,
            (Value::String(old), Value::String(new)) => self.merge_text(old, new)?.into(),
            // `"true"` and `true`: the notation of the file is kept
            _ if scalar_text(old) == scalar_text(new) => old.clone(),
            _ => {
                if !is_blank {
                    self.overwrite(&scalar_text(old), &scalar_text(new));
                }
                new.clone()
            }
        };
        if *old == new {
            return Ok(new);
        }
        // if the text is YAML itself, the values in it are already listed with their own paths
        let path = self.dotted_path();
        let is_listed = |last: &String| last.starts_with(&format!("{path}: "));
        if !self.merged.paths.last().is_some_and(is_listed) {
            self.merged.paths.push(path);
        }
        self.edits.set_value(entry, parent.flow, old, &new)?;
        Ok(new)
    }

    /// Adds the items of `new` that the list `node` lacks, and merges the items that it has. The
    /// words of a command are replaced instead, if the rules allow that.
    fn merge_list(
        &mut self,
        node: &YamlNode<'_>,
        old: &[Value],
        new: &[Value],
    ) -> Result<Value, MergeError> {
        let YamlNode::Sequence(sequence) = node else {
            return Err(MergeError::Form(self.dotted_path()));
        };
        let key = self.path.last().map(String::as_str).unwrap_or_default();
        if is_ordered(key) && old.iter().chain(new).all(Value::is_string) {
            return self.merge_ordered_list(sequence, old, new);
        }
        // these are the words of one command, and an additional word would change its meaning
        if ["command", "args"].contains(&key) && old != new {
            self.lose("it is one command, to which no part can be added");
            self.merged.paths.push(self.dotted_path());
            self.edits.replace_items(sequence, new)?;
            return Ok(Value::Sequence(new.to_vec()));
        }
        let mut all = old.to_vec();
        let mut missing = Vec::new();
        for item in new {
            let Some(at) = old.iter().position(|existing| is_same_item(existing, item)) else {
                missing.push(item.clone());
                continue;
            };
            let Value::Mapping(values) = item else {
                continue;
            };
            if old[at] != *item {
                self.path
                    .push(identity(item).unwrap_or_default().to_owned());
                let node = sequence
                    .items
                    .get(at)
                    .ok_or_else(|| MergeError::Form(self.dotted_path()))?;
                all[at] = self.merge_mapping(node, &old[at], values)?;
                self.path.pop();
            }
        }
        if missing.is_empty() {
            return Ok(Value::Sequence(all));
        }
        self.merged.paths.push(self.dotted_path());
        self.edits
            .add_items(sequence, sequence.items.len(), &missing)?;
        all.extend(missing);
        Ok(Value::Sequence(all))
    }

    /// Adds the items of `new` that the list of texts `sequence` lacks, each at the position that
    /// the order requires. Commands that set a value get the new value.
    fn merge_ordered_list(
        &mut self,
        sequence: &YamlSequence<'_>,
        old: &[Value],
        new: &[Value],
    ) -> Result<Value, MergeError> {
        let old_texts: Vec<&str> = old.iter().filter_map(Value::as_str).collect();
        let new_texts: Vec<&str> = new.iter().filter_map(Value::as_str).collect();
        let path = self.dotted_path();
        let merged = merge_ordered(&old_texts, &new_texts, self.lists);
        let merge = merged.map_err(|conflict| match conflict {
            OrderedConflict::Order => MergeError::Order {
                path,
                items: quoted_items(&new_texts),
            },
            OrderedConflict::Value { old, new } => MergeError::Command {
                path,
                command: old,
                items: quoted_items(&[new]),
            },
        })?;
        let mut all = old.to_vec();
        for (at, text) in merge.changed {
            all[at] = text.into();
            let item = sequence
                .items
                .get(at)
                .ok_or_else(|| MergeError::Form(self.dotted_path()))?;
            self.edits.set_item(item, sequence.flow, &all[at])?;
            self.merged
                .paths
                .push(format!("{}[{at}]", self.dotted_path()));
        }
        if !merge.inserted.is_empty() {
            self.merged.paths.push(self.dotted_path());
        }
        // inserted from the last position to the first, so that the earlier positions stay valid
        let runs = merge.inserted.chunk_by(|one, other| one.1 == other.1);
        for run in runs.rev() {
            let before = run[0].1;
            let items: Vec<Value> = run.iter().map(|(item, _)| new[*item].clone()).collect();
            self.edits.add_items(sequence, before, &items)?;
            all.splice(before..before, items);
        }
        Ok(Value::Sequence(all))
    }

    /// The path of the value that is being merged, with dots between the keys.
    fn dotted_path(&self) -> String {
        self.path.join(".")
    }

    fn mismatch(&self, node: &YamlNode<'_>, old: &Value, wanted: &'static str) -> MergeError {
        let there = if matches!(node, YamlNode::Alias(_)) {
            "an alias"
        } else {
            kind_of(old)
        };
        let path = if self.path.is_empty() {
            "its top level".to_owned()
        } else {
            self.dotted_path()
        };
        MergeError::Kind {
            path,
            there,
            wanted,
        }
    }
}

/// Whether two items of a list are equal or have the same [`identity`].
fn is_same_item(one: &Value, other: &Value) -> bool {
    one == other || (identity(other).is_some() && identity(one) == identity(other))
}

/// The text that identifies an item of a list, such as a volume mount, a container or a file.
fn identity(item: &Value) -> Option<&str> {
    ["mountPath", "name", "path", "source", "list", "(name)"]
        .iter()
        .find_map(|key| item.get(key)?.as_str())
}

/// The text of a scalar, without the notation that shows its type.
fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => flow_text(other),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Mapping(_) => "a mapping",
        Value::Sequence(_) => "a list",
        _ => "a single value",
    }
}

// Merge keys (`<<`), with which a mapping inherits entries of other mappings.

/// The value of `key` that `mapping` inherits by its merge key, if there is one.
fn inherited_value<'m>(mapping: &'m Mapping, key: &Value) -> Option<&'m Value> {
    let of = |base: &'m Mapping| base.get(key).or_else(|| inherited_value(base, key));
    match mapping.get("<<")? {
        Value::Mapping(base) => of(base),
        Value::Sequence(bases) => bases.iter().filter_map(Value::as_mapping).find_map(of),
        _ => None,
    }
}
