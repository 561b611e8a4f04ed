//! `landfall discover`: a draft of a manifest from what a tree names.

use super::audit::place;
use std::os::unix::fs::PermissionsExt;

#[test]
fn what_can_be_no_image_is_not_drafted() {
    let place = place();
    place.write(
        "f.yaml",
        "a: {image: {repository: swr.ap-southeast-1.myhuaweicloud.com, tag: v0.26.8}}\n\
         defaultImageRegistry: quay.io\ndefaultImageRepository: strimzi\ndefaultImageTag: 1.2.0\n\
         image: {registry: ghcr.io, repository: '', name: operator, tag: v1}\n",
    );
    let draft = place.ok(&["discover", "f.yaml", "--no-helm"]);
    assert!(draft.contains("images: []\n"), "{draft}");
}

#[test]
fn discover_drafts_a_manifest_with_helm_and_without() {
    let place = place();
    place.write("t/d.yaml", "containers:\n- image: quay.io/x/a:1\n- image: nginx\n");
    place.write("t/c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    place.write("t/c/values.yaml", "image: {repository: quay.io/x/default, tag: v1}\n");
    place.write("t/c/templates/p.yaml", "image: \"{{ .Values.image.repository }}\"\n");
    place.write("mine.yaml", "image: {tag: v2}\n");
    let text = place.ok(&["discover", "t", "--name", "mine"]);
    let statically = "\
# Drafted by `landfall discover`. Read it, pin what is commented, and keep it in git.
apiVersion: landfall/v1
kind: Manifest
metadata: {name: mine}
# platforms: [linux/amd64]  # of all images here; left out, every platform of each is carried

images:
  - quay.io/x/a:1  # t/d.yaml:2
  - quay.io/x/default:v1  # t/c/values.yaml:1
  # - docker.io/library/nginx  # t/d.yaml:3; no tag: write a version or a digest
  # - {{ .Values.image.repository }}  # t/c/templates/p.yaml:1; it is made of a placeholder; audit what comes out of it
";
    assert_eq!(text, statically);
    let refused = place.json(2, &["discover", "t", "-f", "mine.yaml"]);
    assert!(refused["error"]["message"].as_str().unwrap().contains("no helm on PATH"), "{refused}");

    // a stand-in: no helm is needed to build and test landfall
    let helm = place.write("bin/helm", "#!/bin/sh\necho \"$*\" >> \"$HOME/asked\"\nprintf 'containers:\\n- image: quay.io/x/rendered:v2\\n'\n");
    std::fs::set_permissions(&helm, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", place.path("bin").display());
    let run = |args: &[&str]| {
        let output = place.command().env("PATH", &path).args(args).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, text, told) = run(&["discover", "t", "-f", "mine.yaml"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(text.contains("\n  - quay.io/x/rendered:v2  # t/c (rendered):2\n"), "{text}");
    assert!(!text.contains("default") && !text.contains("{{"), "{text}");
    assert_eq!(place.read("home/asked"), "template landfall t/c --include-crds --values mine.yaml\n");
    assert_eq!(run(&["discover", "t", "--no-helm", "--name", "mine"]).1, statically);
    place.write("bin/helm", "#!/bin/sh\necho 'Error: no repository' >&2\nexit 1\n");
    let (code, text, told) = run(&["discover", "t", "--name", "mine"]);
    assert_eq!((code, text.as_str()), (Some(3), statically));
    assert!(
        told.contains("helm cannot render it, so that its defaults were read: Error: no repository"),
        "{told}"
    );
}
