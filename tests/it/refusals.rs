//! Registries that refuse some content: what they refuse never changes or blocks other content.

use crate::support::faults::{Content, Fault, FaultKind, RequestKind, Rig, Rule, Settings};
use crate::support::images::{OCI_INDEX, sha256};
use crate::support::library::{EntryKind, ItemStatus, ReferrerPolicy, ReportItem};
use crate::support::need;
use crate::support::pki::key_pair;
use serde_json::{Value, json};
use std::sync::Arc;

/// The kind, status and reason of each item that is neither done nor present.
fn lacking(items: &[ReportItem]) -> Vec<(EntryKind, ItemStatus, String)> {
    let lacking = items
        .iter()
        .filter(|item| !matches!(item.status, ItemStatus::Done | ItemStatus::Present));
    let reason = |item: &ReportItem| item.reason.clone().unwrap_or_default();
    lacking
        .map(|item| (item.kind, item.status, reason(item)))
        .collect()
}

/// The digests of the referrers of `team/tool` in the upstream of a rig.
fn referrers(rig: &Rig) -> Vec<String> {
    let manifests = rig.up.content(|content| content.manifests.clone());
    let referrers = manifests.into_iter().filter(|(_, (_, bytes))| {
        let text = String::from_utf8_lossy(bytes);
        text.contains("\"subject\"")
    });
    referrers.map(|((_, digest), _)| digest).collect()
}

/// Before, the image stayed without a tag.
#[test]
fn an_image_is_delivered_without_the_referrers_that_the_registry_refuses() {
    for status in [400, 404, 405, 406, 415, 500] {
        let mut rig = Rig::new();
        let digests = referrers(&rig);
        assert_eq!(digests.len(), 2);
        let refuse = || {
            let refused = FaultKind::Refusal(status, "UNSUPPORTED");
            let faults = digests
                .iter()
                .map(|digest| Fault::always(RequestKind::PutManifest, refused.clone()).at(digest));
            faults.collect::<Vec<Fault>>()
        };
        let has_tag = |rig: &Rig| {
            let key = ("team/tool".to_owned(), "v1".to_owned());
            rig.down.content(|content| content.tags.contains_key(&key))
        };
        rig.down.set_faults(refuse());
        let pushed = rig.push("first").unwrap();
        let lost = lacking(&pushed.items);
        assert_eq!(lost.len(), 2, "{status}: {lost:?}");
        for (kind, how, why) in lost {
            assert_eq!((kind, how), (EntryKind::Referrer, ItemStatus::Failed));
            assert!(why.contains(&format!("{status} ")), "{why}");
        }
        assert!(has_tag(&rig), "{status}");
        assert_eq!(pushed.receipt.items.len(), 3, "the image is in the receipt");

        // the next push tries again, and delivers only what was refused
        rig.down.set_faults([]);
        assert_eq!(lacking(&rig.push("first").unwrap().items), []);
        rig.assert_arrived("the referrers arrived later");

        rig.empty_far_side();
        rig.down.set_faults(refuse());
        rig.delivery.referrers = ReferrerPolicy::Required;
        let lost = lacking(&rig.push("first").unwrap().items);
        assert!(
            matches!(lost[..], [(EntryKind::Image, ItemStatus::Failed, _)]),
            "{lost:?}"
        );
        assert!(!has_tag(&rig), "{status}");

        rig.empty_far_side();
        rig.delivery.referrers = ReferrerPolicy::Skip;
        let skipped = lacking(&rig.push("first").unwrap().items);
        // the signature of the other image has a tag, and is skipped too
        assert_eq!(skipped.len(), 3, "{skipped:?}");
        assert!(
            skipped.iter().all(|(kind, how, _)| {
                (*kind, *how) == (EntryKind::Referrer, ItemStatus::Skipped)
            })
        );
        assert!(has_tag(&rig), "{status}");
        let sent = rig.down.content(|content| content.manifests.len());
        assert_eq!(
            sent,
            4 + 1 + 1,
            "images, file and list of locks, no referrers"
        );
        let again = rig.push("first").unwrap();
        assert!(
            again
                .items
                .iter()
                .all(|item| item.status != ItemStatus::Done)
        );
    }
}

