//! Signatures, attestations and other referrers: how commands look them up and deliver them, and
//! registries with unusual responses.

use crate::support::front::Front;
use crate::support::images::{OCI_INDEX, OCI_MANIFEST, digest, noise};
use crate::support::peers::own_registry;
use crate::support::signed::{SIMPLE, Signed, Upstream, listed, send, send_list, tag_of, writable};
use crate::support::{http, need};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const NEEDS: [&str; 1] = ["gzip"];

/// The referrers of the first image in a lock: the `tag` or `subject` of each, and its digest.
pub(crate) fn referrers_of(lock: &str) -> BTreeSet<(String, String)> {
    let lock: Value = serde_yaml::from_str(lock).unwrap();
    let referrers = lock["images"][0]["referrers"].as_array().unwrap().clone();
    let name = |one: &Value| {
        one["tag"]
            .as_str()
            .or(one["subject"].as_str())
            .unwrap_or("")
            .to_owned()
    };
    referrers
        .iter()
        .map(|one| (name(one), digest(one).to_owned()))
        .collect()
}

/// An upstream, and a [`Front`] that forwards to it. The manifest names `app:v1` at the front.
fn fronted() -> (Signed, Front) {
    let signed = Signed::new(Upstream::Own);
    let front = Front::new(&signed.upstream.address);
    signed.manifest(&format!("images: [{}/app:v1]\n", front.address));
    (signed, front)
}

#[test]
fn an_image_without_referrers_costs_few_requests() {
    if !need(&NEEDS) {
        return;
    }
    for (upstream, extra) in [(Upstream::Own, 2), (Upstream::Serve, 4)] {
        let signed = Signed::new(upstream);
        let bare = signed.images.index(&[
            signed.images.image(
                "linux/amd64",
                &[signed.images.layer(&[("b", &noise(8, 100))])],
            ),
            signed.images.image(
                "linux/arm64",
                &[signed.images.layer(&[("b", &noise(9, 100))])],
            ),
        ]);
        for tag in ["v1", "v2"] {
            signed
                .images
                .push(&signed.upstream.address, "bare", tag, &bare);
        }
        let requests = |images: &str, store: &str| {
            signed.manifest(images);
            let _ = std::fs::remove_file(signed.place.path("landfall.lock"));
            let report = signed
                .place
                .json(0, &["lock", "-f", "m.yaml", "--store", store]);
            report["totals"]["requests"].as_u64().unwrap()
        };
        let without = requests("referrers: false\nimages: [REG/bare:v1]\n", "s1");
        assert!(!signed.place.read("landfall.lock").contains("referrers"));
        let with = requests("images: [REG/bare:v1]\n", "s2");
        assert!(
            signed
                .place
                .read("landfall.lock")
                .contains("\n  referrers: []\n")
        );
        assert_eq!(
            with - without,
            extra,
            "an index of two images; {upstream:?}"
        );
        if upstream == Upstream::Own {
            // a second tag of the repository, resolved at the same time, shares the requests
            let both = requests("images: [REG/bare:v1, REG/bare:v2]\n", "s3");
            let bare_both = requests(
                "referrers: false\nimages: [REG/bare:v1, REG/bare:v2]\n",
                "s4",
            );
            assert_eq!(both - bare_both, extra);
        }
    }
}

