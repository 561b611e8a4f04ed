//! `landfall doctor --bundle BUNDLE --disconnected`, on the side that has only the bundle.

use crate::support::Place;
use crate::support::faults::{Content, Faults};

#[test]
fn the_far_side_tries_no_upstream() {
    let mut content = Content::default();
    let image = content.image("team/app", "linux/amd64", &[(1, 64)]);
    content.tag("team/app", "v1", &image);
    let up = Faults::new(content);
    let down = Faults::new(Content::default());
    let place = Place::new();
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: m}}\nimages: ['{}/team/app:v1']\nendpoints: [{{host: 127.0.0.1, port: 1, why: x}}]\n",
            up.address
        ),
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull", "--bundle", "b.tar.zst"]);
    std::fs::remove_file(place.path("landfall.lock")).unwrap();
    let address = up.address.clone();
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{}\"}}\nupstreams: {{\"{address}\": {{maxConcurrent: 2}}}}\n",
        down.address
    );
    place.write("site.yaml", site);
    let seen = up.seen().len();
    let args = ["doctor", "--bundle", "b.tar.zst", "--read-only"];
    let far = [&args[..], &["--disconnected"]].concat();
    for site in [&[][..], &["--site", "site.yaml"]] {
        let report = place.json(0, &[&far[..], site].concat());
        let targets = report["targets"].as_array().unwrap().clone();
        assert!(
            targets.iter().all(|target| target["target"] != *address),
            "{targets:?}"
        );
    }
    assert_eq!(up.seen().len(), seen, "upstream was asked");
    // the same on the connected side tries it, and the endpoint
    let near = [&args[..], &["--site", "site.yaml"]].concat();
    let check_of_upstream = || {
        let report = place.json(4, &near);
        let targets = report["targets"].as_array().unwrap();
        let mut checked = targets.iter().filter(|target| target["target"] == *address);
        let only = checked.next().unwrap_or_else(|| panic!("{targets:?}"));
        assert!(checked.next().is_none(), "{targets:?}");
        only["checks"].to_string()
    };
    check_of_upstream();
    assert!(up.seen().len() > seen);
    // the registries of the lock are checked even if the site does not name them
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{}\"}}\n",
            down.address
        ),
    );
    let checks = check_of_upstream();
    assert!(checks.contains("of the lock exists"), "{checks}");
}
