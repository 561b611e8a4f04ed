//! `--into`: merges rendered documents into a file of the user.

use super::error::RenderError;
use super::rendered_file::RenderedFile;
use landfall_model::document::{DecodedText, MergeRules, documents, merge};
use serde_yaml::{Mapping, Value};
use std::path::Path;

/// A file of the user into which rendered documents were merged.
#[derive(Debug, Default)]
pub struct MergedFile {
    /// The new content of the file.
    pub text: String,
    /// The values that were set, as dotted paths.
    pub changes: Vec<String>,
    /// The rendered documents that the file has no counterpart for.
    pub notes: Vec<String>,
    /// Whether any of the values is a credential.
    pub secret: bool,
    /// The changed values that the file contains in base64.
    pub decoded: Vec<DecodedText>,
}

/// A rendered document.
struct GivenDocument {
    document: Value,
    /// The name of its file, without folders.
    file: String,
    secret: bool,
}

/// Merges the documents in `files` into `text`, the content of the file at `path`.
///
/// Each document is merged into the one of the same kind and name or, unless it is a Secret or
/// `ConfigMap`, into the only one of its kind. A document without a kind is merged into the only
/// one without a kind; if several files contain such documents, only that of the same file name is.
/// With `replace`, texts that cannot be merged are replaced.
///
/// # Errors
/// Fails if the file is not YAML, has no counterpart for any document, cannot be edited, or would
/// lose content.
pub fn merge_into(
    path: &Path,
    text: &str,
    files: &[RenderedFile],
    replace: bool,
) -> Result<MergedFile, RenderError> {
    let wrong = |source| RenderError::Merge {
        path: path.into(),
        source,
    };
    let there = documents(text).map_err(wrong)?;
    let mut given: Vec<GivenDocument> = Vec::new();
    for RenderedFile {
        path, text, secret, ..
    } in files
    {
        let file = path.rsplit('/').next().unwrap_or_default();
        let each = documents(text).map_err(wrong)?.into_iter();
        given.extend(each.map(|document| GivenDocument {
            document,
            file: file.into(),
            secret: *secret,
        }));
    }
    let file = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let mut merged = MergedFile {
        text: text.into(),
        ..MergedFile::default()
    };
    let mut found = false;
    for one in &given {
        let is_only = given
            .iter()
            .filter(|other| kind(&other.document) == kind(&one.document))
            .count()
            == 1;
        let place = match kind(&one.document) {
            None if !is_only && one.file != file => None,
            None => only(&there, None),
            Some(_) => place(&there, &one.document, is_only),
        };
        let (Some(at), Value::Mapping(values)) = (place, &one.document) else {
            merged.notes.push(format!(
                "{}: the file has none, and it is not written",
                one.shown()
            ));
            continue;
        };
        found = true;
        if let (Some(ours), Some(theirs)) = (name(&one.document), name(&there[at]))
            && ours != theirs
        {
            merged.notes.push(format!(
                "{} goes into {theirs}, the only one of its kind in the file",
                one.shown()
            ));
        }
        let mut values = without_name(values, &there[at]);
        let is_secret = kind(&one.document) == Some("Secret");
        if is_secret {
            beside_data(&mut values, &there[at]);
        }
        let rules = MergeRules {
            replace,
            base64: is_secret.then_some("data"),
        };
        let next = merge(&merged.text, at, &values, rules).map_err(wrong)?;
        merged.secret |= one.secret && !next.paths.is_empty();
        merged.text = next.text;
        merged.changes.extend(next.paths);
        merged.decoded.extend(next.decoded);
    }
    if !found {
        let kinds: Vec<String> = given.iter().map(GivenDocument::shown).collect();
        return Err(RenderError::NoCounterpart {
            path: path.into(),
            kinds: kinds.join(", "),
        });
    }
    Ok(merged)
}

