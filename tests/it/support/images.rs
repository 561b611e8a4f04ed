//! Generated images in an OCI layout: deterministic and small.

use super::http;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub const OCI_EMPTY: &str = "application/vnd.oci.empty.v1+json";
pub const OCI_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub const OCI_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
pub const DOCKER_GZIP: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";

/// Bytes in hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of some bytes in hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// `sha256:<hex>` of some bytes.
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// A lock of single-platform images. The digest of each is the one in its name, or else the SHA-256
/// of the name.
pub fn lock_of(names: &[&str]) -> String {
    let images = names.iter().map(|name| {
        let digest = name.split_once('@').map(|(_, digest)| digest.to_owned());
        let digest = digest.unwrap_or_else(|| sha256(name.as_bytes()));
        format!(
            "- {{name: \"{name}\", digest: \"{digest}\", mediaType: {OCI_MANIFEST}, size: 7}}\n"
        )
    });
    format!("version: 1\nimages:\n{}", images.collect::<String>())
}

/// The digest in a descriptor.
pub fn digest(descriptor: &Value) -> &str {
    descriptor["digest"].as_str().unwrap()
}

/// Incompressible bytes. The same seed gives the same bytes.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// An OCI layout. Its methods add content and return descriptors: JSON objects with `mediaType`,
/// `digest`, `size` and, if applicable, `platform` and `annotations`.
pub struct Images {
    dir: PathBuf,
    tags: Vec<Value>,
}

