//! The lock as text: sorted, one fact a line, small diffs.

use super::{File, Image, Lock};
use crate::model::{Descriptor, Platform};
use std::fmt::Write as _;

/// The lock as text. Equal locks give equal text.
pub(super) fn write(lock: &Lock) -> String {
    let mut lock = lock.clone();
    lock.images.sort_by(|a, b| a.name.cmp(&b.name));
    lock.files.sort_by(|a, b| a.name.cmp(&b.name));
    lock.missing.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    lock.unresolved.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    let mut out = String::from("# landfall.lock, written by `landfall lock`\nversion: 1\n");
    section(&mut out, "images", &lock.images, write_image);
    section(&mut out, "files", &lock.files, write_file);
    section(&mut out, "missing", &lock.missing, |out, lost| {
        let _ = writeln!(
            out,
            "- {{kind: {}, name: {}, reason: {}, until: {}}}",
            lost.kind,
            quoted(&lost.name),
            quoted(&lost.reason),
            quoted(&lost.until)
        );
    });
    section(&mut out, "unresolved", &lock.unresolved, |out, item| {
        let (name, cause) = (quoted(&item.name), quoted(&item.cause));
        let _ = writeln!(out, "- {{kind: {}, name: {name}, cause: {cause}}}", item.kind);
    });
    out
}

fn section<T>(out: &mut String, title: &str, items: &[T], write: impl Fn(&mut String, &T)) {
    if !items.is_empty() {
        let _ = writeln!(out, "{title}:");
        items.iter().for_each(|item| write(out, item));
    }
}

fn write_image(out: &mut String, image: &Image) {
    let _ = writeln!(out, "- name: {}", quoted(&image.name.to_string()));
    if !image.platforms.is_empty() {
        let platforms: Vec<String> = image.platforms.iter().map(Platform::to_string).collect();
        let _ = writeln!(out, "  platforms: [{}]", platforms.join(", "));
    }
    if let Some(pin) = &image.pin {
        let _ = writeln!(out, "  pin: {pin}");
    }
    let _ = writeln!(out, "  digest: {}", image.digest);
    let _ = writeln!(out, "  mediaType: {}\n  size: {}", quoted(&image.media_type), image.size);
    if let Some(platform) = &image.platform {
        let _ = writeln!(out, "  platform: {platform}");
    }
    if !image.manifests.is_empty() {
        let _ = writeln!(out, "  manifests:");
    }
    for child in &image.manifests {
        let kind = quoted(&child.media_type);
        let _ = write!(out, "  - {{digest: {}, size: {}, mediaType: {kind}", child.digest, child.size);
        let platform = child.platform.as_ref().map(|platform| format!(", platform: {}", quoted(platform)));
        let _ = writeln!(out, "{}}}", platform.unwrap_or_default());
    }
    write_blobs(out, "blobs", &image.blobs);
    if let Some(trimmed) = &image.trimmed {
        let _ = writeln!(out, "  trimmed: {{digest: {}, size: {}}}", trimmed.digest, trimmed.size);
    }
    if let Some(referrers) = &image.referrers {
        let _ = writeln!(out, "  referrers:{}", if referrers.is_empty() { " []" } else { "" });
    }
    for referrer in image.referrers.iter().flatten() {
        let kind = quoted(&referrer.media_type);
        let _ = write!(out, "  - {{digest: {}, size: {}, mediaType: {kind}", referrer.digest, referrer.size);
        let tag = referrer.tag.as_ref().map(|tag| format!(", tag: {}", quoted(tag))).unwrap_or_default();
        let subject = referrer.subject.as_ref().map(|of| format!(", subject: {of}")).unwrap_or_default();
        let _ = writeln!(out, "{tag}{subject}}}");
    }
    write_blobs(out, "referrerBlobs", &image.referrer_blobs);
}

fn write_blobs(out: &mut String, title: &str, blobs: &[Descriptor]) {
    if !blobs.is_empty() {
        let _ = writeln!(out, "  {title}:");
    }
    for blob in blobs {
        let line = format!("{} {} {}", blob.digest, blob.size, blob.media_type);
        let _ = writeln!(out, "  - {}", quoted(&line));
    }
}

fn write_file(out: &mut String, file: &File) {
    let _ = writeln!(out, "- name: {}\n  digest: {}\n  size: {}", quoted(&file.name), file.digest, file.size);
    if let Some(checksum) = &file.checksum {
        let _ = writeln!(out, "  checksum: {}", quoted(checksum));
    }
    if !file.sidecars.is_empty() {
        let _ = writeln!(out, "  sidecars:");
    }
    for sidecar in &file.sidecars {
        let url = quoted(&sidecar.url);
        let _ = writeln!(out, "  - {{url: {url}, digest: {}, size: {}}}", sidecar.digest, sidecar.size);
    }
    if !file.also.is_empty() {
        let _ = writeln!(out, "  also:");
    }
    for url in &file.also {
        let _ = writeln!(out, "  - {}", quoted(url));
    }
    if let Some(mode) = &file.mode {
        let _ = writeln!(out, "  mode: {}", quoted(mode));
    }
}

/// A YAML scalar: plain where that is safe in block and flow context, else a JSON string.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-@%~=&;() ".contains(&byte);
    let safe = text.bytes().enumerate().all(|(at, byte)| {
        plain(byte) || (byte == b':' && text.as_bytes().get(at + 1).is_some_and(|&next| next != b' '))
    });
    let starts_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let reserved = word.contains(&text.to_ascii_lowercase().as_str());
    if safe && starts_well && !reserved && !text.ends_with(' ') {
        text.into()
    } else {
        serde_json::to_string(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_scalars_are_quoted() {
        for text in ["0755", "a: b", "x #y", "", "true", "- a", "{a}", "a, b", "é", "a\nb", " a", "a "] {
            let document = format!("k: {}\nf: {{k: {}}}", quoted(text), quoted(text));
            let value: serde_json::Value = serde_yaml::from_str(&document).unwrap();
            assert_eq!(value["k"], text);
            assert_eq!(value["f"]["k"], text);
        }
    }
}
