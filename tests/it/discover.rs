//! `landfall discover`: drafts a manifest from the references in a tree.

use super::audit::place;
use std::os::unix::fs::PermissionsExt;

#[test]
fn texts_that_cannot_be_images_are_not_drafted() {
    let place = place();
    place.write(
        "f.yaml",
        "a: {image: {repository: swr.ap-southeast-1.myhuaweicloud.com, tag: v0.26.8}}\n\
         defaultImageRegistry: quay.io\ndefaultImageRepository: strimzi\ndefaultImageTag: 1.2.0\n\
         image: {registry: ghcr.io, repository: '', name: operator, tag: v1}\n",
    );
    let draft = place.ok(&["discover", "f.yaml", "--no-helm"]);
    assert!(draft.contains("images:\n  # - "), "{draft}");
    assert!(!draft.contains("\n  - "), "{draft}");
}

/// The vendor's page of 2019 lists images without tags.
#[test]
fn a_list_without_tags_becomes_commented_entries() {
    let place = place();
    place.write(
        "list.txt",
        "# images\ngcr.io/google_containers/hyperkube-amd64\nk8s.gcr.io/pause\ncalico/node\n",
    );
    let draft = place.ok(&["discover", "list.txt"]);
    for name in [
        "gcr.io/google_containers/hyperkube-amd64",
        "k8s.gcr.io/pause",
        "docker.io/calico/node",
    ] {
        let line = format!("  # - {name}  # list.txt:");
        assert!(draft.contains(&line), "{draft}");
    }
    // an entry is pinned by removing `# ` and adding the tag
    let pinned = draft.replace(
        "  # - docker.io/calico/node ",
        "  - docker.io/calico/node:v3 ",
    );
    place.write("pinned.yaml", pinned);
    let listed = place.ok(&["egress", "-f", "pinned.yaml"]);
    assert!(listed.contains("registry-1.docker.io"), "{listed}");
    // paths of files are not a list of images
    for (name, text) in [
        ("files.txt", "src/main.rs\nsrc/lib.rs\n"),
        ("words.txt", "k8s.gcr.io/pause\nnode\n"),
    ] {
        place.write(name, text);
        let draft = place.ok(&["discover", name]);
        assert!(!draft.contains("  # - "), "{draft}");
    }
}

/// Each kind of document and command names a chart or repository in its own way, and the draft has
/// one form for all.
#[test]
fn charts_and_repositories_become_entries() {
    let place = place();
    place.write(
        "app.yaml",
        "kind: Application\nspec: {source: {repoURL: 'https://charts.test/stable', chart: web, \
         targetRevision: 1.10.0}}\n---\nspec: {chart: 'oci://quay.io/c/d', version: 1.2.3}\n",
    );
    place.write(
        "setup.sh",
        "#!/bin/sh\nhelm install d oci://quay.io/c/d --version 1.2.3\n\
         helm repo add r https://charts.test/more\nhelm install e r/e --version 2.0.0+x\n\
         helm install f r/f\ngit clone -b v1 https://git.test/a.git\n\
         kubectl apply -f https://dl.test/crds.yaml\n",
    );
    let report = place.json(0, &["discover", "app.yaml", "setup.sh", "--no-helm"]);
    let draft = report["manifest"].as_str().unwrap();
    let sections = "\ncharts:\n  # with `images: discover` in an entry, the images of the chart are \
        locked, too\n  \
        - {ref: \"oci://quay.io/c/d:1.2.3\"}  # app.yaml:4 and 1 more\n  \
        - {repo: \"https://charts.test/more\", name: \"e\", version: \"2.0.0+x\"}  # setup.sh:4\n  \
        - {repo: \"https://charts.test/stable\", name: \"web\", version: \"1.10.0\"}  # app.yaml:2\n";
    assert!(draft.contains(sections), "{draft}");
    assert!(
        draft.contains("  # - f  # setup.sh:5; it does not name one version"),
        "{draft}"
    );
    let url = "  - url: \"https://dl.test/crds.yaml\"  # setup.sh:7\n";
    assert!(draft.contains(url), "{draft}");
    let git = "git:\n  - {url: \"https://git.test/a.git\", refs: [\"v1\"]}  # setup.sh:6\n";
    assert!(draft.ends_with(git), "{draft}");
    let charts = report["items"].as_array().unwrap().iter();
    let charts = charts.filter(|item| item["kind"] == "chart");
    assert_eq!(charts.count(), 3, "{report}");
}

