//! Shapes of YAML, each with its rewritten form.

use super::scanner::ReferenceScanner;
use super::settings::ScanSettings;
use super::shapes::SHAPES;
use super::walk::read;
use super::{ReferenceIndex, ReferenceMeaning, RewriteOptions, TextSyntax, gzip, rewrite};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_item::lockfile::Lock;
use landfall_model::{DestinationMap, Digest, Limits};

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
fn run(source: &str) -> (String, Vec<String>) {
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
            ReferenceMeaning::Left { why } => Some(why),
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
fn references_on_several_lines_and_keys_are_not_changed() {
    stays("a: \"quay.io/a/\\\n  b:v1\"", "several lines");
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
    becomes("name: nginx", "name: nginx");
    becomes(
        "containers: [nginx, {name: nginx}]",
        "containers: [nginx, {name: nginx}]",
    );
}

#[test]
fn split_references_are_rewritten() {
    becomes(
        "{registry: quay.io, repository: a/b, tag: v1}",
        "{registry: r:5, repository: p/a/b, tag: v1}",
    );
    becomes(
        "{registry: quay.io/a/, repository: b, tag: v1}",
        "{registry: r:5/p/a/, repository: b, tag: v1}",
    );
    becomes(
        "{registry: '', repository: quay.io/a/b, tag: v1}",
        "{registry: '', repository: r:5/p/a/b, tag: v1}",
    );
    becomes(
        "{registry: ~, repository: quay.io/c/d, tag: 1.10}",
        "{registry: ~, repository: r:5/p/c/d, tag: 1.10}",
    );
    becomes(
        "{repository: nginx, tag: 1.27}",
        "{repository: r:5/p/library/nginx, tag: 1.27}",
    );
    becomes(
        "{repository: quay.io/a/b, tag:}",
        "{repository: r:5/p/a/b, tag:}",
    );
    becomes(
        "{registry: quay.io, repository: 'a/b:v1'}",
        "{registry: r:5, repository: 'p/a/b:v1'}",
    );
    becomes(
        "{imageRegistry: quay.io, image_repository: a/b, image-tag: v1}",
        "{imageRegistry: r:5, image_repository: p/a/b, image-tag: v1}",
    );
    becomes(
        "{image: quay.io/a/b, tag: v1}",
        "{image: r:5/p/a/b, tag: v1}",
    );
    becomes(
        "{image: nginx, imageTag: '1.27'}",
        "{image: r:5/p/library/nginx, imageTag: '1.27'}",
    );
    becomes(
        "{registry: quay.io, image: {repository: x}}",
        "{registry: quay.io, image: {repository: x}}",
    );
    let digest = Digest::sha256(b"quay.io/a/b:v1");
    let hex = digest.hex();
    let algorithm = "sha256";
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
fn split_references_that_cannot_be_decided_are_not_changed() {
    stays(
        "{registry: quay.io, repository: a/b, tag: v2}",
        "only as v1",
    );
    stays("{image: nginx, tag: '1.28'}", "only as");
    stays("{repository: nginx}", "neither a host nor a tag");
    stays(
        "{repository: quay.io/a/b, tag: '{{ .Chart.AppVersion }}'}",
        "tag or digest is not valid",
    );
    stays(
        "{registry: docker.io, repository: quay.io/a/b, tag: v1}",
        "both name a host",
    );
    stays(
        "x: &x {tag: v2}\ny: {<<: *x, repository: quay.io/a/b}",
        "merged",
    );
    stays(
        "x: &r quay.io\ny: {registry: *r, repository: a/b, tag: v1}",
        "anchor",
    );
    stays(
        "y: {registry: &r quay.io, repository: a/b, tag: v1}\nz: *r",
        "anchor",
    );
}

/// Rewrites `source` with a lock of the images `names` and a site with these `paths`. Returns the
/// new text and the reasons why references were not changed.
fn at_site(names: &[&str], paths: &str, source: &str) -> (String, Vec<String>) {
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
            ReferenceMeaning::Left { why } => Some(why),
            _ => None,
        });
    (result.text, left.collect())
}

