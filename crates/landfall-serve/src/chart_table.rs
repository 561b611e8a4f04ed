//! The charts as an HTTP repository: `/charts/index.yaml`, `/charts/<name>-<version>.tgz` and its
//! `.prov`.

use super::response::ApiError;
use landfall_content::BlobRead;
use landfall_item::{ChartArchive, chart_index, clash, index_entry};
use landfall_model::Digest;
use landfall_model::report::Progress;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The file that lists the charts.
pub(super) const INDEX: &str = "index.yaml";

/// The charts of all bundles.
#[derive(Default)]
pub(super) struct ChartTable {
    charts: Vec<ChartArchive>,
    /// The name of each file, with its content; or what is wrong with the name.
    files: BTreeMap<String, Result<Digest, String>>,
    index: OnceLock<String>,
}

impl ChartTable {
    /// Adds a chart. Where two have one name and version, neither has it here, and a note says so.
    pub(super) fn add(&mut self, chart: ChartArchive, notes: &mut Vec<String>) {
        if self.charts.contains(&chart) {
            return;
        }
        let two = clash(&self.charts, &chart).map(|other| {
            format!(
                "{} would be both {} and {}; ask the registry for one of them",
                chart.file(),
                other.item,
                chart.item
            )
        });
        for (name, content) in chart.files() {
            let held = two.clone().map_or_else(|| Ok(content.digest.clone()), Err);
            self.files.insert(name, held);
        }
        notes.extend(two.map(|two| format!("/charts/{two}")));
        self.charts.push(chart);
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.charts.is_empty()
    }

    /// The content of a file below `/charts/`.
    ///
    /// # Errors
    /// When there is no such file, or the name has two meanings.
    pub(super) fn find(&self, path: &str) -> Result<&Digest, ApiError> {
        let name = percent_decode_str(path).decode_utf8_lossy();
        let unknown = |message: String| ApiError::not_found("NAME_UNKNOWN", message);
        match self.files.get(&*name) {
            Some(Ok(digest)) => Ok(digest),
            Some(Err(two)) => Err(unknown(two.clone())),
            None => Err(unknown(format!(
                "there is no chart {name} here; /charts/{INDEX} lists what there is"
            ))),
        }
    }

    /// The index. Its first reader has the archives read, for what the charts say of themselves.
    pub(super) fn index(&self, blobs: &dyn BlobRead, notes: &dyn Progress) -> &str {
        self.index.get_or_init(|| {
            let offered = self
                .charts
                .iter()
                .filter(|chart| matches!(self.files.get(&chart.file()), Some(Ok(_))));
            let mut names = std::collections::BTreeSet::new();
            let entries = offered
                .filter(|chart| names.insert(chart.file()))
                .filter_map(|chart| {
                    let entry = index_entry(chart, blobs);
                    let failed = |why: &String| {
                        notes.note(&format!("/charts/{INDEX} leaves out {}: {why}", chart.item));
                    };
                    Some((chart, entry.inspect_err(failed).ok()?))
                });
            chart_index(entries)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Descriptor;

    fn chart(item: &str, version: &str, content: &[u8]) -> ChartArchive {
        let archive = Descriptor {
            digest: Digest::sha256(content),
            size: content.len() as u64,
            media_type: "application/gzip".into(),
        };
        let provenance = Some(Descriptor {
            digest: Digest::sha256(b"signed"),
            ..archive.clone()
        });
        ChartArchive {
            item: item.into(),
            chart: "app".into(),
            version: version.into(),
            archive,
            provenance,
        }
    }

    #[test]
    fn a_chart_has_its_archive_and_its_provenance_and_no_second_meaning() {
        let (mut table, mut notes) = (ChartTable::default(), Vec::new());
        for (item, version, content) in [
            ("a", "1.0.0+b", b"1"),
            ("a", "1.0.0+b", b"1"),
            ("x", "2.0.0", b"2"),
            ("y", "2.0.0", b"3"),
        ] {
            table.add(chart(item, version, content), &mut notes);
        }
        assert_eq!(
            table.find("app-1.0.0+b.tgz").unwrap(),
            &Digest::sha256(b"1")
        );
        assert_eq!(
            table.find("app-1.0.0%2Bb.tgz.prov").unwrap(),
            &Digest::sha256(b"signed")
        );
        let two = table.find("app-2.0.0.tgz").unwrap_err().message;
        assert!(two.contains("both x and y"), "{two}");
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(table.find("../app-1.0.0.tgz").is_err());
    }
}
