//! PAX records: the extended headers of tar.

/// One record: `<length> <key>=<value>` and a line feed. A value may contain line feeds, such as an
/// extended attribute of macOS, which the records of the crate `tar` cannot have.
struct PaxRecord<'r> {
    /// All bytes of the record.
    bytes: &'r [u8],
    key: &'r [u8],
    value: &'r [u8],
}

impl<'r> PaxRecord<'r> {
    /// The first record of `records`; `None` if it cannot be read.
    fn first(records: &'r [u8]) -> Option<PaxRecord<'r>> {
        let blank = records.iter().position(|byte| *byte == b' ')?;
        let length = std::str::from_utf8(&records[..blank]).ok()?;
        let bytes = records.get(..length.parse().ok()?)?;
        let content = bytes.get(blank + 1..)?.strip_suffix(b"\n")?;
        let equals = content.iter().position(|byte| *byte == b'=')?;
        Some(PaxRecord {
            bytes,
            key: &content[..equals],
            value: &content[equals + 1..],
        })
    }
}

/// The value of the record `path`. As in POSIX, the last one counts.
pub(super) fn path(records: &[u8]) -> Option<String> {
    let mut path = None;
    let mut rest = records;
    while let Some(record) = PaxRecord::first(rest) {
        rest = &rest[record.bytes.len()..];
        if record.key == b"path" {
            path = Some(String::from_utf8_lossy(record.value).into());
        }
    }
    path
}

/// The same bytes, with `size` as the value of the record `size`, if there is one.
pub(super) fn with_size(records: &[u8], size: usize) -> Vec<u8> {
    let mut new = Vec::with_capacity(records.len());
    let mut rest = records;
    while let Some(record) = PaxRecord::first(rest) {
        rest = &rest[record.bytes.len()..];
        if record.key == b"size" {
            add(&mut new, record.key, size.to_string().as_bytes());
        } else {
            new.extend_from_slice(record.bytes);
        }
    }
    new.extend_from_slice(rest);
    new
}

/// Adds `<length> <key>=<value>`. The length includes its own digits (POSIX.1-2017, pax).
fn add(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + " =\n".len();
    let mut len = rest;
    while len < rest + len.to_string().len() {
        len = rest + len.to_string().len();
    }
    records.extend([len.to_string().as_bytes(), b" ", key, b"=", value, b"\n"].concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_line_feeds_and_unreadable_bytes_are_kept() {
        let records = |size: &[u8]| {
            let mut records = Vec::new();
            add(&mut records, b"SCHILY.xattr.x", b"\x01\n\n\x02");
            add(&mut records, b"path", b"first");
            add(&mut records, b"size", size);
            add(&mut records, b"path", b"c/values.yaml");
            records.extend(b"\0rest");
            records
        };
        let old = records(b"9");
        assert_eq!(with_size(&old, 1234), records(b"1234"));
        assert_eq!(path(&old).as_deref(), Some("c/values.yaml"));
        for unreadable in [&b"0 a=b\n"[..], b"99 a=b\n", b"6 ab\n\n", b"", b"x"] {
            assert_eq!(with_size(unreadable, 1), unreadable);
            assert_eq!(path(unreadable), None);
        }
    }
}