/// The vendor's page of 2019 names folders of files.
#[test]
fn urls_of_pages_dockerfiles_and_scripts_are_drafted() {
    let place = place();
    place.write(
        "page.md",
        "see\nhttps://docs.test/page\n```\ncalico/node\n```\n```\n# DNS\nk8s.gcr.io/pause\n```\n```bash\n# the kubelet:\nhttps://dl.test/release/\nhttps://dl.test/a.sh\n```\n",
    );
    place.write(
        "Dockerfile",
        "FROM scratch\nARG V=v1\nADD https://dl.test/b.tgz /\nRUN curl -LO https://dl.test/${V}/c.tgz\n",
    );
    let draft = place.ok(&["discover", "page.md", "Dockerfile"]);
    let folder = "  # - https://dl.test/release/  # page.md:12; it is the URL of a folder: write the whole URL under `files:`\n";
    assert!(draft.contains(folder), "{draft}");
    for image in [
        "docker.io/calico/node  # page.md:4",
        "k8s.gcr.io/pause  # page.md:8",
    ] {
        assert!(draft.contains(&format!("  # - {image}; no tag")), "{draft}");
    }
    let urls: Vec<&str> = draft
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- url: "))
        .collect();
    assert_eq!(
        urls,
        [
            "\"https://dl.test/a.sh\"  # page.md:13",
            "\"https://dl.test/b.tgz\"  # Dockerfile:3",
            "\"https://dl.test/v1/c.tgz\"  # Dockerfile:4",
        ]
    );
}

