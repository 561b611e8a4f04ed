//! The requests, counted by endpoint, that a run sends upstream if nothing changed since the last
//! run, and the changes that a run must detect.

use crate::support::Place;
use crate::support::faults::{Content, Fault, FaultKind, Faults, RequestKind, Settings};
use serde_json::{Value, json};

/// The number of requests to each endpoint.
#[derive(Debug, PartialEq, Eq)]
struct EndpointCounts {
    heads: usize,
    tag_lists: usize,
    referrers: usize,
    manifests: usize,
}

/// An upstream, a destination registry, and a manifest with every image of the upstream.
struct Delivery {
    place: Place,
    up: Faults,
    down: Faults,
}

impl Delivery {
    /// Each of `repositories` has the tags `v0`, `v1`, … The registry has the referrers API if
    /// `has_api`.
    fn new(repositories: &[&str], tags: usize, has_api: bool) -> Delivery {
        let up = Faults::new(Content::default());
        let down = Faults::new(Content::default());
        let delivery = Delivery {
            place: Place::new(),
            up,
            down,
        };
        let mut seed = 10;
        for repository in repositories {
            for tag in 0..tags {
                seed += 1;
                delivery.up.content(|content| {
                    let image = content.image(repository, "linux/amd64", &[(seed, 500)]);
                    content.tag(repository, &format!("v{tag}"), &image);
                });
            }
        }
        let names = repositories
            .iter()
            .flat_map(|name| (0..tags).map(move |tag| format!("REG/{name}:v{tag}")));
        delivery.want(&names.collect::<Vec<_>>().join(", "), &delivery.up.address);
        delivery.set_api(has_api);
        delivery
    }

    /// Writes the manifest; `REG` in `images` is replaced by `host`.
    fn want(&self, images: &str, host: &str) {
        let images = images.replace("REG", host);
        let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\n";
        self.place
            .write("m.yaml", format!("{head}images: [{images}]\n"));
    }

    fn set_api(&self, has_api: bool) {
        self.up.set(Settings {
            no_referrers: !has_api,
            ..Settings::default()
        });
    }

    fn digest(&self, repository: &str, tag: &str) -> String {
        self.up
            .content(|content| content.tags[&(repository.to_owned(), tag.to_owned())].clone())
    }

    /// Pushes an artifact with this text to the tag under which cosign stores the signature of an
    /// image. Returns the digest of the artifact.
    fn sign(&self, repository: &str, tag: &str, text: &str) -> String {
        let signed = self.digest(repository, tag).replace(':', "-") + ".sig";
        self.up.content(|content| {
            let signature = content.artifact(repository, text, None);
            content.tag(repository, &signed, &signature);
            signature["digest"].as_str().unwrap().to_owned()
        })
    }

    /// Pushes an artifact whose subject is an image, and does not update the index under the
    /// image's referrers tag.
    fn refer(&self, repository: &str, tag: &str, text: &str) -> Value {
        let digest = self.digest(repository, tag);
        self.up.content(|content| {
            let (kind, bytes) = content.manifests[&(repository.to_owned(), digest.clone())].clone();
            let subject = json!({"mediaType": kind, "digest": digest, "size": bytes.len()});
            content.artifact(repository, text, Some(&subject))
        })
    }

    fn run(&self, faults: &[Fault], verb: &[&str]) -> Value {
        self.up.set_faults(faults.iter().cloned());
        let hosts = [
            "--plain-http",
            &self.up.address,
            "--plain-http",
            &self.down.address,
        ];
        self.place
            .json(0, &[verb, &["-f", "m.yaml"], &hosts].concat())
    }

    fn lock(&self, faults: &[Fault], more: &[&str]) -> Value {
        self.run(faults, &[&["lock", "--store", "store"], more].concat())
    }

    fn mirror(&self, faults: &[Fault]) -> Value {
        self.run(
            faults,
            &["mirror", "--store", "kept", "--to", &self.down.address],
        )
    }

    /// Runs `lock` and `mirror`, so that both remember what they found.
    fn settle(&self, faults: &[Fault]) {
        self.lock(faults, &[]);
        self.mirror(faults);
    }

