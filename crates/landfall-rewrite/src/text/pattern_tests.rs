//! Patterns, computed tags and keys: words that begin like a reference but are not one.

use crate::tests::{becomes, run_as, stays};
use crate::{TextSyntax, scan};

/// Checks that a rewrite leaves `value` unchanged in documents and in a template, and gives one
/// reason, which contains `reason`.
fn is_left(value: &str, reason: &str) {
    let quoted = value.replace('\'', "''");
    stays(&format!("image: '{quoted}'\n"), reason);
    stays(&format!("- x\n- '{quoted}'\n"), reason);
    stays(&format!("x: |\n  a\n  {value}\n"), reason);
    let text = format!("{{{{ if .x }}}}\n  - a: {value}\n");
    let (new, left) = run_as(&text, TextSyntax::Text);
    assert_eq!(new, text);
    assert!(
        left.len() == 1 && left[0].contains(reason),
        "{text}: {left:?}"
    );
}

#[test]
fn globs_and_regular_expressions_are_not_changed() {
    for pattern in [
        "quay.io/a/b:*",
        "quay.io/a/b:v*",
        "quay.io/a/b:v1-*",
        "quay.io/a/b:.*",
        "quay.io/a/b:v1.*",
        "quay.io/a/b:(1|2)",
        "quay.io/a/b:[0-9]+",
        "quay.io/a/b:\\d+",
        "quay.io/a/b:v1|v2",
        "quay.io/a/b:v1?",
        "quay.io/a/b*",
        "quay.io/a/b@*",
        "^quay.io/a/b:v1",
        "*quay.io/a/b:v1",
        "quay.io/a/b:v1$",
        "quay.io/a/*",
        "quay.io/*",
    ] {
        is_left(pattern, "it is a pattern");
    }
    for other in ["a: quay.io/x/*", "a: a/*", "a: quay.io/a/"] {
        becomes(other, other);
    }
    let (new, left) = run_as("x (quay.io/a/b|quay.io/c/d):v1", TextSyntax::Text);
    assert_eq!((&*new, left.len()), ("x (quay.io/a/b|quay.io/c/d):v1", 2));
    becomes(
        "a: quay.io/a/b:v1|quay.io/c/d:1.10",
        "a: r:5/p/a/b:v1|r:5/p/c/d:1.10",
    );
    // with only one of them changed, another rewrite would change the other
    let (new, left) = run_as("x quay.io/a/b:v1|nginx:1.27", TextSyntax::Text);
    assert_eq!((&*new, left.len()), ("x quay.io/a/b:v1|nginx:1.27", 1));
    becomes("a: see quay.io/a/b:v1 | x", "a: see r:5/p/a/b:v1 | x");
}

#[test]
fn references_with_computed_tags_are_not_changed() {
    for value in [
        "x \"quay.io/a/b:\" $v",
        "x 'quay.io/a/b:' + v",
        "x \"quay.io/a/b:\" .. v",
        "x (print \"quay.io/a/b:\" $v)",
        "x (print \"quay.io/a/b:v\" $v)",
        "x \"quay.io/a/b:%s\"",
        "x quay.io/a/b:{{ .v }}",
        "x quay.io/a/b{{ .v }}",
        "x quay.io/a/b:${{ github.sha }}",
        "x quay.io/a/b:${V}",
        "x \"quay.io/a/b\":$V",
        "x \"quay.io/a/b\":v1",
        "x ${X:-quay.io/a/b}:v1",
        "x quay.io/a/b:@TAG@",
        "x=quay.io/a/b:",
    ] {
        let (new, left) = run_as(value, TextSyntax::Text);
        assert_eq!(new, value);
        assert_eq!(left.len(), 1, "{value}: {left:?}");
    }
    // a short name is certainly that of an image only if it begins the value of an image
    for text in [
        "image: nginx:${TAG}",
        "containers: [{image: 'nginx:{{ .v }}'}]",
        "services: {a: {image: 'nginx:${TAG:-1.27}'}}",
        "image: ' nginx:${{ matrix.v }}'",
    ] {
        stays(text, "its tag or digest is a placeholder");
    }
    becomes("a: nginx:${TAG}", "a: nginx:${TAG}");
    becomes("image: x nginx:${TAG}", "image: x nginx:${TAG}");
    for text in [
        "image: quay.io/a/${X}:v1",
        "a: x quay.io/a/$(x)",
        "a: 'quay.io/a/{{ .x }}'",
    ] {
        stays(
            text,
            "its name has a placeholder; the lock has images below quay.io/a",
        );
    }
    for text in ["a: x quay.io/$X:v1", "a: x quay.io/x/$X:v1", "a: x a/$X"] {
        becomes(text, text);
    }
    for text in [
        "image: ${MIRROR:-}quay.io/a/b:v1",
        "image: '{{ .mirror }}quay.io/a/b:v1'",
        "a: see {{ if .x }}quay.io/a/b:v1{{ end }}",
    ] {
        stays(text, "a placeholder precedes it; the lock has v1");
    }
    // a colon in a sentence
    becomes(
        "a: the image quay.io/a/b:v1, quay.io/a/b: it",
        "a: the image r:5/p/a/b:v1, r:5/p/a/b: it",
    );
}