impl GivenDocument {
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

/// Returns the index of the only document of this kind.
fn only(there: &[Value], wanted: Option<&str>) -> Option<usize> {
    match (0..there.len())
        .filter(|at| kind(&there[*at]) == wanted)
        .collect::<Vec<_>>()[..]
    {
        [one] => Some(one),
        _ => None,
    }
}

fn namespace(document: &Value) -> Option<&str> {
    document.get("metadata")?.get("namespace")?.as_str()
}

/// Returns the index of the counterpart of `document` in `there`.
fn place(there: &[Value], document: &Value, is_only: bool) -> Option<usize> {
    let is_named =
        |at: &usize| kind(&there[*at]) == kind(document) && name(&there[*at]) == name(document);
    let named: Vec<usize> = (0..there.len()).filter(is_named).collect();
    match named[..] {
        [at] if name(document).is_some() => return Some(at),
        [_, _, ..] if name(document).is_some() => {
            let is_same = |at: &&usize| namespace(&there[**at]) == namespace(document);
            return named.iter().find(is_same).copied();
        }
        _ => {}
    }
    // a Secret or ConfigMap of another name has another purpose
    let is_data =
        matches!(kind(document), Some("Secret" | "ConfigMap")) && name(document).is_some();
    only(there, kind(document)).filter(|_| is_only && !is_data)
}

/// Moves texts from `stringData` to `data` if the Secret `there` has them in `data`. Otherwise one
/// key would be in both, and Kubernetes prefers `stringData`.
fn beside_data(values: &mut Mapping, there: &Value) {
    let has = |section: &str, key: &Value| {
        there
            .get(section)
            .and_then(|section| section.get(key))
            .is_some()
    };
    let Some(Value::Mapping(texts)) = values.get_mut("stringData") else {
        return;
    };
    let keys: Vec<Value> = texts
        .keys()
        .filter(|key| has("data", key) && !has("stringData", key))
        .cloned()
        .collect();
    let moved: Mapping = keys
        .into_iter()
        .filter_map(|key| Some((key.clone(), texts.shift_remove(&key)?)))
        .collect();
    if texts.is_empty() {
        values.shift_remove("stringData");
    }
    if !moved.is_empty() {
        values.insert("data".into(), Value::Mapping(moved));
    }
}

/// Removes the values that identify the object: those of the user stay.
fn without_name(values: &Mapping, there: &Value) -> Mapping {
    let mut values = values.clone();
    for key in ["apiVersion", "kind"]
        .into_iter()
        .filter(|key| there.get(key).is_some())
    {
        values.shift_remove(key);
    }
    if let (Some(Value::Mapping(metadata)), Some(of_user)) =
        (values.get_mut("metadata"), there.get("metadata"))
    {
        for key in ["name", "namespace"]
            .into_iter()
            .filter(|key| of_user.get(key).is_some())
        {
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
        let text = "kind: A\nmetadata: {name: mine}\n---\nkind: B\nmetadata: {name: \
                    x}\n---\nkind: B\nmetadata: {name: y}\n";
        let files = [
            file("kind: A\nmetadata: {name: theirs}\nspec: 1\n"),
            file("kind: B\nmetadata: {name: y}\nspec: 2\n---\nkind: C\nspec: 3\n").secret(true),
        ];
        let merged = merge_into(Path::new("f"), text, &files, false).unwrap();
        assert_eq!(
            merged.text,
            "kind: A\nmetadata: {name: mine}\nspec: 1\n---\nkind: B\nmetadata: {name: \
             x}\n---\nkind: B\nmetadata: {name: y}\nspec: 2\n"
        );
        let other = "A theirs goes into mine, the only one of its kind in the file";
        assert_eq!(
            merged.notes,
            [other, "C: the file has none, and it is not written"]
        );
        assert!(merged.secret);
        // of files without kinds, the one of the same name
        let files = [
            RenderedFile::new("etc/a.yaml", "x: 1\n"),
            RenderedFile::new("etc/d/b.yaml", "y: 1\n"),
        ];
        let merged = merge_into(Path::new("mine/b.yaml"), "z: 1\n", &files, false).unwrap();
        assert_eq!((&*merged.text, merged.notes.len()), ("z: 1\ny: 1\n", 1));
        let error = merge_into(Path::new("mine.yaml"), "z: 1\n", &files, false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("a.yaml, b.yaml"), "{error}");
    }

    #[test]
    fn a_file_without_any_of_the_documents_is_refused() {
        let files = [
            file("kind: A\nmetadata: {name: theirs}\n"),
            file("kind: B\nmetadata: {name: y}\n---\nkind: C\n"),
        ];
        let error = merge_into(Path::new("f"), "kind: D\n", &files, false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("A theirs, B y, C"), "{error}");
    }

    #[test]
    fn a_secret_is_found_by_its_name_and_gets_texts_where_it_has_them() {
        let ours =
            file("kind: Secret\nmetadata: {name: a, namespace: n}\nstringData: {x: new, y: y}\n");
        let mine = "kind: Secret\nmetadata: {name: b}\nstringData: {x: mine}\n";
        let error = merge_into(Path::new("f"), mine, std::slice::from_ref(&ours), false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("Secret a"), "{error}");
        // x is `b2xk`, old
        let mine = "kind: Secret\nmetadata: {name: a, namespace: m}\ndata: {x: b2xk}\n---\n\
                    kind: Secret\nmetadata: {name: a, namespace: n}\ndata: {x: b2xk, z: eg==}\n";
        let merged = merge_into(Path::new("f"), mine, &[ours], false).unwrap();
        let expected = mine.replace(
            "x: b2xk, z: eg==}",
            "x: \"bmV3\", z: eg==}\nstringData:\n  y: y",
        );
        assert_eq!(merged.text, expected);
        assert_eq!(merged.decoded[0].old, "old");
    }
}
