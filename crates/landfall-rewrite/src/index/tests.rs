//! Names as written, each with the result of looking it up.

use super::*;
use crate::occurrence::ReferenceRole;
use landfall_item::lockfile::Lock;
use landfall_model::{DestinationMap, Digest};

fn digest(text: &str) -> Digest {
    Digest::sha256(text.as_bytes())
}

/// The result of looking up `text`: the new repository, or the reason why it is not changed.
fn looked_up(known: &ReferenceIndex, text: &str, role: ReferenceRole) -> String {
    match known.lookup(text, role, false) {
        ReferenceLookup::Unknown => "unknown".into(),
        ReferenceLookup::Settled(_) => "settled".into(),
        ReferenceLookup::Left(why) => format!("left: {why}"),
        ReferenceLookup::Known(ReferenceReplacement { item, to, .. }) => {
            format!("{item} at {}", to.unwrap())
        }
    }
}

fn known(names: &[&str], to: &str, rest: &str) -> ReferenceIndex {
    let images = names.iter().map(|name| {
        let top = digest(name);
        let child = digest(&format!("child {name}"));
        let trimmed = digest("trimmed");
        format!(
            "- name: {name}\n  digest: {top}\n  mediaType: application/vnd.oci.image.index.v1+json\n  size: 1\n  \
             manifests: [{{digest: {child}, size: 1, mediaType: m}}]\n  trimmed: {{digest: {trimmed}, size: 1}}\n"
        )
    });
    let text = format!("version: 1\nimages:\n{}{rest}", images.collect::<String>());
    ReferenceIndex::new(
        &Lock::parse("l", &text).unwrap(),
        &DestinationMap::to(to.parse().unwrap()),
    )
}

#[test]
fn a_digest_decides_and_a_tag_must_be_locked() {
    let name = "quay.io/a/b:1";
    let known = known(&[name], "r:5000", "");
    let at = |text: &str| looked_up(&known, text, ReferenceRole::Value);
    assert_eq!(at(name), "quay.io/a/b:1 at r:5000/a/b");
    assert_eq!(at("QUAY.io/a/b:1"), "quay.io/a/b:1 at r:5000/a/b");
    for digest in [
        digest(name),
        digest(&format!("child {name}")),
        digest("trimmed"),
    ] {
        assert_eq!(
            at(&format!("quay.io/a/b:2@{digest}")),
            "quay.io/a/b:1 at r:5000/a/b"
        );
    }
    let other = format!("quay.io/a/b:1@{}", digest("other"));
    assert_eq!(
        at(&other),
        "left: the lock has this repository with other digests (1)"
    );
    assert_eq!(
        at("quay.io/a/b:2"),
        "left: the lock has this repository only as 1"
    );
    for text in [
        "quay.io/a/c:1",
        "other.io/a/b:1",
        "a/b:1",
        "b",
        "",
        "http://quay.io/a/b:1",
        "quay.io/a/b:",
    ] {
        assert_eq!(at(text), "unknown", "{text}");
    }
}

#[test]
fn the_role_decides_the_meaning_of_a_missing_tag() {
    use ReferenceRole::{Container, Image, Repository, Value};
    let known = known(&["quay.io/a/b:1", "nginx:latest", "redis:7"], "r:5000", "");
    let latest = "left: without a tag it means latest; the lock has 1";
    let nginx = "docker.io/library/nginx:latest at r:5000/library/nginx";
    let redis = "left: without a tag it means latest; the lock has 7";
    let short = "left: it names neither a host nor a tag";
    for (text, role, expected) in [
        ("quay.io/a/b", Value, "quay.io/a/b at r:5000/a/b"),
        ("quay.io/a/b", Image, "quay.io/a/b at r:5000/a/b"),
        ("quay.io/a/b", Repository, "quay.io/a/b at r:5000/a/b"),
        ("quay.io/a/b", Container, latest),
        ("nginx", Container, nginx),
        ("nginx", Image, nginx),
        ("nginx", Value, "unknown"),
        ("nginx", Repository, short),
        ("redis", Image, redis),
        ("redis", Value, "unknown"),
        ("redis:6379", Value, "unknown"),
        (
            "docker.io/redis:6379",
            Value,
            "left: the lock has this repository only as 7",
        ),
        (
            "docker.io/library/redis:7",
            Value,
            "docker.io/library/redis:7 at r:5000/library/redis",
        ),
        (
            "index.docker.io/redis:7",
            Value,
            "docker.io/library/redis:7 at r:5000/library/redis",
        ),
    ] {
        assert_eq!(looked_up(&known, text, role), expected, "{text} {role:?}");
    }
}

