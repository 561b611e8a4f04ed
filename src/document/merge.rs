//! Sets values in YAML text and keeps every other byte.
//!
//! Keys that are there get the new values, missing ones are added behind the others of their mapping. An item of a list
//! that has a `name` or a `path` stands for the item with the same one; any other is added unless it is there. What comes
//! out is read again: if it is not what was meant, nothing is returned.

use super::yaml_tree::{Kind, Member, Tree, trees};
use serde::Deserialize;
use serde_yaml::{Mapping, Value};
use std::ops::Range;

/// Text with values set, and the paths of what is new in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merged {
    /// The text.
    pub text: String,
    /// What was set, as dotted paths.
    pub paths: Vec<String>,
}

/// Why values cannot be set in a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MergeError {
    /// It is no YAML.
    #[error("it is no YAML that can be merged into: {0}")]
    NotYaml(String),
    /// Two kinds of values meet.
    #[error("{path} is {there} in it, and would become {wanted}; change it by hand first")]
    Kind {
        /// Where.
        path: String,
        /// What stands there.
        there: &'static str,
        /// What would.
        wanted: &'static str,
    },
    /// The form of the text is not understood.
    #[error("its form at {0} is one that cannot be edited; write the values there by hand")]
    Form(String),
}

/// The documents of `text` as values.
///
/// # Errors
/// When it is no YAML.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>, MergeError> {
    let each = serde_yaml::Deserializer::from_str(text.trim_start_matches('\u{feff}'));
    each.map(Value::deserialize)
        .collect::<Result<_, _>>()
        .map_err(|error| MergeError::NotYaml(error.to_string()))
}

/// `text` with `values` set in its document number `document`, counted from 0.
///
/// # Errors
/// When it is no YAML, where kinds of values differ, or where its form is not understood.
pub(crate) fn merge(text: &str, document: usize, values: &Mapping) -> Result<Merged, MergeError> {
    let old = documents(text)?;
    let roots = trees(text).ok_or_else(|| MergeError::NotYaml("it does not parse".into()))?;
    let (Some(root), Some(value)) = (roots.get(document), old.get(document)) else {
        return Err(MergeError::NotYaml("it has too few documents".into()));
    };
    let mut merger = Merger { text, edits: Vec::new(), path: Vec::new(), paths: Vec::new() };
    let wanted = merger.mapping(root, value, values)?;
    let (edits, paths) = (merger.edits, merger.paths);
    let merged = apply(text, edits);
    let mut expected = old;
    expected[document] = wanted;
    match documents(&merged) {
        Ok(found) if found == expected => Ok(Merged { text: merged, paths }),
        _ => Err(MergeError::Form(paths.first().cloned().unwrap_or_else(|| "its top".into()))),
    }
}

/// `text` with the edits, which do not overlap; those at one place stand in their order.
fn apply(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, new) in edits {
        out += text.get(at..range.start).unwrap_or_default();
        // a text without a last newline gets one before what is added
        if new.ends_with('\n') && range.start == text.len() && !out.is_empty() && !out.ends_with('\n') {
            out += if text.contains("\r\n") { "\r\n" } else { "\n" };
        }
        out += &if text.contains("\r\n") { new.replace('\n', "\r\n") } else { new };
        at = at.max(range.end);
    }
    out + text.get(at..).unwrap_or_default()
}

