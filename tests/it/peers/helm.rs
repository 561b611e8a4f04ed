//! Helm downloads and renders charts in a closed network: from `serve`, and from docker-registry
//! after a push, with their provenance. `lock` renders charts with Helm if the manifest names a
//! version of Helm.

use crate::support::charts::{Chart, Signer, Upstream, failure_reasons, repository};
use crate::support::helm::{command, helm};
use crate::support::netns::{Network, REGISTRY};
use crate::support::peers::{Server, file_server, own_registry};
use crate::support::{Images, Place, need, run};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const VALUES: &str = "image: {repository: quay.io/x/app, tag: v1}\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    \
     image: \"{{ .Values.image.repository }}:{{ .Values.image.tag }}\"\n";

/// A bundle of two signed charts: `app` from an HTTP repository, and `more` from a registry.
struct Carried {
    place: Place,
    app: Chart,
    more: Chart,
    _upstream: (Server, Server),
}

impl Carried {
    fn new() -> Carried {
        let place = Place::new();
        let signer = Signer::new(&place, "maker");
        place.write("maker.gpg", signer.keyring());
        for folder in ["pulled", "oci"] {
            std::fs::create_dir(place.path(folder)).unwrap();
        }
        let files = [("values.yaml", VALUES), ("templates/p.yaml", TEMPLATE)];
        let app = Chart::new("app", "1.2.3+b", "description: An app\n", &files).signed(&signer);
        let more = Chart::new("more", "2.0.0", "", &files).signed(&signer);
        repository(&place, "up/stable", "", std::slice::from_ref(&app));
        let files = file_server(&place.path("up"));
        let registry = own_registry();
        let images = Images::new(place.path("layout"));
        more.push(&images, &registry.address, "team/more");
        let charts = json!([
            {"repo": format!("{}/stable", files.url()), "name": "app", "version": "1.2.3+b", "key": "maker.gpg"},
            {"ref": format!("oci://{}/team/more:2.0.0", registry.address), "key": "maker.gpg"},
        ]);
        place.write(
            "m.yaml",
            format!("apiVersion: landfall/v1\nkind: Manifest\ncharts: {charts}\n"),
        );
        for words in ["lock -f m.yaml", "pull", "pack -o b"] {
            place.json(0, &words.split(' ').collect::<Vec<_>>());
        }
        Carried {
            place,
            app,
            more,
            _upstream: (files, registry),
        }
    }

    /// Runs Helm on a node that can connect only to its own network. Returns Helm's output.
    fn helm(&self, network: &Network, helm: &Path, words: &str) -> String {
        let mut command: Command = command(&self.place, helm);
        command.args(words.split(' '));
        String::from_utf8(run(&mut network.on("node", &command))).unwrap()
    }
}

#[test]
fn helm_reads_charts_from_serve() {
    let Some(helm) = helm().filter(|_| need(&["gpg", "curl"])) else {
        return;
    };
    let Some(network) = Network::new() else {
        return;
    };
    let carried = Carried::new();
    let place = &carried.place;
    let mut serve = place.command();
    let _server = network.serve(
        "registry",
        serve.args(["serve", "b", "--listen", REGISTRY]),
        REGISTRY,
    );
    let repo = format!("http://{REGISTRY}/charts");
    let run = |words: &str| carried.helm(&network, helm, words);
    run(&format!("repo add far {repo}"));
    assert!(run("search repo far --versions").contains("An app"));
    run("pull far/app --version 1.2.3+b --verify --keyring maker.gpg -d pulled");
    assert_eq!(
        place.read_bytes("pulled/app-1.2.3+b.tgz"),
        carried.app.archive
    );
    assert!(run("verify pulled/app-1.2.3+b.tgz --keyring maker.gpg").contains("Signed by: maker"));
    assert!(run("show chart far/more").contains("version: 2.0.0"));
    assert!(run(&format!("template x more --repo {repo}")).contains("image: \"quay.io/x/app:v1\""));
    let dependencies = format!(
        "apiVersion: v2\nname: mine\nversion: 0.1.0\ndependencies:\n- {{name: app, version: 1.x.x, repository: \"{repo}\"}}\n"
    );
    place.write("mine/Chart.yaml", dependencies);
    run("dependency update mine");
    std::fs::remove_dir_all(place.path("mine/charts")).unwrap();
    run("dependency build mine");
    assert_eq!(
        place.read_bytes("mine/charts/app-1.2.3+b.tgz"),
        carried.app.archive
    );
    assert!(run("template x mine").contains("image: \"quay.io/x/app:v1\""));

    // the same server offers the charts as artifacts
    let oci = format!("oci://{REGISTRY}/stable/app --version 1.2.3+b --plain-http");
    run(&format!("pull {oci} --verify --keyring maker.gpg -d oci"));
    assert_eq!(place.read_bytes("oci/app-1.2.3+b.tgz"), carried.app.archive);
    // any web server can offer the charts from an exported folder
    place.ok(&["export", "charts", "--bundle", "b", "-o", "www/charts"]);
    let www = file_server(&place.path("www"));
    let mut show = command(place, helm);
    show.args([
        "show",
        "chart",
        "app",
        "--repo",
        &format!("{}/charts", www.url()),
    ]);
    assert!(
        String::from_utf8(crate::support::run(&mut show))
            .unwrap()
            .contains("appVersion: \"9.1\"")
    );
}