/// The tag is a variable that the file sets to a locked version, so only the name is changed.
#[test]
fn the_name_before_a_tag_that_the_file_sets_is_changed() {
    for (before, after) in [
        (
            "V=v1\ndocker pull quay.io/a/b:$V\n",
            "V=v1\ndocker pull r:5/p/a/b:$V\n",
        ),
        (
            "V=v1\nIMAGE=\"quay.io/a/b:${V}\"\n",
            "V=v1\nIMAGE=\"r:5/p/a/b:${V}\"\n",
        ),
        (
            "V ?= v1\nrun:\n\tdocker pull quay.io/a/b:$(V)\n",
            "V ?= v1\nrun:\n\tdocker pull r:5/p/a/b:$(V)\n",
        ),
        (
            "for V in 1.27 latest; do x --image=docker.io/nginx:$V; done\n",
            "for V in 1.27 latest; do x --image=r:5/p/library/nginx:$V; done\n",
        ),
        (
            "ARG V=27\nFROM nginx:1.$V AS x\n",
            "ARG V=27\nFROM r:5/p/library/nginx:1.$V AS x\n",
        ),
        (
            "ARG V=1.27\nARG B=nginx:${V}\nFROM $B\n",
            "ARG V=1.27\nARG B=r:5/p/library/nginx:${V}\nFROM $B\n",
        ),
    ] {
        for text in [before, after] {
            let result = run_as(text, TextSyntax::Text);
            assert_eq!(result, (after.to_owned(), vec![]), "{text}");
        }
    }
    becomes(
        "x: |\n  V=v1\n  docker pull quay.io/a/b:$V\n",
        "x: |\n  V=v1\n  docker pull r:5/p/a/b:$V\n",
    );
    for text in [
        "V=v2\ndocker pull quay.io/a/b:$V\n",
        "V=v1\nif x; then V=v2; fi\ndocker pull quay.io/a/b:$V\n",
        "V=$(x)\ndocker pull quay.io/a/b:$V\n",
        "V: v2\nV=v1\ndocker pull quay.io/a/b:$V\n",
        "docker pull quay.io/a/b:${V:-v1}\n",
    ] {
        let (new, left) = run_as(text, TextSyntax::Text);
        assert_eq!(new, text);
        assert!(
            left.len() == 1 && left[0].starts_with("its tag or digest is a placeholder"),
            "{text}: {left:?}"
        );
    }
}

