//! Hostile charts and YAML: small inputs that expand to large ones, provenance for other charts,
//! long chains of dependencies, and dependencies in repositories that must not receive an account.

use crate::support::charts::{Chart, Signer, Upstream, failure_reasons, repository};
use crate::support::http::request;
use crate::support::images::{gzip, tarball};
use crate::support::peers::file_server;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Place, landfall_serve, need};
use serde_json::json;

/// An address space in MiB that suffices for everything that landfall does with small inputs.
const ENOUGH: u64 = 1024;

/// YAML of 39 kB whose aliases expand to 60 million values.
fn squared() -> String {
    let count = 7_800;
    format!(
        "a: &a [{}]\nb: [{}]\n",
        "x,".repeat(count),
        "*a,".repeat(count)
    )
}

/// Asserts that landfall refuses a document because of its aliases.
fn is_refused(place: &Place, args: &[&str]) {
    let (code, printed) = place.exited(args);
    assert!(
        (1..=3).contains(&code)
            && printed.contains("including the values that its aliases repeat, it has more than"),
        "landfall {}: {code}\n{printed}",
        args.join(" ")
    );
}

#[test]
fn yaml_aliases_that_multiply_values_are_refused_in_every_document() {
    let place = Place::new();
    place.limit_memory(ENOUGH);
    let bomb = squared();
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\n{bomb}images: []\n"),
    );
    is_refused(&place, &["lock", "-f", "m.yaml"]);
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\n{bomb}"),
    );
    is_refused(&place, &["lock", "-f", "m.yaml", "--site", "site.yaml"]);
    place.write("one.yaml", format!("kind: ZarfPackageConfig\n{bomb}"));
    is_refused(&place, &["import", "zarf", "one.yaml", "-o", "out"]);
    place.write("two.yaml", format!("kind: ZarfPackageConfig\n---\n{bomb}"));
    is_refused(&place, &["import", "zarf", "two.yaml", "-o", "out"]);
    place.write(
        "seed.yaml",
        format!("kind: Seed\nspec:\n  a: 1\n---\n{bomb}"),
    );
    is_refused(&place, &["doctor", "seed.yaml"]);
    place.write("landfall.lock", format!("version: 1\n{bomb}"));
    is_refused(&place, &["ls", "landfall.lock"]);
    place.write("landfall.lock", "version: 1\n");
    let values = Chart::new("app", "1.0.0", "", &[("values.yaml", &bomb)]);
    place.write("values.tgz", &values.archive);
    let metadata = Chart::new("app", "1.0.0", &bomb, &[("values.yaml", "a: 1\n")]);
    place.write("metadata.tgz", &metadata.archive);
    for chart in ["values.tgz", "metadata.tgz"] {
        is_refused(&place, &["audit", chart, "--lock", "landfall.lock"]);
        is_refused(&place, &["discover", chart]);
        is_refused(
            &place,
            &["render", "helm-values", chart, "--to", "r.example:5000"],
        );
    }
    place.write("mine.yaml", &bomb);
    place.write("good.tgz", Chart::new("app", "1.0.0", "", &[]).archive);
    is_refused(
        &place,
        &[
            "render",
            "helm-values",
            "good.tgz",
            "-f",
            "mine.yaml",
            "--to",
            "r.example:5000",
        ],
    );
}

#[test]
fn a_hostile_chart_in_a_bundle_is_omitted_from_the_index() {
    let up = Upstream::new();
    let place = &up.place;
    let bomb = Chart::new("app", "1.0.0", &squared(), &[]);
    assert!(bomb.yaml.len() < 50_000 && bomb.archive.len() < 5_000);
    let good = Chart::new("app", "1.0.0", "", &[]);
    let other = Chart::new("other", "2.0.0", "", &[]);
    let charts = json!([{"repo": up.repo(), "name": "app", "version": "1.0.0"},
        {"repo": up.repo(), "name": "other", "version": "2.0.0"}]);
    up.manifest(&charts, "");
    up.repository(&[bomb.clone(), other.clone()]);
    place.limit_memory(ENOUGH);
    let report = up.lock(3, &[]);
    assert!(
        failure_reasons(&report).contains(
            "its Chart.yaml cannot be read: including the values that its aliases repeat"
        ),
        "{report}"
    );

    // a lock that another release wrote, or that was edited, may contain the hostile chart
    up.repository(&[good.clone(), other]);
    up.lock(0, &["--refresh"]);
    let fields = |chart: &Chart| {
        format!(
            "  digest: {}\n  size: {}\n",
            chart.digest(),
            chart.archive.len()
        )
    };
    let lock = place.read("landfall.lock");
    assert!(lock.contains(&fields(&good)), "{lock}");
    let lock = lock.replace(&fields(&good), &fields(&bomb));
    place.write("landfall.lock", lock);
    place.write("up/charts/app-1.0.0.tgz", &bomb.archive);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    let server = landfall_serve(place, &["b"]);
    let index = request("GET", &server.address, "/charts/index.yaml", &[], b"");
    assert_eq!(index.status, 200);
    assert!(
        index.text().contains("other-2.0.0.tgz") && !index.text().contains("app-1.0.0.tgz"),
        "{}",
        index.text()
    );
    assert!(server.log().contains("omits"), "{}", server.log());
    assert_eq!(
        request("GET", &server.address, "/charts/app-1.0.0.tgz", &[], b"").body,
        bomb.archive
    );
    let report = place.json(3, &["export", "charts", "--bundle", "b", "-o", "out"]);
    assert!(
        failure_reasons(&report).contains("not in the index"),
        "{report}"
    );
}