struct Merger<'t> {
    text: &'t str,
    edits: Vec<(Range<usize>, String)>,
    path: Vec<String>,
    paths: Vec<String>,
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
            match (members.iter().find(|member| member.key == name), old.get(key)) {
                (Some(member), Some(there)) => {
                    let value = self.value(tree, member, there, value)?;
                    new.insert(key.clone(), value);
                }
                _ => {
                    self.paths.push(self.path.join("."));
                    missing.insert(key.clone(), value.clone());
                    new.insert(key.clone(), value.clone());
                }
            }
            self.path.pop();
        }
        if *flow {
            let pairs =
                missing.iter().map(|(key, value)| format!("{}: {}", flow_text(key), flow_text(value)));
            self.add_flow(tree, members.last().map(|last| last.value.end()), pairs.collect());
        } else if !missing.is_empty() {
            let first = members.first().ok_or_else(|| MergeError::Form(self.path.join(".")))?;
            self.add_lines(tree.end(), &block_text(&missing, self.column(first.at.start))?);
        }
        Ok(Value::Mapping(new))
    }

    /// Sets the value of a member of `parent`.
    fn value(
        &mut self,
        parent: &Tree,
        member: &Member,
        old: &Value,
        new: &Value,
    ) -> Result<Value, MergeError> {
        if old == new {
            return Ok(new.clone());
        }
        let is_empty = match old {
            Value::Null => true,
            Value::Mapping(mapping) => mapping.is_empty(),
            Value::Sequence(list) => list.is_empty(),
            _ => false,
        };
        let in_flow = matches!(parent.kind, Kind::Mapping { flow: true, .. });
        let at = &member.value;
        if at.kind == Kind::Alias {
            return Err(self.mismatch(at, old, kind_of(new)));
        }
        match (old, new) {
            (Value::Mapping(_), Value::Mapping(new)) if !is_empty => return self.mapping(at, old, new),
            (Value::Sequence(old), Value::Sequence(new)) if !is_empty => return self.list(at, old, new),
            (Value::Mapping(_) | Value::Sequence(_), _) if !is_empty => {
                return Err(self.mismatch(at, old, kind_of(new)));
            }
            (_, Value::Mapping(_) | Value::Sequence(_)) if !is_empty => {
                return Err(self.mismatch(at, old, kind_of(new)));
            }
            _ => {}
        }
        self.paths.push(self.path.join("."));
        if in_flow {
            let blank = if at.span.is_empty() { " " } else { "" };
            self.edits.push((at.span.clone(), format!("{blank}{}", flow_text(new))));
            return Ok(new.clone());
        }
        let one = Mapping::from_iter([(Value::from("k"), new.clone())]);
        let text = block_text(&one, self.column(member.at.start))?;
        let text = text.trim_start().strip_prefix("k:").unwrap_or_default().to_owned();
        match text.strip_prefix('\n') {
            // a collection stands below its key, and a comment behind the key stays there
            Some(below) => {
                let rest = self.text[at.span.end..].lines().next().unwrap_or_default();
                let blanks =
                    self.text[..at.span.start].len() - self.text[..at.span.start].trim_end_matches(' ').len();
                let start = if rest.trim().is_empty() { at.span.start - blanks } else { at.span.start };
                self.edits.push((start..at.span.end, String::new()));
                self.add_lines(at.span.end, below);
            }
            None => {
                let ends_line = self.text[at.span.clone()].ends_with('\n');
                let text = if ends_line { &*text } else { text.trim_end_matches('\n') };
                let blank = if at.span.is_empty() { text } else { text.trim_start_matches(' ') };
                self.edits.push((at.span.clone(), blank.to_owned()));
            }
        }
        Ok(new.clone())
    }

    /// Adds to the list `tree` what `new` has more than it.
    fn list(&mut self, tree: &Tree, old: &[Value], new: &[Value]) -> Result<Value, MergeError> {
        let Kind::List { flow, items } = &tree.kind else {
            return Err(MergeError::Form(self.path.join(".")));
        };
        let (mut all, mut missing) = (old.to_vec(), Vec::new());
        for item in new {
            let same = |there: &Value| {
                there == item || (identity(item).is_some() && identity(there) == identity(item))
            };
            match (old.iter().position(same), item) {
                (Some(at), Value::Mapping(values)) if old[at] != *item => {
                    self.path.push(identity(item).unwrap_or_default().to_owned());
                    let tree = items.get(at).ok_or_else(|| MergeError::Form(self.path.join(".")))?;
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
        self.paths.push(self.path.join("."));
        if *flow {
            let last = items.last().map(Tree::end);
            self.add_flow(tree, last, missing.iter().map(flow_text).collect());
        } else {
            let first = items.first().and_then(|first| self.text[..first.span.start].rfind('-'));
            let dash = first.ok_or_else(|| MergeError::Form(self.path.join(".")))?;
            self.add_lines(tree.end(), &block_text(&missing, self.column(dash))?);
        }
        all.extend(missing);
        Ok(Value::Sequence(all))
    }

    /// Adds `parts` behind the last of a flow collection, which ends at `last`.
    fn add_flow(&mut self, tree: &Tree, last: Option<usize>, parts: Vec<String>) {
        if !parts.is_empty() {
            let text = parts.join(", ");
            let (at, text) = match last {
                Some(last) => (last, format!(", {text}")),
                None => (tree.span.start + 1, text),
            };
            self.edits.push((at..at, text));
        }
    }

    /// Adds whole lines behind the line that holds the byte before `end`.
    fn add_lines(&mut self, end: usize, lines: &str) {
        let at = match self.text[..end].ends_with('\n') {
            true => end,
            false => self.text[end..].find('\n').map_or(self.text.len(), |rest| end + rest + 1),
        };
        self.edits.push((at..at, lines.to_owned()));
    }

    /// The column of a byte.
    fn column(&self, at: usize) -> usize {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        self.text[line..at].trim_start_matches('\u{feff}').chars().count()
    }

    fn mismatch(&self, at: &Tree, old: &Value, wanted: &'static str) -> MergeError {
        let there = if at.kind == Kind::Alias { "an alias" } else { kind_of(old) };
        let path = if self.path.is_empty() { "its top".to_owned() } else { self.path.join(".") };
        MergeError::Kind { path, there, wanted }
    }
}

/// What an item of a list is told apart by.
fn identity(item: &Value) -> Option<&str> {
    ["name", "path"].iter().find_map(|key| item.get(key)?.as_str())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Mapping(_) => "a mapping",
        Value::Sequence(_) => "a list",
        _ => "a single value",
    }
}

/// A value in flow notation: JSON, which is YAML too.
fn flow_text(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A collection in block notation, every line indented.
fn block_text(value: &impl serde::Serialize, indent: usize) -> Result<String, MergeError> {
    let text = serde_yaml::to_string(value).map_err(|error| MergeError::NotYaml(error.to_string()))?;
    let indented = |line: &str| match line {
        "" => "\n".to_owned(),
        line => format!("{:indent$}{line}\n", ""),
    };
    Ok(text.lines().map(indented).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str, values: &str) -> Result<Merged, MergeError> {
        merge(text, 0, &serde_yaml::from_str(values).unwrap())
    }

    fn text(text: &str, values: &str) -> String {
        merged(text, values).unwrap_or_else(|error| panic!("{error}\n{text}")).text
    }

    const FILE: &str = "\
# mine
apiVersion: v1   # kept
spec:
    'proxy': {http: \"old\"}   # in one line
    empty:   # filled
    none: []  # filled too
    files:
    - path: /a
      content: |
        one

        two
      # about the mode
      mode: 0640
    - path: /b
    users: [{name: x}]

# the end
status: {}
";

    #[test]
    fn keys_are_set_or_added_and_all_else_stays() {
        let values = "spec:\n  proxy: {http: new, https: \"\"}\n  empty: {a: 1}\n  none: [b]\n  \
                      files:\n  - {path: /a, mode: '0600', content: \"x\\ny\\n\"}\n  - {path: /c}\n  users: [{name: x}, {name: y}]\n  more: {c: d}\n\
                      status: {ok: true}\nlast: 1\n";
        let expected = "\
# mine
apiVersion: v1   # kept
spec:
    'proxy': {http: \"new\", \"https\": \"\"}   # in one line
    empty:   # filled
      a: 1
    none:   # filled too
    - b
    files:
    - path: /a
      content: |
        x
        y
      # about the mode
      mode: '0600'
    - path: /b
    - path: /c
    users: [{name: x}, {\"name\":\"y\"}]
    more:
      c: d

# the end
status:
  ok: true
last: 1
";
        let merged = merged(FILE, values).unwrap();
        assert_eq!(merged.text, expected);
        assert!(merged.paths.contains(&"spec.files./a.mode".to_owned()), "{:?}", merged.paths);
        // once more, there is nothing to do
        assert_eq!(
            super::merge(&merged.text, 0, &serde_yaml::from_str(values).unwrap()).unwrap().paths.len(),
            0
        );
    }

    #[test]
    fn the_other_documents_line_ends_and_a_missing_last_newline_are_kept() {
        assert_eq!(text("a: 1\r\nb: 2", "{c: {d: 3}}"), "a: 1\r\nb: 2\r\nc:\r\n  d: 3\r\n");
        let two = "a: 1\n---\n# two\nb: 1\n...\n";
        let second = merge(two, 1, &serde_yaml::from_str("{b: 2, c: 3}").unwrap()).unwrap();
        assert_eq!(second.text, "a: 1\n---\n# two\nb: 2\nc: 3\n...\n");
        assert_eq!(text("a: |\n  x\nb: 1\n", "{a: y}"), "a: y\nb: 1\n");
    }

    /// Shapes of real files: a comment at the end of a mapping, an empty value at its end, texts in texts, lists of lists.
    #[test]
    fn odd_shapes_keep_their_bytes() {
        for (before, values, after) in [
            ("a:\n  b: 1\n  # b's\nc: 2\n", "{a: {d: 1}}", "a:\n  b: 1\n  d: 1\n  # b's\nc: 2\n"),
            ("a:\n  b:\nc: 2\n", "{a: {b: {x: 1}, d: 1}}", "a:\n  b:\n    x: 1\n  d: 1\nc: 2\n"),
            ("a:\n  b:   # none\n", "{a: {b: x}}", "a:\n  b: x   # none\n"),
            ("a: >-\n  x\n  y\n\nb: 1\n", "{a: z}", "a: z\n\nb: 1\n"),
            ("a: z\n", "{a: \"x\\ny\\n\"}", "a: |\n  x\n  y\n"),
            ("a: 'it''s'   # c\n", "{a: 'no: way'}", "a: 'no: way'   # c\n"),
            ("a: one\n  two   # c\n", "{a: x}", "a: x   # c\n"),
            ("a:\n  - - 1\n    - 2\n  - x: 1\n", "{a: [[3]]}", "a:\n  - - 1\n    - 2\n  - x: 1\n  - - 3\n"),
            ("a:\n- |\n  x\n# end\n", "{a: [b]}", "a:\n- |\n  x\n- b\n# end\n"),
            ("#@data/values\n---\na: {}\n", "{a: {b: 1}}", "#@data/values\n---\na:\n  b: 1\n"),
            ("a: {b: {c: 1,},}\n", "{a: {b: {d: x}}}", "a: {b: {c: 1, \"d\": \"x\",},}\n"),
            ("a: [\n  x,   # c\n]\n", "{a: [y]}", "a: [\n  x, \"y\",   # c\n]\n"),
            ("\u{feff}a: 1\n", "{b: 1}", "\u{feff}a: 1\nb: 1\n"),
            ("é: {ü: 1}   # ö\n", "{é: {ü: 2}}", "é: {ü: 2}   # ö\n"),
            ("a: 1\n...\n", "{b: 1}", "a: 1\nb: 1\n...\n"),
        ] {
            assert_eq!(text(before, values), after);
        }
    }

    #[test]
    fn what_cannot_be_merged_is_refused_with_its_place() {
        for (file, values, words) in [
            ("a: [1]\n", "{a: {b: 1}}", "a is a list in it, and would become a mapping"),
            ("a: 1\n", "{a: [1]}", "a is a single value in it, and would become a list"),
            ("x: &x {b: 1}\na: *x\n", "{a: {c: 1}}", "a is an alias in it"),
            ("- 1\n", "{a: 1}", "its top is a list"),
            ("? a\n: 1\n", "{b: 1}", "its form at b is one that cannot be edited"),
            ("a: [\n", "{a: 1}", "it is no YAML"),
            ("a: 1\na: 2\n", "{b: 1}", "it is no YAML"),
        ] {
            let error = merged(file, values).unwrap_err().to_string();
            assert!(error.contains(words), "{file}: {error}");
        }
    }
}
