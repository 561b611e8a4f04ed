//! The charts as an HTTP repository: `/charts/index.yaml`, `/charts/<name>-<version>.tgz` and its
//! `.prov`.

use crate::response::RequestError;
use bytes::Bytes;
use landfall_content::BlobRead;
use landfall_item::{ChartArchive, chart_index, clash, index_entry};
use landfall_model::Digest;
use landfall_model::report::Progress;
use percent_encoding::percent_decode_str;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// The file that lists the charts.
pub(crate) const CHART_INDEX: &str = "index.yaml";

/// The charts of all bundles.
#[derive(Default)]
pub(crate) struct ChartTable {
    charts: Vec<ChartArchive>,
    /// The content of each file by its name, or why the name is ambiguous.
    files: BTreeMap<String, Result<Digest, String>>,
    /// Shared with the responses that send it.
    index: OnceLock<Bytes>,
}

impl ChartTable {
    /// Adds a chart. If a chart with the same name and version has another archive, no archive is
    /// served under that name; if it has another provenance file, no provenance file is served.
    /// Each conflict adds a warning.
    pub(crate) fn add(&mut self, chart: ChartArchive, warnings: &mut Vec<String>) {
        // several bundles may contain the same chart
        if self.charts.contains(&chart) {
            return;
        }
        for (name, content) in chart.files() {
            self.files.insert(name, Ok(content.digest.clone()));
        }
        if let Some((other, file)) = clash(&self.charts, &chart) {
            let why = format!(
                "{file} is ambiguous: both {} and {} have this name; pull one of them from the \
                 registry",
                other.item, chart.item
            );
            if file == chart.file() {
                self.files.insert(file, Err(why.clone()));
            }
            // a provenance file must not be served for an ambiguous archive either
            self.files.insert(chart.provenance_file(), Err(why.clone()));
            warnings.push(format!("/charts/{why}"));
        }
        self.charts.push(chart);
    }

    /// Whether there are no charts.
    pub(crate) fn is_empty(&self) -> bool {
        self.charts.is_empty()
    }

    /// The content of a file below `/charts/`. Fails if there is no such file or its name is
    /// ambiguous.
    pub(crate) fn find(&self, path: &str) -> Result<&Digest, RequestError> {
        let name = percent_decode_str(path).decode_utf8_lossy();
        let message = match self.files.get(&*name) {
            Some(Ok(digest)) => return Ok(digest),
            Some(Err(ambiguous)) => ambiguous.clone(),
            None => {
                format!("the chart {name} is not served here; /charts/{CHART_INDEX} lists all")
            }
        };
        Err(RequestError::not_found("NAME_UNKNOWN", message))
    }

    /// The index of the repository. The first call reads every archive, since the index repeats
    /// the Chart.yaml of each chart; a chart that cannot be read is omitted with a warning.
    pub(crate) fn index(&self, blobs: &dyn BlobRead, progress: &dyn Progress) -> Bytes {
        let index = self.index.get_or_init(|| {
            let mut names = BTreeSet::new();
            let mut entries = Vec::new();
            for chart in &self.charts {
                let file = chart.file();
                let is_served = matches!(self.files.get(&file), Some(Ok(_)));
                // an ambiguous chart is not served, so the index must not list it
                if !is_served || !names.insert(file) {
                    continue;
                }
                match index_entry(chart, blobs) {
                    Ok(entry) => entries.push((&*chart.chart, entry)),
                    Err(why) => {
                        let item = &chart.item;
                        progress.note(&format!("/charts/{CHART_INDEX} omits {item}: {why}"));
                    }
                }
            }
            chart_index(entries).into()
        });
        index.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Descriptor;

    fn chart(item: &str, version: &str, content: &[u8]) -> ChartArchive {
        let archive = Descriptor::of(content, "application/gzip");
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
    fn files_of_the_first_chart_become_ambiguous_too() {
        let mut table = ChartTable::default();
        let mut notes = Vec::new();
        table.add(chart("x", "2.0.0", b"2"), &mut notes);
        let mut unsigned = chart("y", "2.0.0", b"3");
        unsigned.provenance = None;
        table.add(unsigned, &mut notes);
        assert!(table.find("app-2.0.0.tgz.prov").is_err());

        // one archive with two provenance files
        table.add(chart("x", "3.0.0", b"4"), &mut notes);
        let mut signed_again = chart("y", "3.0.0", b"4");
        signed_again.provenance = Some(signed_again.archive.clone());
        table.add(signed_again, &mut notes);
        assert!(table.find("app-3.0.0.tgz").is_ok());
        let two = table.find("app-3.0.0.tgz.prov").unwrap_err().message;
        assert!(two.contains("both x and y"), "{two}");
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn a_chart_has_an_archive_and_a_provenance_file_and_an_ambiguous_name_fails() {
        let mut table = ChartTable::default();
        let mut notes = Vec::new();
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
        for path in ["../app-1.0.0+b.tgz", "app-1.0.0+b", "app-1.0.0.tgz"] {
            let unknown = table.find(path).unwrap_err().message;
            assert!(unknown.contains("is not served here"), "{path}: {unknown}");
        }
    }
}
