//! A chart in every verb; charts from unusual sources and from repositories that require an
//! account; charts in `egress`, `diff` and `gc`.

use crate::support::charts::{Chart, Upstream, failure_reasons, repository};
use crate::support::http::request;
use crate::support::landfall_serve;
use crate::support::peers::own_registry;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The purposes of the hosts in an egress report, by port.
fn hosts(report: &Value) -> BTreeMap<String, String> {
    let rows = report["egress"]["hosts"].as_array().unwrap().iter();
    rows.map(|row| (row["port"].to_string(), row["why"].to_string()))
        .collect()
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap()
}

/// The status of each chart in the report of a command.
fn statuses(report: &Value) -> Vec<&str> {
    let items = report["items"].as_array().unwrap().iter();
    items
        .filter(|item| item["kind"] == "chart")
        .map(|item| item["status"].as_str().unwrap())
        .collect()
}

#[test]
fn a_chart_passes_through_all_stages() {
    let up = Upstream::new();
    let place = &up.place;
    let app = Chart::new("app", "1.0.0", "", &[("values.yaml", "a: 1\n")]);
    let moved = Chart::new("app", "1.0.0", "", &[("values.yaml", "a: 2\n")]);
    let bye = Chart::new("bye", "1.0.0", "", &[]);
    let name = format!("helm+{}/app:1.0.0", up.repo());
    let digest = app.digest();
    up.repository(&[app.clone(), bye.clone()]);
    up.manifest(
        &json!([{"repo": up.repo(), "name": "${name}", "version": "1.0.0"}]),
        &format!(
            "vars: {{name: [app, bye]}}\nexclude: ['helm+{}/bye:1.0.0']",
            up.repo()
        ),
    );

    // lock: the kind has its own section, which is read back and kept
    assert_eq!(statuses(&up.lock(0, &[])), ["done"]);
    let lock = place.read("landfall.lock");
    assert!(
        lock.contains(&format!("\ncharts:\n- name: {name}\n  digest: {digest}\n")),
        "{lock}"
    );
    assert_eq!(statuses(&up.lock(0, &[])), ["present"]);

    // pull, pack, verify
    assert_eq!(statuses(&place.json(0, &["pull"])), ["present"]);
    assert_eq!(statuses(&place.json(0, &["pack", "-o", "b"])), ["done"]);
    let verified = place.json(0, &["verify", "b", "--lock", "landfall.lock"]);
    assert_eq!(statuses(&verified), ["present"]);

    // ls, diff, export
    let listed = place.ok(&["ls", "b"]);
    assert!(
        listed.contains(&name) && listed.contains("0 images, 0 files and 1 chart"),
        "{listed}"
    );
    up.repository(&[moved, bye]);
    up.lock(0, &["--lock", "moved.lock"]);
    let differs = place.json(0, &["diff", "b", "moved.lock"]);
    let change = &differs["changes"][0];
    assert_eq!(
        [&change["kind"], &change["change"], &change["name"]],
        [&json!("chart"), &json!("moved"), &json!(name)]
    );
    let exported = place.json(0, &["export", "files", "--bundle", "b", "-o", "out"]);
    assert_eq!(statuses(&exported), ["done"]);
    let host = &up.files.address;
    let path = format!("{host}/charts/app-1.0.0.tgz");
    assert_eq!(place.read_bytes(&format!("out/{path}")), app.archive);

    // serve: the chart by its name, by its source, by its digest and by its URL
    let server = landfall_serve(place, &["b"]);
    let get = |at: &str| request("GET", &server.address, at, &[], b"");
    let by_name = get("/v2/charts/app/manifests/1.0.0");
    assert_eq!(
        (by_name.status, &by_name.json()["layers"][0]["digest"]),
        (200, &json!(digest))
    );
    let source = host.replace(':', "_");
    let by_source = get(&format!("/v2/{source}/charts/app/manifests/1.0.0"));
    assert_eq!(by_source.body, by_name.body);
    let blob = get(&format!("/v2/charts/app/blobs/{digest}"));
    assert_eq!(blob.body, app.archive);
    assert_eq!(get(&format!("/files/{path}")).body, app.archive);
    assert!(get("/").text().contains(&name));

    // push: the second push finds everything at the registry
    let there = own_registry();
    let push = || place.json(0, &["push", "b", "--to", &there.address]);
    assert_eq!(statuses(&push()), ["done"]);
    let at = "/v2/charts/app/manifests/1.0.0";
    let accept = [("Accept", crate::support::http::ACCEPT)];
    let pushed = request("GET", &there.address, at, &accept, b"");
    assert_eq!(pushed.body, by_name.body);
    assert_eq!(statuses(&push()), ["present"]);

    // audit and rewrite: the lock matches the chart by its reference and by its URL
    let url = format!("http://{path}");
    place.write(
        "app.yaml",
        format!("image: {host}/charts/app:1.0.0\nurl: {url}\n"),
    );
    let audited = place.json(0, &["audit", "app.yaml", "--lock", "landfall.lock"]);
    let items = audited["items"].as_array().unwrap();
    assert!(
        items.len() == 2 && items.iter().all(|item| item["status"] == "present"),
        "{audited}"
    );
    let there = &there.address;
    let files = format!("{}/files", server.url());
    place.ok(&[
        "rewrite",
        "app.yaml",
        "--lock",
        "landfall.lock",
        "--to",
        there,
        "--files",
        &files,
        "-o",
        "new",
    ]);
    assert_eq!(
        place.read("new/app.yaml"),
        format!("image: {there}/charts/app:1.0.0\nurl: {files}/{path}\n")
    );
}

