//! Rewrites Helm charts in archives (`.tgz`). The same content gives the same bytes; an archive in
//! which nothing changes keeps its bytes.

use crate::chart::ChartError;
use crate::index::ReferenceIndex;
use crate::inputs::{RewriteError, is_read_in_folder};
use crate::scan::{RewriteResult, rewrite};
use crate::scan_result::{RewriteOptions, TextSyntax};
use flate2::{Compression, GzBuilder};
use landfall_model::document::{ArchiveBudget, GzipReader, TarForm, unreadable_archive};
use landfall_model::{Failure, Limits};
use std::io::{self, Read, Write};
use std::path::Path;

/// A rewritten archive of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenChart {
    /// The new archive; the old one if nothing changed.
    pub bytes: Vec<u8>,
    /// The texts that were read, changed or not.
    pub members: Vec<RewrittenText>,
}

/// A text and its rewritten form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenText {
    /// The path of the text in the archive. For a text of a nested chart, it begins with the path
    /// of the nested archive.
    pub path: String,
    /// The text as it is in the archive.
    pub old: String,
    /// The rewritten text, with its references.
    pub new: RewriteResult,
}

/// The archive of a chart cannot be rewritten.
impl From<ChartError> for RewriteError {
    fn from(error: ChartError) -> RewriteError {
        RewriteError::File(Failure::usage(format!("{error}; left unchanged")))
    }
}

/// One header of a tar with the content that follows it.
struct RawTarEntry {
    header: tar::Header,
    content: Vec<u8>,
    /// The path, if the entry is a regular file.
    path: Option<String>,
}

impl RawTarEntry {
    fn set_content(&mut self, content: Vec<u8>) {
        self.header.set_size(content.len() as u64);
        self.header.set_cksum();
        self.content = content;
    }
}

/// Rewrites the texts of the chart in the archive `bytes`, and those of charts within it.
///
/// # Errors
/// If the archive is not a chart, cannot be read, or exceeds the limits.
pub fn rewrite_chart(
    bytes: &[u8],
    index: &ReferenceIndex,
    options: RewriteOptions,
) -> Result<RewrittenChart, ChartError> {
    let limits = Limits::default();
    let mut budget = ArchiveBudget::new(&limits);
    rewrite_nested(bytes, index, options, &mut budget, 0)
}

/// Rewrites a chart that is nested in `depth` other charts. The chart and all charts within it
/// share `budget`.
fn rewrite_nested(
    bytes: &[u8],
    index: &ReferenceIndex,
    options: RewriteOptions,
    budget: &mut ArchiveBudget,
    depth: usize,
) -> Result<RewrittenChart, ChartError> {
    let limits = Limits::DEFAULT;
    let mut entries = entries(bytes, budget)?;
    let is_chart = |raw: &RawTarEntry| {
        raw.path
            .as_ref()
            .is_some_and(|path| path.ends_with("/Chart.yaml"))
    };
    // an archive without a chart is not rewritten, because nothing is known about its content
    if !entries.iter().any(is_chart) {
        return Err(ChartError::NoChart(Failure::usage(
            "not a chart: it has no Chart.yaml",
        )));
    }
    let mut members = Vec::new();
    let mut changed = false;
    for at in 0..entries.len() {
        let (before, rest) = entries.split_at_mut(at);
        let raw = &mut rest[0];
        let Some(path) = raw.path.clone() else {
            continue;
        };
        let new = if path.ends_with(".tgz") && depth < limits.embedded_depth {
            let inner = match rewrite_nested(&raw.content, index, options, budget, depth + 1) {
                Ok(inner) => inner,
                Err(ChartError::Failed(inner)) if is_subchart(&path) => {
                    return Err(Failure::usage(format!("{path}: {inner}")).into());
                }
                // an archive without a chart stays unchanged, and so does an archive outside
                // `charts/` that cannot be rewritten
                Err(_) => continue,
            };
            members.extend(inner.members.into_iter().map(|member| RewrittenText {
                path: format!("{path}/{}", member.path),
                ..member
            }));
            inner.bytes
        } else {
            // a chart may contain binaries, such as a logo, or an archive that is nested too deeply
            let Ok(old) = std::str::from_utf8(&raw.content) else {
                continue;
            };
            if !is_read_in_folder(Path::new(&path), old.as_bytes()) {
                continue;
            }
            if old.len() > limits.chart_file_bytes {
                let limit = limits.chart_file_bytes;
                return Err(Failure::usage(format!(
                    "{path} has more than {limit} bytes, which Helm refuses in a chart"
                ))
                .into());
            }
            let new = rewrite(old, TextSyntax::of(Path::new(&path)), index, options);
            let bytes = new.text.clone().into_bytes();
            members.push(RewrittenText {
                path,
                old: old.to_owned(),
                new,
            });
            bytes
        };
        if new != raw.content {
            changed = true;
            raw.set_content(new);
            // the extended headers of an entry directly precede the entry
            let own = before
                .iter_mut()
                .rev()
                .take_while(|raw| is_extension(&raw.header));
            let size = raw.content.len();
            own.filter(|raw| raw.header.entry_type().is_pax_local_extensions())
                .for_each(|raw| raw.set_content(with_size(&raw.content, size)));
        }
    }
    // packing again would change the compression, and so the digest, of an unchanged chart
    let bytes = if changed {
        packed(&entries)?
    } else {
        bytes.to_vec()
    };
    Ok(RewrittenChart { bytes, members })
}