#[test]
fn an_unchanged_image_costs_one_head_one_tag_list_and_one_referrers_list() {
    if !need(&NEEDS) {
        return;
    }
    for upstream in [Upstream::Own, Upstream::Serve] {
        let signed = Signed::new(upstream);
        let images = &signed.images;
        let place = &signed.place;
        let layer = |seed| images.layer(&[("b", &noise(seed, 100))]);
        let image = |first, second| {
            let amd64 = images.image("linux/amd64", &[layer(first)]);
            images.index(&[amd64, images.image("linux/arm64", &[layer(second)])])
        };
        let bare = image(8, 9);
        let moved = image(10, 11);
        images.push(&signed.upstream.address, "bare", "v1", &bare);
        let front = Front::new(&signed.upstream.address);
        let target = writable(place, "target");
        let to = Front::new(&target.address);
        let lists = format!("GET /v2/bare/referrers/{}", digest(&bare));
        let warm = vec![
            lists,
            "GET /v2/bare/tags/list?n=1000".into(),
            "HEAD /v2/bare/manifests/v1".into(),
        ];

        // the requests of `lock`
        signed.manifest(&format!("images: [{}/bare:v1]\n", front.address));
        signed.lock(0, &[]);
        let cold = front.requests();
        assert!(
            cold.contains(&"GET /v2/bare/manifests/v1".to_owned()) && !cold.contains(&warm[2]),
            "{cold:?}"
        );
        assert_eq!(signed.lock(0, &["--refresh"])["changes"], json!([]));
        assert_eq!(front.requests(), warm, "{upstream:?}");
        signed.manifest(&format!(
            "images: [{{ref: \"{}/bare:v1\", referrers: false}}]\n",
            front.address
        ));
        signed.lock(0, &["--refresh"]);
        assert_eq!(front.requests(), warm[2..], "{upstream:?}");

        // `mirror -f` has no lock, so the store remembers the referrers
        signed.manifest(&format!("images: [{}/bare:v1]\n", front.address));
        let mirror_to = |exit: i32, to: &str| {
            let mirror = ["mirror", "-f", "m.yaml", "--store", "kept", "--to", to];
            place.json(exit, &mirror)["items"][0].clone()
        };
        let mirror = |exit: i32| mirror_to(exit, &to.address);
        // this run uploads to the target itself
        mirror_to(0, &target.address);
        front.requests();
        to.requests();
        assert_eq!(mirror(0)["status"], "present");
        assert_eq!(front.requests(), warm, "{upstream:?}");
        assert_eq!(to.requests(), ["HEAD /v2/bare/manifests/v1"]);
        // a remembered image is resolved again if it lacks a blob or its record cannot be read
        let memory = place.path("kept/.landfall/resolved.lock");
        let good = place.read("kept/.landfall/resolved.lock");
        let (before, blobs) = good.split_once("\n  blobs:\n").unwrap();
        let forged = format!("{before}\n  blobs:\n{}", blobs.split_once('\n').unwrap().1);
        for wrong in [forged.as_str(), "version: 1\nimages: 7\n"] {
            std::fs::write(&memory, wrong).unwrap();
            assert_eq!(mirror(0)["status"], "present");
            assert!(
                front
                    .requests()
                    .contains(&"GET /v2/bare/manifests/v1".to_owned()),
                "{wrong}"
            );
            assert_eq!(place.read("kept/.landfall/resolved.lock"), good);
        }
        to.requests();
        // a remembered image is used only if upstream still has it: here, the tag first moves, and
        // is then removed
        images.push(&signed.upstream.address, "bare", "v1", &moved);
        let item = mirror_to(1, &target.address);
        assert_eq!(item["digest"], digest(&moved), "{item:#}");
        front.answer("/bare/manifests/v1", 404, "", b"");
        let item = mirror_to(1, &target.address);
        assert_eq!(
            (&item["status"], &item["digest"]),
            (&json!("missing"), &Value::Null)
        );
    }
}

#[test]
fn a_refresh_without_changes_fetches_no_manifest_and_a_moved_signature_is_found() {
    if !need(&NEEDS) {
        return;
    }
    let signed = Signed::new(Upstream::Serve);
    let front = Front::new(&signed.upstream.address);
    signed.manifest(&format!("images: [{}/app:v1]\n", front.address));
    signed.lock(0, &[]);
    let all = referrers_of(&signed.place.read("landfall.lock"));
    assert_eq!(all.len(), 7);
    front.requests();
    assert_eq!(signed.lock(0, &["--refresh"])["changes"], json!([]));
    let requests = front.requests();
    let manifests = requests
        .iter()
        .filter(|line| line.starts_with("GET ") && line.contains("/manifests/"));
    assert_eq!(manifests.count(), 0, "{requests:#?}");
    // the tag of the signature moves to a new signature
    let again = signed.images.artifact(SIMPLE, b"signed again", None);
    signed.images.push(
        &signed.upstream.address,
        "app",
        &tag_of(&signed.index, ".sig"),
        &again,
    );
    let change = &signed.lock(0, &["--refresh"])["changes"][0];
    assert_eq!(change["newReferrers"], json!([digest(&again)]));
}

