//! A registry and an image as entries of one mapping.

use super::tests::{becomes, run_as, stays};
use crate::TextSyntax;
use landfall_model::Digest;

#[test]
fn a_registry_next_to_an_image_belongs_to_it() {
    for registry in ["registry", "hub", "imageRegistry", "image_registry"] {
        becomes(
            &format!("{{{registry}: quay.io, image: a/b, tag: v1}}"),
            &format!("{{{registry}: r:5, image: p/a/b, tag: v1}}"),
        );
        becomes(
            &format!("{registry}: docker.io\nimage: \"nginx:1.27\"\n"),
            &format!("{registry}: r:5\nimage: \"p/library/nginx:1.27\"\n"),
        );
        stays(
            &format!("{{{registry}: quay.io, image: 'a/b:v2'}}"),
            "only as v1",
        );
    }
    becomes(
        "{registry: quay.io, image: a/b, imageTag: v1}",
        "{registry: r:5, image: p/a/b, imageTag: v1}",
    );
    becomes(
        "{\"registry\": \"quay.io\", \"image\": \"a/b\", \"version\": \"v1\"}",
        "{\"registry\": \"r:5\", \"image\": \"p/a/b\", \"version\": \"v1\"}",
    );
    becomes(
        "x: |\n  hub: quay.io/a\n  image: b:v1\n",
        "x: |\n  hub: r:5/p/a\n  image: b:v1\n",
    );
    // Istio joins `hub` only with an image without a slash
    becomes(
        "{hub: quay.io/a, image: b, tag: v1}",
        "{hub: r:5/p/a, image: b, tag: v1}",
    );
}

#[test]
fn a_short_name_with_another_registry_is_not_an_image_of_docker_hub() {
    for text in [
        "{registry: docker.io/neuvector, image: nginx, tag: \"5\"}",
        "registry: docker.io/neuvector\nimage: nginx\n",
        "{\"hub\": \"other.io\", \"image\": \"nginx:1.27\"}",
        "{imageRegistry: other.io, image: nginx}",
        "{registry: other.io, repository: 'nginx:1.27'}",
        "{registry: other.io, name: 'library/nginx:1.27'}",
        "x: |\n  registry: other.io\n  image: nginx\n",
    ] {
        becomes(text, text);
    }
}

#[test]
fn a_registry_next_to_a_short_name_in_a_template_is_found() {
    let reason = "it has a registry on another line";
    for (before, after) in [
        ("  registry: other.io\n", ""),
        ("", "  hub: {{ .x }}\n"),
        ("  imageRegistry: other.io\n  # x\n\n  x:\n    y: z\n", ""),
        ("- registry: other.io\n", "  x: y\n"),
    ] {
        stays(
            &format!("{{{{ if .x }}}}\na:\n{before}  image: nginx:1.27\n{after}{{{{ end }}}}\n"),
            reason,
        );
    }
    stays(
        "{{ x }}\n- image: nginx:1.27\n  registry: other.io\n",
        reason,
    );
    let long = "x".repeat(300);
    for text in [
        format!("{{{{ x }}}}\nimage: nginx:1.27 # {long}\nregistry: other.io\n"),
        format!("{{{{ x }}}}\nregistry: other.io\nimage: {{{{ {long} }}}} nginx:1.27\n"),
    ] {
        stays(&text, reason);
    }
    for (before, after) in [
        ("registry: other.io\n", ""),
        ("  registry: \"\"\n", ""),
        ("  x:\n    registry: other.io\n", ""),
        ("", "- registry: other.io\n"),
        ("", "  registry: # other.io\n"),
        ("  - registry: other.io\n  -\n", ""),
    ] {
        let text = format!("{{{{ if .x }}}}\n{before}  image: nginx:1.27\n{after}{{{{ end }}}}\n");
        becomes(&text, &text.replace("nginx:", "r:5/p/library/nginx:"));
    }
    // the image of the registry itself
    for text in [
        "FROM registry:2 AS x\nFROM nginx:1.27\n",
        "docker pull registry:2\ndocker pull nginx:1.27\n",
        "registry:2\nnginx:1.27\n",
    ] {
        let new = text.replace("nginx:", "r:5/p/library/nginx:");
        assert_eq!(run_as(text, TextSyntax::Text), (new, vec![]), "{text}");
    }
}

#[test]
fn a_reference_with_two_hosts_is_not_changed() {
    for registry in ["registry", "hub", "imageRegistry"] {
        for image in ["quay.io/a/b:v1", "quay.io/a/b:v2"] {
            stays(
                &format!("{{{registry}: docker.io, image: \"{image}\"}}"),
                "both name a host",
            );
        }
    }
}

#[test]
fn a_whole_reference_is_not_a_registry() {
    let digest = Digest::sha256(b"quay.io/a/b:v1");
    becomes(
        &format!("{{hub: 'quay.io/a/b:v1', image: 'quay.io/a/b:1@{digest}'}}"),
        &format!("{{hub: 'r:5/p/a/b:v1', image: 'r:5/p/a/b:1@{digest}'}}"),
    );
    becomes(
        &format!("{{registry: 'quay.io/a/b@{digest}', image: quay.io/c/d, tag: '1.10'}}"),
        &format!("{{registry: 'r:5/p/a/b@{digest}', image: r:5/p/c/d, tag: '1.10'}}"),
    );
    // a port is not a tag
    becomes(
        "{registry: 'other.io:5000', image: nginx}",
        "{registry: 'other.io:5000', image: nginx}",
    );
}

#[test]
fn a_short_name_with_an_invalid_tag_is_not_changed() {
    stays(
        "{image: nginx, tag: '{{ .x }}'}",
        "tag or digest is not valid",
    );
    stays(
        "{repository: nginx, tag: '{{ .x }}'}",
        "tag or digest is not valid",
    );
    stays(
        "{registry: docker.io, image: nginx, tag: '{{ .x }}'}",
        "tag or digest is not valid",
    );
}

#[test]
fn docker_hub_has_three_names() {
    for host in ["docker.io", "index.docker.io", "registry-1.docker.io"] {
        becomes(
            &format!("a: {host}/library/nginx:1.27"),
            "a: r:5/p/library/nginx:1.27",
        );
        becomes(&format!("imageRegistry: {host}"), "imageRegistry: r:5/p");
    }
}