/// The new name would contain the value of the variable, and the variable would repeat it.
#[test]
fn a_name_that_contains_a_variable_is_listed() {
    for text in [
        "S=b\ndocker pull quay.io/a/$S:v1\n",
        "S=/b\ndocker pull quay.io/a$S:v1\n",
        "S=b\nV=v1\ndocker pull quay.io/a/${S}:$V\n",
        "ARG S=inx\nFROM ng$S:1.27\n",
        "P=io/a/b:v1\ndocker pull quay.$P\n",
    ] {
        let (new, left) = run_as(text, TextSyntax::Text);
        assert_eq!(new, text);
        assert!(
            left.len() == 1 && left[0].starts_with("its name has a placeholder; the lock has "),
            "{text}: {left:?}"
        );
    }
    let empty = "S=\ndocker pull quay.io/a/b$S:v1\n";
    let expected = "S=\ndocker pull r:5/p/a/b$S:v1\n";
    let result = run_as(empty, TextSyntax::Text);
    assert_eq!(result, (expected.to_owned(), vec![]));
}

/// A host in a variable is listed, unless the file sets it to the destination.
#[test]
fn a_host_in_a_variable_is_listed_with_and_without_braces() {
    for host in ["$REG", "${REG}"] {
        for (value, count) in [("quay.io", 1), ("other.test", 1), ("r:5/p", 0)] {
            let text = format!("REG={value}\ndocker pull {host}/a/b:v1\n");
            let (new, left) = run_as(&text, TextSyntax::Text);
            assert_eq!((&new, left.len()), (&text, count), "{left:?}");
            let is_listed = |why: &String| why.starts_with("its host is a placeholder");
            assert!(left.iter().all(is_listed), "{left:?}");
        }
    }
}

#[test]
fn short_names_are_reported_only_under_image_keys() {
    for value in ["nginx:*", "nginx:${TAG}", "nginx:{{ .x }}", "nginx:1.28"] {
        let (new, left) = run_as(&format!("{{{{ x }}}}\nimage: {value}\n"), TextSyntax::Text);
        assert_eq!(
            (new, left.len()),
            (format!("{{{{ x }}}}\nimage: {value}\n"), 1)
        );
        becomes(&format!("a: x {value}"), &format!("a: x {value}"));
    }
    stays("image: ${IMAGE:-nginx:1.28}", "only as");
    becomes(
        "image: ${IMAGE:-nginx}",
        "image: ${IMAGE:-r:5/p/library/nginx}",
    );
    for image in [
        "nginx",
        "\"quay.io/a/b\"",
        "{{ x }}\n  image: library/nginx",
    ] {
        let text = format!("{{{{ x }}}}\n  image: {image}\n");
        let (new, left) = run_as(&text, TextSyntax::Text);
        assert!(
            new == text && left.len() == 1 && left[0].contains("the text is not YAML"),
            "{text}: {left:?}"
        );
    }
}

#[test]
fn mapping_keys_in_texts_are_not_changed() {
    for text in [
        "{{ x }}\nquay.io/a/b:v1: x\n",
        "{{ x }}\n  - \"quay.io/a/b:v1\": x\n",
        "{\"quay.io/a/b:v1\":1}\n{\"x\": 1, \"quay.io/a/b:v1\": \"y\"} x\n",
        "x: \"{\\\"quay.io/a/b:v1\\\": 1} x\" y\n",
    ] {
        let (new, left) = run_as(text, TextSyntax::Text);
        assert_eq!(new, text);
        assert!(
            !left.is_empty() && left.iter().all(|why| why.contains("key of a mapping")),
            "{text}: {left:?}"
        );
    }
    assert_eq!(
        run_as("failed to pull \"quay.io/a/b:v1\": no\n", TextSyntax::Text).0,
        "failed to pull \"r:5/p/a/b:v1\": no\n"
    );
}

#[test]
fn a_comment_after_a_byte_order_mark_is_not_changed() {
    for text in [
        "\u{feff}# quay.io/a/b:v1\n",
        "\u{feff}// quay.io/a/b:v1\nx\n",
        "\u{feff} # quay.io/a/b:v1\n{{ x }}\n",
    ] {
        assert_eq!(run_as(text, TextSyntax::Text), (text.to_owned(), vec![]));
    }
    becomes(
        "\u{feff}# quay.io/a/b:v1\na: quay.io/a/b:v1\n",
        "\u{feff}# quay.io/a/b:v1\na: r:5/p/a/b:v1\n",
    );
}

