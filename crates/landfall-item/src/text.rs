//! Helpers to write values into the lock and other YAML documents, and to check them.

use landfall_model::Platform;

/// `text` as a YAML scalar: plain if that is safe in block and flow context, otherwise in double
/// quotes. It parses back to `text` for any content, since servers choose some of these texts.
pub fn quoted(text: &str) -> String {
    if is_plain_scalar(text) {
        return text.into();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in serde_json::to_string(text).unwrap_or_default().chars() {
        if is_printable(c) {
            quoted.push(c);
        } else {
            quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    quoted
}

/// `platform` as a YAML scalar. Its variant may be any text without `/` (image-index.md).
pub(crate) fn platform_text(platform: &Platform) -> String {
    quoted(&platform.to_string())
}

/// Whether `text` is surely a string if it is written without quotes. Returns false in doubt.
fn is_plain_scalar(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_safe = |(at, byte): (usize, &u8)| {
        byte.is_ascii_alphanumeric()
            || b"._/+-@%~=&;() ".contains(byte)
            // a colon and a space would begin the value of a mapping
            || (*byte == b':' && bytes.get(at + 1).is_some_and(|&next| next != b' '))
    };
    // YAML 1.1 reads these words as booleans or null, and a text that begins with a digit may be a
    // number
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && !text.ends_with(' ')
        && !reserved.contains(&text.to_ascii_lowercase().as_str())
        && bytes.iter().enumerate().all(is_safe)
}

/// Whether `c` may be written as it is between double quotes. JSON allows more than YAML does (YAML
/// 1.2.2, sections 5.1 and 5.4).
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// The largest plausible size of one blob in bytes: 8 PiB, the largest number that every JSON
/// parser reads exactly.
const LARGEST: u64 = 1 << 53;

/// A message if one of the sizes is implausible. Sizes in a lock may come from a hostile server.
pub(super) fn oversize(sizes: impl IntoIterator<Item = u64>) -> Option<String> {
    let size = sizes.into_iter().find(|size| *size > LARGEST)?;
    Some(format!("{size} bytes is not a plausible size"))
}

/// The host in the name of an item: the text before the first `/`, without a scheme. Empty if the
/// name has no host.
pub fn host_in(name: &str) -> &str {
    let rest = name.split_once("://").map_or(name, |(_, rest)| rest);
    rest.split_once('/').map_or("", |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_host_in_front() {
        let names = [
            "quay.io/a/b:1",
            "https://dl.k8s.io/release/x",
            "oci://ghcr.io:443/c:1",
            "quickstart",
        ];
        assert_eq!(
            names.map(host_in),
            ["quay.io", "dl.k8s.io", "ghcr.io:443", ""]
        );
    }

    #[test]
    fn unusual_texts_parse_back_unchanged() {
        for text in [
            "0755", "a: b", "x #y", "", "true", "- a", "{a}", "a, b", "é", "a\nb", " a", "a ",
        ] {
            let document = format!("k: {}\nf: {{k: {}}}", quoted(text), quoted(text));
            let value: serde_json::Value = serde_yaml::from_str(&document).unwrap();
            assert_eq!(value["k"], text);
            assert_eq!(value["f"]["k"], text);
        }
    }
}