#[test]
fn kinds_that_a_registry_does_not_accept_are_named_and_can_be_skipped() {
    let mut rig = Rig::new();
    let refused = || FaultKind::Refusal(415, "MANIFEST_INVALID");
    let referrers = referrers(&rig);
    let of_types = referrers
        .iter()
        .map(|digest| Fault::always(RequestKind::PutManifest, refused()).at(digest));
    let of_types =
        of_types.chain([Fault::always(RequestKind::PutManifest, refused()).at("/files/")]);
    rig.down.set_faults(of_types.collect::<Vec<_>>());
    let lost = lacking(&rig.push("first").unwrap().items);
    let files = lost.iter().filter(|(kind, ..)| *kind == EntryKind::File);
    let files: Vec<_> = files.collect();
    let [(_, ItemStatus::Failed, why)] = files[..] else {
        panic!("{lost:?}");
    };
    assert!(why.contains("415"), "{why}");
    assert_eq!(lost.len(), 3);
    // one line for the registry has all types
    let notes = rig.notes.lines();
    let notes: Vec<_> = notes
        .iter()
        .filter(|note| note.contains("--skip-kinds"))
        .collect();
    let [note] = notes[..] else {
        panic!("{notes:?}");
    };
    for part in [
        &*rig.down.address,
        "landfall.file",
        "subject",
        "--referrers skip",
        "serve",
    ] {
        assert!(note.contains(part), "{note}");
    }
    rig.down
        .set_faults([Fault::always(RequestKind::PutManifest, refused()).at("/files/")]);
    rig.delivery.skip_kinds = [EntryKind::File].into();
    let pushed = rig.push("first").unwrap();
    let skipped = lacking(&pushed.items);
    assert!(
        matches!(skipped[..], [(EntryKind::File, ItemStatus::Skipped, _)]),
        "{skipped:?}"
    );
}

/// Before, `MANIFEST_INVALID` for one index made the run trim all further indexes with missing
/// children, and `index: exact` named a wrong cause.
#[test]
fn only_a_proven_refusal_of_missing_children_trims_an_index() {
    let rig = Rig::new();
    // an index with a child that is not wanted, and one that is refused for another reason
    rig.up.content(|content| {
        for repository in ["team/odd", "team/plain"] {
            let children = ["linux/amd64", "linux/s390x"]
                .map(|platform| content.image(repository, platform, &[(1, 400)]));
            let index = content.index(repository, &children);
            content.tag(repository, "v1", &index);
        }
    });
    let up = &rig.up.address;
    let head = "apiVersion: landfall/v1\nkind: Manifest\n";
    rig.place.write(
        "m.yaml",
        format!(
            "{head}platforms: [linux/amd64]\nimages: [\"{up}/team/odd:v1\", \
             \"{up}/team/plain:v1\"]\n"
        ),
    );
    let mut rig = rig;
    rig.lock = rig.resolve("sparse").lock;
    assert!(
        rig.pull("sparse")
            .iter()
            .all(|item| item.status == ItemStatus::Done)
    );
    let index = rig.lock.images[0].digest.to_string();
    let trimmed = rig.lock.images[0]
        .trimmed
        .as_ref()
        .unwrap()
        .digest
        .to_string();
    // whatever index is sent, it is refused
    let refuse = |at: &str| {
        Fault::always(
            RequestKind::PutManifest,
            FaultKind::Refusal(400, "MANIFEST_INVALID"),
        )
        .at(at)
    };
    rig.down.set_faults([
        refuse(&format!("team/odd/manifests/{index}")),
        refuse(&format!("team/odd/manifests/{trimmed}")),
        refuse("team/odd/manifests/v1"),
    ]);
    let pushed = rig.push("sparse").unwrap();
    let lost = lacking(&pushed.items);
    let [(EntryKind::Image, ItemStatus::Failed, why)] = &lost[..] else {
        panic!("{lost:?}");
    };
    assert!(why.contains("MANIFEST_INVALID"), "{why}");
    // this registry refuses missing children, which is proven for the other index alone
    assert_eq!(pushed.trimmed.len(), 1);
}

