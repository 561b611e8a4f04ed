//! Metadata of a yum repository that several sets share.

use super::locked::{LockedPackageSet, PackageIndex, PackageSource};
use super::resolvable::OfferedIndex;
use super::trimmed::trimmed_metadata;
use landfall_content::MemoryBlobs;
use landfall_model::sign::OpenPgpSigner;
use landfall_model::{Digest, Limits};

const KEY: &[u8] = include_bytes!("../../../../tests/data/packages/site-key.asc");

/// Stores `content` in `blobs`, as the metadata file at `path`.
fn index(blobs: &mut MemoryBlobs, path: &str, content: &str) -> PackageIndex {
    let digest = Digest::sha256(content.as_bytes());
    let bytes = content.as_bytes().to_vec().into();
    blobs.0.insert(digest.clone(), bytes);
    PackageIndex {
        digest,
        size: content.len() as u64,
        path: path.into(),
        url: format!("https://h.test/r/{path}"),
    }
}

/// A set without packages, whose `repomd.xml` has the date `seconds`. If `modules` is given, the
/// set has module metadata with this content.
fn set(blobs: &mut MemoryBlobs, seconds: u32, modules: Option<&str>) -> LockedPackageSet {
    let modules = modules.map(|text| index(blobs, &format!("repodata/{text}.yaml"), text));
    let listed = modules.iter().map(|modules| {
        let PackageIndex { digest, path, .. } = modules;
        let digest = digest.hex();
        format!(
            "<data type=\"modules\"><checksum type=\"sha256\">{digest}</checksum>\
             <location href=\"{path}\"/></data>"
        )
    });
    let listed: String = listed.collect();
    let repomd = format!("<repomd><revision>{seconds}</revision>{listed}</repomd>");
    let repomd = index(blobs, "repodata/repomd.xml", &repomd);
    let source = PackageSource {
        url: "https://h.test/r".into(),
        signed_by: "ABCD".into(),
        indexes: [repomd].into_iter().chain(modules).collect(),
        ..PackageSource::default()
    };
    LockedPackageSet {
        name: format!("yum:{seconds}"),
        digest: Digest::sha256(b""),
        architectures: vec!["x86_64".into()],
        install: vec!["tool".into()],
        modules: Vec::new(),
        recommends: false,
        index: OfferedIndex::Trimmed,
        base: Vec::new(),
        expected: Vec::new(),
        sources: vec![source],
    }
}

#[test]
fn the_newest_modules_of_several_sets_are_used() {
    let signer = OpenPgpSigner::parse(KEY, None).unwrap();
    for (dates, newest) in [
        ([(10, true), (20, false), (15, true)], "of15"),
        ([(15, true), (20, false), (10, true)], "of15"),
        ([(20, false), (10, true), (15, true)], "of15"),
        ([(15, true), (10, true), (20, true)], "of20"),
    ] {
        let mut blobs = MemoryBlobs::default();
        let sets = dates.map(|(date, has_modules)| {
            let modules = format!("of{date}");
            set(&mut blobs, date, has_modules.then_some(&*modules))
        });
        let blobs: &dyn landfall_content::BlobRead = &blobs;
        let given = sets.iter().map(|set| (set, blobs));
        let files = trimmed_metadata(given, &signer, &Limits::DEFAULT).unwrap();
        let modules: Vec<&[u8]> = files
            .iter()
            .filter(|file| file.url.ends_with(".yaml"))
            .map(|file| &*file.bytes)
            .collect();
        assert_eq!(modules, [newest.as_bytes()], "{dates:?}");
    }
}
