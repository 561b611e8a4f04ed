//! Tests of bundles with recipes, and the versions of an image with similar layers that they use.

mod damage;
mod packing;
mod rebuilding;

use super::sample::{Memory, Packed, noise, sample, today, write};
use crate::*;
use flate2::{Compression, write::GzEncoder};
use landfall_content::{BlobChain, BlobRead};
use landfall_item::LockedImage;
use landfall_item::lockfile::Lock;
use landfall_model::report::SilentProgress;
use landfall_model::{Descriptor, media_type};
use std::io::Read;
use std::sync::Arc;

/// A layer with these files, compressed.
fn layer(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, path, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// A program whose addresses are raised by `shift`.
fn program(shift: u32) -> Vec<u8> {
    let mut program = noise(200_000);
    for at in (0..program.len() - 4).step_by(101) {
        let address = u32::from_le_bytes(program[at..at + 4].try_into().unwrap());
        program[at..at + 4].copy_from_slice(&(address.wrapping_add(shift)).to_le_bytes());
    }
    program
}

/// The version `tag` of an image whose layer has a program.
fn image(memory: &mut Memory, tag: &str, shift: u32) -> (LockedImage, Descriptor) {
    let bytes = layer(&[
        ("bin/app", &program(shift)),
        ("etc/version", tag.as_bytes()),
    ]);
    image_of(memory, tag, &bytes)
}

/// The version `tag` of an image with this layer.
fn image_of(memory: &mut Memory, tag: &str, layer: &[u8]) -> (LockedImage, Descriptor) {
    let layer = memory.put(layer, "application/vnd.oci.image.layer.v1.tar+gzip");
    let config = memory.put(
        format!("{{\"tag\":\"{tag}\"}}").as_bytes(),
        media_type::OCI_CONFIG,
    );
    let manifest =
        serde_json::json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
    let top = memory.put(manifest.as_bytes(), media_type::OCI_MANIFEST);
    let name = format!("h.example/app:{tag}");
    let image = LockedImage {
        blobs: vec![config, layer.clone()],
        ..LockedImage::new(name.parse().unwrap(), top)
    };
    (image, layer)
}

fn lock(images: Vec<LockedImage>) -> Lock {
    Lock {
        images,
        ..sample().1
    }
}

/// A version that was delivered, and the next one.
struct Versions {
    memory: Arc<Memory>,
    old: Lock,
    new: Lock,
    old_layer: Descriptor,
    new_layer: Descriptor,
}

fn versions() -> Versions {
    let (mut memory, _) = sample();
    let (old, old_layer) = image(&mut memory, "1", 0);
    let (new, new_layer) = image(&mut memory, "2", 64);
    let memory = Arc::new(memory);
    Versions {
        memory,
        old: lock(vec![old]),
        new: lock(vec![new]),
        old_layer,
        new_layer,
    }
}

fn pack(memory: &Memory, lock: &Lock, since: &[&Lock]) -> (Packed, RecipeSummary) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("B");
    let bases: Vec<DeltaBase> = since.iter().map(|lock| DeltaBase::lock(lock)).collect();
    let mut plan = PackPlan::delta(lock, memory, &bases, today()).unwrap();
    let locks: Vec<Lock> = since.iter().map(|lock| (*lock).clone()).collect();
    let old = OldContent {
        locks: &locks,
        bases: &bases,
        blobs: memory,
    };
    let summary = plan_recipes(&mut plan, lock, memory, &old, dir.path(), &SilentProgress).unwrap();
    write(&plan, memory, &path).unwrap();
    (Packed { _dir: dir, path }, summary)
}

/// The content of these sources, and the blobs that the recipes of `bundles` rebuild from it.
fn rebuilt(sources: Vec<Arc<dyn BlobRead>>, bundles: &[Bundle]) -> RebuiltBlobs {
    RebuiltBlobs::new(
        Arc::new(BlobChain(sources)),
        bundles,
        std::env::temp_dir(),
        1 << 20,
    )
}

fn read(blobs: &dyn BlobRead, blob: &Descriptor) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut reader = blobs
        .open(&blob.digest, 0)
        .map_err(|error| error.to_string())?;
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn memory_without(memory: &Memory, blob: &Descriptor) -> Arc<Memory> {
    let mut blobs = memory.blobs.clone();
    blobs.remove(&blob.digest);
    Arc::new(Memory {
        blobs,
        ..Memory::default()
    })
}
