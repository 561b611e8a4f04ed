//! Writes the items of a lock as lists of other tools. Each format is a row of [`EXPORT_FORMATS`],
//! with a function here or, if it is longer, in a file of its own. `landfall export` has its name.

#[cfg(test)]
mod tests;
mod zarf;

use crate::lockfile::Lock;
use crate::text::{in_quotes, platform_text};
use crate::{LockedFile, LockedImage};
use landfall_model::report::EntryKind;
use landfall_model::{DestinationMap, ImageRef, local_path, sum_sizes, without_scheme};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// All list formats that can be exported.
pub const EXPORT_FORMATS: &[ExportFormat] = &[
    commented("hauler", hauler),
    plain("images-txt", images_txt),
    commented("skopeo-sync", skopeo_sync),
    commented("regsync", regsync),
    commented("zarf", zarf::write),
    commented("imgpkg-lock", imgpkg_lock),
    plain("sources", sources),
];

const fn plain(name: &'static str, write: fn(&ExportInput<'_>) -> ExportedList) -> ExportFormat {
    ExportFormat {
        name,
        write,
        has_comments: false,
    }
}

/// A format in which `#` starts a comment.
const fn commented(
    name: &'static str,
    write: fn(&ExportInput<'_>) -> ExportedList,
) -> ExportFormat {
    ExportFormat {
        has_comments: true,
        ..plain(name, write)
    }
}

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
    fn reference(&self, image: &LockedImage) -> ImageRef {
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
    fn files(&self) -> Vec<&LockedFile> {
        let files = self.lock.files.iter();
        files
            .filter(|file| local_path(&file.name).is_none())
            .collect()
    }

    /// The images that a registry has: no other tool finds those that were read from an archive.
    fn images(&self) -> impl Iterator<Item = &LockedImage> {
        self.lock
            .images
            .iter()
            .filter(|image| image.archive.is_none())
    }

    /// The items that the format cannot contain: all locked items except images of registries (and
    /// files with a URL, if `has_files`), and all unresolved items.
    fn left(&self, has_files: bool) -> Vec<String> {
        let others = self.lock.items().filter(|item| match item.kind() {
            EntryKind::Image => item.is_local(),
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
    fn left_with_platforms(&self) -> Vec<String> {
        let limited = self.images().filter(|image| image.trimmed.is_some());
        let platforms = limited.map(|image| {
            let all: Vec<String> = image.platforms.iter().map(ToString::to_string).collect();
            format!("platforms {} of {}", all.join(", "), image.name)
        });
        let mut left = self.left(false);
        left.extend(platforms);
        left
    }
}

/// `hauler`: the documents Images and Files. Hauler stores one platform of an image, or all.
fn hauler(input: &ExportInput<'_>) -> ExportedList {
    let mut text = String::new();
    let mut left = input.left(true);
    if input.images().next().is_some() {
        text += &(hauler_head("Images", "images") + "  images:\n");
    }
    for image in input.images() {
        let _ = writeln!(
            text,
            "    - name: {}",
            in_quotes(&input.reference(image).to_string())
        );
        match &image.platforms[..] {
            [] => {}
            [one] => {
                let _ = writeln!(text, "      platform: {}", platform_text(one));
            }
            more => {
                let more: Vec<String> = more.iter().map(ToString::to_string).collect();
                left.push(format!(
                    "platforms {} of {}: Hauler stores all platforms",
                    more.join(", "),
                    image.name
                ));
            }
        }
    }
    let files = input.files();
    if !files.is_empty() {
        let separator = if text.is_empty() { "" } else { "---\n" };
        text += &(separator.to_owned() + &hauler_head("Files", "files") + "  files:\n");
    }
    for file in files {
        let _ = writeln!(text, "    - path: {}", in_quotes(&file.name));
        left.push(format!(
            "checksum of {}: Hauler does not verify files",
            file.name
        ));
    }
    ExportedList { text, left }
}

/// The first lines of a document of Hauler.
fn hauler_head(kind: &str, name: &str) -> String {
    format!(
        "apiVersion: content.hauler.cattle.io/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"
    )
}

/// `images-txt`: one image reference on each line.
fn images_txt(input: &ExportInput<'_>) -> ExportedList {
    let lines = input
        .images()
        .map(|image| format!("{}\n", input.reference(image)));
    ExportedList {
        text: lines.collect(),
        left: input.left_with_platforms(),
    }
}

/// `skopeo-sync`: the YAML source of `skopeo sync --src yaml`.
fn skopeo_sync(input: &ExportInput<'_>) -> ExportedList {
    let mut hosts: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for image in input.images() {
        let reference = input.reference(image);
        // skopeo accepts a digest or a tag, not both
        let tag_or_digest = reference
            .digest
            .map(|digest| digest.to_string())
            .or(reference.tag)
            .unwrap_or_default();
        let host = hosts.entry(reference.registry).or_default();
        host.entry(reference.repository)
            .or_default()
            .push(tag_or_digest);
    }
    let mut text = String::new();
    for (host, repositories) in hosts {
        let _ = writeln!(text, "{}:\n  images:", in_quotes(&host));
        for (repository, tags) in repositories {
            let tags: Vec<String> = tags.iter().map(|tag| in_quotes(tag)).collect();
            let _ = writeln!(
                text,
                "    {}: [{}]",
                in_quotes(&repository),
                tags.join(", ")
            );
        }
    }
    ExportedList {
        text,
        left: input.left_with_platforms(),
    }
}

/// `regsync`: the configuration of regsync, with an entry for each image and destination.
fn regsync(input: &ExportInput<'_>) -> ExportedList {
    let mut text = "version: 1\nsync:\n".to_owned();
    for image in input.images() {
        let from = input.reference(image);
        let tag = image.destination_tag();
        let destinations = input
            .mapping
            .map(|mapping| mapping.destinations(&image.name))
            .unwrap_or_default();
        for destination in destinations {
            let to = ImageRef {
                registry: destination.registry,
                repository: destination.repository,
                tag: Some(tag.clone()),
                digest: None,
            };
            let _ = writeln!(text, "  - source: {}", in_quotes(&from.to_string()));
            let _ = writeln!(
                text,
                "    target: {}\n    type: image",
                in_quotes(&to.to_string())
            );
            if let [one] = &image.platforms[..] {
                let _ = writeln!(text, "    platform: {}", platform_text(one));
            } else if !image.platforms.is_empty() {
                let all: Vec<String> = image.platforms.iter().map(platform_text).collect();
                let _ = writeln!(text, "    platforms: [{}]", all.join(", "));
            }
        }
    }
    ExportedList {
        text,
        left: input.left(false),
    }
}

/// `imgpkg-lock`: an ImagesLock of imgpkg, with the tag of each digest in the annotation of kbld.
fn imgpkg_lock(input: &ExportInput<'_>) -> ExportedList {
    let mut text = "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n".to_owned();
    for image in input.images() {
        let _ = writeln!(
            text,
            "- image: {}",
            in_quotes(&image.name.at_digest(&image.digest).to_string())
        );
        if image.name.tag.is_some() {
            let name = in_quotes(&image.name.to_string());
            let _ = writeln!(text, "  annotations:\n    kbld.carvel.dev/id: {name}");
        }
    }
    ExportedList {
        text,
        left: input.left_with_platforms(),
    }
}

/// `sources`: a table for reviewers, with one item on each line and tabs between kind, name,
/// digest, bytes, origin and licence (if known). The line of an accepted loss has `missing until`
/// and a date in place of the digest, and the reason in place of the origin.
fn sources(input: &ExportInput<'_>) -> ExportedList {
    let mut text = "kind\tname\tdigest\tbytes\torigin\tlicence\n".to_owned();
    for item in input.lock.items() {
        let entry = item.entry();
        let name = item.name().into_owned();
        let bytes = sum_sizes(entry.parts.iter().map(|part| part.descriptor.size));
        let host = without_scheme(&name).split('/').next().unwrap_or_default();
        let origin = if item.is_local() { "local" } else { host };
        let licence = input.licences.get(&name).map_or("", String::as_str);
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{bytes}\t{}\t{}",
            item.kind(),
            cell(&name),
            item.digest(),
            cell(origin),
            cell(licence)
        );
    }
    for lost in &input.lock.missing {
        let _ = writeln!(
            text,
            "{}\t{}\tmissing until {}\t0\t{}\t",
            lost.kind,
            cell(&lost.name),
            cell(&lost.until),
            cell(&lost.reason)
        );
    }
    let left = input
        .lock
        .unresolved
        .iter()
        .map(|one| format!("{} {}: it is not locked", one.kind, one.name));
    ExportedList {
        text,
        left: left.collect(),
    }
}

/// Returns `text` for one cell. Names, reasons and licences are untrusted: a tab or line break in
/// them would begin another cell or row.
fn cell(text: &str) -> String {
    text.replace(
        |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'),
        " ",
    )
}
