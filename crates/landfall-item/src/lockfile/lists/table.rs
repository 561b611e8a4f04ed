//! The table of list formats. To add one, write a file next to this one, its `mod` line, a row
//! here, and its name in `landfall export`.

use super::export_format::ExportFormat;
use super::{hauler, images_txt, imgpkg_lock, regsync, skopeo_sync, sources, zarf};

/// All list formats that can be exported.
pub const EXPORT_FORMATS: &[ExportFormat] = &[
    ExportFormat {
        name: "hauler",
        write: hauler::write,
    },
    ExportFormat {
        name: "images-txt",
        write: images_txt::write,
    },
    ExportFormat {
        name: "skopeo-sync",
        write: skopeo_sync::write,
    },
    ExportFormat {
        name: "regsync",
        write: regsync::write,
    },
    ExportFormat {
        name: "zarf",
        write: zarf::write,
    },
    ExportFormat {
        name: "imgpkg-lock",
        write: imgpkg_lock::write,
    },
    ExportFormat {
        name: "sources",
        write: sources::write,
    },
];
