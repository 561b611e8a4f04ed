//! Properties that hold for any document.

use super::{IMAGES, SITE, digest, lock};
use crate::support::library;
use crate::support::library::{
    Lock, ReferenceIndex, RewriteOptions, RewriteResult, Site, TextSyntax, destination_map,
};
use proptest::prelude::*;
use std::path::Path;

fn rewrite(text: &str, known: &ReferenceIndex) -> RewriteResult {
    library::rewrite(text, TextSyntax::Document, known, RewriteOptions::default())
}

/// The references that are known in a rewrite, and in a reverse rewrite.
fn ways() -> [ReferenceIndex; 2] {
    let site = Site::parse(Path::new("site.yaml"), SITE).unwrap();
    let mapping = destination_map("172.20.0.2:5000".parse().unwrap(), Some(&site));
    let lock = Lock::parse("l", &lock(&IMAGES)).unwrap();
    [
        ReferenceIndex::new(&lock, &mapping),
        ReferenceIndex::reverse(&lock, &mapping),
    ]
}

fn known() -> ReferenceIndex {
    let [there, _] = ways();
    there
}

/// A scalar: a reference of some kind, or a word. With `canonical`, references are spelled as in
/// the lock.
fn scalar(canonical: bool) -> impl Strategy<Value = String> {
    let mut texts: Vec<String> = IMAGES.iter().map(|name| (*name).to_owned()).collect();
    texts.extend(
        IMAGES
            .iter()
            .map(|name| name.rsplit_once(':').unwrap().0.to_owned()),
    );
    texts.extend(IMAGES.iter().map(|name| format!("{name}@{}", digest(name))));
    let argument = |name: &&str| format!("--image={name} --no-such={name}0");
    texts.extend(IMAGES.iter().map(argument));
    texts.extend(["a: b", "é", "~", "", "1.27", "x:y", "quay.io/other/one:1"].map(str::to_owned));
    let more = [
        "nginx",
        "nginx:1.27",
        "nginx:1.28",
        "index.docker.io/library/nginx:1.27",
        "registry.k8s.io/pause:3.1",
    ];
    texts.extend(more.map(str::to_owned).into_iter().filter(|_| !canonical));
    let text = proptest::sample::select(texts);
    (text, 0..4).prop_map(|(text, style)| match style {
        0 if !text.contains(": ") && !text.is_empty() => text,
        1 => format!("'{text}'"),
        _ => format!("\"{text}\""),
    })
}

/// Generates a reference in parts.
fn parts() -> impl Strategy<Value = String> {
    (proptest::sample::select(IMAGES.to_vec()), any::<bool>()).prop_map(|(name, apart)| {
        let (name, tag) = name.rsplit_once(':').unwrap();
        let (registry, repository) = name.split_once('/').unwrap();
        match apart {
            true => format!(" {{registry: {registry}, repository: '{repository}', tag: {tag}}}\n"),
            false => format!(" {{imageRepository: \"{name}\", imageTag: '{tag}'}}\n"),
        }
    })
}

/// Generates a node at an indentation: the text after its key or dash.
fn node(indent: usize, depth: u32, canonical: bool) -> BoxedStrategy<String> {
    let scalar = || scalar(canonical);
    let comment = proptest::sample::select(vec!["", "  # k8s.gcr.io/pause:3.1", "   "]);
    let leaf = (scalar(), comment).prop_map(|(scalar, comment)| format!(" {scalar}{comment}\n"));
    let flow = proptest::collection::vec(scalar(), 0..4)
        .prop_map(|list| format!(" [{}]\n", list.join(" , ")));
    let block = scalar().prop_map(move |text| format!(" |-\n{}{text}\n", " ".repeat(indent + 2)));
    if depth == 0 {
        return prop_oneof![4 => leaf, 1 => flow, 1 => block, 1 => parts()].boxed();
    }
    let keys = [
        "image",
        "registry",
        "repository",
        "tag",
        "digest",
        "containers",
        "imageTag",
        "name",
    ];
    let keys = proptest::sample::subsequence(keys.to_vec(), 1..6);
    let pad = " ".repeat(indent + 2);
    let map = (
        keys,
        proptest::collection::vec(node(indent + 2, depth - 1, canonical), 8),
    )
        .prop_map({
            let pad = pad.clone();
            move |(keys, values)| {
                let entries = keys
                    .iter()
                    .zip(values)
                    .map(|(key, value)| format!("{pad}{key}:{value}"));
                format!("\n{}", entries.collect::<String>())
            }
        });
    let list = proptest::collection::vec(node(indent + 2, depth - 1, canonical), 1..4).prop_map(
        move |items| {
            format!(
                "\n{}",
                items
                    .iter()
                    .map(|item| format!("{pad}-{item}"))
                    .collect::<String>()
            )
        },
    );
    prop_oneof![3 => leaf, 1 => flow, 1 => block, 3 => map, 2 => list].boxed()
}

