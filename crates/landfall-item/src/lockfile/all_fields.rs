//! Items of a lock that together have every field of every kind, for its golden file.

use super::tests::digest;
use crate::{
    ChartImage, LockedChart, LockedGitRef, LockedGitRepository, LockedGitSubmodule,
    LockedLargeFile, LockedPackage, LockedPackageSet, LockedProvider, LockedProviderPackage,
    LockedReferrer, LockedSidecar, OfferedIndex, OpenReference, PackageIndex, PackageSource,
    VerifiedGitRef,
};
use landfall_git::ObjectId;
use landfall_model::Descriptor;
use landfall_signature::VerifiedSignature;

const ARMOR: &str =
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ==\n-----END PGP PUBLIC KEY BLOCK-----\n";

/// A chart of an HTTP repository, and one of a registry.
pub(super) fn charts(
    verified: Vec<VerifiedSignature>,
    referrers: Vec<LockedReferrer>,
    provenance: LockedSidecar,
) -> Vec<LockedChart> {
    let blob =
        |name: &str| Descriptor::new(digest(name), 9, "application/vnd.cncf.helm.config.v1+json");
    let chart = LockedChart {
        name: "oci://r.test/charts/app:1.0.0+b"
            .to_owned()
            .try_into()
            .unwrap(),
        pin: Some(digest("chart")),
        digest: digest("chart"),
        media_type: Some("application/vnd.oci.image.manifest.v1+json".into()),
        size: 700,
        verified,
        blobs: vec![blob("config")],
        referrers: Some(referrers),
        referrer_blobs: vec![blob("signature")],
        url: Some("oci://other.test/app:1.0.0".into()),
        path: None,
        listed: Some(digest("listed")),
        provenance: None,
        signed_by: None,
        api_version: "v2".into(),
        app_version: Some("9.1".into()),
        dependencies: vec![
            "oci://r.test/charts/sub:2.0.0"
                .to_owned()
                .try_into()
                .unwrap(),
        ],
        discovered: Some("values: a".into()),
        images: vec![ChartImage {
            name: "quay.io/a/b:1".parse().unwrap(),
            at: "values.yaml:1".into(),
        }],
        open: vec![OpenReference {
            reference: "{{ .x }}".into(),
            at: "templates/a.yaml:3".into(),
            why: "a: b".into(),
        }],
    };
    let archive = LockedChart {
        name: "helm+https://e.test/charts/app:1.0.0"
            .to_owned()
            .try_into()
            .unwrap(),
        pin: None,
        media_type: None,
        verified: Vec::new(),
        blobs: Vec::new(),
        referrers: None,
        referrer_blobs: Vec::new(),
        url: Some("https://e.test/charts/app-1.0.0.tgz".into()),
        listed: None,
        provenance: Some(provenance),
        signed_by: Some("0123".into()),
        app_version: None,
        dependencies: Vec::new(),
        discovered: None,
        images: Vec::new(),
        open: Vec::new(),
        ..chart.clone()
    };
    let local = LockedChart {
        name: "helm+local:charts/app:1.0.0".to_owned().try_into().unwrap(),
        url: Some("local:charts/app-1.0.0.tgz".into()),
        path: Some("charts/app".into()),
        provenance: None,
        signed_by: None,
        ..archive.clone()
    };
    vec![archive, local, chart]
}