#[test]
fn a_refresh_keeps_a_childs_signature_that_is_found_only_by_its_tag() {
    if !need(&NEEDS) {
        return;
    }
    let signed = Signed::new(Upstream::Own);
    let front = Front::new(&signed.upstream.address);
    let upstream = &*signed.upstream.address;
    let tag = tag_of(&signed.amd64, ".sig");
    signed.images.push(upstream, "child", "v1", &signed.index);
    signed.images.push(upstream, "child", &tag, &signed.sig);
    // without a list of tags, each tag is requested by its name
    front.answer("/child/tags/list?n=1000", 403, "", b"");
    signed.manifest(&format!("images: [{}/child:v1]\n", front.address));
    signed.lock(0, &[]);
    let locked = signed.place.read("landfall.lock");
    let sig = (tag, digest(&signed.sig).to_owned());
    assert_eq!(referrers_of(&locked), BTreeSet::from([sig]));
    assert_eq!(signed.lock(0, &["--refresh"])["changes"], json!([]));
    assert_eq!(signed.place.read("landfall.lock"), locked);
}

#[test]
fn a_new_referrer_of_a_delivered_image_is_a_change_and_is_delivered() {
    if !need(&NEEDS) {
        return;
    }
    let signed = Signed::new(Upstream::Own);
    let images = &signed.images;
    let upstream = &*signed.upstream.address;
    signed.pack();
    let registry = own_registry();
    let other = writable(&signed.place, "target");
    let targets = [&registry, &other];
    // the private registry has its own referrer
    let own = images.artifact(
        "application/x.scan",
        b"the site's scan",
        Some(&signed.index),
    );
    for target in targets {
        if send(images, &target.address, "app", &own).is_none() {
            send_list(images, &target.address, "app", &signed.index, &[&own]);
        }
        signed
            .place
            .json(0, &["push", "b", "--to", &target.address]);
        let wanted = [&own, &signed.sbom]
            .map(|one| digest(one).to_owned())
            .into();
        assert_eq!(listed(&target.address, "app", &signed.index), wanted);
    }
    assert_eq!(signed.lock(0, &["--check"])["changes"], json!([]));

    let second = images.artifact(
        "application/spdx+json",
        b"{\"sbom\":2}",
        Some(&signed.index),
    );
    send(images, upstream, "app", &second);
    send_list(
        images,
        upstream,
        "app",
        &signed.index,
        &[&signed.sbom, &second],
    );
    let before = signed.place.read("landfall.lock");
    let check = signed.lock(4, &["--check"]);
    let change = &check["changes"][0];
    assert_eq!(
        (&change["change"], &change["newReferrers"]),
        (&json!("changed"), &json!([digest(&second)]))
    );
    assert_eq!(
        signed.place.read("landfall.lock"),
        before,
        "--check writes nothing"
    );
    assert_eq!(
        signed.lock(0, &[])["totals"]["requests"],
        0,
        "a pin is kept with its referrers"
    );
    signed.lock(0, &["--refresh"]);
    signed.place.json(0, &["pull", "--store", "store"]);
    signed
        .place
        .json(0, &["pack", "--store", "store", "-o", "b2"]);
    for target in targets {
        let report = signed
            .place
            .json(0, &["push", "b2", "--to", &target.address]);
        assert_eq!(report["items"][0]["status"], "done", "{report:#}");
        let wanted = [&own, &signed.sbom, &second]
            .map(|one| digest(one).to_owned())
            .into();
        assert_eq!(listed(&target.address, "app", &signed.index), wanted);
        let report = signed
            .place
            .json(0, &["push", "b2", "--to", &target.address]);
        assert_eq!(report["items"][0]["status"], "present");
        // a second push requests the image, two tags of cosign, and the lists of referrers
        let at_most = if target.address == registry.address {
            10
        } else {
            8
        };
        assert!(
            report["totals"]["requests"].as_u64().unwrap() <= at_most,
            "{report:#}"
        );
    }

    // the registry's own signature is replaced only with --move-tags
    let theirs = images.artifact(SIMPLE, b"signed by the site", None);
    let tag = tag_of(&signed.index, ".sig");
    images.push(&registry.address, "app", &tag, &theirs);
    let report = signed
        .place
        .json(3, &["push", "b2", "--to", &registry.address]);
    let items = report["items"].as_array().unwrap();
    let kept = items.iter().find(|item| item["kind"] == "referrer");
    let reason = kept.unwrap()["reason"].as_str().unwrap();
    assert_eq!(items[0]["status"], "present", "{report:#}");
    assert!(
        reason.contains(&tag) && reason.contains("--move-tags"),
        "{reason}"
    );
    signed
        .place
        .json(0, &["push", "b2", "--to", &registry.address, "--move-tags"]);
    let there = http::manifest(&registry.address, "app", &tag);
    assert_eq!(
        there.header("docker-content-digest"),
        Some(digest(&signed.sig))
    );
}

