//! The formats that `landfall import` reads. To add one, write a file next to this one, its `mod`
//! line, and a row here.

use super::imported::{ImportSource, ImportedItems};
use super::{
    dt_lock, hauler, imgpkg_lock, mapping_txt, oc_mirror, ocync, plain, regsync, skopeo_sync,
    tkg_bom, zarf,
};
use landfall_model::document::Diagnostic;

/// A file format of another tool that `landfall import` reads.
#[derive(Debug)]
pub struct ImportFormat {
    /// The name of the format on the command line.
    pub name: &'static str,
    /// A description of the format, for the help.
    pub about: &'static str,
    /// Reads a file of this format. Items and settings that a manifest cannot express are recorded
    /// in the [`ImportedItems`].
    pub read: fn(&ImportSource, &mut ImportedItems) -> Result<(), Box<Diagnostic>>,
}

/// All formats, in the order of `--help`.
pub const IMPORT_FORMATS: &[ImportFormat] = &[
    ImportFormat {
        name: "images-txt",
        about: "one reference on each line, as in lists of RKE2, k3s, Rancher, k0s and hangar",
        read: plain::images_txt,
    },
    ImportFormat {
        name: "kkp",
        about: "the log of `kubermatic-installer mirror-images --dry-run -o json`",
        read: plain::kkp,
    },
    ImportFormat {
        name: "kubeone",
        about: "`kubeone config images list`",
        read: plain::images_txt,
    },
    ImportFormat {
        name: "kubeadm",
        about: "`kubeadm config images list`, with or without -o json",
        read: plain::kubeadm,
    },
    ImportFormat {
        name: "tkg-bom",
        about: "a bill of materials of TKG",
        read: tkg_bom::read,
    },
    ImportFormat {
        name: "hauler",
        about: "Images, Files and Charts of Hauler",
        read: hauler::read,
    },
    ImportFormat {
        name: "zarf",
        about: "zarf.yaml",
        read: zarf::read,
    },
    ImportFormat {
        name: "oc-mirror",
        about: "an ImageSetConfiguration of oc-mirror",
        read: oc_mirror::read,
    },
    ImportFormat {
        name: "oc-mirror-mapping",
        about: "the mapping.txt of oc-mirror",
        read: mapping_txt::read,
    },
    ImportFormat {
        name: "imgpkg-lock",
        about: "an ImagesLock of imgpkg or kbld",
        read: imgpkg_lock::read,
    },
    ImportFormat {
        name: "dt-lock",
        about: "the Images.lock of dt",
        read: dt_lock::read,
    },
    ImportFormat {
        name: "skopeo-sync",
        about: "the YAML file of skopeo sync",
        read: skopeo_sync::read,
    },
    ImportFormat {
        name: "regsync",
        about: "the configuration of regsync",
        read: regsync::read,
    },
    ImportFormat {
        name: "ocync",
        about: "the configuration of ocync",
        read: ocync::read,
    },
];