/// Before, each repository cost five requests with pauses.
#[test]
fn lists_of_tags_that_fail_are_requested_from_one_repository_only() {
    let rig = Rig::of_images(6);
    rig.up
        .set_faults([Fault::always(RequestKind::Tags, FaultKind::Status(500))]);
    let locked = rig.resolve("again");
    assert_eq!(locked.lock.unresolved, []);
    let lists = rig.up.seen().into_iter();
    let lists = lists
        .filter(|seen| seen.on == Some(RequestKind::Tags))
        .count();
    assert!((2..=4).contains(&lists), "{lists} requests for lists");
    let notes = rig.notes.lines();
    assert!(
        notes
            .iter()
            .any(|note| note.contains("lists no tags") && note.contains("500")),
        "{notes:?}"
    );
}

/// Before, such an image failed after five attempts.
#[test]
fn a_manifest_whose_head_fails_is_looked_up_by_get() {
    for status in [400, 406, 500, 501] {
        let rig = Rig::new();
        rig.down.set_faults([
            Fault::always(RequestKind::ManifestHead, FaultKind::Status(status)).at("team/tool"),
        ]);
        assert_eq!(lacking(&rig.push("first").unwrap().items), [], "{status}");
        rig.assert_arrived("HEAD fails");
        let again = rig.push("first").unwrap();
        assert!(
            again
                .items
                .iter()
                .all(|item| item.status == ItemStatus::Present)
        );
    }
}

/// Before, the whole image was delivered again.
#[test]
fn a_push_after_a_refused_referrer_sends_only_the_referrer() {
    let rig = Rig::new();
    let digests = referrers(&rig);
    let refuse = || {
        let refused = FaultKind::Refusal(415, "UNSUPPORTED");
        let faults = digests
            .iter()
            .map(|digest| Fault::always(RequestKind::PutManifest, refused.clone()).at(digest));
        faults.collect::<Vec<Fault>>()
    };
    rig.down.set_faults(refuse());
    rig.push("first").unwrap();
    rig.down.set_faults(refuse());
    let again = rig.push("first").unwrap();
    let (referrers, others): (Vec<_>, Vec<_>) = again
        .items
        .iter()
        .partition(|item| item.kind == EntryKind::Referrer);
    assert_eq!(referrers.len(), 2);
    assert!(
        others.iter().all(|item| item.status == ItemStatus::Present),
        "{others:?}"
    );
    let seen = rig.down.seen();
    let puts: Vec<_> = seen
        .iter()
        .filter(|seen| seen.on == Some(RequestKind::PutManifest))
        .collect();
    assert!(!puts.is_empty(), "{}", rig.down.shown());
    for put in puts {
        assert!(
            digests.iter().any(|digest| put.path.ends_with(digest)),
            "{}",
            rig.down.shown()
        );
    }
}

#[test]
fn a_referrer_whose_blob_cannot_be_read_costs_only_itself() {
    let rig = Rig::new();
    let blob = sha256(b"attestation");
    rig.set_faults([Fault::always(RequestKind::Blob, FaultKind::Status(404)).at(&blob)]);
    let pushed = rig.mirror().unwrap();
    let lost = lacking(&pushed.items);
    let [(EntryKind::Referrer, ItemStatus::Failed, why)] = &lost[..] else {
        panic!("{lost:?}");
    };
    assert!(why.contains("404"), "{why}");
    let tag = ("team/tool".to_owned(), "v1".to_owned());
    assert!(rig.down.content(|content| content.tags.contains_key(&tag)));
    // a delta must not omit what the registry may delete
    let named = pushed.receipt.blobs.keys();
    assert!(named.into_iter().all(|digest| digest.to_string() != blob));
}

#[test]
fn entries_without_type_in_a_list_of_referrers_are_completed() {
    let rig = Rig::new();
    rig.down.set(Settings {
        no_referrers: true,
        ..Settings::default()
    });
    rig.push("first").unwrap();
    let list = |content: &Content| {
        let key = |name: &str| ("team/tool".to_owned(), name.to_owned());
        let mut tags = content.tags.keys();
        let (_, tag) = tags
            .find(|(repository, tag)| repository == "team/tool" && tag.starts_with("sha256-"))
            .unwrap();
        let (_, bytes) = &content.manifests[&key(&content.tags[&key(tag)])];
        let list: Value = serde_json::from_slice(bytes).unwrap();
        (tag.clone(), list)
    };
    let (tag, whole) = rig.down.content(|content| list(content));
    let mut bare = whole.clone();
    for entry in bare["manifests"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("artifactType");
    }
    rig.down.content(|content| {
        let bare = content.manifest("team/tool", OCI_INDEX, &bare);
        content.tag("team/tool", &tag, &bare);
    });
    rig.push("first").unwrap();
    let (_, completed) = rig.down.content(|content| list(content));
    assert_eq!(completed, whole);
    let again = rig.push("first").unwrap();
    assert!(
        again
            .items
            .iter()
            .all(|item| item.status == ItemStatus::Present)
    );
}

