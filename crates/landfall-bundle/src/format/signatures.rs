//! The signatures of a bundle: armored texts over the contents index, in a skippable frame before
//! the footer. They are not part of the index, so they do not change the bundle digest.

use super::footer::{SKIPPABLE, SKIPPABLE_HEAD, skippable};

/// The beginnings of the first and the last line of an armored signature.
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// Encodes the frame with these signatures; returns no bytes if there are none. A line feed
/// precedes the first signature, so that text tools find it at the beginning of a line.
pub(crate) fn to_frame(texts: &[String]) -> Vec<u8> {
    if texts.is_empty() {
        Vec::new()
    } else {
        skippable(format!("\n{}", texts.concat()).as_bytes())
    }
}

/// Parses the signatures in a frame; `None` unless it is exactly as [`to_frame`] writes it.
pub(crate) fn parse(frame: &[u8]) -> Option<Vec<String>> {
    if frame.is_empty() {
        return Some(Vec::new());
    }
    let text = frame
        .strip_prefix(&SKIPPABLE)?
        .get(SKIPPABLE_HEAD - SKIPPABLE.len()..)?;
    let mut texts: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in std::str::from_utf8(text)
        .ok()?
        .strip_prefix('\n')?
        .split_inclusive('\n')
    {
        if !is_open {
            is_open = line.starts_with(BEGIN);
            texts.push(String::new());
        }
        texts.last_mut()?.push_str(line);
        is_open &= !line.starts_with(END);
    }
    let are_whole = texts
        .iter()
        .all(|text| text.starts_with(BEGIN) && text.contains(END) && text.ends_with('\n'));
    (!is_open && are_whole && to_frame(&texts) == frame).then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read_as_they_were_written_and_other_bytes_are_refused() {
        let text = |word: &str| format!("-----BEGIN {word}-----\nabc\ndef\n-----END {word}-----\n");
        for texts in [
            vec![],
            vec![text("A")],
            vec![text("A"), text("B"), text("A")],
        ] {
            let frame = to_frame(&texts);
            assert_eq!(parse(&frame), Some(texts), "{frame:?}");
        }
        let good = to_frame(&[text("A")]);
        for bad in [
            good[..good.len() - 1].to_vec(),
            good[..6].to_vec(),
            [&good[..], b"x"].concat(),
            skippable(b"\n"),
            skippable(b"\nrest\n"),
            skippable(format!("\n{}rest\n", text("A")).as_bytes()),
            skippable(text("A").as_bytes()),
            skippable(b"\n-----BEGIN A-----\nabc\n"),
            skippable(b"\xff\n"),
        ] {
            assert_eq!(parse(&bad), None, "{bad:?}");
        }
    }
}
