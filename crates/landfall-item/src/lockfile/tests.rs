//! Locks are written and read back, and invalid ones are rejected.

use super::all_fields::{charts, package_sets, providers, repositories};
use super::*;
use crate::{
    LockedFile, LockedImage, LockedManifest, LockedReferrer, LockedSidecar, LockedTrimmedIndex,
};
use landfall_model::document::growth::assert_linear;
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, FolderPacking};
use landfall_signature::{LogEntry, SignerKind, VerifiedSignature};
use proptest::prelude::*;

pub(super) fn digest(text: &str) -> Digest {
    Digest::sha256(text.as_bytes())
}

fn verified(fingerprint: &str) -> VerifiedSignature {
    VerifiedSignature {
        by: SignerKind::Key,
        fingerprint: Some(fingerprint.into()),
        issuer: None,
        identity: None,
        time: Some("2026-01-01T12:00:00Z".into()),
        builder: None,
        source: Some("git: #1".into()),
    }
}

fn sample() -> Lock {
    let kind = landfall_model::MediaType::from("application/vnd.oci.image.manifest.v1+json");
    Lock {
        version: 1,
        images: vec![LockedImage {
            lacks: Vec::new(),
            lists: Vec::new(),
            name: "quay.io/prometheus/node-exporter:v1.9.0".parse().unwrap(),
            platforms: vec!["linux/amd64".parse().unwrap()],
            pin: Some(digest("index")),
            archive: None,
            digest: digest("index"),
            media_type: "application/vnd.oci.image.index.v1+json".into(),
            size: 1841,
            platform: None,
            manifests: vec![LockedManifest {
                digest: digest("child"),
                size: 1023,
                media_type: kind.clone(),
                platform: Some("linux/amd64".into()),
            }],
            verified: Vec::new(),
            blobs: vec![Descriptor::new(
                digest("layer"),
                7,
                "application/vnd.oci.image.layer.v1.tar+gzip",
            )],
            trimmed: Some(LockedTrimmedIndex {
                digest: digest("trimmed"),
                size: 702,
            }),
            referrers: Some(vec![
                LockedReferrer {
                    digest: digest("sig"),
                    size: 812,
                    media_type: kind.clone(),
                    tag: Some("sha256-4a.sig".into()),
                    subject: None,
                },
                LockedReferrer {
                    digest: digest("sbom"),
                    size: 99,
                    media_type: kind,
                    tag: None,
                    subject: Some(digest("child")),
                },
            ]),
            referrer_blobs: vec![Descriptor::new(
                digest("payload"),
                245,
                "application/vnd.dev.cosign.simplesigning.v1+json",
            )],
            absent: std::collections::BTreeSet::new(),
        }],
        files: vec![LockedFile {
            name: "https://dl.k8s.io/kubelet?x=1#y, z".into(),
            digest: digest("kubelet"),
            size: 1,
            path: None,
            packing: None,
            checksum: Some("https://dl.k8s.io/kubelet.sha256".into()),
            sidecars: vec![LockedSidecar {
                url: "https://dl.k8s.io/kubelet.sha256".into(),
                digest: digest("s"),
                size: 64,
            }],
            also: vec!["https://dl.k8s.io/other".into()],
            mode: Some("0755".into()),
            signed_by: Some("minisign: RW, x".into()),
            verified: Vec::new(),
            log_entry: Some(LogEntry {
                index: 7,
                time: 1_767_268_800,
                log: "c0d2: 3d".into(),
                promise: "MEUC+/==".into(),
            }),
            unpack: vec!["bin/kube let".into()],
        }],
        endpoints: vec![
            Endpoint {
                host: "*.corp.test".into(),
                port: 443,
                why: "all: of it".into(),
                from: vec![],
            },
            Endpoint {
                host: "vcenter.corp.test".into(),
                port: 443,
                why: "machines".into(),
                from: vec!["master-cluster-node".into(), "seed-cluster-node".into()],
            },
        ],
        missing: vec![AcceptedLoss {
            kind: EntryKind::Image,
            name: "quay.io/gone/app:v1".into(),
            reason: "removed: upstream, \"really\"".into(),
            until: "2027-01-31".into(),
        }],
        unresolved: vec![UnresolvedItem {
            kind: EntryKind::File,
            name: "https://x/y".into(),
            cause: "404 {not found}".into(),
        }],
        ..Lock::default()
    }
}