/// Strimzi's chart has a link with a fragment in its notes, and many projects pin one digest by
/// several tags.
#[test]
fn init_writes_a_valid_manifest_whatever_the_files_name() {
    let place = place();
    let digest = format!("sha256:{}", "a".repeat(64));
    place.write(
        "t/c/Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    );
    place.write(
        "t/c/templates/NOTES.txt",
        "Read the documentation:\n\nhttps://docs.test/latest/deploying.html#chart\n",
    );
    place.write(
        "t/pods.yaml",
        format!(
            "containers:\n- image: quay.io/x/a:latest@{digest}\n- image: quay.io/x/a:nonroot@{digest}\n"
        ),
    );
    place.write(
        "t/run.sh",
        "#!/bin/sh\ncurl -LO https://dl.test/a.tgz#part\ncurl -LO HTTPS://DL.test:443/b/../a.tgz\n\
         curl -LO https://dl.test:99999/c.tgz\n",
    );
    place.write(
        "t/app.yaml",
        "kind: Application\nspec:\n  source: {repoURL: 'https://git.test/a.git?x=1', path: p, targetRevision: v1}\n",
    );
    place.ok(&["init", "t", "-o", "kit"]);
    let manifest = place.read("kit/manifest.yaml");
    for line in [
        &*format!("  - quay.io/x/a@{digest}  # t/pods.yaml:2 and 1 more\n"),
        "  - url: \"https://dl.test/a.tgz\"  # t/run.sh:2 and 1 more\n",
        "  # - https://dl.test:99999/c.tgz  # t/run.sh:4; this is not a URL",
        "  # - git+https://git.test/a.git?x=1  # t/app.yaml:3; this is not the URL of a repository",
    ] {
        assert!(manifest.contains(line), "{line} is not in:\n{manifest}");
    }
    assert!(!manifest.contains("docs.test"), "{manifest}");
}

#[test]
fn discover_drafts_a_manifest_with_helm_and_without() {
    let place = place();
    // a machine without helm
    place.set("PATH", "/nowhere");
    place.write(
        "t/d.yaml",
        "containers:\n- image: quay.io/x/a:1\n- image: nginx\n",
    );
    place.write(
        "t/c/Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    );
    place.write(
        "t/c/values.yaml",
        "image: {repository: quay.io/x/default, tag: v1}\n",
    );
    place.write(
        "t/c/templates/p.yaml",
        "image: \"{{ .Values.image.repository }}\"\n",
    );
    place.write("t/c/Dockerfile", "FROM quay.io/x/base:v3\n");
    place.write("mine.yaml", "image: {tag: v2}\n");
    let text = place.ok(&["discover", "t", "--name", "mine"]);
    let statically = "\
# Drafted by `landfall discover`. Review it, pin commented-out entries, and keep it in git.
apiVersion: landfall/v1
kind: Manifest
metadata: {name: mine}
# platforms: [linux/amd64]  # of all images here; the default is all platforms

images:
  - quay.io/x/a:1  # t/d.yaml:2
  - quay.io/x/base:v3  # t/c/Dockerfile:1
  - quay.io/x/default:v1  # t/c/values.yaml:1
  # - docker.io/library/nginx  # t/d.yaml:3; no tag: write a version or a digest
  # - {{ .Values.image.repository }}  # t/c/templates/p.yaml:1; it contains a placeholder; render it first, then audit the result
";
    assert_eq!(text, statically);
    let refused = place.json(2, &["discover", "t", "-f", "mine.yaml"]);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("helm, which is not on PATH"),
        "{refused}"
    );
    let report = place.json(0, &["discover", "t", "--no-helm"]);
    let unpinned = &report["unpinned"][0];
    assert_eq!(
        unpinned, "docker.io/library/nginx (t/d.yaml:3; no tag: write a version or a digest)",
        "{report:#}"
    );

    // a stand-in for helm, so that this test does not need it
    let helm = place.write("bin/helm", "#!/bin/sh\necho \"$*\" >> \"$HOME/asked\"\nprintf 'containers:\\n- image: quay.io/x/rendered:v2\\n'\n");
    std::fs::set_permissions(&helm, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", place.path("bin").display());
    let run = |args: &[&str]| {
        let output = place
            .command()
            .env("PATH", &path)
            .args(args)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, text, printed) = run(&["discover", "t", "-f", "mine.yaml"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        text.contains("\n  - quay.io/x/rendered:v2  # t/c (rendered):2\n"),
        "{text}"
    );
    assert!(
        text.contains("\n  - quay.io/x/base:v3  # t/c/Dockerfile:1\n"),
        "the Dockerfile must be read although helm does not render it: {text}"
    );
    assert!(
        !text.contains("x/default") && !text.contains("{{"),
        "{text}"
    );
    assert_eq!(
        place.read("home/asked"),
        "template landfall t/c --include-crds --values mine.yaml\n"
    );
    assert_eq!(
        run(&["discover", "t", "--no-helm", "--name", "mine"]).1,
        statically
    );
    place.write(
        "bin/helm",
        "#!/bin/sh\necho 'Error: no repository' >&2\nexit 1\n",
    );
    let (code, text, printed) = run(&["discover", "t", "--name", "mine"]);
    assert_eq!((code, text.as_str()), (Some(3), statically));
    assert!(
        printed.contains(
            "helm cannot render it, so its default values were read: Error: no repository"
        ),
        "{printed}"
    );
}

/// Cloud-init user data with packages and downloads.
const USER_DATA: &str = "#cloud-config
packages:
  - jq
  - [containerd.io, 1.7.24-1]
runcmd:
  - [sh, -c, 'curl -fL https://dl.k8s.io/v1.33.4/bin/linux/amd64/kubelet -o /usr/bin/kubelet']
  - curl -fL https://dl.k8s.io/${VERSION}/bin/linux/amd64/kubeadm
";

#[test]
fn discover_reads_a_cluster_and_the_lists_of_a_node_from_stdin() {
    let place = place();
    let digest = format!("sha256:{}", "1".repeat(64));
    let pods = format!(
        r#"{{"kind": "List", "items": [{{"kind": "Pod", "metadata": {{"name": "a"}}, "spec": {{"containers": [{{"name": "c", "image": "quay.io/x/app:v1"}}]}},
        "status": {{"containerStatuses": [{{"image": "quay.io/x/app:v1", "imageID": "quay.io/x/app@{digest}"}}]}}}}]}}"#
    );
    let crictl = format!(
        r#"{{"images": [{{"id": "{digest}", "repoTags": ["registry.k8s.io/pause:3.9"], "repoDigests": ["registry.k8s.io/pause@{digest}"], "size": "1"}},
        {{"id": "{digest}", "repoTags": [], "repoDigests": ["quay.io/x/bare@{digest}"]}}]}}"#
    );
    let ctr = format!(
        "REF TYPE DIGEST SIZE PLATFORMS LABELS\nquay.io/x/app:v1 application/x {digest} 2.1 MiB linux/amd64 -\n{digest} application/x {digest} 2.1 MiB linux/amd64 -\n"
    );
    let docker = format!(
        "{{\"ID\":\"1\",\"Repository\":\"quay.io/x/app\",\"Tag\":\"v1\",\"Digest\":\"{digest}\"}}\n\
         {{\"ID\":\"2\",\"Repository\":\"nginx\",\"Tag\":\"1.27\",\"Digest\":\"<none>\"}}\n"
    );
    let inspect = format!(r#"[{{"RepoTags": ["nginx:1.27"], "RepoDigests": ["nginx@{digest}"]}}]"#);
    let podman = format!(
        r#"[{{"RepoTags": null, "RepoDigests": ["quay.io/x/app@{digest}"], "Names": ["quay.io/x/app:v1"]}}]"#
    );
    for (what, text, wanted) in [
        ("pods", pods, vec![format!("quay.io/x/app:v1@{digest}")]),
        (
            "inspect",
            inspect,
            vec![format!("docker.io/library/nginx:1.27@{digest}")],
        ),
        ("podman", podman, vec![format!("quay.io/x/app:v1@{digest}")]),
        (
            "docker",
            docker,
            vec![
                "docker.io/library/nginx:1.27".to_owned(),
                format!("quay.io/x/app:v1@{digest}"),
            ],
        ),
        (
            "crictl",
            crictl,
            vec![
                format!("quay.io/x/bare@{digest}"),
                format!("registry.k8s.io/pause:3.9@{digest}"),
            ],
        ),
        ("ctr", ctr, vec![format!("quay.io/x/app:v1@{digest}")]),
    ] {
        let ran = place
            .landfall()
            .args(["discover", "-"])
            .write_stdin(text)
            .assert()
            .code(0);
        let draft = String::from_utf8_lossy(&ran.get_output().stdout).into_owned();
        let entries: Vec<&str> = draft
            .lines()
            .filter_map(|line| line.strip_prefix("  - "))
            .map(|line| line.split("  # ").next().unwrap())
            .collect();
        assert_eq!(entries, wanted, "{what}: {draft}");
        assert!(draft.contains("  # <stdin>:"), "{what}: {draft}");
        assert!(!draft.contains("\n  # - "), "{what}: {draft}");
    }
}

