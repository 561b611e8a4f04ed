//! Repositories in documents of Argo CD, Flux, Kustomize and Terraform: rewritten, audited and
//! drafted.

use super::{digest_again, manifest};
use crate::support::git::{GitServer, history};
use crate::support::programs::go_install;
use crate::support::{Place, landfall_serve, need, run};
use serde_json::Value;

/// Documents of these tools, which use the repository at `UPSTREAM`.
const DOCUMENTS: [(&str, &str); 4] = [
    (
        "apps.yaml",
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec:\n  source: {repoURL: 'UPSTREAM', \
         path: a, targetRevision: v1.0}\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: \
         GitRepository\nspec:\n  url: UPSTREAM\n  ref: {tag: v1.0}\n",
    ),
    (
        "base/kustomization.yaml",
        "resources:\n- UPSTREAM//src?ref=main\n- git::UPSTREAM//src/d0?ref=v1.0\n- ../local\n- \
         https://raw.example.com/x/all.yaml\n",
    ),
    (
        "main.tf",
        "module \"a\" {\n  source = \"git::UPSTREAM//src/d1?ref=v1.0\"\n}\nmodule \"b\" {\n  source  = \
         \"hashicorp/consul/aws\"\n}\n",
    ),
    (
        "values.yaml",
        "generators:\n- git: {repoURL: UPSTREAM, revision: HEAD}\n",
    ),
];

/// Returns a place with a lock of `main` and `v1.0` and with the documents, and the URL of the
/// repository.
fn documents(server: &GitServer) -> (Place, String) {
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 30));
    server.git(&repository, &["tag", "v1.0", "main~3"]);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "refs: [main, v1.0]"));
    place.ok(&["lock", "-f", "m.yaml"]);
    for (name, text) in DOCUMENTS {
        place.write(&format!("docs/{name}"), text.replace("UPSTREAM", &url));
    }
    (place, url)
}

/// The findings in a list of a report, each as `reference: reason`.
fn listed(report: &Value, list: &str) -> Vec<String> {
    let found = report[list].as_array().unwrap().iter();
    let line = |one: &Value| {
        let [reference, why] = ["reference", "why"].map(|key| one[key].as_str().unwrap_or(""));
        format!("{reference}: {why}")
    };
    found.map(line).collect()
}

#[test]
fn audit_names_repositories_and_versions_that_the_lock_lacks() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let (place, url) = documents(&server);
    let report = place.json(0, &["audit", "docs"]);
    assert_eq!(report["held"].as_array().unwrap().len(), 6, "{report:#}");
    let changed = |from: &str, to: &str| {
        for (name, text) in DOCUMENTS {
            place.write(
                &format!("docs/{name}"),
                text.replace("UPSTREAM", &url).replace(from, to),
            );
        }
        place.json(4, &["audit", "docs", "--missing", "more.yaml"])
    };
    let report = changed("v1.0", "v2.0");
    let missing = listed(&report, "missing");
    assert_eq!(missing.len(), 4, "{report:#}");
    assert!(
        missing
            .iter()
            .all(|line| line.contains("heads/main, tags/v1.0, not v2.0"))
    );
    let more = place.read("more.yaml");
    let entry =
        format!("git:\n  - {{url: \"{url}\", refs: [\"v2.0\"]}}  # docs/apps.yaml:4 and 3 more\n");
    assert!(more.contains(&format!("{entry}# landfall may")), "{more}");
    let report = changed("platform.git", "platform2.git");
    let missing = listed(&report, "missing");
    assert_eq!(missing.len(), 6, "{report:#}");
    assert!(
        missing[0].contains("does not have this git repository"),
        "{missing:?}"
    );
    assert!(
        place
            .read("more.yaml")
            .contains("platform2.git\", refs: [\"main\", \"v1.0\"]")
    );
    // versions that cannot be decided, and an SSH URL
    let ssh = "ssh://git@127.0.0.1/team/platform.git";
    let text = "spec: {sources: [{repoURL: UPSTREAM, targetRevision: v1.*}, \
                {repoURL: UPSTREAM, targetRevision: 0123456789}, {repoURL: 'SSH', targetRevision: v9}]}\n";
    place.write("u.yaml", text.replace("UPSTREAM", &url).replace("SSH", ssh));
    let report = place.json(4, &["audit", "u.yaml"]);
    let undecided = listed(&report, "undecided");
    assert!(undecided[0].contains("is not one version"), "{undecided:?}");
    assert!(
        undecided[1].contains("may be in their history"),
        "{undecided:?}"
    );
    assert_eq!(
        listed(&report, "missing").len(),
        1,
        "the SSH URL has another port: {report:#}"
    );
    // a range that looks like a branch
    let text = "kind: GitRepository\nspec: {url: 'UPSTREAM', ref: {semver: 1.x}}\n";
    place.write("range.yaml", text.replace("UPSTREAM", &url));
    let report = place.json(4, &["audit", "range.yaml"]);
    let missing = listed(&report, "missing");
    assert!(
        missing[0].ends_with("and no version in '1.x'"),
        "{missing:?}"
    );
    let draft = place.ok(&["discover", "range.yaml"]);
    assert!(draft.contains("with the versions 1.x: add"), "{draft}");
    // if the lock has no repositories, all repositories in the documents are undecided
    place.write("none.lock", "version: 1\n");
    let report = place.json(0, &["audit", "docs", "--lock", "none.lock"]);
    assert_eq!(listed(&report, "undecided").len(), 6, "{report:#}");
}

