//! A store, its lock, and volumes that are packed from it.

use crate::support::images::{OCI_CONFIG, OCI_GZIP, OCI_MANIFEST, noise};
use crate::support::library::{Descriptor, Digest, Lock, LockedFile, LockedImage};
use crate::support::{Images, Place, run};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// A store and the lock of its content: by default an image, and compressible and incompressible
/// files.
pub(super) struct Site {
    pub(super) place: Place,
    pub(super) files: Vec<(String, Vec<u8>)>,
}

impl Site {
    /// A site with a layer of more than one frame.
    pub(super) fn new() -> Site {
        Site::of(0, &[1_200_000, 7_000, 300])
    }

    /// A site with short frames only, so that there can be many volumes.
    pub(super) fn small() -> Site {
        Site::of(0, &[9_000, 7_000, 300])
    }

    /// A site with this number of layers of this size.
    pub(super) fn wide(layers: usize, size: usize) -> Site {
        Site::of(0, &vec![size; layers])
    }

    pub(super) fn of(seed: u64, layers: &[usize]) -> Site {
        let place = Place::new();
        let images = Images::new(place.path("home/.cache/landfall/store"));
        let read = |value: &Value| serde_json::from_value::<Descriptor>(value.clone()).unwrap();
        let layers = layers.iter().zip(seed + 100..);
        let layers = layers.map(|(length, seed)| images.blob(OCI_GZIP, &noise(seed, *length)));
        let layers: Vec<Value> = layers.collect();
        let config = images.blob(
            OCI_CONFIG,
            br#"{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}}"#,
        );
        let manifest = json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers});
        let top = read(&images.blob(OCI_MANIFEST, manifest.to_string().as_bytes()));
        let mut blobs: Vec<Descriptor> = layers.iter().chain([&config]).map(read).collect();
        blobs.sort();
        let image = LockedImage {
            blobs,
            ..LockedImage::new("quay.io/example/app:v1".parse().unwrap(), top)
        };
        let mut lock = Lock {
            version: 1,
            images: vec![image],
            ..Lock::default()
        };
        let mut contents = Vec::new();
        for number in seed..seed + 40 {
            let (name, bytes) = if number % 4 == 0 {
                (
                    format!("plain-{number:04}"),
                    format!("{number} is a number. ").repeat(900).into_bytes(),
                )
            } else {
                (format!("dense-{number:04}.tgz"), noise(number, 6_000))
            };
            let url = format!("https://files.example/{name}");
            images.blob("application/octet-stream", &bytes);
            lock.files.push(LockedFile::new(
                url,
                Digest::sha256(&bytes),
                bytes.len() as u64,
            ));
            contents.push((name, bytes));
        }
        lock.files.sort_by(|a, b| a.name.cmp(&b.name));
        place.write("landfall.lock", lock.to_text());
        Site {
            place,
            files: contents,
        }
    }

    /// A site with this number of images, `quay.io/example/app-0:v1` and so on, each with a layer
    /// of this size.
    pub(super) fn images(count: usize, size: usize) -> Site {
        let site = Site::of(0, &[]);
        let images = Images::new(site.place.path("home/.cache/landfall/store"));
        let read = |value: &Value| serde_json::from_value::<Descriptor>(value.clone()).unwrap();
        let image = |number: usize| {
            let layer = images.blob(OCI_GZIP, &noise(9_000 + number as u64, size));
            let config = format!(
                r#"{{"os":"linux","architecture":"amd64","number":{number},"rootfs":{{"type":"layers","diff_ids":[]}}}}"#
            );
            let config = images.blob(OCI_CONFIG, config.as_bytes());
            let manifest = json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer]});
            let top = read(&images.blob(OCI_MANIFEST, manifest.to_string().as_bytes()));
            let mut blobs = vec![read(&layer), read(&config)];
            blobs.sort();
            LockedImage {
                blobs,
                ..LockedImage::new(
                    format!("quay.io/example/app-{number}:v1").parse().unwrap(),
                    top,
                )
            }
        };
        let lock = Lock {
            version: 1,
            images: (0..count).map(image).collect(),
            ..Lock::default()
        };
        site.place.write("landfall.lock", lock.to_text());
        site
    }

    pub(super) fn pack(&self, name: &str, more: &[&str]) -> Value {
        let args = [&["pack", "-o", name], more].concat();
        self.place.json(0, &args)
    }

    /// Packs volumes of this size, and returns their paths.
    pub(super) fn split(&self, name: &str, size: &str) -> Vec<PathBuf> {
        self.pack(name, &["--volume-size", size]);
        self.volumes(name)
    }

    pub(super) fn volumes(&self, name: &str) -> Vec<PathBuf> {
        (1..=9999)
            .map(|number| self.place.path(format!("{name}.{number:04}")))
            .take_while(|path| path.exists())
            .collect()
    }

    pub(super) fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.place.dir()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// Runs a command that must refuse its input, and returns the error message.
    pub(super) fn refused(&self, args: &[&str]) -> String {
        let report = self.place.json(4, args);
        assert_eq!(report["status"], "refused", "{report}");
        report["error"]["message"].as_str().unwrap().to_owned()
    }

    pub(super) fn sh(&self, script: &str) -> String {
        String::from_utf8(run(self.place.clean("sh").args(["-euc", script]))).unwrap()
    }
}