#[test]
fn discover_finds_urls_and_package_names_in_cloud_init_and_units() {
    let place = place();
    place.write("nodes/user-data", USER_DATA);
    place.write(
        "nodes/etc/a.service",
        "[Service]\nExecStartPre=/usr/bin/curl -L https://get.test/a.tgz -o /a.tgz\nExecStart=/usr/bin/apt-get install -y socat\n",
    );
    let draft = place.ok(&["discover", "nodes", "--no-helm"]);
    let expected = "\
# Drafted by `landfall discover`. Review it, pin commented-out entries, and keep it in git.
apiVersion: landfall/v1
kind: Manifest
metadata: {name: discovered}
# platforms: [linux/amd64]  # of all images here; the default is all platforms

images:
  # - https://dl.k8s.io/${VERSION}/bin/linux/amd64/kubeadm  # nodes/user-data:7; a part of this URL is defined elsewhere: write the whole URL under `files:`

files:
  # add a `checksum:` to each: the URL of its checksum file, or sha256:<hex>; otherwise only the lock pins it
  - url: \"https://dl.k8s.io/v1.33.4/bin/linux/amd64/kubelet\"  # nodes/user-data:6
  - url: \"https://get.test/a.tgz\"  # nodes/etc/a.service:2

# Packages that are installed from repositories and are not mirrored:
#   apt: containerd.io=1.7.24-1  # nodes/user-data:4
#   apt: jq  # nodes/user-data:3; no version
#   apt: socat  # nodes/etc/a.service:3; no version
";
    assert_eq!(draft, expected);
    let report = place.json(0, &["discover", "nodes", "--no-helm"]);
    assert_eq!(
        report["packages"][0]["name"], "containerd.io=1.7.24-1",
        "{report:#}"
    );
    let ran = place
        .landfall()
        .args(["discover", "-"])
        .write_stdin(USER_DATA)
        .assert()
        .code(0);
    let of_stdin = String::from_utf8_lossy(&ran.get_output().stdout).into_owned();
    for line in [
        "amd64/kubelet\"  # <stdin>:6\n",
        "#   apt: jq  # <stdin>:3; no version\n",
    ] {
        assert!(of_stdin.contains(line), "{line}: {of_stdin}");
    }
    // the draft is a valid manifest
    let draft = place.write("draft.yaml", draft);
    assert_eq!(
        crate::support::library::load_manifests(&[draft])
            .unwrap()
            .requests
            .files
            .len(),
        2
    );
}

#[test]
fn a_draft_contains_no_password_of_a_url() {
    let place = place();
    place.write(
        "run.sh",
        "curl -O https://bot:hunter2@dl.test/a.tgz\ncurl -O https://bot:hunter2@dl.test/$V/b.tgz\n",
    );
    let report = place.json(0, &["discover", "run.sh", "--no-helm"]);
    let draft = report["manifest"].as_str().unwrap();
    for line in [
        "  # - https://***@dl.test/a.tgz  # run.sh:1; it has a user name or password: write the URL",
        "  # - https://***@dl.test/$V/b.tgz  # run.sh:2; ",
    ] {
        assert!(draft.contains(line), "{line}: {draft}");
    }
    assert!(!report.to_string().contains("hunter2"), "{report:#}");
}
