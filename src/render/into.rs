//! `--into`: what a platform gives, merged into a file of the user's.

use super::error::RenderError;
use super::file::RenderedFile;
use crate::document::{documents, merge};
use serde_yaml::{Mapping, Value};
use std::path::Path;

/// The user's file with the values of a platform.
#[derive(Debug)]
pub(crate) struct MergedFile {
    /// Its content.
    pub text: String,
    /// What was set, as dotted paths.
    pub changes: Vec<String>,
    /// What the platform gives and the file has no place for.
    pub notes: Vec<String>,
    /// Whether what was set holds credentials.
    pub secret: bool,
}

/// `text`, the content of the file at `path`, with what `files` hold. Each of their documents goes to the one of the same
/// kind and name; one without a kind, or a kind that both have once, to the only one there is.
///
/// # Errors
/// When the file is no YAML, has no document for any of them, or cannot be edited.
pub(crate) fn into(path: &Path, text: &str, files: &[RenderedFile]) -> Result<MergedFile, RenderError> {
    let wrong = |source| RenderError::Merge { path: path.into(), source };
    let there = documents(text).map_err(wrong)?;
    let mut wanted: Vec<(Value, bool)> = Vec::new();
    for file in files {
        wanted.extend(documents(&file.text).map_err(wrong)?.into_iter().map(|one| (one, file.secret)));
    }
    let mut merged = MergedFile { text: text.into(), changes: Vec::new(), notes: Vec::new(), secret: false };
    let mut found = false;
    for (document, secret) in &wanted {
        let is_only = wanted.iter().filter(|(other, _)| kind(other) == kind(document)).count() == 1;
        let (Some(at), Value::Mapping(values)) = (place(&there, document, is_only), document) else {
            merged.notes.push(format!("{}: the file has none, and it is not written", shown(document)));
            continue;
        };
        found = true;
        let one = merge(&merged.text, at, &without_name(values, &there[at])).map_err(wrong)?;
        merged.secret |= *secret && !one.paths.is_empty();
        merged.text = one.text;
        merged.changes.extend(one.paths);
    }
    if !found {
        let kinds: Vec<String> = wanted.iter().map(|(document, _)| shown(document)).collect();
        return Err(RenderError::NoPlace { path: path.into(), kinds: kinds.join(", ") });
    }
    Ok(merged)
}

fn kind(document: &Value) -> Option<&str> {
    document.get("kind")?.as_str()
}

fn name(document: &Value) -> Option<&str> {
    document.get("metadata")?.get("name")?.as_str()
}

fn shown(document: &Value) -> String {
    format!("{} {}", kind(document).unwrap_or("values"), name(document).unwrap_or_default()).trim().to_owned()
}

/// Which of the documents `there` stands for `document`.
fn place(there: &[Value], document: &Value, is_only: bool) -> Option<usize> {
    let like: Vec<usize> = (0..there.len()).filter(|at| kind(&there[*at]) == kind(document)).collect();
    let named = like.iter().copied().find(|at| name(&there[*at]) == name(document));
    named.or(match like[..] {
        [one] if is_only => Some(one),
        _ => None,
    })
}

/// The values but for those that say which object it is: the user's stay.
fn without_name(values: &Mapping, there: &Value) -> Mapping {
    let mut values = values.clone();
    for key in ["apiVersion", "kind"].into_iter().filter(|key| there.get(key).is_some()) {
        values.shift_remove(key);
    }
    if let (Some(Value::Mapping(metadata)), Some(of_user)) =
        (values.get_mut("metadata"), there.get("metadata"))
    {
        for key in ["name", "namespace"].into_iter().filter(|key| of_user.get(key).is_some()) {
            metadata.shift_remove(key);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> RenderedFile {
        RenderedFile::new("a.yaml", text)
    }

    #[test]
    fn documents_find_their_places_by_kind_and_name() {
        let text = "kind: A\nmetadata: {name: mine}\n---\nkind: B\nmetadata: {name: x}\n---\nkind: B\nmetadata: {name: y}\n";
        let files = [
            file("kind: A\nmetadata: {name: theirs}\nspec: 1\n"),
            file("kind: B\nmetadata: {name: y}\nspec: 2\n---\nkind: C\nspec: 3\n").secret(true),
        ];
        let merged = into(Path::new("f"), text, &files).unwrap();
        assert_eq!(
            merged.text,
            "kind: A\nmetadata: {name: mine}\nspec: 1\n---\nkind: B\nmetadata: {name: x}\n---\nkind: B\nmetadata: {name: y}\nspec: 2\n"
        );
        assert_eq!(merged.notes, ["C: the file has none, and it is not written"]);
        assert!(merged.secret);
        let error = into(Path::new("f"), "kind: D\n", &files).unwrap_err().to_string();
        assert!(error.contains("A theirs, B y, C"), "{error}");
    }
}