#[test]
fn the_registry_of_a_cluster_is_rewritten_if_all_its_images_are_below_the_new_one() {
    let names = [
        "registry.k8s.io/kube-proxy:v1",
        "registry.k8s.io/pause:3",
        "registry.k8s.io/x/y:1",
    ];
    let text = "imageRepository: registry.k8s.io\n";
    let done = |paths: &str, names: &[&str]| at_site(names, paths, text);
    assert_eq!(
        done("registry.k8s.io/x: other", &names),
        ("imageRepository: r:5\n".into(), vec![])
    );
    assert_eq!(
        done("registry.k8s.io: k", &names),
        ("imageRepository: r:5/k\n".into(), vec![])
    );
    let (same, why) = done("registry.k8s.io/pause: k/pause", &names);
    assert!(
        same == text && why[0].contains("have different destinations"),
        "{why:?}"
    );
    // from other registries than registry.k8s.io, kubeadm pulls `coredns`, not `coredns/coredns`
    let dns = [&names[..], &["registry.k8s.io/coredns/coredns:v1"]].concat();
    let (same, why) = done("", &dns);
    assert!(
        same == text
            && why[0].contains("registry.k8s.io/coredns/coredns: [coredns/coredns, coredns]"),
        "{why:?}"
    );
    let both = "registry.k8s.io/coredns/coredns: [coredns/coredns, coredns]";
    assert_eq!(done(both, &dns), ("imageRepository: r:5\n".into(), vec![]));
}

#[test]
fn a_pin_is_the_locked_digest() {
    let pinned = |source: &str| {
        let first = rewrite(
            source,
            TextSyntax::Document,
            &known(),
            RewriteOptions {
                pin: true,
                comments: false,
            },
        )
        .text;
        let again = rewrite(
            &first,
            TextSyntax::Document,
            &known(),
            RewriteOptions {
                pin: true,
                comments: false,
            },
        )
        .text;
        assert_eq!(first, again);
        first
    };
    let digest = Digest::sha256(b"quay.io/a/b:v1");
    let hex = digest.hex();
    assert_eq!(
        pinned("a: quay.io/a/b:v1"),
        format!("a: r:5/p/a/b:v1@{digest}")
    );
    assert_eq!(
        pinned("a: r:5/p/a/b:v1"),
        format!("a: r:5/p/a/b:v1@{digest}")
    );
    assert_eq!(pinned("a: quay.io/a/b"), "a: r:5/p/a/b");
    assert_eq!(
        pinned(&format!("a: quay.io/a/b@{digest}")),
        format!("a: r:5/p/a/b@{digest}")
    );
    assert_eq!(
        pinned("{repository: quay.io/a/b, tag: v1, digest: ''}"),
        format!("{{repository: r:5/p/a/b, tag: v1, digest: '{digest}'}}")
    );
    assert_eq!(
        pinned("{registry: quay.io, repository: a/b, tag: v1}"),
        format!("{{registry: r:5, repository: p/a/b, tag: v1@{digest}}}")
    );
    assert_eq!(
        pinned(&format!("{{repository: quay.io/a/b, sha: {hex}}}")),
        format!("{{repository: r:5/p/a/b, sha: {hex}}}")
    );
    assert_eq!(
        pinned("{image: 'quay.io/a/b:v1', tag: ''}"),
        format!("{{image: 'r:5/p/a/b:v1@{digest}', tag: ''}}")
    );
    // an empty digest belongs to the parts with its prefix
    assert_eq!(
        pinned("{repository: quay.io/a/b, tag: v1, initDigest: ''}"),
        format!("{{repository: r:5/p/a/b, tag: v1@{digest}, initDigest: ''}}")
    );
    let other = Digest::sha256(b"quay.io/c/d:1.10");
    assert_eq!(
        pinned(
            "{repository: quay.io/a/b, tag: v1, digest: '', xRepository: quay.io/c/d, xTag: '1.10'}"
        ),
        format!(
            "{{repository: r:5/p/a/b, tag: v1, digest: '{digest}', xRepository: r:5/p/c/d, \
             xTag: '1.10@{other}'}}"
        )
    );
    for keys in [
        "tag: v1, imageDigest",
        "imageTag: v1, digest",
        "tag: v1, digest",
    ] {
        assert_eq!(
            pinned(&format!("{{image: quay.io/a/b, {keys}: ''}}")),
            format!("{{image: r:5/p/a/b, {keys}: '{digest}'}}")
        );
    }
}