#[test]
fn a_failed_referrers_lookup_is_not_an_empty_list() {
    if !need(&NEEDS) {
        return;
    }
    let (signed, front) = fronted();
    let lists = format!("/app/referrers/{}", digest(&signed.index));
    // the image is locked without its referrers, and their loss is an item of the report
    let reason = || {
        let _ = std::fs::remove_file(signed.place.path("landfall.lock"));
        let report = signed.lock(3, &[]);
        assert_eq!(report["items"][0]["status"], "done", "{report}");
        assert_eq!(report["items"][1]["kind"], "referrer", "{report}");
        let lock = signed.place.read("landfall.lock");
        assert!(lock.contains("- {kind: referrer, "), "{lock}");
        report["items"][1]["reason"].as_str().unwrap().to_owned()
    };

    front.answer(&lists, 403, "", b"");
    let why = reason();
    assert!(
        why.contains("signatures and other referrers") && why.contains("403"),
        "{why}"
    );
    assert!(why.contains("`referrers: false`"), "{why}");
    // a response that is not a list; a web page would mean that there is no API
    front.answer(&lists, 200, "Content-Type: application/json\r\n", b"{}");
    let why = reason();
    assert!(why.contains("not an index"), "{why}");
    // the manifest under the tag of the referrers list is not a list
    let wrong = http::manifest(
        &signed.upstream.address,
        "app",
        &tag_of(&signed.index, ".sig"),
    );
    front.answer(&lists, 404, "", b"");
    let list = format!("/app/manifests/{}", tag_of(&signed.index, ""));
    front.answer(
        &list,
        200,
        &format!("Content-Type: {OCI_MANIFEST}\r\n"),
        &wrong.body,
    );
    assert!(reason().contains("not a list of referrers"));
    // the tags cannot be listed, and the request for an attestation fails
    front.answer(&list, 404, "", b"");
    front.answer("/app/tags/list?n=1000", 403, "", b"");
    front.answer(
        &format!("/app/manifests/{}", tag_of(&signed.amd64, ".att")),
        500,
        "",
        b"",
    );
    assert!(reason().contains("500"));
    // the request for the tags gets no response
    front.answer("/app/tags/list?n=1000", 0, "", b"");
    let why = reason();
    assert!(why.contains("signatures and other referrers"), "{why}");
    let _ = std::fs::remove_file(signed.place.path("landfall.lock"));

    // with `referrers: false`, the lock has no referrers
    signed.manifest(&format!(
        "images: [{{ref: \"{}/app:v1\", referrers: false}}]\n",
        front.address
    ));
    signed.lock(0, &[]);
    let bare = signed.place.read("landfall.lock");
    assert!(
        !bare.contains("referrers") && bare.contains("\nimages:"),
        "{bare}"
    );

    // the pin is kept if only the lookup of referrers fails
    signed.manifest(&format!("images: [{}/app:v1]\n", front.address));
    let report = signed.lock(1, &[]);
    let why = report["items"][0]["reason"].as_str().unwrap();
    assert!(why.contains("the old pin is kept"), "{why}");
    assert_eq!(signed.place.read("landfall.lock"), bare);
    front.answers.lock().unwrap().clear();
    let report = signed.lock(0, &[]);
    assert_eq!(report["changes"][0]["change"], "changed");
    assert_eq!(referrers_of(&signed.place.read("landfall.lock")).len(), 7);
}