fn stream(canonical: bool) -> impl Strategy<Value = String> {
    let document = node(0, 3, canonical).prop_map(|node| format!("root:{node}"));
    (
        proptest::collection::vec(document, 1..3),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(documents, crlf, bom)| {
            let text = documents.join("---\n");
            let text = if crlf {
                text.replace('\n', "\r\n")
            } else {
                text
            };
            if bom { format!("\u{feff}{text}") } else { text }
        })
}

/// Generates the syntax by which a text is parsed.
fn kinds() -> impl Strategy<Value = TextSyntax> {
    proptest::sample::select(vec![
        TextSyntax::Document,
        TextSyntax::Document,
        TextSyntax::Text,
    ])
}

/// Every document of a text, as an independent parser reads it.
fn values(text: &str) -> Vec<serde_yaml::Value> {
    use serde::Deserialize;
    serde_yaml::Deserializer::from_str(text)
        .map(|document| serde_yaml::Value::deserialize(document).unwrap())
        .collect()
}

fn strings(value: &serde_yaml::Value, found: &mut Vec<String>) {
    match value {
        serde_yaml::Value::Sequence(items) => items.iter().for_each(|item| strings(item, found)),
        serde_yaml::Value::Mapping(map) => map.iter().for_each(|(key, value)| {
            strings(key, found);
            strings(value, found);
        }),
        other => found.push(format!("{other:?}")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_the_reported_bytes_change_and_rewriting_is_idempotent(text in stream(false)) {
        let known = known();
        let first = rewrite(&text, &known);
        let mut old = 0;
        let mut new = 0;
        for edit in first.scan.edits() {
            let kept = edit.span.start - old;
            prop_assert_eq!(&text[old..old + kept], &first.text[new..new + kept]);
            prop_assert_eq!(&first.text[new + kept..new + kept + edit.bytes.len()], &edit.bytes);
            (old, new) = (edit.span.end, new + kept + edit.bytes.len());
        }
        prop_assert_eq!(&text[old..], &first.text[new..]);

        let second = rewrite(&first.text, &known);
        prop_assert_eq!(second.scan.found.iter().filter(|finding| finding.is_change()).count(), 0);
        prop_assert_eq!(second.text, first.text);
    }

    #[test]
    fn another_parser_reads_the_changed_values(text in stream(false)) {
        let result = rewrite(&text, &known());
        let mut before = Vec::new();
        let mut after = Vec::new();
        values(&text).iter().for_each(|value| strings(value, &mut before));
        values(&result.text).iter().for_each(|value| strings(value, &mut after));
        prop_assert_eq!(before.len(), after.len());
        let differing: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
        let edits = result.scan.edits();
        prop_assert_eq!(differing.len(), edits.len());
        for ((old, new), edit) in differing.iter().zip(edits) {
            prop_assert_eq!(&old.replacen(&text[edit.span.clone()], &edit.bytes, 1), *new);
        }
    }

    #[test]
    fn rewriting_again_after_a_reverse_gives_the_same_result(text in stream(false), kind in kinds()) {
        let ways = ways();
        let way = |text: &str, known| library::rewrite(text, kind, known, RewriteOptions::default()).text;
        let there = way(&text, &ways[0]);
        prop_assert_eq!(way(&way(&there, &ways[1]), &ways[0]), there);
    }

    #[test]
    fn a_reverse_rewrite_restores_canonical_names(text in stream(true), kind in kinds()) {
        let ways = ways();
        let way = |text: &str, known| library::rewrite(text, kind, known, RewriteOptions::default()).text;
        prop_assert_eq!(way(&way(&text, &ways[0]), &ways[1]), text);
    }
}
