//! What kinds share to write and check their text in the lock.

/// A YAML scalar: plain where that is safe in block and flow context, else in double quotes. It
/// reads back as `text`, whatever that is: servers choose some of these texts.
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

/// Whether YAML reads `c` in double quotes as itself. JSON allows more (YAML 1.2.2, 5.1 and 5.4).
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// Largest size of one piece, in bytes: 8 PiB, what a JSON number holds exactly.
const LARGEST: u64 = 1 << 53;

/// What is wrong with sizes that cannot be added up.
pub(super) fn oversize(sizes: impl IntoIterator<Item = u64>) -> Option<String> {
    let size = sizes.into_iter().find(|size| *size > LARGEST)?;
    Some(format!("nothing has {size} bytes"))
}

/// The host in the name of an item: what stands before the first `/`, without a scheme. Empty in a
/// name without one.
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