#[test]
fn a_404_for_a_manifest_without_referrers_says_nothing_about_other_manifests() {
    if !need(&NEEDS) {
        return;
    }
    let signed = Signed::new(Upstream::Serve);
    let front = Front::new(&signed.upstream.address);
    signed.manifest(&format!("images: [{}/app:v1]\n", front.address));
    let unknown = br#"{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no referrers"}]}"#;
    let top = format!("/app/referrers/{}", digest(&signed.index));
    front.answer(&top, 404, "Content-Type: application/json\r\n", unknown);
    signed.lock(0, &[]);
    let found = referrers_of(&signed.place.read("landfall.lock"));
    let of_child = (digest(&signed.amd64).into(), digest(&signed.report).into());
    assert!(found.contains(&of_child), "{found:?}");
}

#[test]
fn a_403_for_a_cosign_tag_means_no_signature_and_is_noted_once() {
    if !need(&NEEDS) {
        return;
    }
    let (signed, front) = fronted();
    // this registry answers 403 to lists of tags and to missing content
    front.answer("/app/tags/list?n=1000", 403, "", b"");
    for ending in [".sig", ".att", ".sbom", ""] {
        front.answer(
            &format!("/app/manifests/{}", tag_of(&signed.amd64, ending)),
            403,
            "",
            b"",
        );
    }
    let printed = signed
        .place
        .stderr(0, &["lock", "-f", "m.yaml", "--store", "store"]);
    assert_eq!(printed.matches(" 403 ").count(), 1, "{printed}");
    assert!(
        printed.contains("assumes that there are none") && printed.contains("/app"),
        "{printed}"
    );
    let found = referrers_of(&signed.place.read("landfall.lock"));
    assert!(
        found
            .iter()
            .any(|(name, _)| *name == tag_of(&signed.index, ".sig")),
        "{found:?}"
    );
    assert!(
        !found
            .iter()
            .any(|(name, _)| *name == tag_of(&signed.amd64, ".att")),
        "{found:?}"
    );
    // if the list of tags has the tag, 403 for its manifest is a loss
    let listed = http::get(&signed.upstream.address, "/v2/app/tags/list").body;
    front.answer("/app/tags/list?n=1000", 200, "", &listed);
    let _ = std::fs::remove_file(signed.place.path("landfall.lock"));
    let report = signed.lock(3, &[]);
    let lost = &report["items"][1];
    assert!(lost["reason"].as_str().unwrap().contains("403"), "{lost}");
    assert_eq!(lost["kind"], "referrer", "{report}");
}

