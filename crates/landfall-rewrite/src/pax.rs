//! PAX records: the extended headers of tar.

/// The value of the record `path`.
pub(super) fn path(records: &[u8]) -> Option<String> {
    let mut records = tar::PaxExtensions::new(records).filter_map(Result::ok);
    records
        .find(|record| record.key_bytes() == b"path")
        .map(|record| String::from_utf8_lossy(record.value_bytes()).into())
}

/// The same records, with `size` as the value of the record `size`, if there is one.
pub(super) fn with_size(records: &[u8], size: usize) -> Vec<u8> {
    let mut new = Vec::with_capacity(records.len());
    for record in tar::PaxExtensions::new(records).filter_map(Result::ok) {
        let size = size.to_string();
        let value = if record.key_bytes() == b"size" {
            size.as_bytes()
        } else {
            record.value_bytes()
        };
        add(&mut new, record.key_bytes(), value);
    }
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
