//! Shapes of YAML, each with its rewritten form.

use super::{ReferenceIndex, ReferenceMeaning, RewriteOptions, TextSyntax, rewrite};
use landfall_item::lockfile::Lock;
use landfall_model::{DestinationMap, Digest};

pub(super) fn known() -> ReferenceIndex {
    let names = [
        "quay.io/a/b:v1",
        "docker.io/library/nginx:1.27",
        "docker.io/library/nginx:latest",
        "quay.io/c/d:1.10",
    ];
    let images = names.map(|name| {
        format!(
            "- {{name: '{name}', digest: {}, mediaType: m, size: 1}}\n",
            Digest::sha256(name.as_bytes())
        )
    });
    let lock = Lock::parse("l", &format!("version: 1\nimages:\n{}", images.concat())).unwrap();
    ReferenceIndex::new(&lock, &DestinationMap::to("r:5/p".parse().unwrap()))
}

/// Rewrites `source` as a document. Returns the new text and the reasons why references were not
/// changed.
pub(super) fn run(source: &str) -> (String, Vec<String>) {
    run_as(source, TextSyntax::Document)
}

/// Like [`run`], for a text that is read as `syntax`.
pub(super) fn run_as(source: &str, syntax: TextSyntax) -> (String, Vec<String>) {
    let result = rewrite(source, syntax, &known(), RewriteOptions::default());
    let left = result
        .scan
        .found
        .into_iter()
        .filter_map(|occurrence| match occurrence.meaning {
            ReferenceMeaning::Left(why) => Some(why),
            _ => None,
        });
    (result.text, left.collect())
}

/// Checks that a rewrite turns `source` into `expected` and gives no reason for an unchanged
/// reference, and that another rewrite changes nothing.
pub(super) fn becomes(source: &str, expected: &str) {
    assert_eq!(run(source), (expected.to_owned(), vec![]));
    assert_eq!(run(expected), (expected.to_owned(), vec![]));
}

/// Checks that a rewrite does not change `source`, and gives one reason, which contains `reason`.
pub(super) fn stays(source: &str, reason: &str) {
    let (text, left) = run(source);
    assert_eq!(text, source);
    assert!(
        left.len() == 1 && left[0].contains(reason),
        "{source}: {left:?}"
    );
}

/// Rewrites `source` with a lock of the images `names` and a site with these `paths`. Returns the
/// new text and the reasons why references were not changed.
pub(super) fn at_site(names: &[&str], paths: &str, source: &str) -> (String, Vec<String>) {
    let images = names.iter().map(|name| {
        format!(
            "- {{name: '{name}', digest: {}, mediaType: m, size: 1}}\n",
            Digest::sha256(name.as_bytes())
        )
    });
    let lock = format!("version: 1\nimages:\n{}", images.collect::<String>());
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: 'r:5000', paths: {{{paths}}}}}"
    );
    let site = landfall_model::config::Site::parse(std::path::Path::new("s"), &site).unwrap();
    let known = ReferenceIndex::new(
        &Lock::parse("l", &lock).unwrap(),
        &landfall_model::config::destination_map("r:5".parse().unwrap(), Some(&site)),
    );
    let result = rewrite(
        source,
        TextSyntax::Document,
        &known,
        RewriteOptions::default(),
    );
    let left = result
        .scan
        .found
        .into_iter()
        .filter_map(|occurrence| match occurrence.meaning {
            ReferenceMeaning::Left(why) => Some(why),
            _ => None,
        });
    (result.text, left.collect())
}

