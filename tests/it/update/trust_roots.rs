//! `landfall update` updates trust roots from TUF repositories.

use crate::support::peers::file_server;
use crate::support::programs::go_install;
use crate::support::sigstore::Sigstore;
use crate::support::tuf::TufRepository;
use crate::support::{Place, run};
use serde_json::Value;

fn moves(report: &Value) -> Vec<&str> {
    let moves = report["updates"].as_array().into_iter().flatten();
    moves.filter_map(|one| one["policy"].as_str()).collect()
}

#[test]
fn a_trust_root_follows_its_tuf_repository() {
    let place = Place::new();
    let upstream = file_server(&place.path("www"));
    let mut repository = TufRepository::new();
    let first = Sigstore::new().trusted_root();
    let second = Sigstore::new().trusted_root();
    let root = repository.rotate(&place);
    place.write("keys/tuf_root.json", &root);
    place.write("keys/root.json", &first);
    repository.publish(&place, &first, "2040-01-01");
    let url = upstream.url();
    place.write("www/tool", "tool");
    let manifest = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nfiles: [{{url: \"{url}/tool\"}}]\nverify:\n- match: \"*\"\n  keyless: \
         {{issuer: i, identity: j}}\n  trustedRoot: {{file: keys/root.json, from: \"{url}/tuf\", \
         tufRoot: keys/tuf_root.json}}\n"
    );
    place.write("m.yaml", &manifest);
    let update = ["update", "-f", "m.yaml"];
    let report = place.json(0, &update);
    assert!(moves(&report).is_empty(), "{report}");

    // the keys were rotated twice, and there is a new trust root
    repository.rotate(&place);
    let newest = repository.rotate(&place);
    repository.publish(&place, &second, "2040-01-01");
    let report = place.json(4, &[&update[..], &["--check"]].concat());
    assert_eq!(moves(&report), ["tuf", "tuf"], "{report}");
    assert_eq!(
        place.read("keys/root.json"),
        first,
        "a check writes nothing"
    );
    place.json(0, &update);
    assert_eq!(place.read("keys/root.json"), second);
    assert_eq!(place.read("keys/tuf_root.json"), newest);
    assert_eq!(place.read("m.yaml"), manifest);
    let cosign = go_install(crate::image_signatures::COSIGN);
    // the trust root that cosign installs from the repository for a new user, or `None` if cosign
    // refuses the repository
    let initialized = |name: &str| {
        let cosign = cosign.as_ref()?;
        let home = place.path(format!("home-{name}"));
        let accepted = place
            .clean(cosign)
            .args([
                "initialize",
                "--mirror",
                &format!("{url}/tuf"),
                "--root",
                "keys/tuf_root.json",
            ])
            .env("HOME", &home)
            .env("TUF_ROOT", home.join("tuf"))
            .current_dir(place.dir())
            .output()
            .unwrap();
        println!("{name}: {}", String::from_utf8_lossy(&accepted.stderr));
        let mut find = place.clean("find");
        find.arg(&home)
            .args(["-name", "*trusted_root.json", "-exec", "cat", "{}", "+"]);
        accepted.status.success().then(|| run(&mut find))
    };
    if cosign.is_some() {
        assert_eq!(initialized("good").unwrap(), second.as_bytes());
    }

    for (what, why) in [
        ("expired", "expired"),
        ("other key", "threshold"),
        ("not a root", "it is not a trusted_root.json"),
    ] {
        match what {
            "expired" => repository.publish(&place, &first, "2026-01-01"),
            "other key" => {
                let mut other = TufRepository::new();
                place.write("keys/tuf_root.json", other.rotate(&place));
                place.write("www/tuf/1.root.json", &root);
                repository.publish(&place, &first, "2040-01-01");
            }
            _ => {
                place.write("keys/tuf_root.json", &newest);
                repository.publish(&place, "{}", "2040-01-01");
            }
        }
        let report = place.json(3, &update);
        let failed = report["items"].as_array().unwrap().iter();
        let reasons: Vec<&str> = failed.filter_map(|item| item["reason"].as_str()).collect();
        println!("{what}: {reasons:?}");
        let [reason] = reasons[..] else {
            panic!("{report}");
        };
        assert!(
            reason.starts_with("no newer trust root: ") && reason.contains(why),
            "{reason}"
        );
        assert_eq!(place.read("keys/root.json"), second, "{what}");
        // cosign also refuses the first two repositories; it accepts the third, since it installs
        // any target of a valid repository
        if what != "not a root" {
            assert_eq!(initialized(what), None, "{what}");
        }
    }
}