    /// Asserts that `lock --refresh` and `mirror` find nothing new, and that each command sends
    /// the requests that `wanted` counts.
    fn assert_unchanged_with(&self, faults: &[Fault], wanted: &EndpointCounts, what: &str) {
        assert_eq!(
            self.lock(faults, &["--refresh"])["changes"],
            json!([]),
            "{what}"
        );
        assert_eq!(
            self.requests(),
            *wanted,
            "lock, {what}\n{}",
            self.up.shown()
        );
        let report = self.mirror(faults);
        assert_eq!(
            self.requests(),
            *wanted,
            "mirror, {what}\n{}",
            self.up.shown()
        );
        assert_eq!(report["totals"]["done"], 0, "{report:#}");
    }

    /// The requests since the last run began. Asserts that [`EndpointCounts`] counts all of them.
    fn requests(&self) -> EndpointCounts {
        let seen = self.up.seen();
        let count = |on| seen.iter().filter(|seen| seen.on == Some(on)).count();
        let counts = EndpointCounts {
            heads: count(RequestKind::ManifestHead),
            tag_lists: count(RequestKind::Tags),
            referrers: count(RequestKind::Referrers),
            manifests: count(RequestKind::Manifest),
        };
        let EndpointCounts {
            heads,
            tag_lists,
            referrers,
            manifests,
        } = counts;
        assert_eq!(
            heads + tag_lists + referrers + manifests,
            seen.len(),
            "{}",
            self.up.shown()
        );
        counts
    }

    /// Refreshes the lock, and returns the digests of the new referrers of all images.
    fn found(&self, faults: &[Fault]) -> Vec<String> {
        let report = self.lock(faults, &["--refresh"]);
        let changes = report["changes"].as_array().unwrap();
        let new = changes
            .iter()
            .flat_map(|change| change["newReferrers"].as_array().unwrap().clone());
        let mut new: Vec<String> = new
            .map(|digest| digest.as_str().unwrap().to_owned())
            .collect();
        new.sort();
        new
    }
}

const FIVE: [&str; 5] = ["team/a", "team/b", "team/c", "team/d", "team/e"];

fn digest(descriptor: &Value) -> String {
    descriptor["digest"].as_str().unwrap().to_owned()
}

/// A fault: requests for referrers whose path contains `at` get 404 with this error code.
fn refused(code: &'static str, at: &str) -> Fault {
    Fault::always(RequestKind::Referrers, FaultKind::Refusal(404, code)).at(at)
}

#[test]
fn unchanged_images_cost_a_fixed_number_of_requests() {
    for (repositories, tags) in [(&FIVE[..1], 5), (&FIVE[..], 1)] {
        for has_api in [false, true] {
            for is_signed in [false, true] {
                let delivery = Delivery::new(repositories, tags, has_api);
                if is_signed {
                    for repository in repositories {
                        (0..tags).for_each(|tag| {
                            delivery.sign(
                                repository,
                                &format!("v{tag}"),
                                &format!("{repository} {tag}"),
                            );
                        });
                    }
                }
                delivery.settle(&[]);
                // known tags of cosign are requested, since they may have moved
                let heads = if is_signed { 10 } else { 5 };
                // without the API, one request shows that the registry still lacks it
                let referrers = if has_api { 5 } else { 1 };
                let tag_lists = repositories.len();
                let wanted = EndpointCounts {
                    heads,
                    tag_lists,
                    referrers,
                    manifests: 0,
                };
                let what = format!(
                    "{} repositories, API {has_api}, signed {is_signed}",
                    repositories.len()
                );
                delivery.assert_unchanged_with(&[], &wanted, &what);
            }
        }
    }
}

#[test]
fn changes_since_the_last_run_are_detected() {
    let delivery = Delivery::new(&FIVE, 1, false);
    delivery.settle(&[]);
    let first = delivery.sign("team/e", "v0", "first");
    assert_eq!(delivery.found(&[]), [first]);
    let second = delivery.sign("team/e", "v0", "signed again");
    assert_eq!(delivery.found(&[]), [second]);
    // without the API, clients maintain an index under the referrers tag
    let sbom = delivery.refer("team/d", "v0", "sbom");
    let list = delivery.digest("team/d", "v0").replace(':', "-");
    delivery.up.content(|content| {
        let index = content.index("team/d", std::slice::from_ref(&sbom));
        content.tag("team/d", &list, &index);
    });
    assert_eq!(delivery.found(&[]), [digest(&sbom)]);
    // referrers that no index lists are found only after the registry got the API
    let mut new: Vec<String> = ["team/a", "team/c", "team/e"]
        .iter()
        .map(|name| digest(&delivery.refer(name, "v0", name)))
        .collect();
    new.sort();
    assert_eq!(delivery.found(&[]), Vec::<String>::new());
    delivery.set_api(true);
    assert_eq!(delivery.found(&[]), new);
    // one request finds the API; then the referrers of each image, and of each new referrer, are
    // requested
    assert_eq!(delivery.requests().referrers, 1 + 5 + 3);
}

