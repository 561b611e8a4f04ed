//! The words of a text that are reported, and the time and memory that a scan takes.

use super::{JoinedText, images};
use crate::tests::{becomes, known, run_as};
use crate::{RewriteOptions, TextSyntax, rewrite, scan};
use landfall_model::document::growth::assert_linear;

/// The references in `text`, as written. Checks that a scan and a rewrite find the same references.
fn written(text: &str) -> Vec<String> {
    let written = |found: Vec<crate::Occurrence>| -> Vec<String> {
        found
            .into_iter()
            .map(|occurrence| occurrence.written)
            .collect()
    };
    let index = known();
    let left = written(
        rewrite(text, TextSyntax::Text, &index, RewriteOptions::default())
            .scan
            .found,
    );
    assert_eq!(written(scan(text, TextSyntax::Text, &index).found), left);
    left
}

#[test]
fn the_text_after_a_placeholder_is_not_printed() {
    let command =
        "podman run quay.io/a/b:$TAG --password hunter2\nrun quay.io/a/b:$TAG;PASSWORD=hunter2\n";
    assert_eq!(written(command), ["quay.io/a/b:$TAG"; 2]);
    assert_eq!(
        written("image: quay.io/a/b:{{ .tag }} # hunter2\n"),
        ["quay.io/a/b:{{ .tag }}"]
    );
    let secret = "{{ if .x }}\nkind: Secret\nstringData:\n  x: quay.io/a/b:{{ pw \"hunter2\" }}\n";
    assert_eq!(written(secret), ["quay.io/a/b:{{…"]);
}

/// A scheme may follow the label of a runner, and rpm-ostree has prefixes of its own.
#[test]
fn images_after_labels_and_prefixes_of_rpm_ostree_are_changed() {
    for prefix in [
        "ubuntu-latest:docker://",
        "ostree-unverified-registry:",
        "ostree-remote-registry:fedora:",
        "ostree-image-signed:registry:",
        "ostree-image-signed:docker://",
    ] {
        let list = |name: &str| format!("labels: ['{prefix}{name}']\n");
        becomes(&list("quay.io/a/b:v1"), &list("r:5/p/a/b:v1"));
        becomes(&list("nginx"), &list("r:5/p/library/nginx"));
        let script = |name: &str| format!("x: |\n  rpm-ostree rebase {prefix}{name}\n  y\n");
        becomes(&script("quay.io/a/b:v1"), &script("r:5/p/a/b:v1"));
    }
    let others = "a: ostree-unverified-image:oci:/x/nginx:1.27 b:nginx:1.27";
    becomes(others, others);
}

/// With other names in registries.conf, pods that still name the upstream would not be redirected.
#[test]
fn repositories_with_mirrors_in_registries_conf_are_not_changed() {
    let conf = "[[registry]]\nprefix = \"quay.io/a/b\"\nlocation = \"quay.io/a/b\"\n\
                [[registry.mirror]]\nlocation = \"r:5/p/a/b\"\n";
    let lines = conf.trim_end().replace('\n', "\n  ");
    let unit = format!("contents: |\n  {lines}\n");
    for (text, syntax) in [(conf, TextSyntax::Text), (&*unit, TextSyntax::Document)] {
        let (new, left) = run_as(text, syntax);
        assert_eq!(new, text);
        let is_expected = |why: &String| why.contains("the source of a mirror");
        assert!(left.len() == 2 && left.iter().all(is_expected), "{left:?}");
    }
    let other = run_as("location = \"quay.io/a/b\"\n", TextSyntax::Text);
    assert_eq!(other, ("location = \"r:5/p/a/b\"\n".to_owned(), vec![]));
}

#[test]
fn a_line_of_placeholders_takes_linear_memory() {
    for one in [
        "quay.io/a/b:$T ",
        "quay.io/a/b:${",
        "quay.io/a/b:{{ ",
        "quay.io/a/b:$T,",
    ] {
        let line = one.repeat(5_000);
        let all = written(&line);
        let bytes: usize = all.iter().map(String::len).sum();
        assert!(
            all.len() <= 5_000 && bytes <= 100 * line.len(),
            "{one}: {} references of {bytes} bytes",
            all.len()
        );
    }
}