#[test]
fn discover_drafts_repositories_with_their_versions() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let (place, url) = documents(&server);
    // `lock` cannot fetch the remote file
    let file = "https://raw.example.com/x/all.yaml";
    let draft = place.ok(&["discover", "docs"]);
    assert!(draft.contains(&format!("- url: \"{file}\"")), "{draft}");
    let base = place.read("docs/base/kustomization.yaml");
    let base = base.replace(&format!("- {file}\n"), "");
    place.write("docs/base/kustomization.yaml", base);
    place.ok(&["discover", "docs", "-o", "draft.yaml"]);
    let draft = place.read("draft.yaml");
    let entry = format!("git:\n  - {{url: \"{url}\", refs: [\"main\", \"v1.0\"]}}");
    assert!(draft.contains(&entry), "{draft}");
    assert!(
        draft.contains(&format!("# - git+{url}")),
        "HEAD is not a version: {draft}"
    );
    place.ok(&["lock", "-f", "draft.yaml", "--lock", "drafted.lock"]);
    place.write(
        "github.tf",
        "module \"a\" {\n  source = \"github.com/org/repo//sub?ref=v2\"\n}\n",
    );
    let draft = place.ok(&["discover", "github.tf"]);
    assert!(
        draft.contains("{url: \"https://github.com/org/repo\", refs: [\"v2\"]}"),
        "{draft}"
    );
}

#[test]
fn sources_are_rewritten_and_terraform_accepts_them() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let (place, _) = documents(&server);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nfiles: {}\n",
        served.url()
    );
    place.write("site.yaml", site);
    let here = format!("{}/{}/team/platform.git", served.url(), server.address);
    let rewrite = |more: &[&str]| {
        let args = [
            "rewrite",
            "docs",
            "--site",
            "site.yaml",
            "--to",
            "127.0.0.1:1",
        ];
        place.ok(&[&args[..], more].concat())
    };
    rewrite(&["--in-place"]);
    for (name, text) in DOCUMENTS {
        assert_eq!(
            place.read(&format!("docs/{name}")),
            text.replace("UPSTREAM", &here),
            "{name}"
        );
    }
    rewrite(&["--check"]);
    let report = place.json(0, &["audit", "docs", "--site", "site.yaml"]);
    assert_eq!(report["held"].as_array().unwrap().len(), 6, "{report:#}");
    if need(&["terraform"]) {
        let source = format!("git::{here}//src/d1?ref=v1.0");
        place.write(
            "tf/main.tf",
            format!("module \"a\" {{\n  source = \"{source}\"\n}}\n"),
        );
        let mut terraform = place.clean("terraform");
        terraform
            .args(["-chdir=tf", "get", "-no-color"])
            .env("CHECKPOINT_DISABLE", "1");
        run(&mut terraform);
        assert!(place.path("tf/.terraform/modules/a/src/d1").is_dir());
    }
}

#[test]
fn kustomize_builds_a_rewritten_remote_base() {
    let (Some(server), Some(kustomize)) = (
        GitServer::new(),
        go_install("sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"),
    ) else {
        return;
    };
    let repository = server.create("team/bases.git");
    let files = [
        ("app/kustomization.yaml", "resources: [map.yaml]\n"),
        (
            "app/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-the-base}\n",
        ),
    ]
    .map(|(name, text)| format!("M 100644 inline {name}\ndata {}\n{text}\n", text.len()));
    let head =
        "commit refs/heads/main\ncommitter T <t@example.com> 1650000000 +0000\ndata 2\nm\n\n";
    server.import(&repository, &format!("{head}{}\n", files.concat()));
    server.git(&repository, &["tag", "v1.0", "main"]);
    let place = Place::new();
    let url = server.url("team/bases.git");
    place.write("m.yaml", manifest(&url, "ref: v1.0"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let served = landfall_serve(&place, &["b.tar.zst"]);
    place.write(
        "app/kustomization.yaml",
        format!("resources:\n- {url}//app?ref=v1.0\n"),
    );
    let files = served.url();
    place.ok(&[
        "rewrite",
        "app",
        "--files",
        &files,
        "--to",
        "127.0.0.1:1",
        "--in-place",
    ]);
    let before = server.requests().len();
    let built = run(place.clean(kustomize).args(["build", "app"]));
    assert!(String::from_utf8(built).unwrap().contains("from-the-base"));
    assert_eq!(server.requests().len(), before, "upstream gets no request");
}

#[test]
fn github_sources_are_rewritten_with_or_without_a_scheme() {
    let place = Place::new();
    let lock = "version: 1\ngit:\n- name: git+https://github.com/org/repo.git\n  digest: DIGEST\n  \
                wanted:\n  - v1\n  refs:\n  - refs/tags/v1 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n  \
                packs:\n  - digest: sha256:57d045c44170b15ee2ff48522652bfc4e835c13cb540c345088c95731f3a417b\n    \
                size: 100\n    tips:\n    - \"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\"\n";
    place.write("landfall.lock", digest_again(lock));
    let text = "resources:\n- github.com/org/repo//sub?ref=v1\n- https://github.com/org/repo//sub?ref=v1\n\
                - https://github.com/org/repo.git?ref=v1\n- github.com/org/repo\n- github.com/org/other//x\n";
    place.write("kustomization.yaml", text);
    let args = [
        "rewrite",
        "kustomization.yaml",
        "--files",
        "http://m:1",
        "--to",
        "127.0.0.1:1",
    ];
    let rewritten = place.ok(&args);
    let here = "http://m:1/github.com/org/repo.git";
    assert_eq!(
        rewritten,
        format!(
            "resources:\n- git::{here}//sub?ref=v1\n- {here}//sub?ref=v1\n- {here}?ref=v1\n\
             - github.com/org/repo\n- github.com/org/other//x\n"
        )
    );
}
