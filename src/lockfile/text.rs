//! The lock as text, and back: sorted, one fact a line, small diffs.

use crate::lockfile::{File, Image, Lock};
use crate::model::{Descriptor, Platform};
use std::cmp::Ordering;
use std::fmt::{self, Write};

/// What every lock begins with.
const HEAD: &str = "# landfall.lock, written by `landfall lock`\nversion: 1\n";

/// How much text is read at once, in bytes. A YAML parser takes ten times as much memory.
const PIECE: usize = 16 << 10;

/// Writes the lock. Equal locks give equal text.
///
/// # Errors
/// Those of `out`.
pub(super) fn write(lock: &Lock, out: &mut dyn Write) -> fmt::Result {
    out.write_str(HEAD)?;
    section(out, "images", sorted(&lock.images, |a, b| a.name.cmp(&b.name)), write_image)?;
    section(out, "files", sorted(&lock.files, |a, b| a.name.cmp(&b.name)), write_file)?;
    let missing = sorted(&lock.missing, |a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    section(out, "missing", missing, |out, lost| {
        let (name, reason, until) = (quoted(&lost.name), quoted(&lost.reason), quoted(&lost.until));
        writeln!(out, "- {{kind: {}, name: {name}, reason: {reason}, until: {until}}}", lost.kind)
    })?;
    let unresolved = sorted(&lock.unresolved, |a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    section(out, "unresolved", unresolved, |out, item| {
        let (name, cause) = (quoted(&item.name), quoted(&item.cause));
        writeln!(out, "- {{kind: {}, name: {name}, cause: {cause}}}", item.kind)
    })
}

/// Reads a lock of which [`write()`] makes exactly `text`, a few items at a time. `None` for every other text, good
/// or bad.
pub(super) fn read(text: &str) -> Option<Lock> {
    let mut lock = Lock { version: 1, ..Lock::default() };
    let (mut title, mut rest) = ("", text.strip_prefix(HEAD)?);
    while !rest.is_empty() {
        if !rest.starts_with("- ") {
            (title, rest) = rest.split_once('\n')?;
        }
        let few: &str;
        (few, rest) = rest.split_at(few_items(rest));
        let part: Lock = serde_yaml::from_str(&format!("version: 1\n{title}\n{few}")).ok()?;
        lock.images.extend(part.images);
        lock.files.extend(part.files);
        lock.missing.extend(part.missing);
        lock.unresolved.extend(part.unresolved);
    }
    lock.images.shrink_to_fit();
    let mut same = Same(text);
    (write(&lock, &mut same).is_ok() && same.0.is_empty()).then_some(lock)
}

/// The length of the first items of a section.
fn few_items(text: &str) -> usize {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let is_item = line.starts_with("- ");
        if !is_item && !line.starts_with(' ') || is_item && end >= PIECE {
            break;
        }
        end += line.len();
    }
    end
}

/// Takes the text that is expected, and no other.
struct Same<'a>(&'a str);

impl Write for Same<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
        Ok(())
    }
}

fn sorted<T>(items: &[T], order: impl Fn(&T, &T) -> Ordering) -> Vec<&T> {
    let mut items: Vec<&T> = items.iter().collect();
    items.sort_by(|a, b| order(a, b));
    items
}

fn section<T>(
    out: &mut dyn Write,
    title: &str,
    items: Vec<&T>,
    write: impl Fn(&mut dyn Write, &T) -> fmt::Result,
) -> fmt::Result {
    if !items.is_empty() {
        writeln!(out, "{title}:")?;
    }
    items.into_iter().try_for_each(|item| write(out, item))
}

fn write_image(out: &mut dyn Write, image: &Image) -> fmt::Result {
    writeln!(out, "- name: {}", quoted(&image.name.to_string()))?;
    if !image.platforms.is_empty() {
        let platforms: Vec<String> = image.platforms.iter().map(Platform::to_string).collect();
        writeln!(out, "  platforms: [{}]", platforms.join(", "))?;
    }
    if let Some(pin) = &image.pin {
        writeln!(out, "  pin: {pin}")?;
    }
    writeln!(out, "  digest: {}", image.digest)?;
    writeln!(out, "  mediaType: {}\n  size: {}", quoted(&image.media_type), image.size)?;
    if let Some(platform) = &image.platform {
        writeln!(out, "  platform: {platform}")?;
    }
    if !image.manifests.is_empty() {
        writeln!(out, "  manifests:")?;
    }
    for child in &image.manifests {
        let kind = quoted(&child.media_type);
        write!(out, "  - {{digest: {}, size: {}, mediaType: {kind}", child.digest, child.size)?;
        let platform = child.platform.as_ref().map(|platform| format!(", platform: {}", quoted(platform)));
        writeln!(out, "{}}}", platform.unwrap_or_default())?;
    }
    write_blobs(out, "blobs", &image.blobs)?;
    if let Some(trimmed) = &image.trimmed {
        writeln!(out, "  trimmed: {{digest: {}, size: {}}}", trimmed.digest, trimmed.size)?;
    }
    if let Some(referrers) = &image.referrers {
        writeln!(out, "  referrers:{}", if referrers.is_empty() { " []" } else { "" })?;
    }
    for referrer in image.referrers.iter().flatten() {
        let kind = quoted(&referrer.media_type);
        write!(out, "  - {{digest: {}, size: {}, mediaType: {kind}", referrer.digest, referrer.size)?;
        let tag = referrer.tag.as_ref().map(|tag| format!(", tag: {}", quoted(tag))).unwrap_or_default();
        let subject = referrer.subject.as_ref().map(|of| format!(", subject: {of}")).unwrap_or_default();
        writeln!(out, "{tag}{subject}}}")?;
    }
    write_blobs(out, "referrerBlobs", &image.referrer_blobs)
}

fn write_blobs(out: &mut dyn Write, title: &str, blobs: &[Descriptor]) -> fmt::Result {
    if !blobs.is_empty() {
        writeln!(out, "  {title}:")?;
    }
    blobs.iter().try_for_each(|blob| {
        let line = format!("{} {} {}", blob.digest, blob.size, blob.media_type);
        writeln!(out, "  - {}", quoted(&line))
    })
}

fn write_file(out: &mut dyn Write, file: &File) -> fmt::Result {
    writeln!(out, "- name: {}\n  digest: {}\n  size: {}", quoted(&file.name), file.digest, file.size)?;
    if let Some(checksum) = &file.checksum {
        writeln!(out, "  checksum: {}", quoted(checksum))?;
    }
    if !file.sidecars.is_empty() {
        writeln!(out, "  sidecars:")?;
    }
    for sidecar in &file.sidecars {
        let url = quoted(&sidecar.url);
        writeln!(out, "  - {{url: {url}, digest: {}, size: {}}}", sidecar.digest, sidecar.size)?;
    }
    if !file.also.is_empty() {
        writeln!(out, "  also:")?;
    }
    for url in &file.also {
        writeln!(out, "  - {}", quoted(url))?;
    }
    match &file.mode {
        Some(mode) => writeln!(out, "  mode: {}", quoted(mode)),
        None => Ok(()),
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
