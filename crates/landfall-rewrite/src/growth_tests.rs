//! Tests that the time for a document is linear in its length, also with unusual lines and values.

use super::audit::{Inventory, audit};
use super::tests::known;
use super::{RewriteOptions, TextSyntax, rewrite};
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use landfall_model::document::growth::assert_linear;
use std::path::Path;

/// Texts of all kinds. The number of references in each is proportional to `count`.
fn texts(count: usize) -> Vec<(&'static str, String)> {
    let list = |between: &str| vec!["{\"image\":\"quay.io/a/b:v1\"}"; count].join(between);
    let lines = |indent: &str| format!("{indent}- quay.io/a/b:v1 é\n").repeat(count);
    vec![
        ("one line", format!("[{}]", list(","))),
        ("many lines", format!("[\n{}\n]", list(",\n"))),
        ("a value of lines", format!("a: |\n{}", lines("  "))),
        ("a folded value", format!("a: >\n{}", lines("  "))),
        (
            "a quoted value",
            format!("a: \"x {}\"", "quay.io/a/b:v1\\t".repeat(count)),
        ),
        (
            "a value in a list",
            format!("a: '{}'", "quay.io/a/b:v1, ".repeat(count)),
        ),
        (
            "parts",
            (0..count)
                .map(|n| format!("x{n}Repository: quay.io/a/b\nx{n}Tag: v1\n"))
                .collect(),
        ),
        ("documents", "image: quay.io/a/b:v1\n---\n".repeat(count)),
        (
            "comments",
            "# x\nimage: quay.io/a/b:v1\n---\nkind: Secret\n# y\n---\n".repeat(count),
        ),
        ("urls", "- https://dl.example.com/f/$V/x\n".repeat(count)),
        (
            "urls of other versions",
            "- https://dl.example.com/f/0/x7\n- https://dl.example.com/f/0/y7\n".repeat(count),
        ),
        // keys whose meaning depends on the other keys of their mapping
        ("prefixes", "hub: quay.io\n".repeat(count)),
        (
            "image repositories",
            "imageRepository: quay.io\n".repeat(count),
        ),
        ("sources", "source: quay.io/a/b:v1\n".repeat(20 * count)),
        ("contents", "content: quay.io/a/b:v1\n".repeat(20 * count)),
        ("variables", "value: quay.io/a/b:v1\n".repeat(20 * count)),
    ]
}

#[test]
fn a_rewrite_takes_linear_time() {
    let index = known();
    for at in 0..texts(1).len() {
        assert_linear(150, |count| {
            let (what, text) = &texts(count)[at];
            let done = rewrite(
                text,
                TextSyntax::Document,
                &index,
                RewriteOptions::default(),
            );
            let has_no_urls = !what.starts_with("urls");
            assert!(!has_no_urls || !done.scan.found.is_empty(), "{what}");
        });
    }
}

#[test]
fn an_audit_takes_linear_time() {
    let lock = lock();
    let inventory = Inventory::new(&lock, None, None, "2026-01-01");
    for at in 0..texts(1).len() {
        assert_linear(150, |count| {
            let (what, text) = &texts(count)[at];
            let found = audit(Path::new("x.yaml"), text, &inventory);
            assert!(!found.is_empty(), "{what}");
        });
    }
}

/// A lock with an image and ten files.
fn lock() -> Lock {
    let digest = Digest::sha256(b"x");
    let mut lock = format!(
        "version: 1\nimages:\n- {{name: 'quay.io/a/b:v1', digest: {digest}, mediaType: m, size: 1}}\n\
         files:\n"
    );
    for n in 0..10 {
        let url = format!("https://dl.example.com/f/{n}/x{n}");
        lock += &format!("- {{name: '{url}', digest: {digest}, size: 1}}\n");
    }
    Lock::parse("l", &lock).unwrap()
}