/// The archive of a chart with these archives in `charts/`.
fn with_subcharts(archives: &[Vec<u8>]) -> Vec<u8> {
    let mut files = vec![(
        "app/Chart.yaml".to_owned(),
        b"apiVersion: v2\nname: app\nversion: 1.0.0\n".to_vec(),
    )];
    files.extend(
        archives
            .iter()
            .enumerate()
            .map(|(at, bytes)| (format!("app/charts/s{at}.tgz"), bytes.clone())),
    );
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, bytes)| (&**path, &**bytes))
        .collect();
    gzip(&tarball(&files))
}

#[test]
fn charts_in_a_chart_share_one_size_limit() {
    let up = Upstream::new();
    let place = &up.place;
    let blank = "# \n".repeat(10 << 20);
    let large = Chart::new(
        "s",
        "1.0.0",
        "",
        &[("README.md", &blank), ("values.yaml", "a: 1\n")],
    );
    let archive = with_subcharts(&vec![large.archive; 32]);
    assert!(archive.len() < 2 << 20, "{}", archive.len());
    let app = Chart {
        archive,
        ..Chart::new("app", "1.0.0", "", &[])
    };
    up.repository(std::slice::from_ref(&app));
    let chart =
        json!([{"repo": up.repo(), "name": "app", "version": "1.0.0", "images": "discover"}]);
    up.manifest(&chart, "");
    place.write("app.tgz", &app.archive);
    place.write("landfall.lock.empty", "version: 1\n");
    place.limit_memory(ENOUGH);
    let large = "it unpacks to more than 67108864 bytes";
    let report = up.lock(1, &[]);
    assert!(failure_reasons(&report).contains(large), "{report}");
    for args in [
        &["discover", "app.tgz"][..],
        &["audit", "app.tgz", "--lock", "landfall.lock.empty"],
        &[
            "rewrite",
            "app.tgz",
            "--lock",
            "landfall.lock.empty",
            "--to",
            "r.example:5000",
            "-o",
            "out",
        ],
        &[
            "render",
            "helm-values",
            "app.tgz",
            "--lock",
            "landfall.lock.empty",
            "--to",
            "r.example:5000",
        ],
    ] {
        let printed = place.exited(args).1;
        assert!(
            printed.contains(large),
            "landfall {}: {printed}",
            args.join(" ")
        );
    }
}

#[test]
fn a_subchart_counts_toward_the_limits_once_for_each_alias() {
    let place = Place::new();
    let aliases: String = (0..600)
        .map(|at| format!("- {{name: s, version: 1.0.0, alias: s{at}}}\n"))
        .collect();
    let inner: String = (0..5)
        .map(|at| format!("- {{name: t, version: 1.0.0, alias: t{at}}}\n"))
        .collect();
    let text = "a: b\n".repeat(50_000);
    let files = [
        (
            "charts/s/Chart.yaml",
            &*format!("name: s\nversion: 1.0.0\ndependencies:\n{inner}"),
        ),
        ("charts/s/charts/t/Chart.yaml", "name: t\nversion: 1.0.0\n"),
        ("charts/s/charts/t/templates/a.yaml", &*text),
    ];
    let app = Chart::new("app", "1.0.0", &format!("dependencies:\n{aliases}"), &files);
    place.write("app.tgz", &app.archive);
    place.limit_memory(ENOUGH);
    let message = place.exited(&["discover", "app.tgz"]).1;
    assert!(
        message.contains("it unpacks to more than 67108864 bytes"),
        "{message}"
    );
    // without content, there are still too many subcharts: 600 times `s`, each with 5 times `t`
    let empty = [files[0], files[1]];
    place.write(
        "many.tgz",
        Chart::new("app", "1.0.0", &format!("dependencies:\n{aliases}"), &empty).archive,
    );
    let message = place.exited(&["discover", "many.tgz"]).1;
    assert!(message.contains("more than 1000 subcharts"), "{message}");
}