/// [`sample`] with items of all other kinds. Every field is written in one of the items.
fn all_fields() -> Lock {
    let mut lock = sample();
    lock.name = Some("all: fields".into());
    lock.images[0].verified = vec![verified("sha256:aa"), verified("sha256:bb")];
    lock.images[0].archive = Some("build/app.tar".into());
    lock.images[0].lacks = vec!["linux/arm64".parse().unwrap()];
    let listed = format!("quay.io/listed/app@{}", digest("app"));
    lock.images[0].lists = vec![listed.parse().unwrap()];
    let signatures = vec![verified("sha256:aa")];
    let referrers = lock.images[0].referrers.clone().unwrap_or_default();
    let provenance = lock.files[0].sidecars[0].clone();
    lock.files.push(LockedFile {
        path: Some("conf: a".into()),
        packing: Some(FolderPacking::Tar),
        ..LockedFile::new("local:conf: a.tar", digest("conf"), 2)
    });
    lock.charts = charts(signatures, referrers, provenance);
    lock.packages = package_sets();
    lock.git = repositories();
    lock.providers = providers();
    lock
}

#[test]
fn a_lock_reads_back_and_writes_the_same_text() {
    let mut lock = sample();
    lock.images[0].verified = vec![verified("sha256:aa"), verified("sha256:bb")];
    // more text than is parsed at once
    for n in 100..300 {
        lock.images.push(LockedImage {
            name: format!("quay.io/prometheus/p{n}:v1").parse().unwrap(),
            ..lock.images[0].clone()
        });
    }
    let text = lock.to_text();
    let again = Lock::parse("landfall.lock", &text).unwrap();
    assert_eq!(again, lock);
    assert_eq!(again.to_text(), text);
    assert_eq!(text::read(&text), Some(lock.clone()));
    assert_eq!(lock.fingerprint(), Digest::sha256(text.as_bytes()));
}

