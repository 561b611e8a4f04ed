//! Fills a registry with images made on the spot, and reads images back: the stand-in for the
//! internet of `scripts/quickstart` and `scripts/bench`.
//!
//! ```text
//! seed put ADDRESS MANIFEST     every image that the manifest names, made of files of this machine;
//!                               quay.io/a/b:1 becomes ADDRESS/quay.io/a/b:1
//! seed bench ADDRESS            40 images with shared bases and 940 MB of blobs that do not compress
//! seed read REFERENCE           pulls everything under a reference and checks every digest
//! ```
//!
//! It speaks plain http by the oci-client crate, and so is a second opinion on landfall's own client
//! and server.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use anyhow::{Context, Result, bail, ensure};
use oci_client::client::{Client, ClientConfig, ClientProtocol};
use oci_client::manifest::IMAGE_CONFIG_MEDIA_TYPE as OCI_CONFIG;
use oci_client::secrets::RegistryAuth::Anonymous;
use oci_client::{Reference, RegistryOperation};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = ClientConfig {
        protocol: ClientProtocol::Http,
        use_monolithic_push: true,
        no_proxy: Some("*".into()),
        ..ClientConfig::default()
    };
    let mut seed = Seed { client: Client::try_from(config)?, sent: BTreeSet::new(), bytes: 0 };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["put", address, manifest] => seed.put(address, Path::new(manifest)).await,
        ["bench", address] => seed.bench(address).await,
        ["read", reference] => seed.read(reference).await,
        _ => bail!("usage: seed put ADDRESS MANIFEST | seed bench ADDRESS | seed read REFERENCE"),
    }
}

/// A layer as it is stored, and the digest of the tar in it.
#[derive(Clone)]
struct Layer {
    bytes: Vec<u8>,
    diff_id: String,
    media_type: &'static str,
}

/// The media types of one family.
#[derive(Clone, Copy)]
struct Family {
    index: &'static str,
    manifest: &'static str,
    config: &'static str,
}

const OCI: Family = Family { index: OCI_INDEX, manifest: OCI_MANIFEST, config: OCI_CONFIG };
const DOCKER: Family = Family { index: DOCKER_LIST, manifest: DOCKER_MANIFEST, config: DOCKER_CONFIG };

struct Seed {
    client: Client,
    /// What has been sent, as `repository@digest`.
    sent: BTreeSet<String>,
    bytes: u64,
}

impl Seed {
    async fn put(&mut self, address: &str, manifest: &Path) -> Result<()> {
        let text = std::fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
        let document: Value = serde_yaml::from_str(&text)?;
        let images = document["images"].as_array().cloned().unwrap_or_default();
        let mut programs = Programs::of_this_machine()?;
        let base = programs.take(12 << 20)?;
        for (count, image) in images.iter().enumerate() {
            let name = image.as_str().or_else(|| image["ref"].as_str()).context("an image has no name")?;
            let name: Reference = name.parse()?;
            let place = format!("{address}/{}/{}", name.registry(), name.repository());
            let tag = name.tag().unwrap_or("latest");
            // every third in Docker's format, whose layers are plain tars here
            let family = if count % 3 == 2 { DOCKER } else { OCI };
            let mut children = Vec::new();
            let own = programs.take(4 << 20)?;
            for architecture in ["amd64", "arm64"] {
                let note = (PathBuf::from("etc/platform"), format!("linux/{architecture}\n").into_bytes());
                let layers = [layer(&base, family)?, layer(&own, family)?, layer(&[note], family)?];
                children.push(self.image(&place, architecture, &layers, family).await?);
            }
            let index = json!({"schemaVersion": 2, "mediaType": family.index, "manifests": children});
            self.manifest(&place, tag, family.index, &index).await?;
        }
        println!(
            "{} images, {} MB of blobs, from files of this machine",
            images.len(),
            self.bytes / 1_000_000
        );
        Ok(())
    }

    /// Five bases of 40 MB; on each of them eight images with layers of 12, 5 and 1.5 MB of their own.
    async fn bench(&mut self, address: &str) -> Result<()> {
        let noise = |seed: u64, len: usize| {
            layer(&[(PathBuf::from(format!("data/{seed}")), noise_of(seed, len))], OCI)
        };
        for base in 0..5 {
            let foundation = noise(1000 + base, 40_000_000)?;
            for image in 0..8 {
                let own = |part: u64| 10_000 + base * 1000 + image * 10 + part;
                let place = format!("{address}/bench/base-{base}/app-{image}");
                let middle = [foundation.clone(), noise(own(1), 12_000_000)?, noise(own(2), 5_000_000)?];
                let mut children = Vec::new();
                for (part, architecture) in [(3, "amd64"), (4, "arm64")] {
                    let top = noise(own(part), 750_000)?;
                    children
                        .push(self.image(&place, architecture, &[&middle[..], &[top]].concat(), OCI).await?);
                }
                let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": children});
                self.manifest(&place, "v1", OCI_INDEX, &index).await?;
            }
        }
        println!("40 images, {} MB of unique blobs", self.bytes / 1_000_000);
        Ok(())
    }

