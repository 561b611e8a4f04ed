//! Rewrites that add pins or change comments, and rewrites of the digests of trimmed indexes.

use super::tests::known;
use super::{RewriteOptions, TextSyntax, rewrite};
use landfall_model::Digest;

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
    // another value shares the empty digest
    assert_eq!(
        pinned("- {repository: quay.io/a/b, tag: v1, digest: &d ''}\n- *d\n"),
        format!("- {{repository: r:5/p/a/b, tag: v1@{digest}, digest: &d ''}}\n- *d\n")
    );
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
    // a template call that YAML reads as a mapping
    let call = |image: &str| format!("a: {{{{ x\n  # {image}\n  }}}}\nb: 1 # {image}\n");
    let before = call("quay.io/a/b:v1");
    let done = rewrite(&before, TextSyntax::Document, &known(), all);
    assert_eq!(done.text, call("r:5/p/a/b:v1"));
    assert_eq!(done.scan.found.len(), 2);
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
    // the digest of `--pin` in the tag, and a digest that is split
    for (source, expected) in [
        (
            format!("{{repository: quay.io/a/b, tag: v1@{old}}}"),
            format!("{{repository: r:5/p/a/b, tag: v1@{new}}}"),
        ),
        (
            format!("{{registry: quay.io, repository: a/b, tag: v1@{old}, digest: ''}}"),
            format!("{{registry: r:5, repository: p/a/b, tag: v1@{new}, digest: ''}}"),
        ),
        (
            format!("{{repository: quay.io/a/b@sha256, tag: {}}}", old.hex()),
            format!("{{repository: r:5/p/a/b@sha256, tag: {}}}", new.hex()),
        ),
    ] {
        assert_eq!(done(&source), expected);
    }
}
