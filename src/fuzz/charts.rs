//! Targets for archives: charts, and the image archives of other tools.

use landfall_content::archives::{ArchiveImages, ImageInArchive, SourceArchive, read_image_names};
use landfall_content::store::DiskStore;
use landfall_item::read_chart;
use landfall_model::report::SilentProgress;
use landfall_model::{Digest, Limits};
use std::io::Write;

/// A tar archive with these members.
pub(super) fn tar_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *content).unwrap();
    }
    tar.into_inner().unwrap()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// A chart that contains another chart. The outer archive is not compressed, so that mutations
/// change the content of its members rather than break a gzip stream.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let yaml: &[u8] = b"apiVersion: v2\nname: app\nversion: 1.2.3\ndependencies:\n- {name: db, version: ^1, repository: \"https://charts.test\"}\n- {name: sub, version: 1.0.0}\n";
    let sub = gzipped(&tar_of(&[(
        "sub/Chart.yaml",
        b"apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    )]));
    let template: &[u8] = b"{{- if .Values.on }}\nimage: \"{{ .Values.image.repository }}:{{ .Values.image.tag }}\"\n{{- end }}\n";
    vec![tar_of(&[
        ("app/Chart.yaml", yaml),
        (
            "app/Chart.lock",
            b"dependencies:\n- {name: db, repository: \"https://charts.test\", version: 1.4.0}\n",
        ),
        (
            "app/values.yaml",
            b"on: true\nimage: {repository: quay.io/a/b, tag: \"1\"}\n",
        ),
        ("app/templates/pod.yaml", template),
        ("app/charts/sub-1.0.0.tgz", &sub),
    ])]
}

/// Compresses the tar and reads it as a chart.
pub(super) fn chart(bytes: &[u8]) {
    let limits = Limits {
        archive_bytes: 1 << 20,
        ..Limits::default()
    };
    let _ = read_chart(&gzipped(bytes), &limits);
}

/// A tar archive that is both an OCI layout and a `docker save` archive, and one that is only the
/// latter.
pub(super) fn archive_seeds() -> Vec<Vec<u8>> {
    let config: &[u8] =
        br#"{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}"#;
    let digest = Digest::sha256(config);
    let manifest = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"{digest}","size":{}}},"layers":[]}}"#,
        config.len()
    );
    let manifest_digest = Digest::sha256(manifest.as_bytes());
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"{manifest_digest}","size":{},"annotations":{{"org.opencontainers.image.ref.name":"quay.io/a/b:1"}}}}]}}"#,
        manifest.len()
    );
    let blob = |digest: &Digest| format!("blobs/sha256/{}", digest.hex());
    let layer = tar_of(&[("bin/app", b"app")]);
    let layered = format!(
        r#"{{"architecture":"amd64","os":"linux","rootfs":{{"type":"layers","diff_ids":["{}"]}}}}"#,
        Digest::sha256(&layer)
    );
    let list: &[u8] = br#"[{"Config":"c.json","RepoTags":["a/b:1"],"Layers":["l/layer.tar"]}]"#;
    let docker = tar_of(&[
        ("manifest.json", list),
        ("c.json", layered.as_bytes()),
        ("l/layer.tar", &layer),
    ]);
    let both = tar_of(&[
        ("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#),
        ("index.json", index.as_bytes()),
        (&blob(&digest), config),
        (&blob(&manifest_digest), manifest.as_bytes()),
        ("manifest.json", list),
    ]);
    vec![both, docker]
}

/// Reads the bytes as an image archive, and keeps its manifests and configs, and one image.
pub(super) fn image_archive(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive");
    std::fs::write(&path, bytes).unwrap();
    let Ok(archive) = SourceArchive::open(&path) else {
        return;
    };
    read_image_names(
        &archive,
        &mut ArchiveImages::default(),
        folder.path(),
        &Limits::default(),
    )
    .unwrap();
    let name = "quay.io/a/b:1".parse().unwrap();
    if let Ok(image) = ImageInArchive::open(&path, &name, &Limits::default()) {
        let store = DiskStore::scratch(folder.path()).unwrap();
        let _ = image.import(std::slice::from_ref(&image.top), &store, &SilentProgress);
    }
}
