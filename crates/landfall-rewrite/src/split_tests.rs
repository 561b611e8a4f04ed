//! References whose parts are entries of one mapping, and registries of several images.

use super::audit::{Inventory, audit};
use super::tests::{at_site, becomes, stays};
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use landfall_model::document::growth::assert_linear;
use std::path::Path;

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
        "{image: nginx, imageVersion: '1.27'}",
        "{image: r:5/p/library/nginx, imageVersion: '1.27'}",
    );
    // ManageIQ
    becomes(
        "{webImageName: quay.io/a/b, webImageTag: v1, imageName: nginx, imageTag: '1.27'}",
        "{webImageName: r:5/p/a/b, webImageTag: v1, imageName: r:5/p/library/nginx, imageTag: '1.27'}",
    );
    becomes(
        "{image: quay.io/a/b, imageName: web, imageTag: v1}",
        "{image: r:5/p/a/b, imageName: web, imageTag: v1}",
    );
    becomes(
        "x: {image: {repository: quay.io/a/b, version: v1}}",
        "x: {image: {repository: r:5/p/a/b, version: v1}}",
    );
    // k0s, whose images have no other keys
    becomes(
        "images: {x: {image: quay.io/a/b, version: v1}}",
        "images: {x: {image: r:5/p/a/b, version: v1}}",
    );
    // GitLab CI; a name without a tag need not be that of an image
    becomes(
        "image: {name: 'nginx:1.27', entrypoint: ['']}",
        "image: {name: 'r:5/p/library/nginx:1.27', entrypoint: ['']}",
    );
    becomes("image: {name: nginx}", "image: {name: nginx}");
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

