//! Converts lists and configurations of other tools to a manifest. To add a format, write a file
//! here, its `mod` line, and a row of [`IMPORT_FORMATS`].

mod dregsy;
mod dt_lock;
mod hauler;
mod image_syncer;
mod imgpkg_lock;
mod imported;
mod mapping_txt;
mod oc_mirror;
mod ocync;
mod plain;
mod regsync;
mod skopeo_sync;
#[cfg(test)]
mod testing;
mod tkg_bom;
mod yaml;
mod zarf;

use crate::ManifestResult;

pub use imported::{ImportSource, ImportedItems, manifest_of};

/// A file format of another tool that `landfall import` reads.
#[derive(Debug)]
pub struct ImportFormat {
    /// The name of the format on the command line.
    pub name: &'static str,
    /// A description of the format, for the help.
    pub about: &'static str,
    /// Reads a file of this format. Items and settings that a manifest cannot express are recorded
    /// in the [`ImportedItems`].
    pub read: FormatReader,
}

/// A function that reads a file.
type FormatReader = fn(&ImportSource, &mut ImportedItems) -> ManifestResult<()>;

const fn format(name: &'static str, about: &'static str, read: FormatReader) -> ImportFormat {
    ImportFormat { name, about, read }
}

/// Lines by which the files of a tool are recognized, without their indentation, and the name of
/// the format.
const SIGNS: [(&str, &str); 7] = [
    ("kind: ZarfPackageConfig", "zarf"),
    ("kind: ZarfInitConfig", "zarf"),
    ("apiVersion: content.hauler.cattle.io/", "hauler"),
    ("kind: ImageSetConfiguration", "oc-mirror"),
    ("images-by-tag-regex:", "skopeo-sync"),
    ("images-by-semver:", "skopeo-sync"),
    ("apiVersion: imgpkg.carvel.dev/", "imgpkg-lock"),
];

/// The name of the format of a file, if a line of `text` shows that another tool reads the file.
pub fn import_format_of(text: &str) -> Option<&'static str> {
    let format_of = |line: &str| {
        let line = line.trim_start();
        SIGNS
            .iter()
            .find(|(sign, _)| line.starts_with(sign))
            .map(|(_, format)| *format)
    };
    let has = |is: fn(&str) -> bool| text.lines().any(is);
    let is_regsync =
        || has(|line| line == "sync:") && has(|line| line.trim_start().starts_with("type: "));
    let is_dregsy = || has(|line| line == "tasks:") && has(|line| line.trim() == "mappings:");
    let format = text.lines().find_map(format_of);
    format
        .or_else(|| is_regsync().then_some("regsync"))
        .or_else(|| is_dregsy().then_some("dregsy"))
}

/// All formats, in the order of `--help`.
pub const IMPORT_FORMATS: &[ImportFormat] = &[
    format(
        "images-txt",
        "one reference or URL of a file on each line, as in lists of RKE2, k3s, Rancher, k0s, \
         Kubespray and hangar",
        plain::images_txt,
    ),
    format(
        "kkp",
        "the log of `kubermatic-installer mirror-images --dry-run -o json`",
        plain::kkp,
    ),
    format("kubeone", "`kubeone config images list`", plain::images_txt),
    format(
        "kubeadm",
        "`kubeadm config images list`, also with -o json or yaml",
        plain::kubeadm,
    ),
    format("tkg-bom", "a bill of materials of TKG", tkg_bom::read),
    format("hauler", "Images, Files and Charts of Hauler", hauler::read),
    format("zarf", "zarf.yaml", zarf::read),
    format(
        "oc-mirror",
        "an ImageSetConfiguration of oc-mirror",
        oc_mirror::read,
    ),
    format(
        "oc-mirror-mapping",
        "the mapping.txt of oc-mirror",
        mapping_txt::read,
    ),
    format(
        "imgpkg-lock",
        "an ImagesLock of imgpkg or kbld",
        imgpkg_lock::read,
    ),
    format("dt-lock", "the Images.lock of dt", dt_lock::read),
    format(
        "skopeo-sync",
        "the YAML file of skopeo sync",
        skopeo_sync::read,
    ),
    format("regsync", "the configuration of regsync", regsync::read),
    format("ocync", "the configuration of ocync", ocync::read),
    format("dregsy", "the configuration of dregsy", dregsy::read),
    format(
        "image-syncer",
        "the images of image-syncer, YAML or JSON",
        image_syncer::read,
    ),
];