impl Images {
    /// An empty layout in the new folder `dir`.
    pub fn new(dir: impl AsRef<Path>) -> Images {
        let dir = dir.as_ref().to_path_buf();
        std::fs::create_dir_all(dir.join("blobs/sha256")).unwrap();
        std::fs::write(dir.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        let images = Images {
            dir,
            tags: Vec::new(),
        };
        images.write_index();
        images
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The content with this digest.
    pub fn bytes(&self, digest: &str) -> Vec<u8> {
        std::fs::read(self.blob_path(digest)).unwrap_or_else(|error| panic!("{digest}: {error}"))
    }

    /// Writes a blob into the layout, and returns its descriptor.
    pub fn blob(&self, media_type: &str, bytes: &[u8]) -> Value {
        let digest = sha256(bytes);
        std::fs::write(self.blob_path(&digest), bytes).unwrap();
        json!({"mediaType": media_type, "digest": digest, "size": bytes.len()})
    }

    /// A layer with these files, `application/vnd.oci.image.layer.v1.tar+gzip`.
    pub fn layer(&self, files: &[(&str, &[u8])]) -> Value {
        self.blob(OCI_GZIP, &gzip(&tarball(files)))
    }

    /// A layer with Docker's media type.
    pub fn docker_layer(&self, files: &[(&str, &[u8])]) -> Value {
        self.blob(DOCKER_GZIP, &gzip(&tarball(files)))
    }

    /// A layer compressed with zstd.
    pub fn zstd_layer(&self, files: &[(&str, &[u8])]) -> Value {
        self.blob(OCI_ZSTD, &zstd::encode_all(&tarball(files)[..], 3).unwrap())
    }

    /// A one-platform image; its descriptor has the platform.
    pub fn image(&self, platform: &str, layers: &[Value]) -> Value {
        self.one(OCI_MANIFEST, OCI_CONFIG, platform, layers)
    }

    /// A one-platform image in Docker's format (v2, schema 2). Its layers must be
    /// [`Images::docker_layer`]s.
    pub fn docker_image(&self, platform: &str, layers: &[Value]) -> Value {
        self.one(DOCKER_MANIFEST, DOCKER_CONFIG, platform, layers)
    }

    fn one(
        &self,
        manifest_type: &str,
        config_type: &str,
        platform: &str,
        layers: &[Value],
    ) -> Value {
        let platform = platform_of(platform);
        let diff_ids: Vec<String> = layers.iter().map(|layer| self.diff_id(layer)).collect();
        let mut config = json!({
            "created": "2024-01-02T03:04:05Z",
            "config": {"Cmd": ["/bin/true"]},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
            "history": layers.iter().map(|_| json!({"created_by": "test"})).collect::<Vec<_>>(),
        });
        for (key, value) in platform.as_object().unwrap() {
            config[key] = value.clone();
        }
        let config = self.blob(config_type, &serde_json::to_vec(&config).unwrap());
        let manifest = json!({
            "schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": layers,
        });
        // indented and with a final newline: bytes that no serializer would reproduce by chance
        let mut bytes = serde_json::to_vec_pretty(&manifest).unwrap();
        bytes.push(b'\n');
        let mut descriptor = self.blob(manifest_type, &bytes);
        descriptor["platform"] = platform;
        descriptor
    }

    /// An index over images, artifacts or other indexes.
    pub fn index(&self, children: &[Value]) -> Value {
        self.many(OCI_INDEX, children)
    }

    /// A Docker manifest list.
    pub fn docker_list(&self, children: &[Value]) -> Value {
        self.many(DOCKER_LIST, children)
    }

    fn many(&self, media_type: &str, children: &[Value]) -> Value {
        let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": children});
        self.blob(media_type, &serde_json::to_vec_pretty(&index).unwrap())
    }

    /// A BuildKit attestation of `image`, for the index that contains the image.
    pub fn attestation(&self, image: &Value) -> Value {
        let about = image["digest"].as_str().unwrap();
        let statement =
            format!("{{\"_type\":\"https://in-toto.io/Statement/v0.1\",\"subject\":\"{about}\"}}");
        let layer = self.blob("application/vnd.in-toto+json", statement.as_bytes());
        let config = json!({
            "architecture": "unknown", "os": "unknown", "config": {},
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
        });
        let config = self.blob(OCI_CONFIG, &serde_json::to_vec(&config).unwrap());
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer],
        });
        let mut descriptor = self.blob(OCI_MANIFEST, &serde_json::to_vec(&manifest).unwrap());
        descriptor["platform"] = json!({"architecture": "unknown", "os": "unknown"});
        descriptor["annotations"] = json!({
            "vnd.docker.reference.digest": about, "vnd.docker.reference.type": "attestation-manifest",
        });
        descriptor
    }

    /// An artifact with the empty config of OCI 1.1, about `subject` if there is one.
    pub fn artifact(&self, artifact_type: &str, content: &[u8], subject: Option<&Value>) -> Value {
        let config = self.blob(OCI_EMPTY, b"{}");
        let layer = self.blob("application/octet-stream", content);
        let mut manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": artifact_type,
            "config": config, "layers": [layer],
        });
        if let Some(subject) = subject {
            manifest["subject"] = json!({
                "mediaType": subject["mediaType"], "digest": subject["digest"], "size": subject["size"],
            });
        }
        self.blob(OCI_MANIFEST, &serde_json::to_vec(&manifest).unwrap())
    }

    /// Names a manifest in the layout, for `skopeo … oci:DIR:NAME`.
    pub fn tag(&mut self, name: &str, descriptor: &Value) {
        let mut entry = json!({});
        for key in ["mediaType", "digest", "size"] {
            entry[key] = descriptor[key].clone();
        }
        entry["annotations"] = json!({"org.opencontainers.image.ref.name": name});
        self.tags.push(entry);
        self.write_index();
    }

    /// Uploads a manifest and everything below it to a plain-http registry, byte for byte.
    pub fn push(&self, address: &str, repository: &str, tag: &str, descriptor: &Value) {
        self.send(address, repository, tag, descriptor);
    }

    fn send(&self, address: &str, repository: &str, reference: &str, descriptor: &Value) {
        let digest = descriptor["digest"].as_str().unwrap();
        let bytes = self.bytes(digest);
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        for child in document["manifests"].as_array().into_iter().flatten() {
            self.send(
                address,
                repository,
                child["digest"].as_str().unwrap(),
                child,
            );
        }
        let blobs = document["layers"].as_array().into_iter().flatten();
        for blob in blobs.chain(document.get("config")) {
            let digest = blob["digest"].as_str().unwrap();
            http::put_blob(address, repository, digest, &self.bytes(digest));
        }
        let media_type = descriptor["mediaType"].as_str().unwrap();
        http::put_manifest(address, repository, reference, media_type, &bytes);
    }

    /// The digests of a manifest and of everything below it.
    pub fn closure(&self, descriptor: &Value) -> std::collections::BTreeSet<String> {
        let digest = descriptor["digest"].as_str().unwrap().to_owned();
        let document: Value = serde_json::from_slice(&self.bytes(&digest)).unwrap_or_default();
        let children = document["manifests"].as_array().into_iter().flatten();
        let mut all: std::collections::BTreeSet<_> =
            children.flat_map(|child| self.closure(child)).collect();
        let blobs = document["layers"]
            .as_array()
            .into_iter()
            .flatten()
            .chain(document.get("config"));
        all.extend(blobs.map(|blob| blob["digest"].as_str().unwrap().to_owned()));
        all.insert(digest);
        all
    }

    fn diff_id(&self, layer: &Value) -> String {
        let bytes = self.bytes(layer["digest"].as_str().unwrap());
        match layer["mediaType"].as_str().unwrap() {
            OCI_ZSTD => sha256(&zstd::decode_all(&bytes[..]).unwrap()),
            OCI_GZIP | DOCKER_GZIP => sha256(&filter("gzip", &["-dc"], &bytes)),
            _ => sha256(&bytes),
        }
    }

    fn blob_path(&self, digest: &str) -> PathBuf {
        self.dir.join("blobs").join(digest.replace(':', "/"))
    }

    fn write_index(&self) {
        let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": self.tags});
        std::fs::write(
            self.dir.join("index.json"),
            serde_json::to_vec(&index).unwrap(),
        )
        .unwrap();
    }
}

/// `os/architecture[/variant]` as an object.
fn platform_of(text: &str) -> Value {
    let mut parts = text.split('/');
    let mut platform = json!({"architecture": "", "os": parts.next().unwrap_or_default()});
    platform["architecture"] = parts.next().unwrap_or_default().into();
    if let Some(variant) = parts.next() {
        platform["variant"] = variant.into();
    }
    platform
}

/// A reproducible tar of regular files.
pub fn tarball(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        header.set_mtime(1_700_000_000);
        tar.append_data(&mut header, path, *content).unwrap();
    }
    tar.into_inner().unwrap()
}

/// Compresses `bytes` with the machine's gzip, without name or time.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    filter("gzip", &["-nc"], bytes)
}

/// The output of a program for `input` on stdin.
fn filter(program: &str, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{program}: {}", output.status);
    output.stdout
}
