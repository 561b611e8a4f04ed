//! The App of Giant Swarm: a complete one, or fields that are merged into the user's App; and the
//! values of the chart that makes a cluster.

use super::seeds::{at, render, shipped, yaml};
use super::{files, place, refused};
use serde_yaml::Value;

#[test]
fn complete_and_merged_apps_have_the_same_configuration() {
    let place = shipped("giantswarm", &[]);
    place.write("proxy-account", "myProxyUser:mySuperSecretPassword\n");
    render(&place, &["giantswarm"]);
    let app = yaml(&place, "mycluster/app.yaml");
    // a complete App also has the other fields that the kind requires
    render(
        &place,
        &[
            "giantswarm",
            "--set",
            "app=hello",
            "--set",
            "catalog=default-test",
            "--set",
            "version=1.2.3",
        ],
    );
    let whole = yaml(&place, "mycluster/app.yaml");
    assert_eq!(whole["spec"]["config"], app["spec"]["config"]);
    for (path, value) in [
        ("metadata name", "mycluster-hello"),
        ("metadata namespace", "org-giantswarm"),
        ("spec catalog", "default-test"),
        ("spec name", "hello"),
        ("spec namespace", "hello"),
        ("spec version", "1.2.3"),
        ("spec kubeConfig secret name", "mycluster-kubeconfig"),
    ] {
        assert_eq!(*at(&whole, path), Value::from(value), "{path}");
    }
    super::assert_published(&whole, "app.yaml");
    // the fields are merged into an App of the user, and every other byte is kept
    let mine = "apiVersion: application.giantswarm.io/v1alpha1\nkind: App\nmetadata: {name: mine} # ours\nspec:\n  catalog: default-test\n";
    place.write("mine.yaml", mine);
    let into = [
        "render",
        "giantswarm",
        "--site",
        "site.yaml",
        "--into",
        "mine.yaml",
    ];
    place.ok(&[
        &into[..],
        &[
            "--set",
            "cluster=mycluster",
            "--set",
            "namespace=org-giantswarm",
        ],
    ]
    .concat());
    let merged = place.read("mine.yaml");
    let document: Value = serde_yaml::from_str(&merged).unwrap();
    assert!(
        merged.starts_with(mine) && document["spec"]["config"] == app["spec"]["config"],
        "{merged}"
    );
    for (args, part) in [
        (&["--set", "app=hello", "--set", "catalog=x"][..], "version"),
        (&["--set", "catalog=x"], "--set app=NAME"),
    ] {
        let render = [
            "render",
            "giantswarm",
            "--site",
            "site.yaml",
            "-o",
            "refused",
        ];
        let run = place.command().args(render).args(args).output().unwrap();
        let printed = String::from_utf8_lossy(&run.stderr);
        assert!(
            run.status.code() == Some(2) && printed.contains(part),
            "{printed}"
        );
    }
}

/// The chart writes the files of machines, and Helm undoes changes of its objects.
#[test]
fn the_chart_of_a_cluster_gets_the_mirrors_without_a_proxy_too() {
    let site = "registry: {address: \"172.20.0.2:5000\", plainHTTP: true, paths: {quay.io: quay}}\n\
                consumers: [giantswarm]\nclusters: [{name: blue, namespace: n}]\n";
    let images = ["docker.io/library/nginx:1.27", "quay.io/team/app:v1"];
    let filled = place(site, &images);
    let printed = filled.ok(&["render", "giantswarm", "--site", "site.yaml", "-o", "out"]);
    assert!(
        printed.contains("containerd pulls it from upstream"),
        "{printed}"
    );
    assert_eq!(files(&filled.path("out")).len(), 1);
    let expected = "global: {components: {containerd: {containerRegistries: {\
        docker.io: [{endpoint: \"172.20.0.2:5000\", insecure: true}], \
        quay.io: [{endpoint: \"172.20.0.2:5000/v2/quay\", insecure: true, overridePath: true}], \
        \"172.20.0.2:5000\": [{endpoint: \"172.20.0.2:5000\", insecure: true}]}}}}\n";
    let expected: Value = serde_yaml::from_str(expected).unwrap();
    assert_eq!(yaml(&filled, "blue/cluster-chart-values.yaml"), expected);
    // there is nothing to configure
    let set = ["--set", "cluster=a", "--set", "namespace=b"];
    let empty = place("registry: {address: r.test}\n", &[]);
    let printed = refused(&empty, 2, &[&["giantswarm"], &set[..]].concat());
    assert!(printed.contains("the site has no proxy"), "{printed}");
}