#[test]
fn an_edited_lock_is_parsed_as_a_whole() {
    let text = sample().to_text();
    for (from, to) in [
        ("size: 1841", "size:  1841"),
        ("\nfiles:", "\n# files\nfiles:"),
        ("landfall lock`", "me"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        assert_eq!(text::read(&changed), None);
        assert_eq!(Lock::parse("l", &changed).unwrap(), sample());
    }
    for (from, to) in [
        ("files:\n", "images:\n"),
        ("  size: 1841\n", "  size: 1841\n  size: 1841\n"),
    ] {
        assert!(Lock::parse("l", &text.replacen(from, to, 1)).is_err());
    }
}

#[test]
fn implausible_values_are_rejected() {
    let mut lock = sample();
    lock.files[0].also = vec!["http://../x".into()];
    assert!(
        Lock::parse("l", &lock.to_text())
            .unwrap_err()
            .to_string()
            .contains("http://../x")
    );
    lock.files[0].also = vec!["ftp://a/x".into()];
    assert!(Lock::parse("l", &lock.to_text()).is_err());
    for member in ["a/../b", "a\\b", "a\0b"] {
        let mut lock = sample();
        lock.files[0].unpack = vec![member.into()];
        assert!(
            Lock::parse("l", &lock.to_text())
                .unwrap_err()
                .to_string()
                .contains("not a path in an archive"),
            "{member:?}"
        );
    }
    let mut lock = sample();
    lock.images[0].referrers.as_mut().unwrap()[0].tag = Some("sha256-a.sig/../../other".into());
    assert!(
        Lock::parse("l", &lock.to_text())
            .unwrap_err()
            .to_string()
            .contains("not a tag of cosign")
    );
    let mut lock = sample();
    lock.images[0].blobs[0].size = u64::MAX;
    assert!(
        Lock::parse("l", &lock.to_text())
            .unwrap_err()
            .to_string()
            .contains("bytes")
    );
}

#[test]
fn a_written_lock_equals_its_golden_file() {
    for (name, lock) in [
        ("every-kind.lock", sample()),
        ("all-fields.lock", all_fields()),
    ] {
        let path = format!("{}/../../tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = lock.to_text();
        if std::env::var_os("LANDFALL_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), text);
    }
}

#[test]
fn a_set_of_packages_with_an_empty_required_list_is_rejected() {
    let text = include_str!("../../../../tests/data/packages/machines.lock");
    let without = |list: &str, items: &str| text.replacen(items, &format!("{list}: []\n"), 1);
    let changed = [
        (
            "architectures",
            without("  architectures", "  architectures:\n  - amd64\n"),
        ),
        (
            "install",
            without("  install", "  install:\n  - conntrack\n"),
        ),
        (
            "sources",
            text.split("  sources:").next().unwrap().to_owned() + "  sources: []\n",
        ),
    ];
    for (list, changed) in changed {
        assert_ne!(changed, text, "{list}");
        let error = Lock::parse("l", &changed).unwrap_err().to_string();
        assert!(
            error.contains(&format!("'apt:nodes' has no `{list}`")),
            "{error}"
        );
    }
}

#[test]
fn two_items_with_the_same_name_are_rejected() {
    let mut lock = sample();
    lock.endpoints.push(Endpoint {
        why: "again".into(),
        ..lock.endpoints[0].clone()
    });
    let message = Lock::parse("l", &lock.to_text()).unwrap_err().to_string();
    assert!(
        message.contains("the endpoint *.corp.test:443 is listed twice"),
        "{message}"
    );
    let mut lock = sample();
    lock.images.push(lock.images[0].clone());
    let message = Lock::parse("l", &lock.to_text()).unwrap_err().to_string();
    assert!(
        message.contains("quay.io/prometheus/node-exporter:v1.9.0 is listed twice"),
        "{message}"
    );
    let mut lock = sample();
    lock.files.insert(
        0,
        LockedFile {
            digest: digest("other"),
            ..lock.files[0].clone()
        },
    );
    assert!(
        Lock::parse("l", &lock.to_text())
            .unwrap_err()
            .to_string()
            .contains("is listed twice")
    );
}

#[test]
fn two_signatures_with_the_same_destination_tag_are_reported() {
    use landfall_model::DestinationMap;
    let mapping = DestinationMap::to("r:5".parse().unwrap());
    let mut lock = sample();
    let first = lock.images[0].clone();
    // the same image from another host, with its signature
    let mut second = LockedImage {
        name: "ghcr.io/prometheus/node-exporter:v1.9.0".parse().unwrap(),
        ..first.clone()
    };
    lock.images.push(second.clone());
    assert_eq!(collision(&mapping, &lock), None);
    second.referrers.as_mut().unwrap()[0].digest = digest("another signature");
    lock.images[1] = second.clone();
    let message = collision(&mapping, &lock).unwrap();
    assert!(
        message.starts_with("r:5/prometheus/node-exporter:sha256-4a.sig would be both"),
        "{message}"
    );
    assert!(
        message.contains("a referrer of ghcr.io/prometheus")
            && message.contains("a referrer of quay.io/"),
        "{message}"
    );
    // tags of one repository share their signatures
    lock.images[1] = LockedImage {
        name: "quay.io/prometheus/node-exporter:v1.9".parse().unwrap(),
        ..second
    };
    assert_eq!(collision(&mapping, &lock), None);
}

#[test]
fn a_newer_version_and_unknown_keys_are_rejected() {
    let newer = Lock::parse("l", "version: 2").unwrap_err();
    assert_eq!(
        newer.message,
        "l: lock version 2 is not known to this landfall, which reads version 1"
    );
    assert_eq!(newer.help.as_deref(), Some("use a newer landfall"));
    assert!(
        Lock::parse("l", "version: 1\nbogus: 1")
            .unwrap_err()
            .to_string()
            .contains("bogus")
    );
}

#[test]
fn endpoints_are_sorted_and_their_section_is_omitted_if_there_are_none() {
    let mut lock = sample();
    lock.endpoints.reverse();
    let text = lock.to_text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("host:")).collect();
    assert_eq!(
        lines,
        [
            r#"- {host: "*.corp.test", port: 443, why: "all: of it"}"#,
            "- {host: vcenter.corp.test, port: 443, why: machines, from: [master-cluster-node, seed-cluster-node]}",
        ]
    );
    lock.endpoints.clear();
    assert!(!lock.to_text().contains("endpoints"));
}

#[test]
fn an_empty_list_of_referrers_differs_from_referrers_that_were_not_looked_up() {
    let mut lock = sample();
    lock.images[0].referrer_blobs.clear();
    for (referrers, line) in [(Some(vec![]), Some("  referrers: []")), (None, None)] {
        lock.images[0].referrers = referrers;
        let text = lock.to_text();
        assert_eq!(text.lines().find(|text| text.contains("referrers")), line);
        assert_eq!(Lock::parse("l", &text).unwrap(), lock);
    }
}

#[test]
fn a_lock_without_referrers_or_without_their_blobs_is_valid() {
    let image = format!(
        "name: q.io/a:1\n  digest: {}\n  mediaType: m\n  size: 1\n",
        digest("a")
    );
    let lock = Lock::parse("l", &format!("version: 1\nimages:\n- {image}")).unwrap();
    assert_eq!(
        (
            &lock.images[0].referrers,
            lock.images[0].referrer_blobs.len()
        ),
        (&None, 0)
    );
    let referrer = format!(
        "{{digest: {}, size: 812, mediaType: m, tag: sha256-4a.sig}}",
        digest("s")
    );
    let text = format!("version: 1\nimages:\n- {image}  referrers: [{referrer}]\n");
    let lock = Lock::parse("l", &text).unwrap();
    assert_eq!(
        lock.images[0].referrers.as_ref().unwrap()[0].tag.as_deref(),
        Some("sha256-4a.sig")
    );
}

/// Strings with many characters that have a meaning in YAML or JSON.
fn strange() -> impl Strategy<Value = String> {
    let signs = "[\"\\\\'#:,\\[\\]{}&*!|>%@`~?-]| \
                 |\n|\r|\t|\0|\u{7f}|\u{85}|\u{9f}|\u{a0}|\u{2028}|\u{2029}";
    let rest =
        "\u{feff}|\u{fffd}|\u{fffe}|\u{ffff}|\u{1fffe}|\u{10ffff}|[a-z0-9]|null|true|\\PC|\\pC";
    proptest::string::string_regex(&format!("({signs}|{rest}){{0,12}}")).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_lock_with_any_texts_reads_back(
        texts in proptest::collection::vec(strange(), 10),
        variant in strange(),
    ) {
        let mut lock = sample();
        let mut texts = texts.into_iter();
        let mut next = || texts.next().unwrap_or_default();
        let platform = landfall_model::Platform {
            os: "linux".into(),
            architecture: "arm".into(),
            variant: Some(variant).filter(|variant| !variant.is_empty() && !variant.contains('/')),
        };
        let image = &mut lock.images[0];
        image.media_type = next().into();
        image.platforms = vec![platform.clone(), platform.clone()];
        image.platform = Some(platform);
        image.manifests[0].media_type = next().into();
        image.manifests[0].platform = Some(next());
        image.blobs[0].media_type = next().into();
        image.referrers.as_mut().unwrap()[1].media_type = next().into();
        lock.endpoints[0].why = next();
        lock.endpoints[1].from[0] = next();
        lock.missing[0].reason = next();
        lock.unresolved[0].cause = next();
        lock.files[0].mode = Some(next());
        let text = lock.to_text();
        let again = Lock::parse("l", &text);
        prop_assert_eq!(again.as_ref().map_err(ToString::to_string), Ok(&lock));
        prop_assert_eq!(text::read(&text), Some(lock));
    }
}

#[test]
fn a_truncated_lock_is_never_valid() {
    let text = sample().to_text();
    let end = text.trim_end().len();
    for at in text.lines().next().unwrap().len()..end {
        if text.is_char_boundary(at) {
            assert!(Lock::parse("l", &text[..at]).is_err(), "{}", &text[..at]);
            // with a byte order mark, as an editor on Windows may write it
            let marked = format!("\u{feff}{}", &text[..at]);
            assert!(Lock::parse("l", &marked).is_err(), "{marked}");
        }
    }
    let error = Lock::parse("l", &text[..text.find("missing:").unwrap()]).unwrap_err();
    assert!(error.message.starts_with("l is truncated: "), "{error}");
    // a lock may be edited, and have the line ends of Windows
    let edited = text.replace("v1.9.0", "v1.9.1").replace('\n', "\r\n");
    assert_ne!(Lock::parse("l", &edited).unwrap(), sample());
}

#[test]
fn the_lock_has_a_section_for_every_kind_in_the_same_order() {
    let kinds: Vec<_> = crate::item_kinds().collect();
    assert_eq!(kinds, Lock::default().section_kinds());
}

#[test]
fn a_long_comment_before_the_items_is_not_parsed_with_each_piece() {
    assert_linear(500, |count| {
        let comment = "a".repeat(400 * count);
        let mut text =
            format!("# landfall.lock, written by `landfall lock`\nversion: 1\nfiles: #{comment}\n");
        let digest = digest("file");
        for number in 0..count {
            text += &format!("- name: https://e.test/{number:06}\n  digest: {digest}\n  size: 1\n");
        }
        assert_eq!(text::read(&(text + "...\n")), None);
    });
}
