//! Helm itself takes the charts: from `serve` and from docker-registry after a push, with their provenance.

use crate::support::charts::{Chart, Signer, repository};
use crate::support::helm::{command, helm};
use crate::support::peers::{Server, docker_registry, file_server, own_registry};
use crate::support::{Images, Place, landfall_serve, need, run};
use serde_json::json;
use std::path::Path;
use std::process::Command;

const VALUES: &str = "image: {repository: quay.io/x/app, tag: v1}\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    \
     image: \"{{ .Values.image.repository }}:{{ .Values.image.tag }}\"\n";

/// A bundle of two signed charts: `app` of an HTTP repository, and `more` of a registry.
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
        let (files, registry) = (file_server(&place.path("up")), own_registry());
        let images = Images::new(place.path("layout"));
        more.push(&images, &registry.address, "team/more");
        let charts = json!([
            {"repo": format!("{}/stable", files.url()), "name": "app", "version": "1.2.3+b", "key": "maker.gpg"},
            {"ref": format!("oci://{}/team/more:2.0.0", registry.address), "key": "maker.gpg"},
        ]);
        place.write("m.yaml", format!("apiVersion: landfall/v1\nkind: Manifest\ncharts: {charts}\n"));
        for words in ["lock -f m.yaml", "pull", "pack -o b"] {
            place.json(0, &words.split(' ').collect::<Vec<_>>());
        }
        Carried { place, app, more, _upstream: (files, registry) }
    }

    fn helm(&self, helm: &Path, words: &str) -> String {
        let mut command: Command = command(&self.place, helm);
        String::from_utf8(run(command.args(words.split(' ')))).unwrap()
    }
}

#[test]
fn helm_takes_charts_from_the_repository_that_serve_offers() {
    let Some(helm) = helm().filter(|_| need(&["gpg"])) else { return };
    let carried = Carried::new();
    let (place, server) = (&carried.place, landfall_serve(&carried.place, &["b"]));
    let repo = format!("{}/charts", server.url());
    let run = |words: &str| carried.helm(helm, words);
    run(&format!("repo add far {repo}"));
    assert!(run("search repo far --versions").contains("An app"));
    run("pull far/app --version 1.2.3+b --verify --keyring maker.gpg -d pulled");
    assert_eq!(place.read_bytes("pulled/app-1.2.3+b.tgz"), carried.app.archive);
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
    assert_eq!(place.read_bytes("mine/charts/app-1.2.3+b.tgz"), carried.app.archive);
    assert!(run("template x mine").contains("image: \"quay.io/x/app:v1\""));

    // as an artifact, from the same server
    let oci = format!("oci://{}/stable/app --version 1.2.3+b --plain-http", server.address);
    run(&format!("pull {oci} --verify --keyring maker.gpg -d oci"));
    assert_eq!(place.read_bytes("oci/app-1.2.3+b.tgz"), carried.app.archive);
    // and from the folder of an export, which any web server offers
    place.ok(&["export", "charts", "--bundle", "b", "-o", "www/charts"]);
    let www = file_server(&place.path("www"));
    assert!(run(&format!("show chart app --repo {}/charts", www.url())).contains("appVersion: \"9.1\""));
}

#[test]
fn helm_takes_charts_from_a_registry_after_a_push() {
    if !need(&["docker-registry", "gpg"]) {
        return;
    }
    let Some(helm) = helm() else { return };
    let carried = Carried::new();
    let registry = docker_registry();
    carried.place.ok(&["push", "b", "--to", &format!("{}/site", registry.address)]);
    let run = |words: &str| carried.helm(helm, words);
    for (chart, path) in [(&carried.app, "stable/app"), (&carried.more, "team/more")] {
        let oci = format!("oci://{}/site/{path}", registry.address);
        let version = &chart.version;
        run(&format!("pull {oci} --version {version} --plain-http --verify --keyring maker.gpg -d pulled"));
        assert_eq!(carried.place.read_bytes(&format!("pulled/{}", chart.file())), chart.archive);
        let verified = run(&format!("verify pulled/{} --keyring maker.gpg", chart.file()));
        assert!(verified.contains(&chart.digest()), "{verified}");
        let shown = run(&format!("show values {oci} --version {version} --plain-http"));
        assert!(shown.contains("repository: quay.io/x/app"), "{shown}");
        let template = run(&format!("template x {oci} --version {version} --plain-http"));
        assert!(template.contains("image: \"quay.io/x/app:v1\""), "{template}");
    }
    let dependency = format!(
        "apiVersion: v2\nname: mine\nversion: 0.1.0\ndependencies:\n- {{name: more, version: ^2.0.0, repository: \
         \"oci://{}/site/team\"}}\n",
        registry.address
    );
    carried.place.write("mine/Chart.yaml", dependency);
    run("dependency build mine --plain-http");
    assert_eq!(carried.place.read_bytes("mine/charts/more-2.0.0.tgz"), carried.more.archive);
}