/// A set of packages for apt, and one for yum.
pub(super) fn package_sets() -> Vec<LockedPackageSet> {
    let apt = PackageSource {
        url: "https://deb.test/debian".into(),
        suite: "bookworm".into(),
        components: vec!["main".into()],
        targets: vec!["CNF".into()],
        by_hash: true,
        module_hotfixes: false,
        snapshot: Some("https://snapshot.test/1".into()),
        date: Some("Sat, 10 May 2025 08:00:00 UTC".into()),
        valid_until: Some("Sat, 17 May 2025 08:00:00 UTC".into()),
        signed_by: "4CB5".into(),
        key: ARMOR.into(),
        indexes: vec![PackageIndex {
            digest: digest("InRelease"),
            size: 3,
            path: "dists/bookworm/InRelease".into(),
            url: "https://deb.test/debian/dists/bookworm/InRelease".into(),
        }],
        packages: vec![LockedPackage {
            digest: digest("deb"),
            size: 4,
            name: "a".into(),
            version: "1:2-3".into(),
            arch: "amd64".into(),
            path: "pool/a b.deb".into(),
            url: "https://deb.test/debian/pool/a b.deb".into(),
        }],
    };
    let yum = PackageSource {
        url: "https://rpm.test/os".into(),
        suite: String::new(),
        components: Vec::new(),
        targets: Vec::new(),
        by_hash: false,
        module_hotfixes: true,
        snapshot: None,
        date: None,
        valid_until: None,
        packages: Vec::new(),
        ..apt.clone()
    };
    let set = LockedPackageSet {
        name: "apt:nodes".into(),
        digest: digest("set"),
        architectures: vec!["amd64".into(), "i386".into()],
        install: vec!["a=1:2-3".into()],
        modules: Vec::new(),
        recommends: true,
        index: OfferedIndex::Trimmed,
        base: vec!["minimal".into()],
        expected: vec!["libc6".into()],
        sources: vec![apt],
    };
    let plain = LockedPackageSet {
        name: "yum:nodes".into(),
        modules: vec!["nodejs:20".into()],
        recommends: false,
        index: OfferedIndex::Signed,
        base: Vec::new(),
        expected: Vec::new(),
        sources: vec![yum],
        ..set.clone()
    };
    vec![set, plain]
}

/// A repository with a branch, and one with a commit alone.
pub(super) fn repositories() -> Vec<LockedGitRepository> {
    let id = |digits: &str| -> ObjectId { digits.repeat(20).parse().unwrap() };
    let large_file = |server: Option<&str>| LockedLargeFile {
        digest: digest("large"),
        size: 5,
        server: server.map(str::to_owned),
    };
    let repository = LockedGitRepository {
        path: Some("repos/a.bundle".into()),
        wanted: vec!["/^v1/".into(), "main".into()],
        head: Some("refs/heads/main".into()),
        refs: vec![LockedGitRef {
            name: "refs/heads/main".into(),
            id: id("12"),
        }],
        verified: vec![VerifiedGitRef {
            r#ref: "refs/heads/main".into(),
            key: "SHA256:x y".into(),
        }],
        depth: Some(1),
        shallow: vec![id("ab")],
        submodules: Some(vec![LockedGitSubmodule {
            name: "git+https://e.test/sub.git".into(),
            commit: id("cd"),
        }]),
        lfs_server: Some("https://lfs.test/x".into()),
        large_files: Some(vec![
            large_file(None),
            large_file(Some("https://lfs.test/y")),
        ]),
        packs: vec![landfall_content::GitPack {
            digest: digest("pack"),
            size: 6,
            tips: vec![id("ab"), id("12")],
        }],
        ..LockedGitRepository::without_refs("https://e.test/a.git")
    };
    let commit_alone = LockedGitRepository {
        name: "git+https://e.test/b.git".into(),
        head: None,
        refs: Vec::new(),
        verified: Vec::new(),
        depth: None,
        shallow: Vec::new(),
        submodules: Some(Vec::new()),
        lfs_server: None,
        large_files: Some(Vec::new()),
        ..repository.clone()
    };
    vec![repository, commit_alone]
}

/// One provider.
pub(super) fn providers() -> Vec<LockedProvider> {
    vec![LockedProvider {
        name: "provider:registry.test/acme/random:1.0.0".parse().unwrap(),
        digest: digest("provider"),
        platforms: vec![
            "linux_amd64".parse().unwrap(),
            "linux_arm64".parse().unwrap(),
        ],
        packages: vec![LockedProviderPackage {
            platform: "linux_amd64".parse().unwrap(),
            url: "https://registry.test/a.zip".into(),
            digest: digest("zip"),
            size: 8,
            h1: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".into(),
        }],
    }]
}