/// Before, a whole push was aborted because of one repository.
#[test]
fn a_repository_that_refuses_uploads_stops_only_its_own_items() {
    for code in ["DENIED", "UNSUPPORTED"] {
        let rig = Rig::new();
        let refused = FaultKind::Refusal(if code == "DENIED" { 403 } else { 405 }, code);
        rig.down
            .set_faults([Fault::always(RequestKind::Begin, refused).at("team/tool")]);
        let pushed = rig.push("first").unwrap();
        let lost = lacking(&pushed.items);
        assert!(
            lost.iter().all(|(_, how, _)| *how == ItemStatus::Failed),
            "{lost:?}"
        );
        assert_eq!(lost.len(), 1, "{lost:?}");
        assert!(!pushed.is_stopped);
        let key = |repository: &str| (repository.to_owned(), "v1".to_owned());
        let tags = rig.down.content(|content| content.tags.clone());
        assert!(tags.contains_key(&key("team/app")) && !tags.contains_key(&key("team/tool")));
    }
}

/// Before, the third failing item made the host count as lost, with all items that it has.
#[test]
fn items_that_always_fail_with_500_do_not_block_others_of_the_host() {
    let mut rig = Rig::of_images(12);
    rig.limits.jobs = 1;
    let odd = |at: usize| {
        Fault::always(RequestKind::Blob, FaultKind::Status(500)).at(&format!("team/app{at}/"))
    };
    rig.up.set_faults((0..6).map(odd));
    let items = rig.pull("odd");
    let lost = lacking(&items);
    assert_eq!(lost.len(), 6, "{lost:?}");
    for (_, _, why) in &lost {
        assert!(why.contains("500"), "{why}");
    }
    // once three rounds failed, requests are not repeated
    let failed = rig.up.met();
    assert!(failed < 6 * 2 * 5, "{failed} requests failed");
}

/// Before, only the second refusal was named.
#[test]
fn a_refused_chunk_after_a_refused_size_names_both() {
    let rig = Rig::new();
    rig.down.set_faults([
        Fault::always(RequestKind::Upload, FaultKind::TooLarge(8000)),
        Fault::always(RequestKind::Patch, FaultKind::Refusal(405, "UNSUPPORTED")),
    ]);
    let lost = lacking(&rig.push("first").unwrap().items);
    let (_, _, why) = &lost[0];
    assert!(
        why.contains("405") && why.contains("refuses (413)"),
        "{why}"
    );
}

/// Before, the list of locks kept its first state at such a registry, and `serve --from` found
/// nothing newer.
#[test]
fn the_list_of_locks_gets_a_new_tag_if_tags_are_immutable() {
    let mut rig = Rig::new();
    rig.down.set(Settings {
        rules: immutable_tags(),
        ..Settings::default()
    });
    let lists = |rig: &Rig| {
        let tags = rig.down.content(|content| content.tags.clone());
        let lists = tags.keys().filter(|(own, _)| own == "landfall/locks");
        lists.map(|(_, tag)| tag.clone()).collect::<Vec<_>>()
    };
    for (name, expected) in [
        ("one", vec!["latest"]),
        ("two", vec!["latest", "latest-2"]),
        ("three", vec!["latest", "latest-2", "latest-3"]),
    ] {
        rig.lock.name = Some(name.to_owned());
        let pushed = rig.push("first").unwrap();
        assert_eq!(pushed.unlisted, None, "{name}");
        assert_eq!(lists(&rig), expected);
    }
    // nothing is new
    let pushed = rig.push("first").unwrap();
    assert_eq!(pushed.unlisted, None);
    assert_eq!(lists(&rig).len(), 3);

    // clean-up jobs of registries leave gaps, before and behind which lists are found
    for (gap, name, next) in [
        ("latest-2", "four", "latest-4"),
        ("latest", "five", "latest-5"),
    ] {
        rig.down.content(|content| {
            content.tags.remove(&("landfall/locks".into(), gap.into()));
        });
        rig.lock.name = Some(name.to_owned());
        assert_eq!(rig.push("first").unwrap().unlisted, None, "{gap}");
        assert!(lists(&rig).contains(&next.to_owned()), "{:?}", lists(&rig));
        assert!(!lists(&rig).contains(&gap.to_owned()), "{:?}", lists(&rig));
    }
    // without a list of tags, too: before, these pushes wrote lists that others hid
    let refused = FaultKind::Refusal(405, "UNSUPPORTED");
    rig.down
        .set_faults([Fault::always(RequestKind::Tags, refused)]);
    rig.down.content(|content| {
        for gap in ["latest-3", "latest-4"] {
            content.tags.remove(&("landfall/locks".into(), gap.into()));
        }
    });
    rig.lock.name = Some("six".to_owned());
    assert_eq!(rig.push("first").unwrap().unlisted, None);
    assert_eq!(lists(&rig), ["latest-5", "latest-6"]);
}

