//! A chart as an HTTP repository offers it: its archive, its provenance, and its entry in
//! `index.yaml`.

use super::metadata::files_of;
use landfall_content::BlobRead;
use landfall_model::document::{ArchiveBudget, yaml};
use landfall_model::{Descriptor, Digest, Limits};
use serde_json::{Map, Value, json};

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
    /// Its provenance, where it has one.
    pub provenance: Option<Descriptor>,
}

impl ChartArchive {
    /// The file name that `helm package` would choose, as in `app-1.2.3.tgz`.
    pub fn file(&self) -> String {
        format!("{}-{}.tgz", self.chart, self.version)
    }

    /// The files of the repository that belong to it, by name.
    pub fn files(&self) -> Vec<(String, &Descriptor)> {
        let provenance = self
            .provenance
            .iter()
            .map(|beside| (format!("{}.prov", self.file()), beside));
        std::iter::once((self.file(), &self.archive))
            .chain(provenance)
            .collect()
    }
}

/// The entry of `chart` in an index as JSON: all that its Chart.yaml says, and where it is.
///
/// # Errors
/// When the archive is not there, cannot be read, or says more than an index should hold.
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
        .ok_or("its archive holds no Chart.yaml")?;
    drop((archive, files));
    let most = limits.chart_entry_bytes;
    let large = || format!("its Chart.yaml has more than {most} bytes");
    if text.len() > most {
        return Err(large());
    }
    let mut entry: Map<String, Value> =
        yaml::from_slice(&text).map_err(|error| format!("its Chart.yaml: {error}"))?;
    // clients ask by these, and the lock has checked them
    entry.insert("name".into(), json!(chart.chart));
    entry.insert("version".into(), json!(chart.version));
    entry.insert("urls".into(), json!([chart.file()]));
    entry.insert("digest".into(), json!(chart.archive.digest.hex()));
    let entry = Value::from(entry).to_string();
    // aliases may repeat what is in it
    if entry.len() > most {
        Err(large())
    } else {
        Ok(entry)
    }
}

/// The `index.yaml` of charts with these entries. Equal charts give equal text.
pub fn index<'e>(entries: impl IntoIterator<Item = (&'e ChartArchive, String)>) -> String {
    let mut charts = std::collections::BTreeMap::<&str, Vec<String>>::new();
    entries
        .into_iter()
        .for_each(|(chart, entry)| charts.entry(&chart.chart).or_default().push(entry));
    // YAML reads JSON, and one entry a line is read by people and by line
    let mut text = String::from("apiVersion: v1\nentries:");
    if charts.is_empty() {
        text += " {}";
    }
    text.push('\n');
    for (name, versions) in charts {
        text += &format!("  {}:\n", json!(name));
        versions
            .iter()
            .for_each(|version| text += &format!("  - {version}\n"));
    }
    text
}

/// The first two charts that would have one file name and are not the same.
pub fn clash<'c>(charts: &'c [ChartArchive], of: &ChartArchive) -> Option<&'c ChartArchive> {
    let digest = |chart: &ChartArchive| -> Digest { chart.archive.digest.clone() };
    charts
        .iter()
        .find(|other| other.file() == of.file() && digest(other) != digest(of))
}
