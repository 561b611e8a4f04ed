//! Charts and repositories that helm accepts although they are unusual.

use crate::support::charts::{Chart, Upstream, failure_reasons, repository};
use crate::support::images::{gzip, sha256, tarball};
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use serde_json::json;

/// A chart whose archive has these files.
fn packed(name: &str, files: &[(&str, &str)]) -> Chart {
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, text)| (*path, text.as_bytes()))
        .collect();
    Chart {
        archive: gzip(&tarball(&files)),
        ..Chart::new(name, "1.0.0", "", &[])
    }
}

/// Before, these archives were refused. The behaviour of helm 3.22 was tried.
#[test]
fn archives_with_repeated_names_and_backslashes_are_accepted_as_helm_does() {
    let up = Upstream::new();
    let yaml = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    let pod = |image: &str| format!("spec: {{containers: [{{image: \"{image}\"}}]}}\n");
    let (old, new) = (up.image("team/old", "1"), up.image("team/new", "1"));
    up.repository(&[
        packed(
            "twice",
            &[
                ("twice/Chart.yaml", &yaml("twice")),
                ("twice/templates/a.yaml", &pod(&old)),
                ("twice/templates/a.yaml", &pod(&new)),
            ],
        ),
        packed(
            "windows",
            &[
                ("windows\\Chart.yaml", &yaml("windows")),
                ("windows\\templates\\a.yaml", &pod(&new)),
            ],
        ),
    ]);
    for name in ["twice", "windows"] {
        let entry = json!({"repo": up.repo(), "name": name, "version": "1.0.0",
            "images": "discover"});
        up.manifest(&json!([entry]), "");
        up.lock(0, &[]);
        // the last file counts
        let lock = up.place.read("landfall.lock");
        assert!(
            lock.contains("team/new") && !lock.contains("team/old"),
            "{lock}"
        );
        let _ = std::fs::remove_file(up.place.path("landfall.lock"));
    }
    let unsafe_names = [
        packed(
            "up",
            &[("up\\Chart.yaml", &yaml("up")), ("up\\..\\..\\x", "")],
        ),
        packed(
            "two",
            &[
                ("two/Chart.yaml", &yaml("two")),
                ("two/Chart.yaml", &yaml("two")),
            ],
        ),
    ];
    up.repository(&unsafe_names);
    for (name, why) in [
        ("up", "unsafe name"),
        ("two", "twice, which helm would merge"),
    ] {
        let entry = json!({"repo": up.repo(), "name": name, "version": "1.0.0"});
        up.manifest(&json!([entry]), "");
        let reasons = failure_reasons(&up.lock(1, &[]));
        assert!(reasons.contains(why), "{reasons}");
    }
}

/// helm reads `off` as `false`. Before, this subchart was locked, and the template's image was not.
#[test]
fn words_of_yaml_1_1_are_booleans_as_in_helm() {
    let up = Upstream::new();
    let (main, sub) = (up.image("team/main", "1"), up.image("team/sub", "1"));
    let dependency = "dependencies: [{name: sub, version: 1.0.0, condition: sub.enabled}]";
    up.repository(&[packed(
        "words",
        &[
            (
                "words/Chart.yaml",
                &format!("apiVersion: v2\nname: words\nversion: 1.0.0\n{dependency}\n"),
            ),
            (
                "words/values.yaml",
                &format!("no: {{image: \"{main}\"}}\nsub:\n  enabled: off\n"),
            ),
            (
                "words/templates/a.yaml",
                "spec: {containers: [{image: {{ index .Values \"false\" \"image\" }}}]}\n",
            ),
            (
                "words/charts/sub/Chart.yaml",
                "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
            ),
            (
                "words/charts/sub/values.yaml",
                &format!("image: \"{sub}\"\n"),
            ),
        ],
    )]);
    let entry = json!({"repo": up.repo(), "name": "words", "version": "1.0.0",
        "images": "discover"});
    up.manifest(&json!([entry]), "");
    up.lock(0, &[]);
    let lock = up.place.read("landfall.lock");
    assert!(
        lock.contains("team/main") && !lock.contains("team/sub"),
        "{lock}"
    );
}

/// helm resolves a relative URL against the repository that was configured, not against the
/// address to which its index was redirected.
#[test]
fn archives_and_indexes_on_another_host_are_accepted_without_the_account() {
    let up = Upstream::new();
    let chart = Chart::new("app", "1.0.0", "", &[]);
    for is_redirected in [false, true] {
        let base = if is_redirected {
            ""
        } else {
            &format!("{}/", up.repo())
        };
        repository(&up.place, "up/charts", base, std::slice::from_ref(&chart));
        let index = up.place.read("up/charts/index.yaml");
        let elsewhere = ReverseProxy::new(&up.files.address, |_| ProxyAction::Pass);
        let target = format!("http://{}/charts/index.yaml", elsewhere.address);
        let front = ReverseProxy::new(&up.files.address, move |request| {
            if request.header("authorization").is_none() {
                let challenge = ("WWW-Authenticate".into(), "Basic realm=\"r\"".into());
                ProxyAction::Answer(401, vec![challenge], String::new())
            } else if !request.is("GET", "/index.yaml") {
                ProxyAction::Pass
            } else if is_redirected {
                let location = ("Location".into(), target.clone());
                ProxyAction::Answer(302, vec![location], String::new())
            } else {
                ProxyAction::Bytes(index.clone().into())
            }
        });
        // base64 of `u:p`
        let accounts = json!({"auths": {(front.address.clone()): {"auth": "dTpw"}}});
        up.place
            .write("home/.docker/config.json", accounts.to_string());
        let repo = format!("http://{}/charts", front.address);
        up.manifest(
            &json!([{"repo": repo, "name": "app", "version": "1.0.0"}]),
            "",
        );
        let _ = std::fs::remove_file(up.place.path("landfall.lock"));
        up.lock(0, &["--plain-http", &front.address]);
        assert!(
            up.place
                .read("landfall.lock")
                .contains(&sha256(&chart.archive))
        );
        let requests = elsewhere.requests();
        assert_eq!(requests.is_empty(), !is_redirected);
        assert!(
            requests
                .iter()
                .all(|request| request.header("authorization").is_none())
        );
    }
}