#[test]
fn a_chart_index_that_points_to_a_registry_is_followed() {
    let up = Upstream::new();
    let place = &up.place;
    let registry = &up.registry.address;
    let app = Chart::new("app", "1.2.3+b", "", &[("values.yaml", "a: 1\n")]);
    let app = Chart {
        provenance: Some(b"signed\n".to_vec()),
        ..app
    };
    let manifest = app.push(&up.images, registry, "kept/app");
    up.repository(std::slice::from_ref(&app));
    let index = place.read("up/charts/index.yaml");
    place.write(
        "up/charts/index.yaml",
        index.replace(
            "- app-1.2.3+b.tgz",
            &format!("- oci://{registry}/kept/app:1.2.3+b"),
        ),
    );
    up.manifest(
        &json!([{"repo": up.repo(), "name": "app", "version": "1.2.3+b"}]),
        "",
    );
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    let digest = manifest["digest"].as_str().unwrap();
    assert!(
        lock.contains(&format!(
            "- name: helm+{}/app:1.2.3+b\n  digest: {digest}\n",
            up.repo()
        )),
        "{lock}"
    );
    let needed = hosts(&place.json(0, &["egress", "--store", "empty"]));
    let files = &needed[port(&up.files.address)];
    let images = &needed[port(registry)];
    assert!(
        files.contains("indexes of") && images.contains("images of"),
        "{needed:?}"
    );
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    let there = own_registry();
    place.ok(&["push", "b", "--to", &there.address]);
    let at = "/v2/charts/app/manifests/1.2.3_b";
    let there = request(
        "GET",
        &there.address,
        at,
        &[("Accept", crate::support::http::ACCEPT)],
        b"",
    );
    assert_eq!(
        there.body,
        up.images.bytes(digest),
        "the chart was changed on its way to the registry"
    );
    let server = landfall_serve(place, &["b"]);
    let got = |path: &str| request("GET", &server.address, path, &[], b"").body;
    assert_eq!(got("/charts/app-1.2.3%2Bb.tgz"), app.archive);
    assert_eq!(got("/charts/app-1.2.3+b.tgz.prov"), b"signed\n");
}

