//! A chart in an HTTP repository: its archive, its provenance file, and its entry in `index.yaml`.

use super::metadata::files_of;
use landfall_content::BlobRead;
use landfall_model::document::{ArchiveBudget, yaml};
use landfall_model::{Descriptor, Limits};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The archive of a locked chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartArchive {
    /// The chart's name in the lock.
    pub item: String,
    /// The name of the chart, as in `app`.
    pub chart: String,
    /// The version of the chart, as in `1.2.3`.
    pub version: String,
    /// The descriptor of the archive, a `.tgz`.
    pub archive: Descriptor,
    /// The descriptor of the provenance file, if the chart has one.
    pub provenance: Option<Descriptor>,
}

impl ChartArchive {
    /// The file name that `helm package` would choose, as in `app-1.2.3.tgz`.
    pub fn file(&self) -> String {
        format!("{}-{}.tgz", self.chart, self.version)
    }

    /// The name of the provenance file, as in `app-1.2.3.tgz.prov`.
    pub fn provenance_file(&self) -> String {
        format!("{}.prov", self.file())
    }

    /// The files of the chart in the repository, by name.
    pub fn files(&self) -> Vec<(String, &Descriptor)> {
        let provenance = self
            .provenance
            .iter()
            .map(|provenance| (self.provenance_file(), provenance));
        std::iter::once((self.file(), &self.archive))
            .chain(provenance)
            .collect()
    }
}

/// The entry of `chart` in an index, as JSON: all of its Chart.yaml, its URL and its digest.
///
/// # Errors
/// If the archive is missing, invalid or too large, or its Chart.yaml is too large for an index.
pub fn index_entry(chart: &ChartArchive, blobs: &dyn BlobRead) -> Result<String, String> {
    let limits = Limits::default();
    if chart.archive.size > limits.archive_bytes {
        return Err(format!(
            "its archive has more than {} bytes",
            limits.archive_bytes
        ));
    }
    let archive = blobs
        .read(&chart.archive)
        .map_err(|error| error.to_string())?;
    let mut files = files_of(&archive, &mut ArchiveBudget::new(&limits))?;
    let text = files
        .remove("Chart.yaml")
        .ok_or("its archive contains no Chart.yaml")?;
    // only Chart.yaml is needed from here on, and the unpacked chart may be large
    drop((archive, files));
    let limit = limits.chart_entry_bytes;
    if text.len() > limit {
        return Err(format!("its Chart.yaml has more than {limit} bytes"));
    }
    let mut entry: Map<String, Value> =
        yaml::from_slice(&text).map_err(|error| format!("its Chart.yaml: {error}"))?;
    // clients search by name and version, so the verified values of the lock replace those of the
    // archive
    entry.insert("name".into(), json!(chart.chart));
    entry.insert("version".into(), json!(chart.version));
    entry.insert("urls".into(), json!([chart.file()]));
    entry.insert("digest".into(), json!(chart.archive.digest.hex()));
    let entry = Value::from(entry).to_string();
    // YAML aliases may repeat large values, so the result is bounded, too
    if entry.len() > limit {
        Err(format!("its Chart.yaml has more than {limit} bytes"))
    } else {
        Ok(entry)
    }
}

/// The `index.yaml` with these entries, each with the name of its chart. The same entries in the
/// same order give the same text.
pub fn index<'e>(entries: impl IntoIterator<Item = (&'e str, String)>) -> String {
    let mut charts = BTreeMap::<&str, Vec<String>>::new();
    for (chart, entry) in entries {
        charts.entry(chart).or_default().push(entry);
    }
    // JSON is valid YAML; one entry on each line stays readable and works with line tools
    let mut text = String::from("apiVersion: v1\nentries:");
    if charts.is_empty() {
        text += " {}";
    }
    text.push('\n');
    for (name, versions) in charts {
        text += &format!("  {}:\n", json!(name));
        for version in versions {
            text += &format!("  - {version}\n");
        }
    }
    text
}

/// The first of `charts` with a file that has the same name as a file of `chart` but different
/// content, and the name of that file. All archives are compared before any provenance file.
pub fn clash<'c>(
    charts: &'c [ChartArchive],
    chart: &ChartArchive,
) -> Option<(&'c ChartArchive, String)> {
    let same_name: Vec<&ChartArchive> = charts
        .iter()
        .filter(|other| other.file() == chart.file())
        .collect();
    let archive = &chart.archive.digest;
    if let Some(other) = same_name
        .iter()
        .copied()
        .find(|other| other.archive.digest != *archive)
    {
        return Some((other, chart.file()));
    }
    let provenance = chart.provenance.as_ref()?;
    let other = same_name.into_iter().find(|other| {
        let others = other.provenance.as_ref();
        others.is_some_and(|others| others.digest != provenance.digest)
    })?;
    Some((other, chart.provenance_file()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Digest;

    fn chart(archive: &[u8], provenance: Option<&[u8]>) -> ChartArchive {
        let descriptor = |content: &[u8]| Descriptor {
            digest: Digest::sha256(content),
            size: content.len() as u64,
            media_type: "application/gzip".into(),
        };
        ChartArchive {
            item: "a".into(),
            chart: "app".into(),
            version: "1.0.0".into(),
            archive: descriptor(archive),
            provenance: provenance.map(descriptor),
        }
    }

    #[test]
    fn charts_clash_by_their_archives_or_by_their_provenance_files() {
        let charts = [chart(b"1", None), chart(b"1", Some(b"p"))];
        let file_of = |chart: &ChartArchive| clash(&charts, chart).map(|(_, file)| file);
        assert_eq!(file_of(&chart(b"1", None)), None);
        assert_eq!(file_of(&chart(b"1", Some(b"p"))), None);
        assert_eq!(
            file_of(&chart(b"1", Some(b"q"))).as_deref(),
            Some("app-1.0.0.tgz.prov")
        );
        assert_eq!(
            file_of(&chart(b"2", Some(b"q"))).as_deref(),
            Some("app-1.0.0.tgz")
        );
    }
}