#[test]
fn referrers_api_support_is_detected_per_namespace() {
    let delivery = Delivery::new(
        &["one/a", "one/b", "two/a", "two/b", "alone", "lonely"],
        1,
        false,
    );
    delivery.settle(&[]);
    let wanted = EndpointCounts {
        heads: 6,
        tag_lists: 6,
        referrers: 3,
        manifests: 0,
    };
    delivery.assert_unchanged_with(&[], &wanted, "three namespaces");
    // one of the namespaces now has the API
    let new = digest(&delivery.refer("two/b", "v0", "new"));
    delivery.set_api(true);
    let still: Vec<Fault> = ["/one/", "/alone/", "/lonely/"]
        .map(|at| refused("UNSUPPORTED", at))
        .into();
    assert_eq!(delivery.found(&still), [new]);
    // if one repository of a host has the API, landfall queries all repositories of the host
    assert_eq!(delivery.found(&still), Vec::<String>::new());
    assert_eq!(delivery.requests().referrers, 6);
}

#[test]
fn runs_probe_the_repositories_of_a_namespace_in_turn() {
    let delivery = Delivery::new(&FIVE, 1, false);
    delivery.lock(&[], &[]);
    let mut probed: Vec<String> = Vec::new();
    for _ in 0..6 {
        delivery.lock(&[], &["--refresh"]);
        let seen = delivery.up.seen();
        let mut probes = seen
            .iter()
            .filter(|seen| seen.on == Some(RequestKind::Referrers));
        probed.push(
            probes
                .next()
                .unwrap()
                .path
                .split("/referrers/")
                .next()
                .unwrap()
                .to_owned(),
        );
        assert_eq!(probes.count(), 0);
    }
    assert_eq!(
        probed,
        ["a", "b", "c", "d", "e", "a"].map(|name| format!("/v2/team/{name}"))
    );
    // only one repository gets the API
    let new = digest(&delivery.refer("team/d", "v0", "new"));
    delivery.set_api(true);
    let others: Vec<Fault> = ["/a/", "/b/", "/c/", "/e/"]
        .map(|name| refused("UNSUPPORTED", name))
        .into();
    let found: Vec<String> = (0..4).flat_map(|_| delivery.found(&others)).collect();
    assert_eq!(found, [new]);
}

#[test]
fn a_failing_or_removed_repository_does_not_affect_others() {
    let delivery = Delivery::new(&FIVE, 1, false);
    delivery.lock(&[], &[]);
    let refused = Fault::always(RequestKind::Referrers, FaultKind::Status(403)).at("/a/");
    delivery.up.set_faults([refused.clone()]);
    let refresh = [
        "lock",
        "--refresh",
        "--store",
        "store",
        "-f",
        "m.yaml",
        "--plain-http",
    ];
    let report = delivery
        .place
        .json(3, &[&refresh[..], &[&delivery.up.address]].concat());
    let failed = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["status"] == "failed");
    let failed: Vec<&str> = failed.map(|item| item["name"].as_str().unwrap()).collect();
    assert!(
        failed.len() == 1 && failed[0].ends_with("/team/a:v0"),
        "{report:#}"
    );
    // a repository that the manifest no longer names is not queried
    delivery.lock(&[], &["--refresh"]);
    let names = FIVE[1..]
        .iter()
        .map(|name| format!("REG/{name}:v0"))
        .collect::<Vec<_>>()
        .join(", ");
    delivery.want(&names, &delivery.up.address);
    for _ in 0..5 {
        delivery.lock(std::slice::from_ref(&refused), &["--refresh"]);
        assert_eq!((delivery.requests().referrers, delivery.up.met()), (1, 0));
    }
}