#[test]
fn provenance_for_another_chart_by_the_same_signer_is_refused() {
    if !need(&["gpg"]) {
        return;
    }
    let up = Upstream::new();
    let place = &up.place;
    let registry = &up.registry.address;
    let maker = Signer::new(place, "maker");
    place.write("maker.asc", maker.public());
    let demand = |version: &str| {
        let oci = format!("oci://{registry}/charts/app:{version}");
        let of_repository =
            json!({"repo": up.repo(), "name": "app", "version": version, "key": "maker.asc"});
        up.manifest(
            &json!([of_repository, {"ref": oci, "key": "maker.asc"}]),
            "",
        );
    };
    // upstream offers another chart of the same maker, with its provenance, as `app`
    let other = Chart::new("other", "1.0.0", "", &[]).signed(&maker);
    up.repository(&[Chart {
        name: "app".into(),
        ..other.clone()
    }]);
    other.push(&up.images, registry, "charts/app");
    demand("1.0.0");
    let report = up.lock(1, &[]);
    assert_eq!(
        failure_reasons(&report)
            .matches("signed for another chart: other 1.0.0")
            .count(),
        2,
        "{report}"
    );
    // a provenance that lists the archive under another file name
    let app = Chart::new("app", "1.0.0", "", &[]);
    let text = format!(
        "{}\n...\nfiles:\n  app-0.9.0.tgz: {}\n",
        app.yaml,
        app.digest()
    );
    let renamed = Chart {
        provenance: Some(maker.sign(&text)),
        ..app.clone()
    };
    up.repository(std::slice::from_ref(&renamed));
    renamed.push(&up.images, registry, "charts/app");
    let report = up.lock(1, &[]);
    assert_eq!(
        failure_reasons(&report)
            .matches("an archive with another name than app-1.0.0.tgz")
            .count(),
        2,
        "{report}"
    );
    let signed = app.signed(&maker);
    up.repository(std::slice::from_ref(&signed));
    signed.push(&up.images, registry, "charts/app");
    up.lock(0, &[]);
}

#[test]
fn a_chain_of_dependencies_is_limited_and_its_unsigned_charts_are_reported() {
    if !need(&["gpg"]) {
        return;
    }
    let up = Upstream::new();
    let maker = Signer::new(&up.place, "maker");
    up.place.write("maker.asc", maker.public());
    let next = |at: usize| {
        format!(
            "dependencies: [{{name: c{}, version: 1.0.0, repository: \"{}\"}}]\n",
            at + 1,
            up.repo()
        )
    };
    let mut chain: Vec<Chart> = (0..20)
        .map(|at| Chart::new(&format!("c{at}"), "1.0.0", &next(at), &[]))
        .collect();
    chain[0] = chain[0].clone().signed(&maker);
    up.repository(&chain);
    up.manifest(
        &json!([{"repo": up.repo(), "name": "c0", "version": "1.0.0", "key": "maker.asc"}]),
        "",
    );
    let printed = up.place.stderr(3, &["lock", "-f", "m.yaml"]);
    let unsigned = |at: usize| {
        let [signed, name] = [0, at].map(|at| format!("helm+{}/c{at}:1.0.0", up.repo()));
        format!("{name} is not verified: the signature of {signed} does not cover its dependencies")
    };
    assert!(
        (1..=8).all(|at| printed.contains(&unsigned(at))) && !printed.contains(&unsigned(9)),
        "{printed}"
    );
    let lock = up.place.read("landfall.lock");
    assert!(
        lock.contains("charts depend on each other in a chain of more than 8"),
        "{lock}"
    );
    assert_eq!(lock.matches("\n  apiVersion: ").count(), 9, "{lock}");
    // a chart that the manifest lists starts a chain of its own
    let listed = json!([{"repo": up.repo(), "name": "c0", "version": "1.0.0", "key": "maker.asc"},
        {"repo": up.repo(), "name": "c9", "version": "1.0.0"}]);
    up.manifest(&listed, "");
    let report = up.lock(3, &[]);
    assert!(report["items"].as_array().unwrap().len() > 16, "{report}");

    let many: String = (0..301)
        .map(|at| {
            format!(
                "- {{name: d{at}, version: 1.0.0, repository: \"{}\"}}\n",
                up.repo()
            )
        })
        .collect();
    up.repository(&[Chart::new(
        "app",
        "1.0.0",
        &format!("dependencies:\n{many}"),
        &[],
    )]);
    up.manifest(
        &json!([{"repo": up.repo(), "name": "app", "version": "1.0.0"}]),
        "",
    );
    let report = up.lock(1, &[]);
    assert!(
        failure_reasons(&report).contains("more than 300 charts"),
        "{report}"
    );
}