#[test]
fn an_alias_has_the_destination_of_the_locked_name() {
    let site = "apiVersion: landfall/v1\nkind: Site\nregistry: {address: 'r:5000', paths: {k8s.gcr.io: old, registry.k8s.io: new}}";
    let site = landfall_model::config::Site::parse(std::path::Path::new("s"), site).unwrap();
    let mapping = landfall_model::config::destination_map("r:5000".parse().unwrap(), Some(&site));
    let lock = |names: &[&str]| {
        let images = names.iter().map(|name| {
            format!(
                "- {{name: '{name}', digest: {}, mediaType: m, size: 1}}\n",
                digest(name)
            )
        });
        let text = format!("version: 1\nimages:\n{}", images.collect::<String>());
        ReferenceIndex::new(&Lock::parse("l", &text).unwrap(), &mapping)
    };
    let one = lock(&["registry.k8s.io/pause:3.9"]);
    assert_eq!(
        looked_up(&one, "k8s.gcr.io/pause:3.9", ReferenceRole::Value),
        "registry.k8s.io/pause:3.9 at r:5000/new/pause"
    );
    let both = lock(&["k8s.gcr.io/pause:3.1", "registry.k8s.io/pause:3.9"]);
    assert_eq!(
        looked_up(&both, "k8s.gcr.io/pause:3.9", ReferenceRole::Value),
        "registry.k8s.io/pause:3.9 at r:5000/new/pause"
    );
    assert_eq!(
        looked_up(&both, "registry.k8s.io/pause:3.1", ReferenceRole::Value),
        "k8s.gcr.io/pause:3.1 at r:5000/old/pause"
    );
    assert_eq!(
        looked_up(&both, "k8s.gcr.io/pause", ReferenceRole::Value),
        "k8s.gcr.io/pause at r:5000/old/pause"
    );
}

#[test]
fn a_name_at_a_destination_is_not_changed_again() {
    let known = known(
        &[
            "quay.io/a/b:1",
            "r:5000/c/d:1",
            "r:5000/e:1",
            "r:5000/p/e:1",
        ],
        "r:5000/p",
        "",
    );
    let at = |text: &str| looked_up(&known, text, ReferenceRole::Value);
    assert_eq!(at("r:5000/p/a/b:1"), "settled");
    assert_eq!(at("r:5000/c/d:1"), "r:5000/c/d:1 at r:5000/p/c/d");
    assert_eq!(at("r:5000/p/c/d:1"), "settled");
    assert_eq!(
        at("r:5000/p/e:1"),
        "left: this name is the destination of another locked item"
    );
}

#[test]
fn missing_and_unresolved_items_are_reported() {
    let rest = "missing: [{kind: image, name: 'quay.io/x/gone:1', reason: removed, until: 2027-01-31}]\n\
                unresolved: [{kind: image, name: 'quay.io/x/y:1', cause: '404'}]\n";
    let known = known(&["quay.io/a/b:1"], "r:5000", rest);
    assert_eq!(
        looked_up(&known, "quay.io/x/y:1", ReferenceRole::Value),
        "left: the lock could not resolve it: 404"
    );
    assert_eq!(
        looked_up(&known, "quay.io/x/gone:1", ReferenceRole::Value),
        "left: the manifest accepts that it is missing: removed"
    );
    assert_eq!(
        looked_up(&known, "quay.io/x/y:2", ReferenceRole::Value),
        "unknown"
    );
}

#[test]
fn the_last_component_ends_at_the_tag_or_digest() {
    let names = [
        "a",
        "h/a",
        "h:5/a",
        "h:5/x/a:1",
        "h/a@b/c:d",
        "a:1@b",
        "a:1:2",
        "x@/a",
    ];
    assert_eq!(
        names.map(basename),
        ["a", "a", "a", "a", "a", "a", "a", "x"]
    );
    assert_eq!(["", "/", "a/", "@a", ":a"].map(basename), [""; 5]);
    let long = "é".repeat(70);
    let known = BasenameSet::new(["h/x/abc".to_owned(), format!("h/{long}")].iter());
    assert!(known.has("abc:1") && known.has("y/abc@z") && known.has(&long));
    assert!(!known.has("abd") && !known.has("ab") && !known.has("") && !known.has(&long[2..]));
}

#[test]
fn texts_whose_words_may_be_hidden_by_escapes_are_read() {
    let names = ["docker.io/nginx".to_owned()];
    let matcher = WordMatcher::new(names.iter(), std::iter::empty());
    for text in [
        "image: nginx:1",
        r#"image: "ngin\x78:1""#,
        r#"image: "ngin\u0078:1""#,
        r#"image: "ngin\U00000078:1""#,
        "image: \"ngi\\\n  nx:1\"",
    ] {
        assert!(matcher.is_in(text), "{text}");
    }
    for text in [
        "image: redis:7",
        r"color: \x1b[1m",
        r"C:\Users\xavier",
        r"\u2026",
    ] {
        assert!(!matcher.is_in(text), "{text}");
    }
}