#[test]
fn schemas_and_mirror_sets_in_templates_are_not_changed() {
    let crd = "{{- if .x }}\nkind: CustomResourceDefinition\nspec:\n  default: quay.io/a/b:v1\n{{- end }}\n";
    let other = "---\na: quay.io/a/b:v1\n";
    let (new, left) = run_as(&format!("{crd}{other}"), TextSyntax::Document);
    assert_eq!(new, format!("{crd}{}", other.replace("quay.io", "r:5/p")));
    assert_eq!(left, ["it is in the schema of a CustomResourceDefinition"]);
    stays(
        "x: |\n  {{- if .x }}\n  openAPIV3Schema:\n    a: quay.io/a/b:v1\n  {{- end }}\n",
        "in the schema",
    );
    for kind in [
        "ImageDigestMirrorSet",
        "ImageTagMirrorSet",
        "ImageContentSourcePolicy",
    ] {
        let set = format!(
            "{{{{- if .x }}}}\nkind: {kind}\nspec:\n- source: quay.io/a/b\n{{{{- end }}}}\n"
        );
        stays(&set, "it names the source of a mirror");
    }
}

#[test]
fn a_reference_that_is_not_changed_is_reported_without_the_text_after_it() {
    for (text, written) in [
        ("x \"quay.io/a/b:\" $v\n", "quay.io/a/b:"),
        ("run quay.io/a/b:${V})\n", "quay.io/a/b:${V}"),
        ("[quay.io/a/b:$V]\n", "quay.io/a/b:$V"),
        ("<quay.io/a/b:$V>\n", "quay.io/a/b:$V"),
        ("quay.io/a/b:(1|2) x\n", "quay.io/a/b:(1|2)"),
        ("quay.io/a/b:[0-9]+\n", "quay.io/a/b:[0-9]+"),
        ("{{ x }}/a/b:v1.\n", "/a/b:v1"),
    ] {
        let found = scan(text, TextSyntax::Text, &crate::tests::known()).found;
        assert_eq!(
            found.iter().map(|one| &*one.written).collect::<Vec<_>>(),
            [written]
        );
    }
}

/// Templates of test pods are often written like this.
#[test]
fn the_default_host_in_a_template_call_is_changed_if_it_completes_a_locked_image() {
    for (before, after) in [
        (
            "{{ default \"docker.io\" .Values.global.imageRegistry }}/nginx:1.27",
            "{{ default \"r:5/p/library\" .Values.global.imageRegistry }}/nginx:1.27",
        ),
        (
            "{{ .Values.registry | default `quay.io` }}/a/b:v1",
            "{{ .Values.registry | default `r:5/p` }}/a/b:v1",
        ),
    ] {
        let text = |image: &str| format!("{{{{ if .x }}}}\nimage: {image}\n");
        assert_eq!(
            run_as(&text(before), TextSyntax::Text),
            (text(after), vec![])
        );
        becomes(&format!("image: '{before}'"), &format!("image: '{after}'"));
    }
    // a path after another one is not below the host of the call
    let twice = |host: &str| format!("{{{{ default \"{host}\" .r }}}}/a/b:v1}}}}/a/b:v1\n");
    let (text, left) = run_as(&twice("quay.io"), TextSyntax::Text);
    assert_eq!((text, left.len()), (twice("r:5/p"), 1));
    for (image, reason) in [
        (
            "{{ default \"docker.io\" .r }}/a/b:v1",
            "its host is a placeholder",
        ),
        (
            "{{ default \"quay.io\" .r }}/a/b:v2",
            "its host is a placeholder",
        ),
        (
            "{{ default \"quay.io\" .r }}/a/b:{{ .t }}",
            "its host is a placeholder",
        ),
        (
            "{{ default .quay.io .r }}/a/b:v1",
            "its host is a placeholder",
        ),
    ] {
        is_left(image, reason);
    }
}