#[test]
fn credentials_of_a_chart_repository_are_sent_to_no_other_host() {
    let up = Upstream::new();
    let place = &up.place;
    let guarded = ReverseProxy::new(&up.files.address, |request| {
        match request.header("authorization") {
            // the account `u:p`
            Some("Basic dTpw") => ProxyAction::Pass,
            _ => ProxyAction::Answer(
                401,
                vec![("WWW-Authenticate".into(), "Basic realm=\"x\"".into())],
                String::new(),
            ),
        }
    });
    let other = ReverseProxy::new(&up.files.address, |_| ProxyAction::Pass);
    let app = Chart::new("app", "1.0.0", "", &[]);
    let app = Chart {
        provenance: Some(b"signed\n".to_vec()),
        ..app
    };
    let more = Chart::new("more", "2.0.0", "", &[]);
    repository(place, "up/charts", "", std::slice::from_ref(&app));
    repository(
        place,
        "up/far",
        &format!("http://{}/far/", other.address),
        std::slice::from_ref(&more),
    );
    let at = &guarded.address;
    let account = place.write("account", "u:p\n");
    for (name, plain) in [("site.yaml", true), ("secure.yaml", false)] {
        let site = json!({"apiVersion": "landfall/v1", "kind": "Site",
            "upstreams": {at.as_str(): {"plainHTTP": plain, "credentials": {"file": account}}}});
        place.write(name, site.to_string());
    }
    let charts = json!([{"repo": format!("http://{at}/charts"), "name": "app", "version": "1.0.0"},
        {"repo": format!("http://{at}/far"), "name": "more", "version": "2.0.0"}]);
    up.manifest(&charts, "");
    let refused = up.lock(1, &["--plain-http", at]);
    assert!(failure_reasons(&refused).contains("401"), "{refused}");
    up.lock(1, &["--site", "secure.yaml"]);
    let before = guarded.requests();
    assert!(
        before
            .iter()
            .all(|request| request.header("authorization").is_none()),
        "credentials are sent over plain HTTP only if the site allows it"
    );
    up.lock(0, &["--site", "site.yaml"]);
    place.ok(&["pull", "--site", "site.yaml"]);
    place.ok(&["pack", "-o", "b"]);
    assert!(place.ok(&["ls", "b"]).contains("2 charts"));
    let requests = other.requests();
    assert!(
        !requests.is_empty()
            && requests
                .iter()
                .all(|request| request.header("authorization").is_none()),
        "{requests:?}"
    );
    assert!(!place.read("landfall.lock").contains("u:p"));
}

#[test]
fn the_hosts_of_index_and_archive_are_listed_and_probed() {
    let up = Upstream::new();
    let place = &up.place;
    let index = ReverseProxy::new(&up.files.address, |_| ProxyAction::Pass);
    let archives = ReverseProxy::new(&up.files.address, |_| ProxyAction::Pass);
    let app = Chart::new("app", "1.0.0", "", &[]);
    repository(
        place,
        "up/charts",
        &format!("http://{}/charts/", archives.address),
        std::slice::from_ref(&app),
    );
    let repo = format!("http://{}/charts", index.address);
    up.manifest(
        &json!([{"repo": repo, "name": "app", "version": "1.0.0"}]),
        "",
    );
    up.lock(0, &[]);
    let needed = hosts(&place.json(0, &["egress", "--store", "empty"]));
    assert!(
        needed[port(&index.address)].contains("indexes of"),
        "{needed:?}"
    );
    assert!(
        needed[port(&archives.address)].contains("files of"),
        "{needed:?}"
    );
    let before = [
        index.count("GET", "index.yaml"),
        archives.count("GET", "app-1.0.0.tgz"),
    ];
    let probed = place.json(0, &["egress", "--probe"]);
    let after = [
        index.count("GET", "index.yaml"),
        archives.count("GET", "app-1.0.0.tgz"),
    ];
    assert_eq!(after, before.map(|count| count + 1), "{probed}");
}