    /// Sends a one-platform image and gives its descriptor.
    async fn image(&mut self, place: &str, arch: &str, layers: &[Layer], family: Family) -> Result<Value> {
        let config = json!({
            "created": "2024-01-02T03:04:05Z", "os": "linux", "architecture": arch,
            "config": {"Cmd": ["/bin/sh"]},
            "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|l| &l.diff_id).collect::<Vec<_>>()},
        });
        let config = serde_json::to_vec(&config)?;
        let config = self.blob(place, family.config, &config).await?;
        let mut descriptors = Vec::new();
        for layer in layers {
            descriptors.push(self.blob(place, layer.media_type, &layer.bytes).await?);
        }
        let manifest = json!({
            "schemaVersion": 2, "mediaType": family.manifest, "config": config, "layers": descriptors,
        });
        let mut descriptor = self.manifest(place, "", family.manifest, &manifest).await?;
        descriptor["platform"] = json!({"architecture": arch, "os": "linux"});
        Ok(descriptor)
    }

    async fn blob(&mut self, place: &str, media_type: &str, bytes: &[u8]) -> Result<Value> {
        let digest = sha256(bytes);
        if self.sent.insert(format!("{place}@{digest}")) {
            let reference: Reference = place.parse()?;
            self.client
                .push_blob(&reference, bytes.to_vec(), &digest)
                .await
                .with_context(|| place.to_owned())?;
            if self.sent.insert(digest.clone()) {
                self.bytes += bytes.len() as u64;
            }
        }
        Ok(json!({"mediaType": media_type, "digest": digest, "size": bytes.len()}))
    }

    /// Sends a manifest by `tag`, or by its digest where `tag` is empty.
    async fn manifest(
        &mut self,
        place: &str,
        tag: &str,
        media_type: &str,
        manifest: &Value,
    ) -> Result<Value> {
        let bytes = serde_json::to_vec(manifest)?;
        let digest = sha256(&bytes);
        let reference = if tag.is_empty() { format!("{place}@{digest}") } else { format!("{place}:{tag}") };
        let size = bytes.len();
        self.client
            .push_manifest_raw(&reference.parse()?, bytes, media_type.parse()?)
            .await
            .with_context(|| reference.clone())?;
        Ok(json!({"mediaType": media_type, "digest": digest, "size": size}))
    }

    async fn read(&mut self, reference: &str) -> Result<()> {
        let top: Reference = reference.parse()?;
        self.client.auth(&top, &Anonymous, RegistryOperation::Pull).await?;
        let (mut manifests, mut blobs) = (0, 0);
        let mut pending = vec![top.clone()];
        while let Some(next) = pending.pop() {
            let accepted = [OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST];
            let (bytes, digest) = self.client.pull_manifest_raw(&next, &Anonymous, &accepted).await?;
            ensure!(sha256(&bytes) == digest, "{next}: the registry says {digest}, the bytes say otherwise");
            ensure!(next.digest().is_none_or(|asked| asked == digest), "{next}: answered with {digest}");
            manifests += 1;
            let document: Value = serde_json::from_slice(&bytes)?;
            for child in document["manifests"].as_array().into_iter().flatten() {
                let digest = child["digest"].as_str().context("a child without a digest")?;
                pending.push(top.clone_with_digest(digest.to_owned()));
            }
            for blob in document["layers"].as_array().into_iter().flatten().chain(document.get("config")) {
                let digest = blob["digest"].as_str().context("a blob without a digest")?;
                let mut content = Vec::new();
                self.client.pull_blob(&top, digest, &mut content).await?;
                ensure!(sha256(&content) == digest, "{digest}: other bytes came");
                blobs += 1;
                self.bytes += content.len() as u64;
            }
        }
        println!(
            "{reference}: {manifests} manifests and {blobs} blobs, {} bytes, every digest right",
            self.bytes
        );
        Ok(())
    }
}

/// The programs of this machine, taken from in the order of their names.
struct Programs(Vec<PathBuf>);

impl Programs {
    fn of_this_machine() -> Result<Programs> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for folder in ["/usr/bin", "/bin", "/usr/sbin"] {
            let Ok(entries) = std::fs::read_dir(folder) else { continue };
            paths.extend(entries.flatten().map(|entry| entry.path()));
        }
        let usable = |path: &PathBuf| {
            std::fs::symlink_metadata(path)
                .is_ok_and(|data| data.is_file() && (10_000..2_000_000).contains(&data.len()))
        };
        paths.retain(usable);
        paths.sort();
        paths.reverse();
        ensure!(!paths.is_empty(), "there are no programs in /usr/bin");
        Ok(Programs(paths))
    }

    /// The next files of `size` bytes together, or a few more; fewer where the machine has no more.
    fn take(&mut self, size: usize) -> Result<Vec<(PathBuf, Vec<u8>)>> {
        let (mut files, mut total) = (Vec::new(), 0);
        while total < size
            && let Some(path) = self.0.pop()
        {
            let Ok(content) = std::fs::read(&path) else { continue };
            total += content.len();
            files.push((path.strip_prefix("/")?.to_path_buf(), content));
        }
        Ok(files)
    }
}

/// A layer of these files: zstd for OCI, a plain tar for Docker.
fn layer(files: &[(PathBuf, Vec<u8>)], family: Family) -> Result<Layer> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        header.set_mtime(1_700_000_000);
        tar.append_data(&mut header, path, &content[..])?;
    }
    let tar = tar.into_inner()?;
    let diff_id = sha256(&tar);
    let (bytes, media_type) = match family.index {
        OCI_INDEX => (zstd::encode_all(&tar[..], 1)?, OCI_LAYER),
        _ => (tar, DOCKER_LAYER),
    };
    Ok(Layer { bytes, diff_id, media_type })
}

/// Bytes that do not compress, the same for the same seed (xorshift64*).
fn noise_of(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(next).take(len.div_ceil(8)).flatten().collect();
    bytes.truncate(len);
    bytes
}

fn sha256(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
