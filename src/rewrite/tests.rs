//! Shapes of YAML, each with what is made of it.

use super::{Kind, Known, Mapping, Meaning, Options, rewrite};
use crate::lock::Lock;
use crate::model::Digest;

fn known() -> Known {
    let names = [
        "quay.io/a/b:v1",
        "docker.io/library/nginx:1.27",
        "docker.io/library/nginx:latest",
        "quay.io/c/d:1.10",
    ];
    let images = names.map(|name| {
        format!("- {{name: '{name}', digest: {}, mediaType: m, size: 1}}\n", Digest::sha256(name.as_bytes()))
    });
    let lock = Lock::parse("l", &format!("version: 1\nimages:\n{}", images.concat())).unwrap();
    Known::new(&lock, &Mapping::new("r:5/p".parse().unwrap(), None))
}

/// The new text, and the reasons for what was left.
fn run(source: &str) -> (String, Vec<String>) {
    let result = rewrite(source, Kind::Document, &known(), Options::default());
    let left = result.findings.found.into_iter().filter_map(|finding| match finding.meaning {
        Meaning::Left { why } => Some(why),
        _ => None,
    });
    (result.text, left.collect())
}

/// Checks that `source` becomes `expected` and that nothing is left, and that it ends there.
fn becomes(source: &str, expected: &str) {
    assert_eq!(run(source), (expected.to_owned(), vec![]));
    assert_eq!(run(expected), (expected.to_owned(), vec![]));
}

/// Checks that `source` stays, with one reason.
fn stays(source: &str, reason: &str) {
    let (text, left) = run(source);
    assert_eq!(text, source);
    assert!(left.len() == 1 && left[0].contains(reason), "{source}: {left:?}");
}

#[test]
fn any_key_any_nesting_and_json() {
    becomes("- [{a: {b: ['quay.io/a/b:v1']}}]", "- [{a: {b: ['r:5/p/a/b:v1']}}]");
    becomes("quay.io/a/b:v1", "r:5/p/a/b:v1");
    becomes("{\"a\":{\"b\":[\"quay.io/a/b:v1\",{}]}}\n", "{\"a\":{\"b\":[\"r:5/p/a/b:v1\",{}]}}\n");
    becomes("? [x]\n: !!str quay.io/a/b:v1\n", "? [x]\n: !!str r:5/p/a/b:v1\n");
    becomes(
        "a: quay.io/a/b:v1\n---\n--- # x\nb: nginx:1.27",
        "a: r:5/p/a/b:v1\n---\n--- # x\nb: r:5/p/library/nginx:1.27",
    );
    let comments = "# nginx:1.27\n".repeat(500);
    becomes(&format!("{comments}a: 1"), &format!("{comments}a: 1"));
    let long = format!("{{\"x\":[{}\"quay.io/a/b:v1\"]}}", "\"some text\",".repeat(500));
    becomes(&long, &long.replace("quay.io", "r:5/p"));
}

#[test]
fn an_anchor_is_rewritten_once() {
    becomes(
        "a: &x quay.io/a/b:v1\nb: *x\nc: {<<: {d: *x}}\n",
        "a: &x r:5/p/a/b:v1\nb: *x\nc: {<<: {d: *x}}\n",
    );
}

#[test]
fn what_is_spelled_otherwise_than_it_reads_is_left() {
    stays("a: \"quay.io/a/\\\n  b:v1\"", "several lines");
    stays("quay.io/a/b:v1: x", "key");
}

#[test]
fn however_it_is_spelled() {
    becomes("a: \"quay.io\\/a\\/b:v1\"", "a: \"r:5\\/p\\/a\\/b:v1\"");
    becomes(
        "{registry: \"quay\\x2eio\", repository: a/b, tag: v1}",
        "{registry: \"r:5\", repository: p/a/b, tag: v1}",
    );
    becomes("a: |\n  quay.io/a/b:v1\n", "a: |\n  r:5/p/a/b:v1\n");
    becomes("a: >-\n  quay.io/a/b:v1\n", "a: >-\n  r:5/p/a/b:v1\n");
    becomes("a: \" quay.io/a/b:v1 \"", "a: \" r:5/p/a/b:v1 \"");
    becomes(
        "a: ' quay.io/a/b:v1'\nb: [x,\tnginx:1.27 ]",
        "a: ' r:5/p/a/b:v1'\nb: [x,\tr:5/p/library/nginx:1.27 ]",
    );
}