#[test]
fn an_account_is_used_only_for_repositories_that_the_manifest_or_the_site_names() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("up")).unwrap();
    let files = file_server(&place.path("up"));
    let server = ReverseProxy::new(&files.address, |_| ProxyAction::Pass);
    let url = |folder: &str| format!("http://{}/{folder}", server.address);
    let depends = |folder: &str| {
        format!(
            "dependencies: [{{name: dep, version: 1.0.0, repository: \"{}\"}}]\n",
            url(folder)
        )
    };
    let stranger = depends("private");
    let own = depends("own");
    repository(
        &place,
        "up/mine",
        "",
        &[
            Chart::new("app", "1.0.0", &stranger, &[]),
            Chart::new("two", "1.0.0", &own, &[]),
        ],
    );
    repository(
        &place,
        "up/private",
        "",
        &[Chart::new("dep", "1.0.0", "", &[])],
    );
    repository(
        &place,
        "up/own",
        "",
        &[
            Chart::new("dep", "1.0.0", "", &[]),
            Chart::new("base", "1.0.0", "", &[]),
        ],
    );
    place.write(
        "home/.docker/config.json",
        format!(
            r#"{{"auths": {{"{}": {{"auth": "dXNlcjpwYXNz"}}}}}}"#,
            server.address
        ),
    );
    let charts = json!([{"repo": url("mine"), "name": "app", "version": "1.0.0"},
        {"repo": url("mine"), "name": "two", "version": "1.0.0"},
        {"repo": url("own"), "name": "base", "version": "1.0.0"}]);
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\ncharts: {charts}\n"),
    );
    let lock = |more: &[&str]| {
        let plain = format!("--plain-http={}", server.address);
        place.json(
            0,
            &[
                &["lock", "-f", "m.yaml", "--refresh", &plain, "--store", "s"],
                more,
            ]
            .concat(),
        );
    };
    lock(&[]);
    let with_account = |part: &str, is: bool| {
        let requests = server
            .requests()
            .into_iter()
            .filter(|request| request.target.starts_with(part));
        let all: Vec<bool> = requests
            .map(|request| request.header("authorization").is_some())
            .collect();
        assert!(
            !all.is_empty() && all.iter().all(|has| *has == is),
            "{part}: {all:?}"
        );
    };
    with_account("/mine/", true);
    with_account("/own/", true);
    with_account("/private/", false);
    // if the site names the host, the account is used for `/private/` as well
    let before = server.requests().len();
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nupstreams: {{\"{}\": {{maxConcurrent: 2}}}}\n",
            server.address
        ),
    );
    lock(&["--site", "site.yaml"]);
    let later: Vec<_> = server
        .requests()
        .into_iter()
        .skip(before)
        .filter(|request| request.target.starts_with("/private/"))
        .collect();
    assert!(
        !later.is_empty()
            && later
                .iter()
                .all(|request| request.header("authorization").is_some())
    );
}

#[test]
fn a_document_of_a_chart_is_read_up_to_the_size_limit_of_helm() {
    let place = Place::new();
    let dense = format!("a: [{}]\n", "a,".repeat(10 << 20));
    let app = Chart::new("app", "1.0.0", "", &[("templates/a.yaml", &dense)]);
    place.write("app.tgz", &app.archive);
    place.write("landfall.lock", "version: 1\n");
    place.limit_memory(ENOUGH);
    for args in [
        &["discover", "app.tgz"][..],
        &["rewrite", "app.tgz", "--to", "r.example:5000", "-o", "out"],
    ] {
        let printed = place.exited(args).1;
        assert!(printed.contains("5242880 bytes"), "{printed}");
    }
}
