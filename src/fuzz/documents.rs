//! Targets for YAML documents of users and charts, and for locks.

use landfall_item::lockfile::Lock;
use landfall_model::DestinationMap;
use landfall_model::document::{
    MergeRules, ObjectPosition, documents as parsed, merge as merged, read,
};
use landfall_rewrite::{ReferenceIndex, RewriteOptions, TextSyntax, rewrite};
use serde_yaml::Value;

/// A lock whose references the `yaml` target rewrites.
const LOCK: &str = include_str!("../../tests/data/packages/machines.lock");

/// Documents with the features of YAML that people use, and JSON with YAML in a string.
pub(super) fn yaml_seeds() -> Vec<Vec<u8>> {
    [
        "a: &a [1, two, {three: 'x'}]\nb: *a\nc:\n  <<: {d: 1}\n  e: |\n    text\n    more\n  f: >-\n    folded\n---\n- x\n- !tag y\n",
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a # a comment\n    image: \"quay.io/a/b:1\"\n    args: [--x=quay.io/a/b:1]\n",
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\nvars: {v: \"1.2\"}\nimages:\n- quay.io/a/b:${v}\n",
        "{\"image\": {\"repository\": \"quay.io/a/b\", \"tag\": \"1\"}, \"values.yaml\": \"x: 1\\ny: [2]\"}\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Parses and rewrites the text. Rewriting the result again must not change it.
pub(super) fn yaml(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = read::<Value>("fuzz.yaml", &text);
    let lock = Lock::parse("l", LOCK).unwrap();
    let index = ReferenceIndex::new(&lock, &DestinationMap::to("r.test:5000".parse().unwrap()));
    for syntax in [TextSyntax::Document, TextSyntax::Text] {
        let once = rewrite(&text, syntax, &index, RewriteOptions::default()).text;
        let again = rewrite(&once, syntax, &index, RewriteOptions::default()).text;
        assert_eq!(again, once, "a second rewrite changes the text");
    }
}

/// Merges values into the first document. The result must be YAML with the merged values, the
/// document's other members, and the other documents. Merging again must not change it.
pub(super) fn merge(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let values = read(
        "values",
        "landfall: {merged: [1, \"a: b\"]}\nspec: {x: y}\n",
    )
    .unwrap();
    let first = ObjectPosition::default();
    let Ok(after) = merged(&text, first, &values, MergeRules::default()) else {
        return;
    };
    let text_after = &after.text;
    let before = parsed(&text).unwrap();
    let documents = parsed(text_after).unwrap();
    let document = &documents[0];
    assert_eq!(
        document["landfall"]["merged"][1],
        Value::from("a: b"),
        "{text_after}"
    );
    assert_eq!(document["spec"]["x"], Value::from("y"), "{text_after}");
    let members = before
        .first()
        .and_then(Value::as_mapping)
        .into_iter()
        .flatten();
    for (key, value) in members.filter(|(key, _)| *key != "landfall" && *key != "spec") {
        assert_eq!(document.get(key), Some(value), "{key:?}: {text_after}");
    }
    assert!(before.iter().skip(1).eq(&documents[1..]), "{text_after}");
    let again = merged(text_after, first, &values, MergeRules::default()).unwrap();
    assert_eq!(&again.text, text_after);
}

/// Two locks that together have every kind of item.
pub(super) fn lock_seeds() -> Vec<Vec<u8>> {
    vec![
        LOCK.as_bytes().to_vec(),
        include_bytes!("../../tests/data/every-kind.lock").to_vec(),
    ]
}

/// Parses a lock. If it is valid, its text must parse to the same lock.
pub(super) fn lock(bytes: &[u8]) {
    let Ok(lock) = Lock::parse("l", &String::from_utf8_lossy(bytes)) else {
        return;
    };
    let text = lock.to_text();
    assert_eq!(Lock::parse("l", &text).unwrap().to_text(), text);
}