/// Whether Helm reads the archive at this path of a chart as a subchart.
fn is_subchart(path: &str) -> bool {
    path.rsplit_once('/')
        .is_some_and(|(folder, name)| folder.ends_with("/charts") && !name.starts_with(['_', '.']))
}

/// Returns every header in order. Long names and PAX records are entries of their own.
fn entries(bytes: &[u8], budget: &mut ArchiveBudget) -> Result<Vec<RawTarEntry>, ChartError> {
    let mut found = Vec::new();
    let mut gnu_path: Option<String> = None;
    let mut pax_path: Option<String> = None;
    budget.members(bytes, TarForm::Headers, |entry| {
        let mut content = Vec::new();
        entry
            .read_to_end(&mut content)
            .map_err(unreadable_archive)?;
        let header = entry.header().clone();
        let kind = header.entry_type();
        let mut path = None;
        if kind.is_gnu_longname() {
            gnu_path = Some(
                String::from_utf8_lossy(&content)
                    .trim_end_matches('\0')
                    .to_owned(),
            );
        } else if kind.is_pax_local_extensions() {
            pax_path = pax_record_path(&content);
        } else if !is_extension(&header) {
            let own = || String::from_utf8_lossy(&header.path_bytes()).into_owned();
            // as in archive/tar of Go, with which Helm reads charts, the name of GNU tar wins
            let long = gnu_path.take().or(pax_path.take());
            path = kind.is_file().then(|| long.unwrap_or_else(own));
        }
        found.push(RawTarEntry {
            header,
            content,
            path,
        });
        Ok::<(), ChartError>(())
    })?;
    Ok(found)
}

/// Whether a header only describes the next file.
fn is_extension(header: &tar::Header) -> bool {
    let kind = header.entry_type();
    kind.is_pax_local_extensions() || kind.is_gnu_longname() || kind.is_gnu_longlink()
}

/// Packs the entries into a gzipped tar.
fn packed(entries: &[RawTarEntry]) -> Result<Vec<u8>, ChartError> {
    let mut tar = Vec::new();
    for raw in entries {
        tar.extend_from_slice(raw.header.as_bytes());
        tar.extend_from_slice(&raw.content);
        tar.resize(tar.len().next_multiple_of(BLOCK), 0);
    }
    tar.resize(tar.len() + 2 * BLOCK, 0);
    compress(&tar)
        .map_err(|error| Failure::usage(format!("cannot compress the archive: {error}")).into())
}

/// The block size of tar, in bytes.
const BLOCK: usize = 512;