fn immutable_tags() -> Arc<[Rule]> {
    let answer = json!({"status": 400, "code": "TAG_INVALID", "message": "it is immutable"});
    Arc::new([serde_json::from_value(json!({"immutable-tags": answer})).unwrap()])
}

/// Before, the image was not delivered.
#[test]
fn an_attestation_that_upstream_lacks_costs_only_itself() {
    let rig = Rig::new();
    let gone = rig.up.content(|content| {
        let image = content.image("team/attested", "linux/amd64", &[(1, 400)]);
        let mut attestation = content.artifact("team/attested", "provenance", None);
        let digest = attestation["digest"].as_str().unwrap().to_owned();
        attestation["platform"] = json!({"os": "unknown", "architecture": "unknown"});
        attestation["annotations"] = json!({
            "vnd.docker.reference.type": "attestation-manifest",
            "vnd.docker.reference.digest": image["digest"],
        });
        let index = content.index("team/attested", &[image, attestation]);
        content.tag("team/attested", "v1", &index);
        let key = ("team/attested".to_owned(), digest.clone());
        (content.manifests.remove(&key).unwrap(), key)
    });
    let up = &rig.up.address;
    let head = "apiVersion: landfall/v1\nkind: Manifest\n";
    let images = format!("{head}images: [\"{up}/team/attested:v1\"]\n");
    rig.place.write("m.yaml", images);
    let mut rig = rig;
    rig.lock = rig.resolve("attested").lock;
    let lost: Vec<_> = rig.lock.unresolved.iter().map(|one| &one.name).collect();
    let (_, (_, digest)) = &gone;
    assert!(
        matches!(lost[..], [name] if name.ends_with(&format!(":v1 attestation {digest}"))),
        "{lost:?}"
    );
    // the index is delivered like one with a child for another platform
    let image = &rig.lock.images[0];
    assert!(image.trimmed.is_some() && image.manifests.len() == 1);
    rig.pull("attested");
    let pushed = rig.push("attested").unwrap();
    let failed = pushed
        .items
        .iter()
        .filter(|item| item.kind == EntryKind::Image);
    assert!(
        failed
            .into_iter()
            .all(|item| item.status == ItemStatus::Done)
    );

    // upstream has it again: the next lock has the whole index
    let digest = image.digest.clone();
    rig.up
        .content(|content| content.manifests.insert(gone.1, gone.0));
    let found = rig.resolve_again("attested").lock;
    assert_eq!(found.unresolved, []);
    let image = &found.images[0];
    assert_eq!((&image.digest, image.manifests.len()), (&digest, 2));
    assert!(image.trimmed.is_none());
}

