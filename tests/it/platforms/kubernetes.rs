//! `kubernetes`: the objects that run landfall in a cluster.

use super::{assert_published, golden, place, refused};
use crate::support::programs::python_tool;
use crate::support::run;
use serde::Deserialize;
use serde_yaml::Value;
use std::path::Path;
use std::process::Command;

const SITE: &str = "registry: {address: \"172.20.0.2:5000\"}\n";
const NEEDED: [&str; 4] = [
    "--set",
    "image=registry.corp.example/tools/landfall:0.1.0",
    "--set",
    "store=s3://carried/fleet/",
];

#[test]
fn the_first_run_has_the_certificates_that_the_site_names() {
    let site = "registry: {address: r.test, ca: ca.crt}\n\
                proxy: {https: \"http://p.test\", ca: certs/proxy.crt}\n\
                upstreams: {quay.io: {ca: ca.crt}}\n";
    let place = place(site, &[]);
    let args = ["kubernetes", "--site", "site.yaml", "-o", "out"];
    let printed = place.ok(&[&["render"], &args[..], &NEEDED].concat());
    let flags = " --from-file=site.yaml --from-file=ca.crt --from-file=certs/proxy.crt (at most";
    assert!(printed.contains(flags), "{printed}");
    let moved = "move certs/proxy.crt beside site.yaml";
    assert!(printed.contains(moved), "{printed}");
}

#[test]
fn the_minimal_and_the_complete_configuration_are_rendered() {
    let place_of = || place(SITE, &[]);
    golden(
        &place_of(),
        "kubernetes-root",
        &[&["kubernetes"], &NEEDED[..]].concat(),
    );
    let more = [
        "namespace=carried",
        "bundle=s3://handed-over/fleet.tar.zst",
        "shards=64",
        "replicas=5",
        "max-replicas=40",
        "secret=accounts",
        "service-account=landfall",
        "claim=locked",
        "schedule=0 1 * * 6",
        "tls=certificate",
        "redirect=yes",
    ];
    let more = more.into_iter().flat_map(|pair| ["--set", pair]);
    let args: Vec<&str> = ["kubernetes"]
        .into_iter()
        .chain(NEEDED)
        .chain(more)
        .collect();
    let corp = place_of();
    golden(&corp, "kubernetes-corp", &args);
    let of_file = |file: &str| {
        let text = corp.read(&format!("out/{file}"));
        let documents = serde_yaml::Deserializer::from_str(&text);
        let documents: Vec<Value> = documents
            .map(|document| Value::deserialize(document).unwrap())
            .collect();
        documents
            .iter()
            .for_each(|document| assert_published(document, file));
        documents
    };
    // fields that must agree have the same values
    let pull = &of_file("pull.yaml")[0]["spec"];
    let env = pull["template"]["spec"]["containers"][0]["env"]
        .as_sequence()
        .unwrap();
    let shards = env
        .iter()
        .find(|variable| variable["name"] == "LANDFALL_SHARDS")
        .unwrap();
    assert_eq!(
        (&pull["completions"], &pull["parallelism"]),
        (&64.into(), &64.into())
    );
    assert_eq!(shards["value"], "64");
    for file in ["pack.yaml", "publish.yaml", "refresh.yaml"] {
        of_file(file);
    }
    let [deployment, service, budget, scaler] = &of_file("serve.yaml")[..] else {
        panic!("serve.yaml does not have four objects")
    };
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let selectors = [
        &deployment["spec"]["selector"]["matchLabels"],
        &service["spec"]["selector"],
        &budget["spec"]["selector"]["matchLabels"],
    ];
    assert!(selectors.iter().all(|selector| *selector == labels));
    assert_eq!(
        scaler["spec"]["scaleTargetRef"]["name"],
        deployment["metadata"]["name"]
    );
    assert_eq!(
        deployment["spec"]["template"]["spec"]["containers"][0]["ports"][0]["name"],
        service["spec"]["ports"][0]["targetPort"]
    );
}

#[test]
fn the_objects_match_the_published_schemas() {
    let Some(validate) = python_tool("kubernetes-validate==1.37.0") else {
        return;
    };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/platforms");
    let mut files = Vec::new();
    for folder in ["kubernetes-root", "kubernetes-corp"] {
        for name in ["pull", "pack", "publish", "refresh", "serve"] {
            files.push(data.join(folder).join(name).with_extension("yaml"));
        }
    }
    for version in ["1.29.0", "1.37.0"] {
        run(Command::new(&validate)
            .args(["--strict", "-k", version])
            .args(&files));
    }
    // an unknown field is detected
    let place = place(SITE, &[]);
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let wrong = place.write("wrong.yaml", text.replace("completions:", "completion:"));
    let refused = Command::new(&validate)
        .args(["--strict", "-k", "1.37.0"])
        .arg(wrong)
        .output()
        .unwrap();
    assert!(!refused.status.success());
}

#[test]
fn invalid_and_missing_settings_are_refused() {
    for (sets, words) in [
        (&["image=i"][..], "--set store=… is missing"),
        (&["store=s3://b"], "--set image=… is missing"),
        (
            &["image=i", "store=/srv/store"],
            "store cannot be '/srv/store': it must be an object store: s3://",
        ),
        (&["image=i", "store=s3://"], "it must be an object store"),
        (
            &["image=i", "store=s3://b", "shards=0"],
            "shards cannot be '0': it must be a number from 1 to 10000",
        ),
        (
            &["image=i", "store=s3://b", "replicas=many"],
            "replicas cannot be 'many'",
        ),
        (
            &["image=i", "store=s3://b", "replicas=20"],
            "max-replicas cannot be '12': it must not be less than replicas, which is 20",
        ),
        (
            &["image=i", "store=s3://b", "redirect=perhaps"],
            "it must be one of yes, no",
        ),
        (
            &["image=i", "store=s3://b", "secret=Mirror"],
            "secret cannot be 'Mirror': the name of an object has",
        ),
    ] {
        let pairs = sets.iter().flat_map(|pair| ["--set", pair]);
        let args: Vec<&str> = ["kubernetes"].into_iter().chain(pairs).collect();
        let printed = refused(&place(SITE, &[]), 2, &args);
        assert!(printed.contains(words), "{sets:?}: {printed}");
    }
}