#[test]
fn the_arguments_of_a_dockerfile_take_linear_memory() {
    let long = "x".repeat(100_000);
    for text in [
        format!("ARG A={long}\nFROM {}\n", "$A".repeat(50_000)),
        format!("ARG A={long}\n{}", "FROM $A\n".repeat(10_000)),
    ] {
        let found = images(&text);
        let bytes: usize = found.iter().map(|image| image.name.len()).sum();
        assert!(bytes <= 10 * text.len(), "{bytes}");
    }
}

#[test]
fn scanning_a_text_takes_linear_time() {
    let ones = [
        "quay.io/a/b:$T ",
        "{{/* x ",
        "https://x/{{ ",
        "a=quay.io/a/b:v2,",
        "image: quay.io/a/b:v1 ",
        "${",
        "x://",
        "containers:\n - image: nginx\n",
        "initContainers:\nx:\n - - a: b\n  image: nginx\n",
    ];
    for one in ones {
        assert_linear(1_000, |count| {
            drop(scan(&one.repeat(count), TextSyntax::Text, &known()))
        });
    }
}

#[test]
fn reading_the_variables_of_a_line_takes_linear_time() {
    for one in ["for a in b|", "read a|", "A=1;", "${A:=", "${A:=}", "A=${|"] {
        assert_linear(10_000, |count| {
            let text = format!("# https://x $\n{}\n", one.repeat(count));
            drop(scan(&text, TextSyntax::Text, &known()));
        });
    }
}

/// A container without a tag runs `latest`; elsewhere in a template, another key may be the tag.
#[test]
fn the_image_of_a_container_in_a_template_needs_no_tag() {
    let of = |template: &str| {
        let text = template.replace("IMAGE", "nginx");
        let result = rewrite(&text, TextSyntax::Text, &known(), RewriteOptions::default());
        let is_changed = result.text == template.replace("IMAGE", "r:5/p/library/nginx");
        assert!(is_changed || result.text == text, "{}", result.text);
        is_changed
    };
    for template in [
        "{{ if .x }}\nspec:\n  containers:\n    - name: a\n      image: IMAGE\n{{ end }}\n",
        "{{ if .x }}\nspec:\n  containers:\n  - image: \"IMAGE\"\n    name: a\n",
        "spec:\n  {{- with .x }}\n  initContainers:\n  {{- end }}\n    - env:\n      - {name: a}\n      image: 'IMAGE'\n",
        "cat <<E\n  containers:\n  - name: b\n    args:\n    - x\n    - y: z\n    image: IMAGE\nE\n",
    ] {
        assert!(of(template), "{template}");
    }
    for template in [
        "{{ if .x }}\nmy:\n  image: IMAGE\n  version: 3\n",
        "{{ if .x }}\nspec:\n  containers:\n  - name: a\n  other:\n    image: IMAGE\n",
        "{{ if .x }}\nspec:\n  containers:\n  - name: a\n    config:\n      image: IMAGE\n",
        "{{ if .x }}\nspec:\n  containers: []\nimage: IMAGE\n",
    ] {
        assert!(!of(template), "{template}");
    }
}

#[test]
fn lines_are_joined_in_double_quotes_only() {
    for (text, expected) in [
        ("a: \"x\\\n  y\"\n", "a: \"xy\"\n"),
        ("- \"x\\\r\n\ty\\\r\nz\"", "- \"xyz\""),
        ("a: {b: \"c\", d: \"x\\\n  y\"}", "a: {b: \"c\", d: \"xy\"}"),
        ("A=\"x\\\ny\"", "A=\"xy\""),
    ] {
        let joined = JoinedText::of(text).unwrap();
        assert_eq!(joined.text(), expected);
        for (at, c) in expected.char_indices() {
            assert!(text[joined.offset(at)..].starts_with(c), "{text}: {at}");
        }
    }
    for text in [
        "A=\"x\\\n  y\"",
        "a: \"x\\\\\n  y\"",
        "a: \"x\\\n\n  y\"",
        "a: 'x\\\n  y'",
        "a: \"x\" b \\\n  y",
        "a: \"\\\"x\" b\\\n  y",
        "FROM x\\\ny",
    ] {
        assert!(JoinedText::of(text).is_none(), "{text}");
    }
}
