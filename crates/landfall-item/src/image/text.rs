//! The text of an image in the lock.

use super::locked::{LockedImage, LockedReferrer};
use crate::text::{platform_text, quoted};
use landfall_model::Descriptor;
use landfall_signature::VerifiedSignature;
use std::fmt::{self, Write};

/// Writes `image` as YAML, one value per line so that diffs are small.
pub(super) fn write(image: &LockedImage, out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "- name: {}", quoted(&image.name.to_string()))?;
    if !image.platforms.is_empty() {
        let platforms: Vec<String> = image.platforms.iter().map(platform_text).collect();
        writeln!(out, "  platforms: [{}]", platforms.join(", "))?;
    }
    if let Some(pin) = &image.pin {
        writeln!(out, "  pin: {pin}")?;
    }
    writeln!(out, "  digest: {}", image.digest)?;
    writeln!(
        out,
        "  mediaType: {}\n  size: {}",
        quoted(&image.media_type),
        image.size
    )?;
    if let Some(platform) = &image.platform {
        writeln!(out, "  platform: {}", platform_text(platform))?;
    }
    if !image.manifests.is_empty() {
        writeln!(out, "  manifests:")?;
    }
    for child in &image.manifests {
        let kind = quoted(&child.media_type);
        write!(
            out,
            "  - {{digest: {}, size: {}, mediaType: {kind}",
            child.digest, child.size
        )?;
        let platform = child
            .platform
            .as_ref()
            .map(|platform| format!(", platform: {}", quoted(platform)));
        writeln!(out, "{}}}", platform.unwrap_or_default())?;
    }
    write_verified(out, &image.verified)?;
    write_blobs(out, "blobs", &image.blobs)?;
    if let Some(trimmed) = &image.trimmed {
        writeln!(
            out,
            "  trimmed: {{digest: {}, size: {}}}",
            trimmed.digest, trimmed.size
        )?;
    }
    write_referrers(out, image.referrers.as_deref(), &image.referrer_blobs)
}

/// Writes the referrers, if they were looked up, and their blobs.
pub(crate) fn write_referrers(
    out: &mut dyn Write,
    referrers: Option<&[LockedReferrer]>,
    blobs: &[Descriptor],
) -> fmt::Result {
    if let Some(referrers) = referrers {
        writeln!(
            out,
            "  referrers:{}",
            if referrers.is_empty() { " []" } else { "" }
        )?;
    }
    for referrer in referrers.iter().copied().flatten() {
        let kind = quoted(&referrer.media_type);
        write!(
            out,
            "  - {{digest: {}, size: {}, mediaType: {kind}",
            referrer.digest, referrer.size
        )?;
        let tag = referrer
            .tag
            .as_ref()
            .map(|tag| format!(", tag: {}", quoted(tag)))
            .unwrap_or_default();
        let subject = referrer
            .subject
            .as_ref()
            .map(|subject| format!(", subject: {subject}"))
            .unwrap_or_default();
        writeln!(out, "{tag}{subject}}}")?;
    }
    write_blobs(out, "referrerBlobs", blobs)
}

/// Writes a single signature on the line `verified:`, and several as a list below it.
pub(crate) fn write_verified(out: &mut dyn Write, verified: &[VerifiedSignature]) -> fmt::Result {
    let text = |signature: &VerifiedSignature| {
        let fields = signature.fields().into_iter();
        let fields: Vec<String> = fields
            .map(|(key, value)| format!("{key}: {}", quoted(&value)))
            .collect();
        format!("{{{}}}", fields.join(", "))
    };
    match verified {
        [] => Ok(()),
        [one] => writeln!(out, "  verified: {}", text(one)),
        many => {
            writeln!(out, "  verified:")?;
            many.iter()
                .try_for_each(|signature| writeln!(out, "  - {}", text(signature)))
        }
    }
}

/// Writes blobs as lines `digest size mediaType`.
pub(crate) fn write_blobs(out: &mut dyn Write, title: &str, blobs: &[Descriptor]) -> fmt::Result {
    if !blobs.is_empty() {
        writeln!(out, "  {title}:")?;
    }
    blobs.iter().try_for_each(|blob| {
        let line = format!("{} {} {}", blob.digest, blob.size, blob.media_type);
        writeln!(out, "  - {}", quoted(&line))
    })
}
