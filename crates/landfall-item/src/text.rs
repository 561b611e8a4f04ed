//! Helpers to write values into the lock and to check them.

/// `text` as a YAML scalar: plain if that is safe in block and flow context, otherwise in double
/// quotes. It parses back to `text` whatever it contains, since servers choose some of these texts.
pub fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-@%~=&;() ".contains(&byte);
    let safe = text.bytes().enumerate().all(|(at, byte)| {
        plain(byte)
            || (byte == b':'
                && text
                    .as_bytes()
                    .get(at + 1)
                    .is_some_and(|&next| next != b' '))
    });
    let starts_well = text
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic());
    let word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let reserved = word.contains(&text.to_ascii_lowercase().as_str());
    if safe && starts_well && !reserved && !text.ends_with(' ') {
        text.into()
    } else {
        let json = serde_json::to_string(text).unwrap_or_default();
        let escaped = |c: char| {
            if is_printable(c) {
                c.to_string()
            } else {
                format!("\\u{:04x}", u32::from(c))
            }
        };
        json.chars().map(escaped).collect()
    }
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

/// A message if one of the sizes is implausible or their sum overflows. Sizes in a lock may come
/// from a hostile server.
pub(super) fn oversize(sizes: impl IntoIterator<Item = u64>) -> Option<String> {
    let size = sizes.into_iter().find(|size| *size > LARGEST)?;
    Some(format!("nothing has {size} bytes"))
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
    fn strange_scalars_are_quoted() {
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
