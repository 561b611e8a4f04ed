//! The files of a Helm chart, and the charts that are bundled in it.

use super::archive::{ArchiveBudget, UnpackedFiles, unpack};
use crate::Failure;
use std::collections::BTreeMap;

/// Unpacks the archive of a chart. Returns its files by their paths below its top-level folder.
///
/// # Errors
/// Fails as [`unpack`] does.
pub fn unpack_chart(archive: &[u8], budget: &mut ArchiveBudget) -> Result<UnpackedFiles, Failure> {
    let files = unpack(archive, budget)?;
    // the top-level folder has the name of the chart, or any other name
    let files = files.into_iter().filter_map(|(path, content)| {
        let (_, below) = path.split_once('/')?;
        Some((below.to_owned(), content))
    });
    Ok(files.collect())
}

/// A chart that is bundled in another one: an archive or a folder.
pub enum BundledChart {
    /// The files of a folder.
    Folder(UnpackedFiles),
    /// A `.tgz`.
    Archive(Vec<u8>),
}

/// Returns the charts in the folder `charts/` of a chart with these files, each with the name of
/// its folder or archive: first the archives, then the folders.
pub fn bundled_charts(files: UnpackedFiles) -> Vec<(String, BundledChart)> {
    let mut folders = BTreeMap::<String, UnpackedFiles>::new();
    let mut all = Vec::new();
    for (name, content) in files {
        // Helm ignores names that begin with `_` or `.`
        let Some(below) = name
            .strip_prefix("charts/")
            .filter(|below| !below.starts_with(['_', '.']))
        else {
            continue;
        };
        match below.split_once('/') {
            Some((folder, rest)) => {
                folders
                    .entry(folder.to_owned())
                    .or_default()
                    .insert(rest.to_owned(), content);
            }
            None if below.ends_with(".tgz") => {
                all.push((below.to_owned(), BundledChart::Archive(content)));
            }
            None => {}
        }
    }
    // Helm ignores a folder without a Chart.yaml
    let folders = folders
        .into_iter()
        .filter(|(_, files)| files.contains_key("Chart.yaml"));
    all.extend(folders.map(|(name, files)| (name, BundledChart::Folder(files))));
    all
}