#[test]
fn diff_reports_a_newer_chart_and_gc_removes_the_old_one() {
    let up = Upstream::new();
    let place = &up.place;
    let version = |version: &str| {
        let chart = Chart::new("app", version, "", &[("values.yaml", version)]);
        Chart {
            provenance: Some(format!("signed {version}\n").into_bytes()),
            ..chart
        }
    };
    let old = version("1.0.0");
    let new = version("1.1.0");
    up.repository(&[old.clone(), new.clone()]);
    for (chart, lock) in [(&old, "old.lock"), (&new, "new.lock")] {
        let wanted = json!([{"repo": up.repo(), "name": "app", "version": chart.version}]);
        up.manifest(&wanted, "");
        up.lock(0, &["--lock", lock]);
        place.ok(&["pull", "--lock", lock]);
    }
    let name = |chart: &Chart| format!("helm+{}/app:{}", up.repo(), chart.version);
    let report = place.json(0, &["diff", "old.lock", "new.lock"]);
    let changes = report["changes"].as_array().unwrap();
    assert!(
        changes.iter().all(|change| change["kind"] == "chart"),
        "{report}"
    );
    let printed = place.ok(&["diff", "old.lock", "new.lock"]);
    assert!(
        printed.contains("1.0.0") && printed.contains("1.1.0"),
        "{printed}"
    );
    assert!(report.to_string().contains(&name(&new)), "{report}");

    let swept = place.json(0, &["gc", "--lock", "new.lock"]);
    let removed = swept["removed"].to_string();
    let provenance =
        |chart: &Chart| crate::support::images::sha256(chart.provenance.as_ref().unwrap());
    for gone in [old.digest(), provenance(&old)] {
        assert!(removed.contains(&gone), "{gone}: {swept}");
    }
    for kept in [new.digest(), provenance(&new)] {
        assert!(!removed.contains(&kept), "{kept}: {swept}");
    }
    // the remaining content is complete
    place.ok(&["pack", "--lock", "new.lock", "-o", "b"]);
    place.ok(&["verify", "b", "--lock", "new.lock"]);
    let listed = place.json(0, &["ls", "b"]).to_string();
    assert!(
        listed.contains(&name(&new)) && !listed.contains(&name(&old)),
        "{listed}"
    );
    assert_eq!(
        place.json(4, &["verify", "b", "--lock", "old.lock"])["status"],
        "refused"
    );
}

#[test]
fn a_reference_that_a_template_helper_composes_is_reported_as_open() {
    let up = Upstream::new();
    let place = &up.place;
    let known = up.image("x/known", "v1");
    let (repository, tag) = known.rsplit_once(':').unwrap();
    let values = format!("image: {{repository: null}}\nknown: {{image: \"{known}\"}}\n");
    let helpers = "{{- define \"app.image\" -}}\n{{- if .Values.old }}{{ .Values.known.image }}{{ else -}}\n\
        {{ .Values.image.repository | default \"x/made\" }}:{{ .Chart.AppVersion }}{{ end }}\n{{- end }}\n";
    let pod = "{{- define \"app.pod\" }}\ncontainers:\n- image: {{ template \"app.image\" . }}\n\
        - image: {{ .Values.known.image }}\n{{- end }}\n";
    let template = "kind: Pod\nspec: {{- include \"app.pod\" . | nindent 2 }}\n";
    let files = [
        ("values.yaml", &*values),
        ("templates/_helpers.tpl", helpers),
        ("templates/_pod.tpl", pod),
        ("templates/p.yaml", template),
    ];
    up.repository(&[Chart::new("app", "1.0.0", "", &files)]);
    up.manifest(
        &json!([{"repo": up.repo(), "name": "app", "version": "1.0.0", "images": "discover"}]),
        "",
    );
    let report = up.lock(0, &[]);
    let open = report["open"].as_array().unwrap();
    assert_eq!(open.len(), 1, "{report}");
    assert_eq!(
        open[0]["reference"], "{{ template \"app.image\" . }}",
        "{report}"
    );
    assert_eq!(open[0]["at"], "app/templates/_pod.tpl:3:10", "{report}");
    let lock = place.read("landfall.lock");
    assert!(
        lock.contains(&format!("{repository}:{tag}")) && !lock.contains("x/made"),
        "{lock}"
    );
}
