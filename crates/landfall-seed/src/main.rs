//! Fills a registry with generated images, and reads images back. `scripts/quickstart` and
//! `scripts/bench` use such a registry instead of the internet.
//!
//! ```text
//! seed put ADDRESS MANIFEST     uploads an image made of local files for each image of the
//!                               manifest: ADDRESS/quay.io/a/b:1 for quay.io/a/b:1
//! seed bench ADDRESS            uploads 40 images with shared bases: 940 MB, incompressible
//! seed line ADDRESS             uploads 20 images with shared bases: 198 MB, for a slow network
//! seed small ADDRESS COUNT      uploads COUNT one-platform images: a layer of 20 kB on one of ten
//!                               shared bases of 100 kB
//! seed big ADDRESS MB           uploads one image with a layer of MB megabytes
//! seed large ADDRESS GB         uploads 20 images with one layer each, GB gigabytes in all
//! seed wan LISTEN TARGET MS MBIT
//!                               proxies TARGET at LISTEN: MS milliseconds of delay each way, and
//!                               MBIT Mbit/s for each connection
//! seed read REFERENCE           pulls everything under a reference and verifies every digest
//! seed upload ADDRESS DIR       uploads the files of DIR, named by their SHA-256, as blobs: 8
//!                               connections, POST and PUT only; the minimum time of a push
//! seed sparse FILE GB           writes a bundle of GB gigabytes whose blobs are a hole in the file
//! seed scale [NAME=NUMBER]...   models the cost of pulling a large fleet with 1 to 256 shards
//! ```
//!
//! The program speaks plain HTTP with the oci-client crate, so that landfall's own client and
//! server are tested against an independent implementation.

#![allow(clippy::print_stdout)]
#![allow(
    clippy::disallowed_methods,
    reason = "the manifest is written by the same user, so the YAML needs no limits"
)]

mod content;
mod scale;
mod sparse;
mod wan;

