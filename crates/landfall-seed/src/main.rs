//! Fills a registry with images made on the spot, and reads images back: the stand-in for the
//! internet of `scripts/quickstart` and `scripts/bench`.
//!
//! ```text
//! seed put ADDRESS MANIFEST     every image that the manifest names, made of files of this machine;
//!                               quay.io/a/b:1 becomes ADDRESS/quay.io/a/b:1
//! seed bench ADDRESS            40 images with shared bases and 940 MB of blobs that do not compress
//! seed line ADDRESS             20 images with shared bases and 198 MB of blobs, for a long line
//! seed small ADDRESS COUNT      COUNT one-platform images of some 100 kB on ten shared bases
//! seed big ADDRESS MB           one image with a layer of so many MB
//! seed large ADDRESS GB         20 images with one layer each, so many GB in all
//! seed wan LISTEN TARGET MS MBIT   a proxy at LISTEN for TARGET: MS milliseconds late each way, MBIT/s a
//!                               connection
//! seed read REFERENCE           pulls everything under a reference and checks every digest
//! seed upload ADDRESS DIR       the files of DIR, named by their SHA-256, as blobs: 8 connections,
//!                               POST and PUT, nothing else; what a push costs at the least
//! seed sparse FILE GB           a bundle of so many GB whose blobs are a hole
//! seed scale [NAME=NUMBER]...   what a large fleet costs by 1 to 256 shards: a model, from measured costs
//! ```
//!
//! It speaks plain http by the oci-client crate, and so is a second opinion on landfall's own
//! client and server.
#![allow(clippy::print_stdout)]
#![allow(
    clippy::disallowed_methods,
    reason = "it reads a manifest of its own user"
)]

mod content;
mod scale;
mod sparse;
mod upload;
mod wan;

use anyhow::{Context, Result, bail, ensure};
use content::{
    DOCKER, DOCKER_LIST, DOCKER_MANIFEST, Family, Layer, OCI, OCI_INDEX, OCI_LAYER, OCI_MANIFEST,
    Programs, layer, noise, sha256,
};
use oci_client::client::{Client, ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth::Anonymous;
use oci_client::{Reference, RegistryOperation};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[tokio::main]
async fn main() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = ClientConfig {
        protocol: ClientProtocol::Http,
        use_monolithic_push: true,
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
            let (ms, mbit): (u64, f64) = (ms.parse()?, mbit.parse()?);
            wan::wan(
                listen,
                target,
                std::time::Duration::from_millis(ms),
                mbit * 1e6 / 8.0,
            )
            .await
        }
        ["read", reference] => seed.read(reference).await,
        ["upload", address, dir] => upload::upload(address, Path::new(dir)).await,
        ["sparse", file, gigabytes] => {
            sparse::sparse(Path::new(file), gigabytes.parse::<u64>()? * 1_000_000_000)
        }
        ["scale", ref given @ ..] => scale::scale(given),
        _ => bail!(
            "usage: seed put ADDRESS MANIFEST | bench ADDRESS | line ADDRESS | small ADDRESS COUNT | big ADDRESS MB | \
             large ADDRESS GB | wan LISTEN TARGET MS MBIT | read REFERENCE | upload ADDRESS DIR | sparse FILE GB | \
             scale [NAME=NUMBER]..."
        ),
    }
}

struct Seed {
    client: Client,
    /// What has been sent, as `repository@digest`.
    sent: BTreeSet<String>,
    bytes: u64,
}

impl Seed {
    async fn put(&mut self, address: &str, manifest: &Path) -> Result<()> {
        let text =
            std::fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
        let document: Value = serde_yaml::from_str(&text)?;
        let images = document["images"].as_array().cloned().unwrap_or_default();
        let mut programs = Programs::of_this_machine()?;
        let base = programs.take(12 << 20)?;
        for (count, image) in images.iter().enumerate() {
            let name = image
                .as_str()
                .or_else(|| image["ref"].as_str())
                .context("an image has no name")?;
            let name: Reference = name.parse()?;
            let place = format!("{address}/{}/{}", name.registry(), name.repository());
            let tag = name.tag().unwrap_or("latest");
            // every third in Docker's format, whose layers are plain tars here
            let family = if count % 3 == 2 { DOCKER } else { OCI };
            let mut children = Vec::new();
            let own = programs.take(4 << 20)?;
            for architecture in ["amd64", "arm64"] {
                let note = (
                    PathBuf::from("etc/platform"),
                    format!("linux/{architecture}\n").into_bytes(),
                );
                let layers = [
                    layer(&base, family)?,
                    layer(&own, family)?,
                    layer(&[note], family)?,
                ];
                children.push(self.image(&place, architecture, &layers, family).await?);
            }
            let index =
                json!({"schemaVersion": 2, "mediaType": family.index, "manifests": children});
            self.manifest(&place, tag, family.index, &index).await?;
        }
        println!(
            "{} images, {} MB of blobs, from files of this machine",
            images.len(),
            self.bytes / 1_000_000
        );
        Ok(())
    }

    /// Five bases of 40 MB; on each of them eight images with layers of 12, 5 and 1.5 MB of their
    /// own.
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