#[test]
fn a_404_for_a_manifest_says_nothing_about_other_repositories() {
    let delivery = Delivery::new(&FIVE, 1, true);
    let unknown = |names: &[&str]| -> Vec<Fault> {
        names
            .iter()
            .map(|name| refused("MANIFEST_UNKNOWN", &format!("/{name}/")))
            .collect()
    };
    delivery.settle(&unknown(&FIVE));
    let wanted = EndpointCounts {
        heads: 5,
        tag_lists: 5,
        referrers: 5,
        manifests: 0,
    };
    delivery.assert_unchanged_with(&unknown(&FIVE), &wanted, "404 for images without referrers");
    let new = digest(&delivery.refer("team/e", "v0", "new"));
    assert_eq!(delivery.found(&unknown(&FIVE[..4])), [new]);
}

#[test]
fn a_list_of_tags_above_the_limit_is_not_requested_again() {
    let pages = [Fault::always(RequestKind::Tags, FaultKind::Pages(2))];
    for (others, is_read) in [(20, true), (60, false)] {
        let delivery = Delivery::new(&FIVE[..1], 5, true);
        delivery.up.content(|content| {
            let image = content.image("team/a", "linux/amd64", &[(3, 500)]);
            (0..others).for_each(|at| content.tag("team/a", &format!("other{at}"), &image));
        });
        delivery.lock(&pages, &[]);
        // for five images, up to fifteen pages are read
        let read = delivery.requests().tag_lists;
        assert_eq!(read, if is_read { 13 } else { 15 }, "{others}");
        delivery.mirror(&pages);
        let (heads, tag_lists) = if is_read { (5, 13) } else { (5 + 3 * 5, 0) };
        let wanted = EndpointCounts {
            heads,
            tag_lists,
            referrers: 5,
            manifests: 0,
        };
        delivery.assert_unchanged_with(&pages, &wanted, &format!("{others} other tags"));
        let new = delivery.sign("team/a", "v3", "new");
        assert_eq!(delivery.found(&pages), [new]);
    }
}

#[test]
fn the_tag_list_of_a_mirror_is_used_only_if_declared_complete() {
    for (lists_all_tags, heads, tag_lists) in [(false, 20, 0), (true, 5, 5)] {
        let delivery = Delivery::new(&FIVE, 1, true);
        let names = FIVE.map(|name| format!("REG/{name}:v0")).join(", ");
        delivery.want(&names, "quay.example");
        let line = if lists_all_tags {
            ", listsAllTags: true"
        } else {
            ""
        };
        let site = format!(
            "apiVersion: landfall/v1\nkind: Site\nupstreams:\n  quay.example: {{mirror: \"http://{}\"{line}}}\n",
            delivery.up.address
        );
        delivery.place.write("site.yaml", site);
        delivery.place.set("LANDFALL_SITE", "site.yaml");
        delivery.settle(&[]);
        let wanted = EndpointCounts {
            heads,
            tag_lists,
            referrers: 5,
            manifests: 0,
        };
        delivery.assert_unchanged_with(&[], &wanted, &format!("listsAllTags: {lists_all_tags}"));
        let new = delivery.sign("team/c", "v0", "new");
        assert_eq!(delivery.found(&[]), [new]);
        // without the API
        delivery.set_api(false);
        delivery.settle(&[]);
        let manifests = if lists_all_tags { 0 } else { 5 };
        delivery.lock(&[], &["--refresh"]);
        delivery.lock(&[], &["--refresh"]);
        // the signature is known now, so its tag is requested
        let heads = if lists_all_tags { heads + 1 } else { heads };
        let wanted = EndpointCounts {
            heads,
            tag_lists,
            referrers: 1,
            manifests,
        };
        assert_eq!(delivery.requests(), wanted, "{}", delivery.up.shown());
    }
}

#[test]
fn an_unreadable_record_about_repositories_is_rebuilt() {
    let delivery = Delivery::new(&FIVE, 1, false);
    delivery.settle(&[]);
    let path = delivery.place.path("store/.landfall/repositories");
    let good = std::fs::read(&path).unwrap();
    for wrong in ["", "{\"version\": 9}", "not JSON"] {
        std::fs::write(&path, wrong).unwrap();
        delivery.lock(&[], &["--refresh"]);
        assert_eq!(delivery.requests().referrers, 5, "{wrong}");
        assert_eq!(std::fs::read(&path).unwrap(), good, "{wrong}");
    }
    delivery.lock(&[], &["--refresh"]);
    assert_eq!(delivery.requests().referrers, 1);
}