use anyhow::{Context, Result, bail, ensure};
use content::{
    DOCKER, DOCKER_LIST, DOCKER_MANIFEST, MediaTypes, OCI, OCI_INDEX, OCI_LAYER, OCI_MANIFEST,
    ProgramFiles, SeedLayer, layer, noise, sha256,
};
use oci_client::client::{Client, ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth::Anonymous;
use oci_client::{Reference, RegistryOperation};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<()> {
    // the HTTP client is created with TLS, for which rustls needs a default provider
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = ClientConfig {
        protocol: ClientProtocol::Http,
        // chunked uploads are several times slower, because registries sync every chunk to disk
        use_monolithic_push: true,
        // the registries are on this machine, so a proxy in the environment must not be used
        no_proxy: Some("*".into()),
        ..ClientConfig::default()
    };
    let mut seed = Seed {
        client: Client::try_from(config)?,
        sent: BTreeSet::new(),
        bytes: 0,
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["put", address, manifest] => seed.put(address, Path::new(manifest)).await,
        ["bench", address] => seed.bench(address).await,
        ["line", address] => seed.line(address).await,
        ["small", address, count] => seed.small(address, count.parse()?).await,
        ["big", address, megabytes] => seed.big(address, megabytes.parse()?).await,
        ["large", address, gigabytes] => seed.large(address, gigabytes.parse()?).await,
        ["wan", listen, target, ms, mbit] => {
            let delay = Duration::from_millis(ms.parse()?);
            let bytes_per_second = mbit.parse::<f64>()? * 1e6 / 8.0;
            wan::proxy(listen, target, delay, bytes_per_second).await
        }
        ["read", reference] => seed.read(reference).await,
        ["upload", address, dir] => content::upload(address, Path::new(dir)).await,
        ["sparse", file, gigabytes] => {
            sparse::write_sparse(Path::new(file), gigabytes.parse::<u64>()? * 1_000_000_000)
        }
        ["scale", ref given @ ..] => scale::scale(given),
        _ => bail!(
            "usage: seed put ADDRESS MANIFEST | bench ADDRESS | line ADDRESS | \
             small ADDRESS COUNT | big ADDRESS MB | large ADDRESS GB | \
             wan LISTEN TARGET MS MBIT | read REFERENCE | upload ADDRESS DIR | sparse FILE GB | \
             scale [NAME=NUMBER]..."
        ),
    }
}

struct Seed {
    client: Client,
    /// The uploaded blobs, as `repository@digest` for each repository, and as `digest`.
    sent: BTreeSet<String>,
    /// The total size in bytes: of the distinct uploaded blobs, or of all downloaded blobs.
    bytes: u64,
}

impl Seed {
    /// Uploads a two-platform image for each image of a landfall manifest.
    async fn put(&mut self, address: &str, manifest: &Path) -> Result<()> {
        let text =
            std::fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
        let document: Value = serde_yaml::from_str(&text)?;
        let images = document["images"].as_array().cloned().unwrap_or_default();
        // one base for all images, as in many registries, so that deduplication matters
        let mut programs = ProgramFiles::list()?;
        let base = programs.take(12 << 20)?;
        for (count, image) in images.iter().enumerate() {
            let name = image
                .as_str()
                .or_else(|| image["ref"].as_str())
                .context("an image has no name")?;
            let name: Reference = name.parse()?;
            let repository = format!("{address}/{}/{}", name.registry(), name.repository());
            let tag = name.tag().unwrap_or("latest");
            // every third image has Docker's format, with uncompressed layers
            let types = if count % 3 == 2 { DOCKER } else { OCI };
            let mut children = Vec::new();
            let own = programs.take(4 << 20)?;
            // the platforms share all layers except the last, so the registry stays small
            for architecture in ["amd64", "arm64"] {
                let note = (
                    PathBuf::from("etc/platform"),
                    format!("linux/{architecture}\n").into_bytes(),
                );
                let layers = [
                    layer(&base, types)?,
                    layer(&own, types)?,
                    layer(&[note], types)?,
                ];
                children.push(
                    self.image(&repository, architecture, &layers, types)
                        .await?,
                );
            }
            let index =
                json!({"schemaVersion": 2, "mediaType": types.index, "manifests": children});
            self.manifest(&repository, tag, types.index, &index).await?;
        }
        println!(
            "{} images, {} MB of blobs, from files of this machine",
            images.len(),
            self.bytes / 1_000_000
        );
        Ok(())
    }

    /// Uploads five bases of 40 MB, and on each of them eight images with layers of their own:
    /// 12 MB, 5 MB, and 0.75 MB for each of two platforms.
    async fn bench(&mut self, address: &str) -> Result<()> {
        self.bases(
            address,
            "bench",
            5,
            8,
            [40_000_000, 12_000_000, 5_000_000, 750_000],
        )
        .await
    }

    /// Uploads images for a slow network: four bases of 20 MB, and on each of them five images with
    /// layers of their own: 4.5 MB, 1 MB, and 0.2 MB for each of two platforms.
    async fn line(&mut self, address: &str) -> Result<()> {
        self.bases(
            address,
            "line",
            4,
            5,
            [20_000_000, 4_500_000, 1_000_000, 200_000],
        )
        .await
    }

    /// Uploads two-platform images on shared bases. The sizes, in bytes, are those of a base, of
    /// the two common layers of each image, and of the layer of each platform.
    async fn bases(
        &mut self,
        address: &str,
        name: &str,
        bases: u64,
        images: u64,
        [base_size, first, second, of_platform]: [usize; 4],
    ) -> Result<()> {
        for base in 0..bases {
            let foundation = random(1000 + base, base_size)?;
            for image in 0..images {
                // a distinct seed for each layer, so that no layer is shared by accident
                let own = |part: u64| 10_000 + base * 1000 + image * 10 + part;
                let repository = format!("{address}/{name}/base-{base}/app-{image}");
                let middle = [
                    foundation.clone(),
                    random(own(1), first)?,
                    random(own(2), second)?,
                ];
                let mut children = Vec::new();
                for (part, architecture) in [(3, "amd64"), (4, "arm64")] {
                    let top = random(own(part), of_platform)?;
                    children.push(
                        self.image(
                            &repository,
                            architecture,
                            &[&middle[..], &[top]].concat(),
                            OCI,
                        )
                        .await?,
                    );
                }
                let index =
                    json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": children});
                self.manifest(&repository, "v1", OCI_INDEX, &index).await?;
            }
        }
        println!(
            "{} images, {} MB of unique blobs",
            bases * images,
            self.bytes / 1_000_000
        );
        Ok(())
    }

    /// Uploads `count` images, each with a layer of 20 kB on one of ten bases of 100 kB.
    async fn small(&mut self, address: &str, count: u64) -> Result<()> {
        for image in 0..count {
            let repository = format!("{address}/small/base-{}/app-{image}", image % 10);
            let layers = [
                random(2000 + image % 10, 100_000)?,
                random(100_000 + image, 20_000)?,
            ];
            self.tagged(&repository, &layers).await?;
        }
        println!(
            "{count} images, {} MB of unique blobs",
            self.bytes / 1_000_000
        );
        Ok(())
    }

    /// Uploads one image with one layer of `megabytes`.
    async fn big(&mut self, address: &str, megabytes: usize) -> Result<()> {
        self.tagged(
            &format!("{address}/big/app"),
            &[random(1, megabytes * 1_000_000)?],
        )
        .await?;
        println!("1 image, {} MB", self.bytes / 1_000_000);
        Ok(())
    }

    /// Uploads 20 images with one layer each. The layers repeat 1 MB of noise and are not tars,
    /// because generating gigabytes of noise would take longer than the measurement.
    async fn large(&mut self, address: &str, gigabytes: usize) -> Result<()> {
        for image in 0..20 {
            let bytes = noise(1_000_000 + image, 1_000_000).repeat(50 * gigabytes);
            let layer = SeedLayer {
                bytes,
                diff_id: sha256(&image.to_le_bytes()),
                media_type: OCI_LAYER,
            };
            self.tagged(&format!("{address}/large/app-{image}"), &[layer])
                .await?;
        }
        println!("20 images, {} MB", self.bytes / 1_000_000);
        Ok(())
    }

    /// Uploads an image without an index as `repository:v1`.
    async fn tagged(&mut self, repository: &str, layers: &[SeedLayer]) -> Result<()> {
        let image = self.manifest_of(repository, "amd64", layers, OCI).await?;
        self.manifest(repository, "v1", OCI_MANIFEST, &image)
            .await?;
        Ok(())
    }

    /// Uploads a one-platform image and returns its descriptor.
    async fn image(
        &mut self,
        repository: &str,
        arch: &str,
        layers: &[SeedLayer],
        types: MediaTypes,
    ) -> Result<Value> {
        let manifest = self.manifest_of(repository, arch, layers, types).await?;
        let mut descriptor = self
            .manifest(repository, "", types.manifest, &manifest)
            .await?;
        descriptor["platform"] = json!({"architecture": arch, "os": "linux"});
        Ok(descriptor)
    }

    /// Uploads the blobs of a one-platform image and returns its manifest.
    async fn manifest_of(
        &mut self,
        repository: &str,
        arch: &str,
        layers: &[SeedLayer],
        types: MediaTypes,
    ) -> Result<Value> {
        let diff_ids: Vec<&String> = layers.iter().map(|layer| &layer.diff_id).collect();
        let config = json!({
            // a fixed time, so that repeated runs give the same digests
            "created": "2024-01-02T03:04:05Z", "os": "linux", "architecture": arch,
            "config": {"Cmd": ["/bin/sh"]},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        let config = serde_json::to_vec(&config)?;
        let config = self.blob(repository, types.config, &config).await?;
        let mut descriptors = Vec::new();
        for layer in layers {
            descriptors.push(
                self.blob(repository, layer.media_type, &layer.bytes)
                    .await?,
            );
        }
        Ok(json!({
            "schemaVersion": 2, "mediaType": types.manifest, "config": config,
            "layers": descriptors,
        }))
    }

    /// Uploads a blob, unless the repository has it already, and returns its descriptor.
    async fn blob(&mut self, repository: &str, media_type: &str, bytes: &[u8]) -> Result<Value> {
        let digest = sha256(bytes);
        if self.sent.insert(format!("{repository}@{digest}")) {
            let reference: Reference = repository.parse()?;
            self.client
                .push_blob(&reference, bytes.to_vec(), &digest)
                .await
                .with_context(|| repository.to_owned())?;
            // counted once, although each repository gets its own upload
            if self.sent.insert(digest.clone()) {
                self.bytes += bytes.len() as u64;
            }
        }
        Ok(json!({"mediaType": media_type, "digest": digest, "size": bytes.len()}))
    }

    /// Uploads a manifest by `tag`, or by its digest if `tag` is empty, and returns its descriptor.
    async fn manifest(
        &mut self,
        repository: &str,
        tag: &str,
        media_type: &str,
        manifest: &Value,
    ) -> Result<Value> {
        let bytes = serde_json::to_vec(manifest)?;
        let digest = sha256(&bytes);
        let reference = if tag.is_empty() {
            format!("{repository}@{digest}")
        } else {
            format!("{repository}:{tag}")
        };
        let size = bytes.len();
        self.client
            .push_manifest_raw(&reference.parse()?, bytes, media_type.parse()?)
            .await
            .with_context(|| reference.clone())?;
        Ok(json!({"mediaType": media_type, "digest": digest, "size": size}))
    }

    /// Downloads everything below a reference and compares each digest.
    async fn read(&mut self, reference: &str) -> Result<()> {
        let top: Reference = reference.parse()?;
        self.client
            .auth(&top, &Anonymous, RegistryOperation::Pull)
            .await?;
        let mut manifests = 0;
        let mut blobs = 0;
        let mut pending = vec![top.clone()];
        while let Some(next) = pending.pop() {
            // registries answer 404 for a manifest whose type is not accepted
            let accepted = [OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST];
            let (bytes, digest) = self
                .client
                .pull_manifest_raw(&next, &Anonymous, &accepted)
                .await?;
            ensure!(
                sha256(&bytes) == digest,
                "{next}: the content does not match the digest {digest} that the registry sent"
            );
            // a registry may answer with different content that matches the digest in the response
            ensure!(
                next.digest().is_none_or(|requested| requested == digest),
                "{next}: answered with {digest}"
            );
            manifests += 1;
            let document: Value = serde_json::from_slice(&bytes)?;
            for child in document["manifests"].as_array().into_iter().flatten() {
                let digest = child["digest"]
                    .as_str()
                    .context("a child without a digest")?;
                // by digest: children have no tags
                pending.push(top.clone_with_digest(digest.to_owned()));
            }
            for blob in document["layers"]
                .as_array()
                .into_iter()
                .flatten()
                .chain(document.get("config"))
            {
                let digest = blob["digest"].as_str().context("a blob without a digest")?;
                let mut content = Vec::new();
                self.client.pull_blob(&top, digest, &mut content).await?;
                ensure!(
                    sha256(&content) == digest,
                    "{digest}: the content does not match"
                );
                blobs += 1;
                self.bytes += content.len() as u64;
            }
        }
        println!(
            "{reference}: {manifests} manifests and {blobs} blobs, {} bytes, every digest verified",
            self.bytes
        );
        Ok(())
    }
}

/// Returns a layer that does not compress.
fn random(seed: u64, len: usize) -> Result<SeedLayer> {
    layer(
        &[(PathBuf::from(format!("data/{seed}")), noise(seed, len))],
        OCI,
    )
}
