//! Documents of unusual notations, depths and encodings.

use crate::archive::{compress, decompress};
use crate::rules::RULES;
use crate::scan_result::ScanSettings;
use crate::tests::{at_site, becomes, known, run, stays};
use crate::text::ShellVariables;
use crate::walk::ReferenceScanner;
use crate::{RewriteOptions, TextSyntax, rewrite};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_model::Limits;

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
fn all_references_in_encoded_content_that_cannot_be_edited_are_left() {
    let hidden = STANDARD.encode("a: quay.io/a/b:v1\nb: quay.io/c/d:1.10\n");
    let (first, rest) = hidden.split_at(20);
    let text = format!("kind: Secret\ndata:\n  x: \"{first}\\\n    {rest}\"\n");
    let (new, left) = run(&text);
    assert_eq!(new, text);
    assert_eq!(left, ["it is written over several lines"; 2]);
}

#[test]
fn a_gzipped_text_is_read_up_to_the_limit() {
    let inner = "image: quay.io/a/b:v1\n";
    let source = format!(
        "userData: {}\n",
        STANDARD.encode(compress(inner.as_bytes()).unwrap())
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
            variables: &ShellVariables::default(),
            inventory: None,
            file: None,
        };
        let scanner = ReferenceScanner {
            settings,
            rules: &RULES,
        };
        let scan = scanner
            .scan(&source, TextSyntax::Document, 0)
            .with_lines(&source);
        let text = scan.apply(&source);
        let written = STANDARD
            .decode(text.trim_end().strip_prefix("userData: ").unwrap())
            .unwrap();
        (
            String::from_utf8(decompress(&written, 100).unwrap().unwrap()).unwrap(),
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
    // a mapping that is a key, but not a template call
    stays("? {quay.io/a/b:v1: x}\n: y\n", "key");
    becomes(
        "- {{a}: x}\n- image: quay.io/a/b:v1\n- '}}'\n",
        "- {{a}: x}\n- image: r:5/p/a/b:v1\n- '}}'\n",
    );
}

#[test]
fn a_name_that_is_only_an_image_by_its_key_is_not_changed_for_other_keys() {
    becomes(
        "containers:\n- image: &n nginx\n- image: *n\n",
        "containers:\n- image: &n r:5/p/library/nginx\n- image: *n\n",
    );
    becomes(
        "containers:\n- image: &n nginx:1.27\n  name: *n\n",
        "containers:\n- image: &n r:5/p/library/nginx:1.27\n  name: *n\n",
    );
    stays("containers:\n- image: &n nginx\n  name: *n\n", "no images");
    stays("containers:\n- name: &n nginx\n  image: *n\n", "alias");
}
