//! Registries that refuse some content: what they refuse never changes or blocks other content.

use crate::support::faults::{Content, Fault, FaultKind, RequestKind, Rig, Settings};
use crate::support::images::{OCI_INDEX, sha256};
use crate::support::library::{ItemKind, ItemStatus, ReferrerPolicy, ReportItem};
use serde_json::Value;

/// The kind, status and reason of each item that is neither done nor present.
fn lacking(items: &[ReportItem]) -> Vec<(ItemKind, ItemStatus, String)> {
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
            assert_eq!((kind, how), (ItemKind::Referrer, ItemStatus::Failed));
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
            matches!(lost[..], [(ItemKind::Image, ItemStatus::Failed, _)]),
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
                (*kind, *how) == (ItemKind::Referrer, ItemStatus::Skipped)
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
    rig.down.set_faults([Fault::always(
        RequestKind::PutManifest,
        FaultKind::Refusal(415, "MANIFEST_INVALID"),
    )
    .at("/files/")]);
    let lost = lacking(&rig.push("first").unwrap().items);
    let [(ItemKind::File, ItemStatus::Failed, why)] = &lost[..] else {
        panic!("{lost:?}");
    };
    assert!(why.contains("415") && why.contains("--skip-kinds"), "{why}");
    rig.delivery.skip_kinds = [ItemKind::File].into();
    let pushed = rig.push("first").unwrap();
    let skipped = lacking(&pushed.items);
    assert!(
        matches!(skipped[..], [(ItemKind::File, ItemStatus::Skipped, _)]),
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
    let [(ItemKind::Image, ItemStatus::Failed, why)] = &lost[..] else {
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
        .partition(|item| item.kind == ItemKind::Referrer);
    assert_eq!(referrers.len(), 2);
    assert!(
        others.iter().all(|item| item.status == ItemStatus::Present),
        "{others:?}"
    );
    let seen = rig.down.seen();
    let puts = seen
        .iter()
        .filter(|seen| seen.on == Some(RequestKind::PutManifest));
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
    let [(ItemKind::Referrer, ItemStatus::Failed, why)] = &lost[..] else {
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
