//! The formats of lists that `landfall export` writes. To add one, write a file next to this one,
//! its `mod` line, a row here, and its name in `landfall export`.

use super::{hauler, images_txt, imgpkg_lock, regsync, skopeo_sync, sources, zarf};
use crate::lockfile::Lock;
use crate::{LockedFile, LockedImage};
use landfall_model::report::EntryKind;
use landfall_model::{DestinationMap, ImageRef, local_path};
use std::collections::BTreeMap;

/// All list formats that can be exported.
pub const EXPORT_FORMATS: &[ExportFormat] = &[
    ExportFormat {
        name: "hauler",
        write: hauler::write,
        has_comments: true,
    },
    ExportFormat {
        name: "images-txt",
        write: images_txt::write,
        has_comments: false,
    },
    ExportFormat {
        name: "skopeo-sync",
        write: skopeo_sync::write,
        has_comments: true,
    },
    ExportFormat {
        name: "regsync",
        write: regsync::write,
        has_comments: true,
    },
    ExportFormat {
        name: "zarf",
        write: zarf::write,
        has_comments: true,
    },
    ExportFormat {
        name: "imgpkg-lock",
        write: imgpkg_lock::write,
        has_comments: true,
    },
    ExportFormat {
        name: "sources",
        write: sources::write,
        has_comments: false,
    },
];

// The type of list formats, and helpers that all formats share.

/// The input of a list format.
pub struct ExportInput<'a> {
    /// The lock whose items are listed.
    pub lock: &'a Lock,
    /// The destinations of the images, for formats that name destinations.
    pub mapping: Option<&'a DestinationMap>,
    /// Whether each image is listed with its digest. If false, only the images that the manifest
    /// pins are listed with their digests.
    pub digests: bool,
    /// The known licences, by the name of the item.
    pub licences: BTreeMap<String, String>,
}

/// A list in the format of another tool.
#[derive(Debug, Default)]
pub struct ExportedList {
    /// The content of the list.
    pub text: String,
    /// The items and properties that the format cannot contain, one line each.
    pub left: Vec<String>,
}

/// A list format that `landfall export list` writes.
#[derive(Debug)]
pub struct ExportFormat {
    /// The name of the format on the command line.
    pub name: &'static str,
    /// Writes the items of the lock in this format.
    pub write: fn(&ExportInput<'_>) -> ExportedList,
    /// Whether `#` starts a comment in this format.
    pub has_comments: bool,
}

impl ExportInput<'_> {
    /// The reference of an image, with its digest if that is requested or the manifest pins it.
    pub(super) fn reference(&self, image: &LockedImage) -> ImageRef {
        if self.digests || image.pin.is_some() {
            ImageRef {
                digest: Some(image.digest.clone()),
                ..image.name.clone()
            }
        } else {
            image.name.clone()
        }
    }

    /// The files that other tools can download: those that are not next to the manifest.
    pub(super) fn files(&self) -> Vec<&LockedFile> {
        let files = self.lock.files.iter();
        files
            .filter(|file| local_path(&file.name).is_none())
            .collect()
    }

    /// The items that the format cannot contain: all locked items except images (and files with a
    /// URL, if `has_files`), and all unresolved items.
    pub(super) fn left(&self, has_files: bool) -> Vec<String> {
        let others = self.lock.items().filter(|item| match item.kind() {
            EntryKind::Image => false,
            EntryKind::File => !has_files || item.is_local(),
            _ => true,
        });
        let mut left: Vec<String> = others
            .map(|item| format!("{} {}", item.kind(), item.name()))
            .collect();
        left.extend(
            self.lock
                .unresolved
                .iter()
                .map(|item| format!("{} {}: it is not locked", item.kind, item.name)),
        );
        left
    }

    /// Like [`ExportInput::left`] without files, for a format that cannot contain the platforms of
    /// an image: its reader would take all of them, or only its own. An image whose platforms are
    /// all in the lock loses nothing.
    pub(super) fn left_with_platforms(&self) -> Vec<String> {
        let limited = self.lock.images.iter();
        let limited = limited.filter(|image| image.trimmed.is_some());
        let platforms = limited.map(|image| {
            let all: Vec<String> = image.platforms.iter().map(ToString::to_string).collect();
            format!("platforms {} of {}", all.join(", "), image.name)
        });
        let mut left = self.left(false);
        left.extend(platforms);
        left
    }
}

/// `text` as a YAML string in double quotes.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