#[test]
fn comments_are_changed_on_request() {
    let all = RewriteOptions {
        comments: true,
        pin: false,
    };
    let yaml = rewrite(
        "# quay.io/a/b:v1\na: 1 # nginx:1.27\nb: |\n  # nginx:1.27\n  x\n",
        TextSyntax::Document,
        &known(),
        all,
    );
    let expected = "# r:5/p/a/b:v1\na: 1 # r:5/p/library/nginx:1.27\nb: |\n  # r:5/p/library/nginx:1.27\n  x\n";
    assert_eq!(yaml.text, expected);
    assert_eq!(
        rewrite("# quay.io/a/b:v1\nFROM x", TextSyntax::Text, &known(), all).text,
        "# r:5/p/a/b:v1\nFROM x"
    );
}

#[test]
fn the_digest_of_a_delivered_trimmed_index_is_written() {
    let old = Digest::sha256(b"quay.io/a/b:v1");
    let new = Digest::sha256(b"trimmed");
    let known = known().with_replaced([(old.clone(), new.clone())]);
    let done = |source: &str| {
        rewrite(
            source,
            TextSyntax::Document,
            &known,
            RewriteOptions::default(),
        )
        .text
    };
    assert_eq!(
        done(&format!("a: quay.io/a/b:v1@{old}")),
        format!("a: r:5/p/a/b:v1@{new}")
    );
    assert_eq!(
        done(&format!("a: r:5/p/a/b@{old}")),
        format!("a: r:5/p/a/b@{new}")
    );
    assert_eq!(
        done(&format!("{{repository: quay.io/a/b, digest: '{old}'}}")),
        format!("{{repository: r:5/p/a/b, digest: '{new}'}}")
    );
}

#[test]
fn deep_documents_do_not_overflow_the_stack() {
    for text in [
        "[".repeat(100_000),
        "- ".repeat(50_000),
        format!("{}nginx:1.27", "{a: ".repeat(20_000)),
    ] {
        assert_eq!(run(&text).0.replace("r:5/p/library/", ""), text);
    }
    let mut text = "image: quay.io/a/b:v1\n".to_owned();
    for _ in 0..20 {
        text = format!(
            "a: |\n{}",
            text.lines()
                .map(|line| format!("  {line}\n"))
                .collect::<String>()
        );
    }
    assert!(run(&text).0.contains("r:5/p/a/b:v1"));
}

#[test]
fn documents_of_landfall_keep_upstream_names() {
    let manifest = "apiVersion: landfall/v1\nkind: Manifest\nimages: [quay.io/a/b:v1]\n";
    becomes(manifest, manifest);
    becomes(
        &format!("{manifest}---\nx: quay.io/a/b:v1\n"),
        &format!("{manifest}---\nx: r:5/p/a/b:v1\n"),
    );
}

#[test]
fn a_quoted_scalar_may_continue_in_the_column_of_its_key() {
    let split = "{registry: quay.io, repository: a/b, tag: v1}";
    let done = "{registry: r:5, repository: p/a/b, tag: v1}";
    for around in [
        "a: \"x\ny\"\nb: ",
        "k:\n  a: 'x\n  y'\n  b: ",
        "k:\n- 'x\n- y'\n- ",
    ] {
        becomes(&format!("{around}{split}\n"), &format!("{around}{done}\n"));
    }
    becomes("a: 'x\nquay.io/a/b:v1'\n", "a: 'x\nr:5/p/a/b:v1'\n");
    let secret = "kind: Secret\nx: 'a\nb' # c\nimage: nginx\n";
    let result = rewrite(
        secret,
        TextSyntax::Document,
        &known(),
        RewriteOptions::default(),
    );
    assert!(
        result.scan.secrets.contains(&(0..secret.len())),
        "{result:?}"
    );
}

#[test]
fn invalid_yaml_is_read_word_by_word() {
    becomes(
        "a: 1\nb: [\nc: quay.io/a/b:v1\n",
        "a: 1\nb: [\nc: r:5/p/a/b:v1\n",
    );
    becomes(
        "a: *nobody\nx: \"nginx:1.27\"",
        "a: *nobody\nx: \"r:5/p/library/nginx:1.27\"",
    );
}

