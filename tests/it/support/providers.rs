//! A provider registry of OpenTofu and Terraform: the files with which a web server acts as one.

use super::Place;
use super::images::{sha256, sha256_hex};
use landfall_item::zip_package;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The provider's source address, without the host.
const ADDRESS: &str = "acme/random";

/// The files of a registry with the provider `acme/random`.
pub struct ProviderFiles {
    place: Place,
    versions: BTreeMap<String, Vec<Value>>,
}

impl ProviderFiles {
    /// A registry without versions.
    pub fn new() -> ProviderFiles {
        let place = Place::new();
        place.write(
            "www/.well-known/terraform.json",
            json!({"providers.v1": "/v1/providers/"}).to_string(),
        );
        ProviderFiles {
            place,
            versions: BTreeMap::new(),
        }
    }

    /// The folder that the web server serves.
    pub fn root(&self) -> PathBuf {
        self.place.path("www")
    }

    /// Publishes a version for these platforms.
    pub fn publish(&mut self, version: &str, platforms: &[&str]) {
        for platform in platforms {
            self.put(version, platform, &package(version, platform));
        }
    }

    /// Publishes an archive.
    pub fn put(&mut self, version: &str, platform: &str, archive: &[u8]) {
        let shasum = sha256_hex(archive);
        let file = format!("files/terraform-provider-random_{version}_{platform}.zip");
        self.place.write(&format!("www/{file}"), archive);
        let location = json!({"download_url": format!("/{file}"), "shasum": shasum});
        self.locate(version, platform, &location);
    }

    /// Writes `location` as the registry's response about this version for this platform.
    pub fn locate(&mut self, version: &str, platform: &str, location: &Value) {
        let (os, arch) = platform.split_once('_').unwrap();
        let below = format!("www/v1/providers/{ADDRESS}");
        let path = format!("{below}/{version}/download/{os}/{arch}");
        self.place.write(&path, location.to_string());
        let platforms = self.versions.entry(version.to_owned()).or_default();
        let listed = json!({"os": os, "arch": arch});
        if !platforms.contains(&listed) {
            platforms.push(listed);
        }
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|(version, platforms)| {
                json!({"version": version, "protocols": ["5.0"], "platforms": platforms})
            })
            .collect();
        let versions = json!({"versions": versions}).to_string();
        self.place.write(&format!("{below}/versions"), versions);
    }
}

/// The archive of a version for a platform. Its program is only a shell script.
pub fn package(version: &str, platform: &str) -> Vec<u8> {
    let program = format!("#!/bin/sh\necho {platform}\n").repeat(20);
    zip_package(&[
        (
            &format!("terraform-provider-random_v{version}"),
            program.as_bytes(),
        ),
        ("LICENSE", b"none\n"),
    ])
}

/// The `zh:` hash of an archive.
pub fn zh(archive: &[u8]) -> String {
    sha256(archive).replace("sha256:", "zh:")
}

/// A `.terraform.lock.hcl` with one version of the provider at `host`.
pub fn lock_file(host: &str, version: &str, hashes: &[String]) -> String {
    let hashes: Vec<String> = hashes
        .iter()
        .map(|hash| format!("    \"{hash}\",\n"))
        .collect();
    format!(
        "# This file is maintained automatically by \"tofu init\".\n\n\
         provider \"{host}/{ADDRESS}\" {{\n  version     = \"{version}\"\n  constraints = \"{version}\"\n  \
         hashes = [\n{}  ]\n}}\n",
        hashes.concat()
    )
}
