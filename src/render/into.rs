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

/// A document that a platform gives.
struct Given {
    document: Value,
    /// The last part of its file's path.
    file: String,
    secret: bool,
}

/// `text`, the content of the file at `path`, with what `files` hold. Each of their documents goes to the one of the same
/// kind and name, or to the only one of its kind. One without a kind goes to the only one there is; where several files
/// have such, to that of the same file name.
///
/// # Errors
/// When the file is no YAML, has no document for any of them, or cannot be edited.
pub(crate) fn into(path: &Path, text: &str, files: &[RenderedFile]) -> Result<MergedFile, RenderError> {
    let wrong = |source| RenderError::Merge { path: path.into(), source };
    let there = documents(text).map_err(wrong)?;
    let mut given: Vec<Given> = Vec::new();
    for RenderedFile { path, text, secret, .. } in files {
        let file = path.rsplit('/').next().unwrap_or_default();
        let each = documents(text).map_err(wrong)?.into_iter();
        given.extend(each.map(|document| Given { document, file: file.into(), secret: *secret }));
    }
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut merged = MergedFile { text: text.into(), changes: Vec::new(), notes: Vec::new(), secret: false };
    let mut found = false;
    for one in &given {
        let is_only = given.iter().filter(|other| kind(&other.document) == kind(&one.document)).count() == 1;
        let place = match kind(&one.document) {
            None if !is_only && one.file != file => None,
            None => only(&there, None),
            Some(_) => place(&there, &one.document, is_only),
        };
        let (Some(at), Value::Mapping(values)) = (place, &one.document) else {
            merged.notes.push(format!("{}: the file has none, and it is not written", one.shown()));
            continue;
        };
        found = true;
        let next = merge(&merged.text, at, &without_name(values, &there[at])).map_err(wrong)?;
        merged.secret |= one.secret && !next.paths.is_empty();
        merged.text = next.text;
        merged.changes.extend(next.paths);
    }
    if !found {
        let kinds: Vec<String> = given.iter().map(Given::shown).collect();
        return Err(RenderError::NoPlace { path: path.into(), kinds: kinds.join(", ") });
    }
    Ok(merged)
}

impl Given {
    fn shown(&self) -> String {
        match (kind(&self.document), name(&self.document)) {
            (None, _) => self.file.clone(),
            (Some(kind), None) => kind.to_owned(),
            (Some(kind), Some(name)) => format!("{kind} {name}"),
        }
    }
}

fn kind(document: &Value) -> Option<&str> {
    document.get("kind")?.as_str()
}

fn name(document: &Value) -> Option<&str> {
    document.get("metadata")?.get("name")?.as_str()
}

/// The only one of the documents that has this kind.
fn only(there: &[Value], wanted: Option<&str>) -> Option<usize> {
    match (0..there.len()).filter(|at| kind(&there[*at]) == wanted).collect::<Vec<_>>()[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// Which of the documents `there` stands for `document`.
fn place(there: &[Value], document: &Value, is_only: bool) -> Option<usize> {
    let is_same = |other: &&Value| kind(other) == kind(document) && name(other) == name(document);
    let named = name(document).and_then(|_| there.iter().position(|other| is_same(&other)));
    named.or_else(|| only(there, kind(document)).filter(|_| is_only))
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
        // of files without kinds, the one of the same name
        let files = [RenderedFile::new("etc/a.yaml", "x: 1\n"), RenderedFile::new("etc/d/b.yaml", "y: 1\n")];
        let merged = into(Path::new("mine/b.yaml"), "z: 1\n", &files).unwrap();
        assert_eq!((&*merged.text, merged.notes.len()), ("z: 1\ny: 1\n", 1));
        let error = into(Path::new("mine.yaml"), "z: 1\n", &files).unwrap_err().to_string();
        assert!(error.contains("a.yaml, b.yaml"), "{error}");
    }

    #[test]
    fn a_file_without_any_of_the_documents_is_refused() {
        let files = [
            file("kind: A\nmetadata: {name: theirs}\n"),
            file("kind: B\nmetadata: {name: y}\n---\nkind: C\n"),
        ];
        let error = into(Path::new("f"), "kind: D\n", &files).unwrap_err().to_string();
        assert!(error.contains("A theirs, B y, C"), "{error}");
    }
}