    /// For a long line: four bases of 20 MB; on each of them five images with layers of 4.5, 1 and
    /// 0.4 MB of their own.
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

    /// Two-platform images on bases. The sizes are those of a base, of two layers of each image,
    /// and of one of each platform, in bytes.
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
                let own = |part: u64| 10_000 + base * 1000 + image * 10 + part;
                let place = format!("{address}/{name}/base-{base}/app-{image}");
                let middle = [
                    foundation.clone(),
                    random(own(1), first)?,
                    random(own(2), second)?,
                ];
                let mut children = Vec::new();
                for (part, architecture) in [(3, "amd64"), (4, "arm64")] {
                    let top = random(own(part), of_platform)?;
                    children.push(
                        self.image(&place, architecture, &[&middle[..], &[top]].concat(), OCI)
                            .await?,
                    );
                }
                let index =
                    json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": children});
                self.manifest(&place, "v1", OCI_INDEX, &index).await?;
            }
        }
        println!(
            "{} images, {} MB of unique blobs",
            bases * images,
            self.bytes / 1_000_000
        );
        Ok(())
    }

    /// On ten bases of 100 kB, with a layer of 20 kB each.
    async fn small(&mut self, address: &str, count: u64) -> Result<()> {
        for image in 0..count {
            let place = format!("{address}/small/base-{}/app-{image}", image % 10);
            let layers = [
                random(2000 + image % 10, 100_000)?,
                random(100_000 + image, 20_000)?,
            ];
            self.tagged(&place, &layers).await?;
        }
        println!(
            "{count} images, {} MB of unique blobs",
            self.bytes / 1_000_000
        );
        Ok(())
    }

    async fn big(&mut self, address: &str, megabytes: usize) -> Result<()> {
        self.tagged(
            &format!("{address}/big/app"),
            &[random(1, megabytes * 1_000_000)?],
        )
        .await?;
        println!("1 image, {} MB", self.bytes / 1_000_000);
        Ok(())
    }

    /// What is big is made fast: the layers are a short noise again and again, and no tars.
    async fn large(&mut self, address: &str, gigabytes: usize) -> Result<()> {
        for image in 0..20 {
            let bytes = noise(1_000_000 + image, 1_000_000).repeat(50 * gigabytes);
            let layer = Layer {
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

    /// An image without an index at `place:v1`.
    async fn tagged(&mut self, place: &str, layers: &[Layer]) -> Result<()> {
        let image = self.manifest_of(place, "amd64", layers, OCI).await?;
        self.manifest(place, "v1", OCI_MANIFEST, &image).await?;
        Ok(())
    }

    /// Sends a one-platform image and gives its descriptor.
    async fn image(
        &mut self,
        place: &str,
        arch: &str,
        layers: &[Layer],
        family: Family,
    ) -> Result<Value> {
        let manifest = self.manifest_of(place, arch, layers, family).await?;
        let mut descriptor = self.manifest(place, "", family.manifest, &manifest).await?;
        descriptor["platform"] = json!({"architecture": arch, "os": "linux"});
        Ok(descriptor)
    }

    /// Sends the blobs of a one-platform image and gives its manifest.
    async fn manifest_of(
        &mut self,
        place: &str,
        arch: &str,
        layers: &[Layer],
        family: Family,
    ) -> Result<Value> {
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
        Ok(json!({
            "schemaVersion": 2, "mediaType": family.manifest, "config": config, "layers": descriptors,
        }))
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
        let reference = if tag.is_empty() {
            format!("{place}@{digest}")
        } else {
            format!("{place}:{tag}")
        };
        let size = bytes.len();
        self.client
            .push_manifest_raw(&reference.parse()?, bytes, media_type.parse()?)
            .await
            .with_context(|| reference.clone())?;
        Ok(json!({"mediaType": media_type, "digest": digest, "size": size}))
    }

    async fn read(&mut self, reference: &str) -> Result<()> {
        let top: Reference = reference.parse()?;
        self.client
            .auth(&top, &Anonymous, RegistryOperation::Pull)
            .await?;
        let (mut manifests, mut blobs) = (0, 0);
        let mut pending = vec![top.clone()];
        while let Some(next) = pending.pop() {
            let accepted = [OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST];
            let (bytes, digest) = self
                .client
                .pull_manifest_raw(&next, &Anonymous, &accepted)
                .await?;
            ensure!(
                sha256(&bytes) == digest,
                "{next}: the registry says {digest}, the bytes say otherwise"
            );
            ensure!(
                next.digest().is_none_or(|asked| asked == digest),
                "{next}: answered with {digest}"
            );
            manifests += 1;
            let document: Value = serde_json::from_slice(&bytes)?;
            for child in document["manifests"].as_array().into_iter().flatten() {
                let digest = child["digest"]
                    .as_str()
                    .context("a child without a digest")?;
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

/// A layer that does not compress.
fn random(seed: u64, len: usize) -> Result<Layer> {
    layer(
        &[(PathBuf::from(format!("data/{seed}")), noise(seed, len))],
        OCI,
    )
}