/// Before, the signatures that the push had just made were left out too, and a dry run counted
/// what it leaves out as planned.
#[test]
fn signatures_of_the_site_are_delivered_although_referrers_are_skipped() {
    if !need(&["openssl"]) {
        return;
    }
    let rig = Rig::new();
    key_pair(&rig.place, "site", "P-256");
    let to = &rig.down.address;
    let mut push = vec![
        "push",
        "--store",
        "stores/first",
        "--to",
        to,
        "--plain-http",
        to,
    ];
    push.extend(["--referrers", "skip", "--sign-images", "site.pem"]);
    let dry_run = [&push[..], &["--dry-run", "--skip-kinds", "file"]].concat();
    let output = rig.place.command().args(&dry_run).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("would deliver 2 images to"), "{text}");
    let report = rig.place.json(0, &push);
    let items = report["items"].as_array().unwrap();
    let skipped = items.iter().filter(|item| item["status"] == "skipped");
    assert_eq!(skipped.count(), 3, "{report:#}");
    let delivered = rig.down.content(|content| content.clone());
    for repository in ["team/app", "team/tool"] {
        let manifests = delivered.manifests.iter();
        let own = manifests.filter(|((own, _), _)| own == repository);
        let texts: Vec<String> = own
            .map(|(_, (_, bytes))| String::from_utf8_lossy(bytes).into_owned())
            .collect();
        for kind in ["dev.sigstore.bundle.content", "simplesigning"] {
            let count = texts.iter().filter(|text| text.contains(kind)).count();
            assert_eq!(count, 1, "{repository} {kind}");
        }
    }
}

/// Before, a source that did not answer counted as a damaged bundle, so nothing more was sent.
#[test]
fn content_that_cannot_be_read_over_the_network_is_not_damage() {
    let mut rig = Rig::of_images(4);
    rig.limits.jobs = 1;
    rig.delivery.stop_at_damage = true;
    for what in [
        FaultKind::Status(500),
        FaultKind::HangUp,
        FaultKind::Status(404),
    ] {
        rig.empty_far_side();
        rig.set_faults([Fault::always(RequestKind::Blob, what.clone()).at("team/app1/")]);
        let lost = lacking(&rig.mirror().unwrap().items);
        assert_eq!(lost.len(), 1, "{what:?}: {lost:?}");
        assert!(!lost[0].2.contains("damaged"), "{lost:?}");
    }
}

/// Before, a refused SBOM cost an image that a rule of the site demands to be signed.
#[test]
fn of_an_image_that_must_be_signed_only_signatures_are_required() {
    if !need(&["openssl"]) {
        return;
    }
    let rig = Rig::new();
    let plain = referrers(&rig);
    key_pair(&rig.place, "site", "P-256");
    let (up, down) = (&rig.up.address, &rig.down.address);
    let sign = [
        "push",
        "--store",
        "stores/first",
        "--to",
        down,
        "--plain-http",
        down,
    ];
    rig.place
        .json(0, &[&sign[..], &["--sign-images", "site.pem"]].concat());
    let rule = "verify: [{match: \"*\", keys: [site.pub]}]\n";
    let head = "apiVersion: landfall/v1\nkind: Manifest\n";
    let images = format!("{head}images: [\"{down}/team/tool:v1\"]\n{rule}");
    rig.place.write("two.yaml", images);
    let site = format!("apiVersion: landfall/v1\nkind: Site\n{rule}");
    rig.place.write("site.yaml", site);
    let own = ["--lock", "two.lock", "--store", "two"];
    let from = ["--plain-http", down];
    rig.place
        .json(0, &[&["lock", "-f", "two.yaml"], &own[..], &from].concat());
    rig.place.json(0, &[&["pull"], &own[..], &from].concat());
    let to = format!("{up}/mirror");
    let to = ["--to", &to, "--plain-http", up, "--site", "site.yaml"];
    let push = [&["push"], &own[..], &to].concat();
    let refuse = |digests: &[String]| {
        let refused = FaultKind::Refusal(415, "UNSUPPORTED");
        let faults = digests
            .iter()
            .map(|digest| Fault::always(RequestKind::PutManifest, refused.clone()).at(digest));
        rig.up.set_faults(faults.collect::<Vec<Fault>>());
    };
    let has_tag = || {
        let key = ("mirror/team/tool".to_owned(), "v1".to_owned());
        rig.up
            .content(|content| content.tags.remove(&key).is_some())
    };
    refuse(&plain);
    let report = rig.place.json(3, &push);
    assert_eq!(report["totals"]["failed"], plain.len(), "{report:#}");
    assert!(has_tag(), "{report:#}");
    let manifests = rig.down.content(|content| content.manifests.clone());
    let signatures = manifests.into_iter().filter(|(_, (_, bytes))| {
        let text = String::from_utf8_lossy(bytes);
        text.contains("dev.sigstore.bundle.content")
    });
    let signatures: Vec<String> = signatures.map(|((_, digest), _)| digest).collect();
    refuse(&signatures);
    rig.place.json(1, &push);
    assert!(!has_tag());
}
