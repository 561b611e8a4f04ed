//! Tests that the time for a document is linear in its length, also with unusual lines and values.

use super::audit::{Inventory, audit};
use super::tests::known;
use super::{RewriteOptions, TextSyntax, rewrite};
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use landfall_model::document::growth::assert_linear;
use std::path::Path;

/// Makes a text whose number of references is proportional to the argument.
type TextOfCount = fn(usize) -> String;

/// Texts of all kinds.
const TEXTS: [(&str, TextOfCount); 16] = [
    ("one line", |count| format!("[{}]", maps(count, ","))),
    ("many lines", |count| {
        format!("[\n{}\n]", maps(count, ",\n"))
    }),
    ("a value of lines", |count| {
        format!("a: |\n{}", "  - quay.io/a/b:v1 é\n".repeat(count))
    }),
    ("a folded value", |count| {
        format!("a: >\n{}", "  - quay.io/a/b:v1 é\n".repeat(count))
    }),
    ("a quoted value", |count| {
        format!("a: \"x {}\"", "quay.io/a/b:v1\\t".repeat(count))
    }),
    ("a value in a list", |count| {
        format!("a: '{}'", "quay.io/a/b:v1, ".repeat(count))
    }),
    ("parts", |count| {
        (0..count)
            .map(|n| format!("x{n}Repository: quay.io/a/b\nx{n}Tag: v1\n"))
            .collect()
    }),
    ("documents", |count| {
        "image: quay.io/a/b:v1\n---\n".repeat(count)
    }),
    ("comments", |count| {
        "# x\nimage: quay.io/a/b:v1\n---\nkind: Secret\n# y\n---\n".repeat(count)
    }),
    ("urls", |count| {
        "- https://dl.example.com/f/$V/x\n".repeat(count)
    }),
    ("urls of other versions", |count| {
        "- https://dl.example.com/f/0/x7\n- https://dl.example.com/f/0/y7\n".repeat(count)
    }),
    // keys whose meaning depends on the other keys of their mapping
    ("prefixes", |count| "hub: quay.io\n".repeat(count)),
    ("image repositories", |count| {
        "imageRepository: quay.io\n".repeat(count)
    }),
    ("sources", |count| {
        "source: quay.io/a/b:v1\n".repeat(20 * count)
    }),
    ("contents", |count| {
        "content: quay.io/a/b:v1\n".repeat(20 * count)
    }),
    ("variables", |count| {
        "value: quay.io/a/b:v1\n".repeat(20 * count)
    }),
];

fn maps(count: usize, between: &str) -> String {
    vec!["{\"image\":\"quay.io/a/b:v1\"}"; count].join(between)
}

#[test]
fn a_rewrite_takes_linear_time() {
    let index = known();
    for (what, text) in TEXTS {
        assert_linear(150, |count| {
            let done = rewrite(
                &text(count),
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
fn a_long_line_beside_a_registry_takes_linear_time() {
    let index = known();
    assert_linear(1_000, |count| {
        let names = "nginx:1.27 ".repeat(count);
        let text = format!("{{{{ x }}}}\nregistry: other.io\nimage: {names}\nx: {names}\n");
        let done = rewrite(
            &text,
            TextSyntax::Document,
            &index,
            RewriteOptions::default(),
        );
        assert_eq!((done.scan.found.len(), done.text), (2 * count, text));
    });
}

#[test]
fn an_audit_takes_linear_time() {
    let lock = lock();
    let inventory = Inventory::new(&lock, None, None, "2026-01-01");
    for (what, text) in TEXTS {
        assert_linear(150, |count| {
            let found = audit(Path::new("x.yaml"), &text(count), &inventory);
            assert!(!found.is_empty(), "{what}");
        });
    }
}

/// Mappings and items whose meaning depends on the keys of the root, which has many.
#[test]
fn an_audit_of_a_root_with_many_keys_takes_linear_time() {
    let lock = lock();
    let inventory = Inventory::new(&lock, None, None, "2026-01-01");
    assert_linear(2_000, |count| {
        let specs: String = (0..count)
            .map(|n| format!("k{n}: {{spec: {{registry: x}}}}\n"))
            .collect();
        let releases = "- {chart: x/y}\n".repeat(count);
        let repositories = "- {name: x, url: 'https://h.test'}\n";
        let text = format!("{specs}releases:\n{releases}repositories:\n{repositories}");
        let found = audit(Path::new("x.yaml"), &text, &inventory);
        assert_eq!(found.len(), count);
    });
}

/// Files that are read by their names.
const FILES: [(&str, TextOfCount); 6] = [
    ("x.sh", |count| "docker pull -q a:1;".repeat(count)),
    ("Dockerfile", |count| {
        (0..count)
            .map(|n| format!("ARG A{n}=a:{n}\nFROM $A{n}\n"))
            .collect()
    }),
    ("Jenkinsfile", |count| "image 'a:1' ".repeat(count)),
    ("devcontainer.json", |count| {
        format!("{{{}}} //", "\"ghcr.io/a/b:1\": {}, ".repeat(count))
    }),
    ("x.tf", |count| {
        "resource \"helm_release\" \"x\" {\n  chart = \"oci://quay.io/a/b\"\n}\n".repeat(count)
    }),
    ("helmfile.yaml", |count| {
        let repositories = "- {name: x, url: 'https://h.test'}\n".repeat(count);
        let releases = "- {chart: y/z}\n- {chart: x/z}\n".repeat(count);
        format!("repositories:\n{repositories}releases:\n{releases}")
    }),
];

#[test]
fn an_audit_of_a_file_that_is_read_by_its_name_takes_linear_time() {
    let lock = lock();
    let inventory = Inventory::new(&lock, None, None, "2026-01-01");
    for (name, text) in FILES {
        assert_linear(1_000, |count| {
            let found = audit(Path::new(name), &text(count), &inventory);
            assert!(found.len() >= count, "{name}: {}", found.len());
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
