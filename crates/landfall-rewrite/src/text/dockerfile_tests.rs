//! Tests of the images in Dockerfiles: in whole files, and in Dockerfiles within other texts.

use crate::TextSyntax;
use crate::tests::{becomes, run_as, stays};

/// Rewrites a Dockerfile. Returns the new text and the reasons why references were not changed.
fn run(text: &str) -> (String, Vec<String>) {
    run_as(text, TextSyntax::Text)
}

#[test]
fn without_a_tag_an_image_in_a_dockerfile_means_latest() {
    for (text, expected) in [
        ("FROM nginx\n", "FROM r:5/p/library/nginx\n"),
        ("from --platform=linux/amd64 nginx as x\nFROM nginx\n", ""),
        (
            "\u{feff}FROM docker.io/nginx AS x\nFROM x\n",
            "\u{feff}FROM r:5/p/library/nginx AS x\nFROM x\n",
        ),
        (
            "FROM quay.io/a/b:v1\nCOPY --from=nginx / /\n",
            "FROM r:5/p/a/b:v1\nCOPY --from=r:5/p/library/nginx / /\n",
        ),
        (
            "FROM scratch\nRUN --mount=type=bind,from=nginx,target=/x true\n",
            "FROM scratch\nRUN --mount=type=bind,from=r:5/p/library/nginx,target=/x true\n",
        ),
        (
            "FROM \\\n  nginx\nRUN <<EOF\nFROM nginx\nEOF\n",
            "FROM \\\n  r:5/p/library/nginx\nRUN <<EOF\nFROM nginx\nEOF\n",
        ),
        ("FROM \"nginx\"\n", "FROM \"r:5/p/library/nginx\"\n"),
        (
            "ARG BASE=nginx\nFROM ${BASE}\n",
            "ARG BASE=r:5/p/library/nginx\nFROM ${BASE}\n",
        ),
        (
            "FROM ${BASE:-nginx}\n",
            "FROM ${BASE:-r:5/p/library/nginx}\n",
        ),
        (
            "# syntax=nginx\nFROM scratch\n",
            "# syntax=r:5/p/library/nginx\nFROM scratch\n",
        ),
        (
            "#!/bin/sh\ncat > D <<'EOF'\nFROM nginx\nEOF\n",
            "#!/bin/sh\ncat > D <<'EOF'\nFROM r:5/p/library/nginx\nEOF\n",
        ),
    ] {
        let expected = if expected.is_empty() { text } else { expected };
        assert_eq!(run(text), (expected.to_owned(), vec![]));
    }
    becomes(
        "dockerfile: |\n  FROM nginx\n  RUN x\n",
        "dockerfile: |\n  FROM r:5/p/library/nginx\n  RUN x\n",
    );
    becomes(
        "{dockerfile: \"FROM nginx\\nRUN x\\n\"}",
        "{dockerfile: \"FROM r:5/p/library/nginx\\nRUN x\\n\"}",
    );
    becomes(
        "dockerfile: FROM nginx",
        "dockerfile: FROM r:5/p/library/nginx",
    );
}

#[test]
fn the_locked_tags_are_listed_if_the_tag_is_not_locked() {
    for (text, reason) in [
        (
            "FROM quay.io/a/b\n",
            "without a tag it means latest; the lock has v1",
        ),
        (
            "FROM quay.io/a/b AS x\nFROM nginx:1.28\n",
            "without a tag it means latest; the lock has v1",
        ),
        ("FROM nginx:1.28\n", "only as 1.27, latest"),
        (
            "FROM scratch\nCOPY --from=nginx:1.28 / /\n",
            "only as 1.27, latest",
        ),
        ("ARG BASE=nginx:1.28\nFROM $BASE\n", "only as 1.27, latest"),
        (
            "FROM nginx:$TAG\n",
            "is a placeholder; the lock has 1.27, latest",
        ),
        (
            "# syntax=nginx:1.28\nFROM scratch\n",
            "only as 1.27, latest",
        ),
    ] {
        let (new, left) = run(text);
        assert_eq!(new, text);
        assert!(
            left.first().is_some_and(|why| why.contains(reason)),
            "{text}: {left:?}"
        );
    }
    stays("dockerfile: |\n  FROM quay.io/a/b\n", "means latest");
    stays("[\"FROM quay.io/a/b\"]", "means latest");
}

#[test]
fn stages_sql_and_sentences_are_not_images() {
    for text in [
        "FROM scratch AS nginx\nFROM nginx\nCOPY --from=nginx a b\n",
        "SELECT *\nFROM nginx\n",
        "From nginx one learns.\n",
        "x\nFROM nginx\n",
        "# a comment\n# syntax=nginx\nFROM scratch\n",
    ] {
        assert_eq!(run(text), (text.to_owned(), vec![]));
    }
}
