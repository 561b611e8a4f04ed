//! A generated store and its lock, and runs of landfall with them.

use super::{GZIP, code, noise, shown};
use crate::support::library::{
    Algorithm, Descriptor, Digest, Lock, LockedFile, LockedImage, LockedManifest, LockedSidecar,
    LockedTrimmedIndex, media_type, trim_index,
};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

const TAR: &str = "application/vnd.oci.image.layer.v1.tar";

/// A generated store and its lock.
pub(super) struct Site {
    pub(super) dir: tempfile::TempDir,
    pub(super) blobs: Vec<(Digest, Vec<u8>)>,
    pub(super) lock: Lock,
}

impl Site {
    pub(super) fn put(&mut self, algorithm: Algorithm, bytes: Vec<u8>, kind: &str) -> Descriptor {
        let digest = Digest::compute(algorithm, &bytes);
        let descriptor = Descriptor::new(digest.clone(), bytes.len() as u64, kind);
        self.blobs.push((digest, bytes));
        descriptor
    }

    pub(super) fn manifest(
        &mut self,
        architecture: &str,
        layers: &[Descriptor],
    ) -> (Descriptor, Descriptor) {
        let config = json!({"os": "linux", "architecture": architecture,
            "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|l| &l.digest).collect::<Vec<_>>()}});
        let config = self.put(
            Algorithm::Sha256,
            config.to_string().into_bytes(),
            media_type::OCI_CONFIG,
        );
        let manifest = json!({"schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST,
            "config": config, "layers": layers});
        let bytes = serde_json::to_vec_pretty(&manifest).unwrap();
        (
            self.put(Algorithm::Sha256, bytes, media_type::OCI_MANIFEST),
            config,
        )
    }

    pub(super) fn image(&mut self, name: &str, arches: &[(&str, Vec<Descriptor>)], keep: usize) {
        let mut children = Vec::new();
        let mut manifests = Vec::new();
        let mut blobs = Vec::new();
        for (n, (arch, layers)) in arches.iter().enumerate() {
            let (manifest, config) = self.manifest(arch, layers);
            let mut child = json!(manifest);
            child["platform"] = json!({"os": "linux", "architecture": arch});
            children.push(child);
            if n < keep {
                manifests.push(LockedManifest {
                    digest: manifest.digest,
                    size: manifest.size,
                    media_type: manifest.media_type,
                    platform: Some(format!("linux/{arch}")),
                });
                blobs.push(config);
                blobs.extend(layers.iter().cloned());
            }
        }
        blobs.sort();
        blobs.dedup();
        let index =
            json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": children});
        let index = index.to_string().into_bytes();
        let kept = manifests
            .iter()
            .map(|manifest| manifest.digest.clone())
            .collect();
        let trimmed = trim_index(&index, &kept).unwrap();
        let trimmed = (keep < arches.len()).then(|| LockedTrimmedIndex {
            digest: Digest::sha256(&trimmed),
            size: trimmed.len() as u64,
        });
        let top = self.put(Algorithm::Sha256, index, media_type::OCI_INDEX);
        self.lock.images.push(LockedImage {
            manifests,
            blobs,
            trimmed,
            ..LockedImage::new(name.parse().unwrap(), top)
        });
    }

    pub(super) fn file(&mut self, url: &str, bytes: Vec<u8>) {
        let content = self.put(Algorithm::Sha256, bytes, media_type::OCTETS);
        let sum = format!("{}  {url}\n", content.digest.hex());
        let sidecar = self.put(Algorithm::Sha256, sum.into_bytes(), media_type::OCTETS);
        self.lock.files.push(LockedFile {
            checksum: Some(format!("{url}.sha256")),
            sidecars: vec![LockedSidecar {
                url: format!("{url}.sha256"),
                digest: sidecar.digest,
                size: sidecar.size,
            }],
            mode: Some("0755".into()),
            ..LockedFile::new(url, content.digest, content.size)
        });
    }

    /// Two images that share a layer, of which the second image is trimmed; two files; a sha512
    /// layer, an empty layer, a stored blob of several frames, and compressed blobs.
    pub(super) fn new() -> Site {
        let lock = Lock {
            version: 1,
            ..Lock::default()
        };
        let mut site = Site {
            dir: tempfile::tempdir().unwrap(),
            blobs: vec![],
            lock,
        };
        let shared = site.put(Algorithm::Sha256, noise(1, (2 << 20) + 4321), GZIP);
        let plain = site.put(Algorithm::Sha256, b"layer ".repeat(2000), TAR);
        let sha512 = site.put(Algorithm::Sha512, noise(2, 5000), GZIP);
        let empty = site.put(Algorithm::Sha256, vec![], TAR);
        let amd = vec![shared.clone(), plain.clone()];
        let arm = vec![shared.clone()];
        site.image(
            "quay.io/example/app:v1",
            &[("amd64", amd), ("arm64", arm)],
            2,
        );
        let other = site.put(Algorithm::Sha256, noise(3, 512), GZIP);
        let wide = [
            ("amd64", vec![shared, empty, sha512]),
            ("s390x", vec![other]),
        ];
        site.image("docker.io/library/tool:2.0", &wide, 1);
        let kubelet: Vec<u8> = (0..200_000u32)
            .flat_map(|n| (n / 7).to_string().into_bytes())
            .collect();
        site.file("https://dl.k8s.io/v1.33.4/bin/linux/amd64/kubelet", kubelet);
        site.file("https://example.com/cni-plugins.tgz", noise(4, 70_000));
        site.fill("store", 0);
        site.lock();
        site
    }

    /// Like [`Site::new`], with only a few KB of content.
    pub(super) fn small() -> Site {
        let lock = Lock {
            version: 1,
            name: Some("frozen".into()),
            ..Lock::default()
        };
        let mut site = Site {
            dir: tempfile::tempdir().unwrap(),
            blobs: vec![],
            lock,
        };
        let shared = site.put(Algorithm::Sha256, noise(1, 2100), GZIP);
        let plain = site.put(Algorithm::Sha256, b"layer ".repeat(900), TAR);
        let sha512 = site.put(Algorithm::Sha512, noise(2, 700), GZIP);
        let empty = site.put(Algorithm::Sha256, vec![], TAR);
        let amd = vec![shared.clone(), plain, empty];
        let arm = vec![shared, sha512];
        site.image(
            "quay.io/example/app:v1",
            &[("amd64", amd), ("arm64", arm.clone())],
            2,
        );
        site.image(
            "docker.io/library/tool:2.0",
            &[("amd64", arm), ("s390x", vec![])],
            1,
        );
        site.file(
            "https://dl.k8s.io/v1.33.4/bin/linux/amd64/kubelet",
            b"kubelet ".repeat(700),
        );
        site.file("https://example.com/cni-plugins.tgz", noise(4, 3000));
        site.fill("store", 0);
        site.lock();
        site
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the store; `order` decides the order in which the blobs are written.
    pub(super) fn fill(&self, store: &str, order: u64) {
        let mut blobs: Vec<_> = self.blobs.iter().collect();
        blobs.sort_by_key(|(digest, _)| Digest::sha256(format!("{order} {digest}").as_bytes()));
        for (digest, bytes) in blobs {
            let path = self.path(store).join(digest.layout_path());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let layout = self.path(store).join("oci-layout");
        fs::write(layout, r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    }

    pub(super) fn lock(&self) {
        fs::write(self.path("landfall.lock"), self.lock.to_text()).unwrap();
    }

    pub(super) fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, &[])
    }

    pub(super) fn run_with(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_landfall"))
            .args(args)
            .env_clear()
            .env("LANDFALL_STORE", self.path("store"))
            .envs(env.iter().copied())
            .current_dir(self.dir.path())
            .output()
            .unwrap()
    }

    pub(super) fn pack(&self) -> PathBuf {
        let output = self.run(&["pack", "-o", "B.tar.zst"]);
        assert_eq!(code(&output), 0, "{}", shown(&output));
        self.path("B.tar.zst")
    }

    pub(super) fn without(&self, digest: &Digest) {
        fs::remove_file(self.path("store").join(digest.layout_path())).unwrap();
    }
}