#[test]
fn references_are_found_under_any_key_at_any_depth_and_in_json() {
    becomes(
        "- [{a: {b: ['quay.io/a/b:v1']}}]",
        "- [{a: {b: ['r:5/p/a/b:v1']}}]",
    );
    becomes("quay.io/a/b:v1", "r:5/p/a/b:v1");
    becomes(
        "{\"a\":{\"b\":[\"quay.io/a/b:v1\",{}]}}\n",
        "{\"a\":{\"b\":[\"r:5/p/a/b:v1\",{}]}}\n",
    );
    becomes(
        "? [x]\n: !!str quay.io/a/b:v1\n",
        "? [x]\n: !!str r:5/p/a/b:v1\n",
    );
    becomes(
        "a: quay.io/a/b:v1\n---\n--- # x\nb: nginx:1.27",
        "a: r:5/p/a/b:v1\n---\n--- # x\nb: r:5/p/library/nginx:1.27",
    );
    let comments = "# nginx:1.27\n".repeat(500);
    becomes(&format!("{comments}a: 1"), &format!("{comments}a: 1"));
    let long = format!(
        "{{\"x\":[{}\"quay.io/a/b:v1\"]}}",
        "\"some text\",".repeat(500)
    );
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
fn references_over_several_lines_or_in_keys_are_not_changed() {
    for text in [
        "a: \"quay.io/a/\\\n  b:v1\"",
        "image: \"ngi\\\n  nx:1.27\"",
        "{{ x }}\na: \"quay.io/a/\\\n  b:v1\"\n",
        "{{ x }}\na: \"quay.io/a/b:\\\r\n  v1\"\n",
        "{{ x }}\na: \"-x qu\\\n  ay.io/a/\\\n  b:v1 -y\"\n",
    ] {
        stays(text, "several lines");
    }
    for text in [
        "{{ x }}\na: \"quay.io/a/\\\n  nginx:1.27\"\n",
        "{{ x }}\na: \"quay.io/x:v\\\n  1\"\n",
    ] {
        becomes(text, text);
    }
    becomes(
        "{{ x }}\na: \"-x \\\n  quay.io/a/b:v1 \\\n  nginx:1.27\"\n",
        "{{ x }}\na: \"-x \\\n  r:5/p/a/b:v1 \\\n  r:5/p/library/nginx:1.27\"\n",
    );
    becomes(
        "A=\"quay.io/a/b:v1\\\n  nginx:1.27\"\n",
        "A=\"r:5/p/a/b:v1\\\n  r:5/p/library/nginx:1.27\"\n",
    );
    stays("quay.io/a/b:v1: x", "key");
}

#[test]
fn all_scalar_styles_are_rewritten() {
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
fn keys_decide_which_names_are_images() {
    becomes("image: nginx", "image: r:5/p/library/nginx");
    becomes(
        "spec: {containers: [{image: nginx}]}",
        "spec: {containers: [{image: r:5/p/library/nginx}]}",
    );
    stays("spec: {containers: [{image: quay.io/a/b}]}", "means latest");
    stays("services: {web: {image: quay.io/a/b}}", "means latest");
    stays(
        "volumes: [{image: {reference: quay.io/a/b}}]",
        "means latest",
    );
    becomes("my_image: quay.io/a/b", "my_image: r:5/p/a/b");
    becomes(
        "- {op: add, path: /spec/image, value: nginx}",
        "- {op: add, path: /spec/image, value: r:5/p/library/nginx}",
    );
    for text in [
        "name: nginx",
        "- {op: add, path: /metadata/name, value: nginx}",
        "- {path: /spec/image, value: nginx}",
    ] {
        becomes(text, text);
    }
    becomes(
        "containers: [nginx, {name: nginx}]",
        "containers: [nginx, {name: nginx}]",
    );
}

/// Rancher's system-upgrade-controller takes the tag from the version.
#[test]
fn the_version_of_an_upgrade_plan_is_the_tag_of_its_images() {
    let plan = |image: &str, version: &str| {
        format!(
            "apiVersion: upgrade.cattle.io/v1\nkind: Plan\nspec:\n  version: {version}\n  prepare:\n    \
             image: {image}\n    args: [prepare]\n  upgrade: {{image: {image}}}\n"
        )
    };
    let run = |source: &str| at_site(&["docker.io/a/k3s-upgrade:v1.30.0-k3s1"], "", source);
    let before = plan("a/k3s-upgrade", "v1.30.0+k3s1");
    let after = plan("r:5/a/k3s-upgrade", "v1.30.0+k3s1");
    for source in [&before, &after] {
        assert_eq!(run(source), (after.clone(), vec![]), "{source}");
    }
    let other = plan("a/k3s-upgrade", "v1.31.0+k3s1");
    let (text, left) = run(&other);
    assert_eq!((&text, left.len()), (&other, 2));
    let is_expected = |why: &String| why.contains("only as v1.30.0-k3s1");
    assert!(left.iter().all(is_expected), "{left:?}");
}