// PAX records: the extended headers of tar.

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
pub(super) fn pax_record_path(records: &[u8]) -> Option<String> {
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

/// Compresses `bytes`. The result does not depend on the time or the system.
pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    writer.finish()
}

/// Decompresses `bytes`. `None` if the result has more than `max_bytes` bytes.
pub(crate) fn decompress(bytes: &[u8], max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    GzipReader::new(bytes)
        .take(max_bytes + 1)
        .read_to_end(&mut content)?;
    Ok((content.len() as u64 <= max_bytes).then_some(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::lockfile::Lock;
    use landfall_model::{DestinationMap, Digest};

    fn known() -> ReferenceIndex {
        let digest = Digest::sha256(b"x");
        let lock = format!(
            "version: 1\nimages:\n- {{name: 'quay.io/a/b:v1', digest: {digest}, mediaType: m, size: 1}}\n"
        );
        ReferenceIndex::new(
            &Lock::parse("l", &lock).unwrap(),
            &DestinationMap::to("r:5".parse().unwrap()),
        )
    }

    fn tgz(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o640);
            header.set_mtime(7);
            tar.append_data(&mut header, name, *content).unwrap();
        }
        let mut zip = GzBuilder::new()
            .mtime(99)
            .write(Vec::new(), Compression::fast());
        zip.write_all(&tar.into_inner().unwrap()).unwrap();
        zip.finish().unwrap()
    }

    #[test]
    fn charts_within_charts_and_files_with_long_names_are_rewritten() {
        let long = format!("c/{}/values.yaml", "x".repeat(150));
        let values = b"image: {repository: quay.io/a/b, tag: v1}\n".as_slice();
        let inner = tgz(&[("s/Chart.yaml", b"name: s"), ("s/values.yaml", values)]);
        let outer = tgz(&[
            ("c/Chart.yaml", b"name: c"),
            (&long, values),
            ("c/logo.png", &[0, 159, 146, 150]),
            ("c/README.md", b"quay.io/a/b:v1"),
            ("c/charts/s-1.tgz", &inner),
        ]);
        let done = rewrite_chart(&outer, &known(), RewriteOptions::default()).unwrap();
        let changed: Vec<&str> = done
            .members
            .iter()
            .filter(|m| m.new.text != m.old)
            .map(|m| &*m.path)
            .collect();
        assert_eq!(changed, [&*long, "c/charts/s-1.tgz/s/values.yaml"]);
        let entries = entries(&done.bytes, &mut ArchiveBudget::new(&Limits::default())).unwrap();
        let content = |path: &str| {
            entries
                .iter()
                .find(|raw| raw.path.as_deref() == Some(path))
                .unwrap()
        };
        assert_eq!(
            content(&long).content,
            b"image: {repository: r:5/a/b, tag: v1}\n"
        );
        assert_eq!(
            (
                content(&long).header.mode().unwrap(),
                content(&long).header.mtime().unwrap()
            ),
            (0o640, 7)
        );
        assert_eq!(content("c/README.md").content, b"quay.io/a/b:v1");
        let again = rewrite_chart(&done.bytes, &known(), RewriteOptions::default()).unwrap();
        assert_eq!(again.bytes, done.bytes);
        assert_eq!(
            rewrite_chart(&outer, &known(), RewriteOptions::default())
                .unwrap()
                .bytes,
            done.bytes
        );
    }

    #[test]
    fn pax_records_get_the_size_of_the_new_content() {
        let values = b"image: quay.io/a/b:v1\n".repeat(3);
        let long = "c/values.yaml";
        let mut tar = tar::Builder::new(Vec::new());
        for (path, content) in [("c/Chart.yaml", &b"name: c"[..]), (long, &values)] {
            let size = content.len().to_string();
            let records = [
                ("comment", &b"x"[..]),
                ("size", size.as_bytes()),
                ("path", path.as_bytes()),
            ];
            tar.append_pax_extensions(records).unwrap();
            let mut header = tar::Header::new_ustar();
            header.set_path("short").unwrap();
            header.set_size(content.len() as u64);
            header.set_cksum();
            tar.append(&header, content).unwrap();
        }
        let chart = compress(&tar.into_inner().unwrap()).unwrap();
        let done = rewrite_chart(&chart, &known(), RewriteOptions::default()).unwrap();
        let unpacked = decompress(&done.bytes, 1 << 20).unwrap().unwrap();
        let mut archive = tar::Archive::new(&unpacked[..]);
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((entry.path().unwrap().display().to_string(), text));
        }
        let new = String::from_utf8(values).unwrap().replace("quay.io", "r:5");
        assert_eq!(
            found,
            [
                ("c/Chart.yaml".to_owned(), "name: c".to_owned()),
                (long.to_owned(), new)
            ]
        );
    }

    #[test]
    fn a_long_name_applies_to_the_next_file_after_other_extended_headers() {
        let mut tar = tar::Builder::new(Vec::new());
        let chart = b"name: c".as_slice();
        let values = b"image: quay.io/a/b:v1\n".as_slice();
        let long = b"c/values.yaml\0".as_slice();
        for (kind, name, content) in [
            (tar::EntryType::Regular, "c/Chart.yaml", chart),
            (tar::EntryType::GNULongName, "long", long),
            (tar::EntryType::GNULongLink, "long", b"x\0"),
            (tar::EntryType::Regular, "short", values),
        ] {
            if name == "short" {
                tar.append_pax_extensions([("comment", &b"x"[..])]).unwrap();
            }
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_path(name).unwrap();
            header.set_size(content.len() as u64);
            header.set_cksum();
            tar.append(&header, content).unwrap();
        }
        let chart = compress(&tar.into_inner().unwrap()).unwrap();
        let done = rewrite_chart(&chart, &known(), RewriteOptions::default()).unwrap();
        let paths: Vec<&str> = done.members.iter().map(|one| &*one.path).collect();
        assert_eq!(paths, ["c/Chart.yaml", "c/values.yaml"]);
        assert_eq!(done.members[1].new.text, "image: r:5/a/b:v1\n");
    }

    #[test]
    fn archives_without_a_chart_and_archives_over_the_limit_are_refused() {
        let plain = tgz(&[("a/values.yaml", b"x: quay.io/a/b:v1")]);
        assert!(matches!(
            rewrite_chart(&plain, &known(), RewriteOptions::default()),
            Err(ChartError::NoChart(_))
        ));
        let unreadable = rewrite_chart(b"no gzip", &known(), RewriteOptions::default());
        let error = unreadable.err().unwrap().to_string();
        assert!(error.starts_with("not a readable .tgz: "), "{error}");
        let small = Limits {
            archive_bytes: 100,
            ..Limits::default()
        };
        let large = entries(&plain, &mut ArchiveBudget::new(&small))
            .err()
            .map(|error| error.to_string());
        assert!(large.is_some_and(|why| why.contains("more than 100 bytes")));
    }

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
        assert_eq!(pax_record_path(&old).as_deref(), Some("c/values.yaml"));
        for unreadable in [&b"0 a=b\n"[..], b"99 a=b\n", b"6 ab\n\n", b"", b"x"] {
            assert_eq!(with_size(unreadable, 1), unreadable);
            assert_eq!(pax_record_path(unreadable), None);
        }
    }

    #[test]
    fn decompression_stops_at_the_limit() {
        let bytes = compress(b"eight by").unwrap();
        assert_eq!(
            decompress(&bytes, 8).unwrap().as_deref(),
            Some(b"eight by".as_slice())
        );
        assert_eq!(decompress(&bytes, 7).unwrap(), None);
        // several members: the limit applies to the sum of their sizes
        let twice = bytes.repeat(2);
        assert_eq!(
            decompress(&twice, 16).unwrap().as_deref(),
            Some(b"eight byeight by".as_slice())
        );
        assert_eq!(decompress(&twice, 15).unwrap(), None);
        assert!(decompress(&bytes[..bytes.len() - 4], 8).is_err());
    }
}