#[test]
fn helm_reads_charts_from_a_registry_after_a_push() {
    let Some(helm) = helm().filter(|_| need(&["docker-registry", "gpg", "curl"])) else {
        return;
    };
    let Some(network) = Network::new() else {
        return;
    };
    let carried = Carried::new();
    let _registry = network.docker_registry(&carried.place);
    let mut push = carried.place.command();
    push.args(["push", "b", "--to", &format!("{REGISTRY}/site")]);
    run(&mut network.on("operator", &push));
    let run = |words: &str| carried.helm(&network, helm, words);
    for (chart, path) in [(&carried.app, "stable/app"), (&carried.more, "team/more")] {
        let oci = format!("oci://{REGISTRY}/site/{path}");
        let version = &chart.version;
        run(&format!(
            "pull {oci} --version {version} --plain-http --verify --keyring maker.gpg -d pulled"
        ));
        assert_eq!(
            carried
                .place
                .read_bytes(&format!("pulled/{}", chart.file())),
            chart.archive
        );
        let verified = run(&format!(
            "verify pulled/{} --keyring maker.gpg",
            chart.file()
        ));
        assert!(verified.contains(&chart.digest()), "{verified}");
        let shown = run(&format!(
            "show values {oci} --version {version} --plain-http"
        ));
        assert!(shown.contains("repository: quay.io/x/app"), "{shown}");
        let template = run(&format!(
            "template x {oci} --version {version} --plain-http"
        ));
        assert!(
            template.contains("image: \"quay.io/x/app:v1\""),
            "{template}"
        );
    }
    let dependency = format!(
        "apiVersion: v2\nname: mine\nversion: 0.1.0\ndependencies:\n- {{name: more, version: ^2.0.0, repository: \
         \"oci://{REGISTRY}/site/team\"}}\n"
    );
    carried.place.write("mine/Chart.yaml", dependency);
    run("dependency build mine --plain-http");
    assert_eq!(
        carried.place.read_bytes("mine/charts/more-2.0.0.tgz"),
        carried.more.archive
    );
}

#[test]
fn the_named_helm_version_renders_a_chart_for_the_named_kubernetes_version() {
    let Some(helm) = helm() else { return };
    let up = Upstream::new();
    let place = &up.place;
    let [old, new, off] = ["x/old", "x/new", "x/off"].map(|repository| up.image(repository, "v1"));
    let template = format!(
        "kind: Pod\nspec:\n  containers:\n  - image: {{{{ if semverCompare \">=1.30\" .Capabilities.KubeVersion.Version }}}}\
         {new}{{{{ else }}}}{old}{{{{ end }}}}\n{{{{ if .Values.more }}}}  - image: {off}\n{{{{ end }}}}"
    );
    let files = [
        ("values.yaml", "more: true\n"),
        ("templates/p.yaml", &*template),
    ];
    up.repository(&[Chart::new("app", "1.0.0", "", &files)]);
    let version = run(command(place, helm).args(["version", "--template", "{{.Version}}"]));
    let version = String::from_utf8(version).unwrap();
    let lock = |exit: i32, version: &str, kubernetes: &str, path: &str| -> Value {
        let wanted = json!([{"repo": up.repo(), "name": "app", "version": "1.0.0", "images": "discover",
            "values": [{"more": false}], "helm": version, "kubernetes": kubernetes}]);
        up.manifest(&wanted, "referrers: false");
        let mut lock = place.command();
        lock.args([
            "lock",
            "-f",
            "m.yaml",
            "--output",
            "json",
            "--progress",
            "none",
        ])
        .env("PATH", path);
        let ran = lock.output().unwrap();
        assert_eq!(
            ran.status.code(),
            Some(exit),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        serde_json::from_slice(&ran.stdout).unwrap()
    };
    let path = helm.parent().unwrap().display().to_string();
    for (kubernetes, found, not) in [("1.29.0", &old, &new), ("1.31.0", &new, &old)] {
        lock(0, &version, kubernetes, &path);
        let text = place.read("landfall.lock");
        assert!(
            text.contains(found.as_str()) && !text.contains(not.as_str()),
            "{kubernetes}: {text}"
        );
        assert!(
            !text.contains(&off) && text.contains("at: app (rendered):"),
            "{text}"
        );
    }
    let other = failure_reasons(&lock(1, "v3.0.1", "1.31.0", &path));
    assert!(
        other.contains("names helm 3.0.1, but the helm on PATH is"),
        "{other}"
    );
    let none = failure_reasons(&lock(1, &version, "1.30.0", "/nowhere"));
    assert!(none.contains("there is no helm on PATH"), "{none}");
}