#[test]
fn documents_without_words_of_the_lock_are_skipped_and_encoded_words_are_found() {
    let hidden = STANDARD.encode("image: quay.io/a/b:v1\n");
    let documents = [
        "imageRegistry: docker.io\n".to_owned(),
        format!("userData: {hidden}\n"),
        format!("a: !!binary {hidden}\n"),
        "a: \"ngin\\x78:1.27\"\n".to_owned(),
        "{registry: \"quay\\x2eio\", repository: \"a/\\x62\", tag: v1}\n".to_owned(),
    ];
    for document in &documents {
        let (text, _) = run(&format!("a: nginx:1.27\n---\n{document}---\nb: 1\n"));
        assert!(!text.contains(document), "{text}");
    }
    let alias = at_site(
        &["registry.k8s.io/pause:3"],
        "",
        "a: x/pause\n---\nimageRepository: k8s.gcr.io\n",
    );
    assert_eq!(alias.0, "a: x/pause\n---\nimageRepository: r:5\n");
    // documents without words of the lock need not be valid YAML
    becomes(
        "a: [\n---\nb: nginx:1.27\n",
        "a: [\n---\nb: r:5/p/library/nginx:1.27\n",
    );
    let read_as = |text: &str| {
        rewrite(
            text,
            TextSyntax::Document,
            &known(),
            RewriteOptions::default(),
        )
        .scan
        .read_as
    };
    assert_eq!(read_as("a: 1\n---\nx nginx:1.27\n"), super::ReadAs::Yaml);
    assert_eq!(read_as("a\n---\nx nginx:1.27\n"), super::ReadAs::Text);
}

#[test]
fn a_gzipped_text_is_read_up_to_the_limit() {
    let inner = "image: quay.io/a/b:v1\n";
    let source = format!(
        "userData: {}\n",
        STANDARD.encode(gzip::compress(inner.as_bytes()).unwrap())
    );
    let index = known();
    let written = |unpacked_bytes: u64| {
        let limits = Limits {
            unpacked_bytes,
            ..Limits::default()
        };
        let settings = ScanSettings {
            index: &index,
            options: RewriteOptions::default(),
            report_unknown: false,
            limits,
        };
        let scanner = ReferenceScanner {
            settings,
            read_document: |scanner, text, depth| read(scanner, SHAPES, text, depth),
        };
        let scan = scanner
            .scan(&source, TextSyntax::Document, 0)
            .with_lines(&source);
        let text = scan.apply(&source);
        let written = STANDARD
            .decode(text.trim_end().strip_prefix("userData: ").unwrap())
            .unwrap();
        (
            String::from_utf8(gzip::decompress(&written, 100).unwrap().unwrap()).unwrap(),
            scan.found.len(),
        )
    };
    let length = inner.len() as u64;
    assert_eq!(written(length), ("image: r:5/p/a/b:v1\n".to_owned(), 1));
    // one byte over the limit: the text is left unchanged
    assert_eq!(written(length - 1), (inner.to_owned(), 0));
    assert_eq!(
        Limits::default().unpacked_bytes,
        8 << 20,
        "docs/how-to/rewrite.md states this limit"
    );
}

#[test]
fn a_literal_in_a_template_call_is_found_if_the_template_is_valid_yaml() {
    becomes(
        "image: '{{ Image \"quay.io/a/b:v1\" }}'\n",
        "image: '{{ Image \"r:5/p/a/b:v1\" }}'\n",
    );
    becomes(
        "image: {{ Image \"quay.io/a/b:v1\" }}\n",
        "image: {{ Image \"r:5/p/a/b:v1\" }}\n",
    );
    becomes(
        "image: {{ \"quay.io/a/b:v1\" }}\n",
        "image: {{ \"r:5/p/a/b:v1\" }}\n",
    );
    becomes(
        "a:\n- image: {{ default 'quay.io/a/b:v1' .x | quote }}\n- x\n",
        "a:\n- image: {{ default 'r:5/p/a/b:v1' .x | quote }}\n- x\n",
    );
    becomes(
        "data:\n  pod: |\n    image: {{ list \"quay.io/a/b:v1\", \"nginx:1.27\" }}\n",
        "data:\n  pod: |\n    image: {{ list \"r:5/p/a/b:v1\", \"r:5/p/library/nginx:1.27\" }}\n",
    );
    stays("image: '{{ Image \"quay.io/a/b:v2\" }}'\n", "only as v1");
    stays("image: {{ Image \"quay.io/a/b:v2\" }}\n", "only as v1");
    stays(
        "spec: {openAPIV3Schema: {default: {{ Image \"quay.io/a/b:v1\" }}}}\n",
        "schema",
    );
    becomes(
        "image: {{/* quay.io/a/b:v1 */}}\n",
        "image: {{/* quay.io/a/b:v1 */}}\n",
    );
    // a mapping as a key that is not a template call
    stays("? {quay.io/a/b:v1: x}\n: y\n", "key");
}
