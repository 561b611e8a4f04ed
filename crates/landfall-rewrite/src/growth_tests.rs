//! Tests that the time for a document is linear in its length, also with unusual lines and values.

use super::audit::{Inventory, audit};
use super::tests::known;
use super::{RewriteOptions, TextSyntax, rewrite};
use landfall_item::lockfile::Lock;
use landfall_model::document::growth::assert_linear;
use std::path::Path;

/// Texts of all kinds, each with `count` references.
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
        ("urls", "- https://dl.example.com/$V/x\n".repeat(count)),
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
            assert!(*what == "urls" || !done.scan.found.is_empty(), "{what}");
        });
    }
}

#[test]
fn an_audit_takes_linear_time() {
    let lock = Lock::parse("l", "version: 1\n").unwrap();
    let inventory = Inventory::new(&lock, None, None, "2026-01-01");
    for at in 0..texts(1).len() {
        assert_linear(150, |count| {
            drop(audit(Path::new("x.yaml"), &texts(count)[at].1, &inventory))
        });
    }
}