#[test]
fn tags_are_requested_by_name_if_not_listed_and_lists_may_have_pages() {
    if !need(&NEEDS) {
        return;
    }
    let (signed, front) = fronted();
    signed.lock(0, &[]);
    let all = referrers_of(&signed.place.read("landfall.lock"));
    assert_eq!(all.len(), 7);
    let again = |what: &str| {
        let _ = std::fs::remove_file(signed.place.path("landfall.lock"));
        signed.lock(0, &[]);
        assert_eq!(
            referrers_of(&signed.place.read("landfall.lock")),
            all,
            "{what}"
        );
    };
    let tags = "/app/tags/list?n=1000";
    front.answer(tags, 403, "", b"");
    again("tags are not listed");
    front.answer(tags, 200, "", br#"{"name":"app","tags":null}"#);
    again("the list lacks the image's own tag");
    let listed = http::get(&signed.upstream.address, "/v2/app/tags/list").json()["tags"].clone();
    let (first, rest) = listed.as_array().unwrap().split_at(2);
    let page = |tags: &[Value]| serde_json::to_vec(&json!({"name": "app", "tags": tags})).unwrap();
    front.answer(
        tags,
        200,
        "Link: </v2/app/tags/list?last=x>; rel=\"next\"\r\n",
        &page(first),
    );
    front.answer("?last=x", 200, "", &page(rest));
    again("tags in two pages");
    front.answer(
        tags,
        200,
        "Link: </v2/app/tags/list?n=1000>; rel=\"next\"\r\n",
        &page(first),
    );
    again("pages of tags that never end");

    // the API returns two pages, and one entry has a different subject
    let entry = |one: &Value| json!({"mediaType": one["mediaType"], "digest": one["digest"], "size": one["size"]});
    let list = |entries: &[Value]| {
        serde_json::to_vec(&json!({"schemaVersion": 2, "manifests": entries})).unwrap()
    };
    let api = format!("/app/referrers/{}", digest(&signed.index));
    let next = "Link: <http://inside.test/v2/app/referrers?page=2>; rel=\"next\"\r\n";
    front.answer(&api, 200, next, &list(&[entry(&signed.report)]));
    front.answer(
        "/app/referrers?page=2",
        200,
        "",
        &list(&[entry(&signed.sbom)]),
    );
    for one in [&signed.sbom, &signed.amd64, &signed.report] {
        front.answer(&format!("/app/referrers/{}", digest(one)), 404, "", b"");
    }
    again("the API in pages");

    // GitLab returns the subject itself for the tag of the referrers list
    let gitlab = Signed::new(Upstream::Own);
    let front = Front::new(&gitlab.upstream.address);
    gitlab.manifest(&format!("images: [{}/plain:v1]\n", front.address));
    gitlab
        .images
        .push(&gitlab.upstream.address, "plain", "v1", &gitlab.index);
    front.answer("/plain/tags/list?n=1000", 404, "", b"");
    for (one, kind) in [(&gitlab.index, OCI_INDEX), (&gitlab.amd64, OCI_MANIFEST)] {
        let target = format!("/plain/manifests/{}", tag_of(one, ""));
        let headers = format!("Content-Type: {kind}\r\n");
        front.answer(&target, 200, &headers, &gitlab.images.bytes(digest(one)));
    }
    gitlab.lock(0, &[]);
    assert!(
        gitlab
            .place
            .read("landfall.lock")
            .contains("\n  referrers: []\n")
    );
}

#[test]
fn loops_of_referrers_end_and_a_trimmed_image_keeps_its_signatures() {
    if !need(&NEEDS) {
        return;
    }
    let signed = Signed::new(Upstream::Own);
    let images = &signed.images;
    let upstream = &*signed.upstream.address;
    // an index that refers to the image and contains it, and a signature whose signature is the
    // image
    let around = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [signed.index],
        "subject": {"mediaType": OCI_INDEX, "digest": signed.index["digest"], "size": signed.index["size"]}});
    let around = images.blob(OCI_INDEX, &serde_json::to_vec(&around).unwrap());
    send(images, upstream, "app", &around);
    send_list(
        images,
        upstream,
        "app",
        &signed.index,
        &[&signed.sbom, &around],
    );
    let back = images.bytes(digest(&signed.index));
    http::put_manifest(
        upstream,
        "app",
        &tag_of(&signed.sig, ".sig"),
        OCI_INDEX,
        &back,
    );
    signed.manifest("platforms: [linux/amd64]\nimages: [REG/app:v1]\n");
    signed.lock(0, &[]);
    let lock = signed.place.read("landfall.lock");
    assert!(lock.contains("trimmed:"));
    let found = referrers_of(&lock);
    assert_eq!(found.len(), 8);
    assert!(found.contains(&(digest(&signed.index).into(), digest(&around).into())));
    signed.place.json(0, &["pull", "--store", "store"]);
    signed
        .place
        .json(0, &["pack", "--store", "store", "-o", "b"]);
    let other = writable(&signed.place, "target");
    signed.place.json(0, &["push", "b", "--to", &other.address]);
    assert_eq!(listed(&other.address, "app", &signed.index).len(), 2);

    // a complete index, for a registry that requires all children
    signed.pack();
    let registry = own_registry();
    signed
        .place
        .json(0, &["push", "b", "--to", &registry.address]);
    assert_eq!(listed(&registry.address, "app", &signed.index).len(), 2);

    // a trimmed index keeps the referrers of the complete one
    send_list(images, upstream, "app", &signed.index, &[&signed.sbom]);
    signed.manifest("platforms: [linux/amd64]\nimages: [REG/app:v1]\n");
    signed.lock(0, &["--refresh"]);
    signed.place.json(0, &["pull", "--store", "store"]);
    signed
        .place
        .json(0, &["pack", "--store", "store", "-o", "b"]);
    let registry = own_registry();
    let report = signed
        .place
        .json(0, &["push", "b", "--to", &registry.address]);
    assert_eq!(report["trimmed"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!(listed(&registry.address, "app", &signed.index).len(), 1);
    let there = http::manifest(&registry.address, "app", &tag_of(&signed.index, ".sig"));
    assert_eq!(
        there.header("docker-content-digest"),
        Some(digest(&signed.sig))
    );
}

#[test]
fn referrers_of_one_subject_from_seven_repositories_are_listed_together() {
    if !need(&NEEDS) {
        return;
    }
    let signed = Signed::new(Upstream::Own);
    let images = &signed.images;
    let upstream = &*signed.upstream.address;
    let mut wanted = BTreeSet::from([digest(&signed.sbom).to_owned()]);
    let mut names = vec!["REG/app:v1".to_owned()];
    for copy in 0..6 {
        let repository = format!("copy{copy}");
        images.push(upstream, &repository, "v1", &signed.index);
        let more = images.artifact("application/x.scan", &[copy], Some(&signed.index));
        send(images, upstream, &repository, &more);
        send_list(images, upstream, &repository, &signed.index, &[&more]);
        wanted.insert(digest(&more).to_owned());
        names.push(format!("REG/{repository}:v1"));
    }
    signed.manifest(&format!("images: [{}]\n", names.join(", ")));
    signed.lock(0, &[]);
    let registry = own_registry();
    let paths: String = names
        .iter()
        .map(|name| {
            format!(
                "    \"{}\": one\n",
                name.replace("REG", upstream).trim_end_matches(":v1")
            )
        })
        .collect();
    let head = "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: ";
    signed.place.write(
        "site.yaml",
        format!("{head}{}\n  paths:\n{paths}", registry.address),
    );
    signed.place.json(
        0,
        &[
            "mirror",
            "--lock",
            "landfall.lock",
            "--site",
            "site.yaml",
            "--store",
            "store",
        ],
    );
    assert_eq!(listed(&registry.address, "one", &signed.index), wanted);
}

#[test]
fn a_lock_of_an_older_release_is_readable() {
    if !need(&NEEDS) {
        return;
    }
    let signed = Signed::new(Upstream::Own);
    signed.pack();
    let new = signed.place.read("landfall.lock");
    let old = format!("{}...\n", &new[..new.find("  referrers:").unwrap()]);
    signed.place.write("landfall.lock", &old);
    let report = signed.place.json(0, &["pull", "--store", "old"]);
    assert_eq!(report["items"][0]["status"], "done");
    let rewrite = |lock: &str| {
        signed
            .place
            .write(lock, if lock == "old.lock" { &old } else { &new });
        signed.place.write(
            "pod.yaml",
            format!("image: {}/app:v1\n", signed.upstream.address),
        );
        signed.place.ok(&[
            "rewrite",
            "pod.yaml",
            "--lock",
            lock,
            "--to",
            "172.20.0.2:5000",
        ])
    };
    assert_eq!(rewrite("old.lock"), "image: 172.20.0.2:5000/app:v1\n");
    assert_eq!(rewrite("new.lock"), rewrite("old.lock"));
    // the next `lock` looks up the referrers that the old lock lacks, and keeps all digests
    signed.lock(0, &[]);
    assert_eq!(signed.place.read("landfall.lock"), new);
}
