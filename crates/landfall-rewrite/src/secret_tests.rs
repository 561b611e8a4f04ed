//! Secrets in URLs and references: neither a rewrite nor an audit shows them.

use super::audit::{FileFinding, Inventory, audit};
use super::{Occurrence, ReferenceIndex, RewriteOptions, TextSyntax, rewrite, scan};
use landfall_item::lockfile::Lock;
use landfall_model::{DestinationMap, Digest};
use std::path::Path;

const GIT: &str = "https://bot:s3cret@git.example/team/a.git";

fn lock() -> Lock {
    let digest = Digest::sha256(b"quay.io/a/b:v1");
    let text = format!(
        "version: 1\nimages:\n- {{name: 'quay.io/a/b:v1', digest: {digest}, mediaType: m, size: 1}}\n\
         files:\n- {{name: 'https://git.example/team/a.git', digest: {digest}, size: 1}}\n"
    );
    Lock::parse("l", &text).unwrap()
}

/// What a report shows of an occurrence.
fn shown(occurrence: &Occurrence) -> String {
    format!("{} {:?}", occurrence.written, occurrence.meaning)
}

/// What reports show of the references in `text`, the content of the file `name`.
fn reported(name: &str, text: &str) -> Vec<String> {
    let lock = lock();
    let mapping = DestinationMap::to("r:5/p".parse().unwrap());
    let index = ReferenceIndex::new(&lock, &mapping).with_files("http://f");
    let syntax = TextSyntax::of(Path::new(name));
    let rewritten = rewrite(text, syntax, &index, RewriteOptions::default());
    let mut reported: Vec<String> = rewritten.scan.found.iter().map(shown).collect();
    reported.extend(scan(text, syntax, &index).found.iter().map(shown));
    let inventory = Inventory::new(&lock, Some(&mapping), Some("http://f"), "2026-01-01");
    for finding in audit(Path::new(name), text, &inventory) {
        let file = name.to_owned();
        let placed = FileFinding { file, finding };
        reported.push(format!("{} {:?}", placed.line("x"), placed.finding));
    }
    reported
}

#[test]
fn no_report_contains_the_password_of_a_reference() {
    let documents = [
        ("k.yaml", format!("resources:\n- {GIT}//k?ref=v1\n")),
        (
            "kustomization.yaml",
            format!("resources:\n- {GIT}//k?ref=v1\n"),
        ),
        (
            "main.tf",
            format!("  source = \"git::{GIT}//k?ref=v1&sshkey=s3cret\"\n"),
        ),
        (
            "a.yaml",
            format!("spec: {{source: {{repoURL: '{GIT}', targetRevision: v1}}}}\n"),
        ),
        ("x.yaml", format!("a: |\n  git clone {GIT}//k?ref=v1\n")),
        (
            "p.yaml",
            "containers:\n- image: bot:s3cret@quay.io/a/b:v1\n".into(),
        ),
        (
            "i.yaml",
            "image: docker://bot:s3cret@quay.io/a/b:v1\n".into(),
        ),
        (
            "s.yaml",
            "image: {registry: 'bot:s3cret@quay.io', repository: a/b, tag: v1}\n".into(),
        ),
        (
            "o.yaml",
            "url: oci://bot:s3cret@quay.io/a/b\nref: {tag: v1}\n".into(),
        ),
        (
            "h.yaml",
            "hub: bot:s3cret@quay.io\nimageRepository: oci://bot:s3cret@quay.io\n".into(),
        ),
        ("Dockerfile", "FROM bot:s3cret@quay.io/a/b:v1\n".into()),
    ];
    for (name, text) in &documents {
        let reported = reported(name, text);
        assert!(
            reported.iter().any(|one| one.contains("***@")),
            "{name}: {reported:?}"
        );
        assert!(
            !reported.concat().contains("s3cret"),
            "{name}: {reported:?}"
        );
    }
    // in these texts, only references without a password are reported
    for (name, text, shown) in [
        (
            "c.yaml",
            "repoURL: https://bot:s3cret@h/c\nchart: c\ntargetRevision: 1.0.0\n",
            "c 1.0.0",
        ),
        (
            "l.txt",
            "quay.io/a/b:v1\nbot:s3cret@quay.io/a/b:v1\n",
            "quay.io/a/b:v1",
        ),
    ] {
        let reported = reported(name, text).concat();
        assert!(reported.contains(shown), "{name}: {reported}");
        assert!(!reported.contains("s3cret"), "{name}: {reported}");
    }
}