/// Helm reads `1.10` without quotes as `1.1`.
#[test]
fn a_number_is_also_looked_up_as_helm_reads_it() {
    let run = |tag: &str, names: &[&str]| {
        let text = format!("{{repository: quay.io/a/b, tag: {tag}}}");
        at_site(names, "quay.io: q", &text)
    };
    let rewritten = ("{repository: r:5/q/a/b, tag: 1.10}".to_owned(), vec![]);
    assert_eq!(run("1.10", &["quay.io/a/b:1.1"]), rewritten);
    assert_eq!(run("1.10", &["quay.io/a/b:1.10"]), rewritten);
    for (tag, name) in [("'1.10'", "quay.io/a/b:1.1"), ("1.10", "quay.io/a/b:1.2")] {
        let (text, left) = run(tag, &[name]);
        assert_eq!(text, format!("{{repository: quay.io/a/b, tag: {tag}}}"));
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

/// Charts leave the tag to `appVersion`, and the registry to Docker Hub.
#[test]
fn an_image_without_host_and_tag_is_one_of_docker_hub() {
    for (source, expected) in [
        (
            "image: {repository: nginx, tag: \"\"}",
            "image: {repository: r:5/p/library/nginx, tag: \"\"}",
        ),
        (
            "initImage:\n  repository: nginx\n  tag:\n",
            "initImage:\n  repository: r:5/p/library/nginx\n  tag:\n",
        ),
        (
            "web: {repository: nginx, tag: ~}",
            "web: {repository: r:5/p/library/nginx, tag: ~}",
        ),
        (
            "{webRepository: nginx, webTag: ''}",
            "{webRepository: r:5/p/library/nginx, webTag: ''}",
        ),
    ] {
        becomes(source, expected);
    }
    for source in [
        "image: {registry: '', repository: nginx, tag: ''}",
        "image: {repository: nginx}",
        "{repository: nginx, otherTag: ''}",
    ] {
        stays(source, "neither a host nor a tag");
    }
    let other = at_site(&["quay.io/a/b:1"], "", "image: {repository: a/b, tag: ''}");
    assert_eq!(other, ("image: {repository: a/b, tag: ''}".into(), vec![]));
    let two = ["docker.io/a/b:1", "docker.io/a/b-x:1"];
    assert_eq!(
        at_site(&two, "", "image: {repository: a/b, tag: ''}"),
        ("image: {repository: r:5/a/b, tag: ''}".into(), vec![])
    );
}

#[test]
fn split_references_that_cannot_be_decided_are_not_changed() {
    stays(
        "{registry: quay.io, repository: a/b, tag: v2}",
        "only as v1",
    );
    stays("{image: nginx, tag: '1.28'}", "only as");
    stays("{image: nginx, imageVersion: '1.28'}", "only as");
    stays("{image: quay.io/a/b, version: v2}", "only as");
    stays("image: {repository: quay.io/a/b, version: v2}", "only as");
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
    let (same, why) = done("registry.k8s.io/pause: k/sandbox", &names[1..2]);
    let moved = "do not keep their path at their destination: registry.k8s.io/pause";
    assert!(same == text && why[0].ends_with(moved), "{why:?}");
    // kubeadm pulls `coredns`, not `coredns/coredns`, unless the registry is registry.k8s.io
    let dns = [&names[..], &["registry.k8s.io/coredns/coredns:v1"]].concat();
    let (same, why) = done("", &dns);
    assert!(
        same == text
            && why[0].contains("registry.k8s.io/coredns/coredns: [coredns/coredns, coredns]"),
        "{why:?}"
    );
    let both = "registry.k8s.io/coredns/coredns: [coredns/coredns, coredns]";
    assert_eq!(done(both, &dns), ("imageRepository: r:5\n".into(), vec![]));
    // nor if CoreDNS has a repository of its own
    let own = |registry: &str| {
        format!(
            "imageRepository: {registry}\ndns: {{imageRepository: {registry}/coredns, imageTag: v1}}\n"
        )
    };
    let rewritten = at_site(&dns, "", &own("registry.k8s.io"));
    assert_eq!(rewritten, (own("r:5"), vec![]));
}

/// A `registry` or `repository` completes the names of images in other mappings (Datadog).
#[test]
fn a_prefix_in_another_mapping_is_rewritten_if_it_completes_a_name() {
    let names = [
        "gcr.io/datadoghq/agent:7",
        "quay.io/a/b:v1",
        "docker.io/otel/c:1",
    ];
    let run = |text: &str| at_site(&names, "gcr.io: g, quay.io: q, docker.io: d", text);
    for (before, after) in [
        (
            "registry: gcr.io/datadoghq\nagents: {image: {name: agent, tag: 7}}\n",
            "registry: r:5/g/datadoghq\nagents: {image: {name: agent, tag: 7}}\n",
        ),
        (
            "image: {repository: gcr.io/datadoghq}\nagents: {image: {name: agent, tag: 7}}\n",
            "image: {repository: r:5/g/datadoghq}\nagents: {image: {name: agent, tag: 7}}\n",
        ),
        (
            "image: {registry: otel, tag: ''}\nc: {image: {registry: '', tag: '', name: c}}\n",
            "image: {registry: r:5/d/otel, tag: ''}\nc: {image: {registry: '', tag: '', name: c}}\n",
        ),
        (
            "registry: quay.io\nx: {image: {repository: a/b, tag: v1}}\n",
            "registry: r:5/q\nx: {image: {repository: a/b, tag: v1}}\n",
        ),
        // both parts are in one mapping
        (
            "image: {repository: gcr.io/datadoghq, name: agent, tag: 7}\n",
            "image: {repository: r:5/g/datadoghq, name: agent, tag: 7}\n",
        ),
    ] {
        assert_eq!(run(before), (after.to_owned(), vec![]));
    }
    for text in [
        "registry: gcr.io/datadoghq\nagents: {image: {name: other, tag: 7}}\n",
        "registry: quay.io\nname: a\n",
        "registry: quay.io\nusername: u\nimage: {repository: a/b}\n",
        "registry: docker.io\nx: {image: {repository: a/b, tag: v2}}\n",
    ] {
        assert_eq!(run(text).0, text);
    }
}

#[test]
fn a_key_may_say_that_a_short_name_is_an_image() {
    let names = [
        "docker.io/percona/operator:1",
        "docker.io/library/nginx:1.27",
    ];
    let run = |text: &str| at_site(&names, "docker.io: d", text);
    for (before, after) in [
        (
            "{operatorImageRepository: percona/operator, image: ''}",
            "{operatorImageRepository: r:5/d/percona/operator, image: ''}",
        ),
        (
            "{image: percona/operator, imageVersion: ''}",
            "{image: r:5/d/percona/operator, imageVersion: ''}",
        ),
        (
            "{image: nginx, imageTag: ~}",
            "{image: r:5/d/library/nginx, imageTag: ~}",
        ),
    ] {
        assert_eq!(run(before), (after.to_owned(), vec![]));
    }
    for text in [
        "{operatorImageRepository: percona/operator, operatorImageRegistry: ''}",
        "{operatorImageRepository: nginx}",
        "{repository: percona/operator}",
    ] {
        let (new, left) = run(text);
        assert_eq!((&*new, left.len()), (text, 1), "{left:?}");
    }
}

/// Without a tag, a variable that is named after an image means `latest`.
#[test]
fn variables_named_after_an_image_have_images() {
    becomes(
        "env: [{name: A_IMAGE, value: nginx}, {name: A, value: nginx}]",
        "env: [{name: A_IMAGE, value: r:5/p/library/nginx}, {name: A, value: nginx}]",
    );
    // parameters of Helm in Argo CD and Helmfile
    stays(
        "parameters: [{name: web.image.repository, value: nginx}]",
        "neither a host nor a tag",
    );
}

#[test]
fn names_and_prefixes_in_different_mappings_take_linear_time() {
    let lock = "version: 1\nimages:\n- {name: 'quay.io/a/b:v1', mediaType: m, size: 1, digest: \
        sha256:0000000000000000000000000000000000000000000000000000000000000000}\n";
    let lock = Lock::parse("l", lock).unwrap();
    let inventory = Inventory::new(&lock, None, None, "2026-01-01");
    assert_linear(500, |count| {
        let text: String = (0..count)
            .map(|n| format!("- registry: r{n}.io\n- image: {{repository: x/y{n}, tag: v1}}\n"))
            .collect();
        let found = audit(Path::new("x.yaml"), &text, &inventory);
        assert_eq!(found.len(), count);
    });
}

#[test]
fn keys_that_are_repeated_in_a_mapping_take_linear_time() {
    let lock = Lock::parse("l", "version: 1\n").unwrap();
    let inventory = Inventory::new(&lock, None, None, "2026-01-01");
    let plan = "kind: Plan\napiVersion: upgrade.cattle.io/v1\nspec:\n";
    for (head, one) in [
        ("", "registry: quay.io\n"),
        ("", "repository: a/b\ntag: v1\n"),
        ("", "image: a/b:1\n"),
        ("", "container: a/b:1\n"),
        ("", "services: []\n"),
        ("", "spec: {}\n"),
        ("", "dns: {}\n"),
        (plan, "  upgrade: {image: a/b}\n"),
    ] {
        assert_linear(1_000, |count| {
            let text = head.to_owned() + &one.repeat(count);
            becomes(&text, &text);
            drop(audit(Path::new("x.yaml"), &text, &inventory));
        });
    }
}