#[test]
fn positions() {
    becomes("image: nginx", "image: r:5/p/library/nginx");
    becomes("spec: {containers: [{image: nginx}]}", "spec: {containers: [{image: r:5/p/library/nginx}]}");
    stays("spec: {containers: [{image: quay.io/a/b}]}", "means latest");
    stays("services: {web: {image: quay.io/a/b}}", "means latest");
    stays("volumes: [{image: {reference: quay.io/a/b}}]", "means latest");
    becomes("my_image: quay.io/a/b", "my_image: r:5/p/a/b");
    becomes("name: nginx", "name: nginx");
    becomes("containers: [nginx, {name: nginx}]", "containers: [nginx, {name: nginx}]");
}

#[test]
fn the_split_form() {
    becomes("{registry: quay.io, repository: a/b, tag: v1}", "{registry: r:5, repository: p/a/b, tag: v1}");
    becomes("{registry: quay.io/a/, repository: b, tag: v1}", "{registry: r:5/, repository: p/a/b, tag: v1}");
    becomes(
        "{registry: '', repository: quay.io/a/b, tag: v1}",
        "{registry: '', repository: r:5/p/a/b, tag: v1}",
    );
    becomes(
        "{registry: ~, repository: quay.io/c/d, tag: 1.10}",
        "{registry: ~, repository: r:5/p/c/d, tag: 1.10}",
    );
    becomes("{repository: nginx, tag: 1.27}", "{repository: r:5/p/library/nginx, tag: 1.27}");
    becomes("{repository: quay.io/a/b, tag:}", "{repository: r:5/p/a/b, tag:}");
    becomes("{registry: quay.io, repository: 'a/b:v1'}", "{registry: r:5, repository: 'p/a/b:v1'}");
    becomes(
        "{imageRegistry: quay.io, image_repository: a/b, image-tag: v1}",
        "{imageRegistry: r:5, image_repository: p/a/b, image-tag: v1}",
    );
    becomes("{image: quay.io/a/b, tag: v1}", "{image: r:5/p/a/b, tag: v1}");
    becomes("{image: nginx, imageTag: '1.27'}", "{image: r:5/p/library/nginx, imageTag: '1.27'}");
    becomes("{registry: quay.io, image: {repository: x}}", "{registry: quay.io, image: {repository: x}}");
    let digest = Digest::sha256(b"quay.io/a/b:v1");
    let (hex, algorithm) = (digest.hex(), "sha256");
    becomes(
        &format!("{{repository: quay.io/a/b, tag: other, digest: \"{digest}\"}}"),
        &format!("{{repository: r:5/p/a/b, tag: other, digest: \"{digest}\"}}"),
    );
    becomes(
        &format!("{{repository: quay.io/a/b@{algorithm}, tag: {hex}}}"),
        &format!("{{repository: r:5/p/a/b@{algorithm}, tag: {hex}}}"),
    );
}

#[test]
fn split_references_that_cannot_be_decided_are_left() {
    stays("{registry: quay.io, repository: a/b, tag: v2}", "only as v1");
    stays("{image: nginx, tag: '1.28'}", "only as");
    stays("{repository: nginx}", "neither a host nor a tag");
    stays("{repository: quay.io/a/b, tag: '{{ .Chart.AppVersion }}'}", "tag or digest is none");
    stays("{registry: docker.io, repository: quay.io/a/b, tag: v1}", "both name a host");
    stays("x: &x {tag: v2}\ny: {<<: *x, repository: quay.io/a/b}", "merged");
    stays("x: &r quay.io\ny: {registry: *r, repository: a/b, tag: v1}", "anchor");
    stays("y: {registry: &r quay.io, repository: a/b, tag: v1}\nz: *r", "anchor");
}

#[test]
fn landfalls_own_documents_name_things_as_upstream_does() {
    let manifest = "apiVersion: landfall/v1\nkind: Manifest\nimages: [quay.io/a/b:v1]\n";
    becomes(manifest, manifest);
    becomes(&format!("{manifest}---\nx: quay.io/a/b:v1\n"), &format!("{manifest}---\nx: r:5/p/a/b:v1\n"));
}

#[test]
fn what_is_no_yaml_is_taken_word_by_word() {
    becomes("a: 1\nb: [\nc: quay.io/a/b:v1\n", "a: 1\nb: [\nc: r:5/p/a/b:v1\n");
    becomes("a: *nobody\nx: \"nginx:1.27\"", "a: *nobody\nx: \"r:5/p/library/nginx:1.27\"");
}
