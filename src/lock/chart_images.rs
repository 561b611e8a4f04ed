//! Finds the images of charts that are locked: by reading them, or with the helm that the manifest
//! names.

use landfall_item::lockfile::Lock;
use landfall_item::{ChartImage, Discovery, FindImages, FoundImages, OpenReference};
use landfall_model::document::SourceLocation;
use landfall_model::{Digest, ImageRef, Limits};
use landfall_rewrite::audit::{FileFinding, HelmCommand, Inventory, LockCoverage, chart_images};
use landfall_rewrite::{HelmChart, coalesce, values_of};
use serde_yaml::Mapping;
use std::collections::BTreeMap;
use std::io::Write;

/// Finds the images of charts.
pub(crate) struct ChartImages(pub Limits);

impl FindImages for ChartImages {
    fn images(
        &self,
        archive: &[u8],
        digest: &Digest,
        how: &Discovery,
    ) -> Result<FoundImages, String> {
        let chart = HelmChart::of_archive(&digest.short(12), archive, &self.0)
            .map_err(|error| error.to_string())?;
        let mut user = Mapping::new();
        for values in &how.values {
            let mut next = values_of("values", values)
                .map_err(|error| format!("its values: {}", error.message))?;
            coalesce(&mut next, &user);
            user = next;
        }
        let rendered = match &how.helm {
            Some(version) => Some(render(archive, version, how)?),
            None => None,
        };
        // nothing is held: all that is found is wanted
        let (nothing, today) = (Lock::default(), String::new());
        let inventory = Inventory::new(&nothing, None, None, &today);
        let found = chart_images(chart, &user, rendered.as_deref(), &inventory);
        Ok(sorted(
            found.map_err(|error| format!("its values: {error}"))?,
        ))
    }
}

/// What the helm of this `version` makes of the chart.
fn render(archive: &[u8], version: &str, how: &Discovery) -> Result<String, String> {
    let kept = |content: &[u8], ending: &str| {
        let mut file = tempfile::Builder::new()
            .suffix(ending)
            .tempfile()
            .map_err(|error| error.to_string())?;
        file.write_all(content).map_err(|error| error.to_string())?;
        Ok::<_, String>(file)
    };
    let chart = kept(archive, ".tgz")?;
    let values = how
        .values
        .iter()
        .map(|values| kept(values.as_bytes(), ".yaml"))
        .collect::<Result<Vec<_>, _>>()?;
    let paths: Vec<_> = values
        .iter()
        .map(|file| file.path().to_path_buf())
        .collect();
    let helm = HelmCommand::find(std::env::var_os("PATH").as_deref(), &paths);
    let helm = helm
        .ok_or_else(|| format!("the manifest names helm {version}, and there is none on PATH"))?;
    let found = helm.version().map_err(|error| format!("helm: {error}"))?;
    if found != version && !found.starts_with(&format!("{version}.")) {
        return Err(format!(
            "the manifest names helm {version}, and the one on PATH is {found}"
        ));
    }
    let helm = helm.for_kubernetes(how.kubernetes.as_deref());
    helm.template(chart.path())
        .map_err(|error| format!("helm cannot render it: {error}"))
}

/// Each image once, with the first place that names it; and what is open.
fn sorted(found: Vec<FileFinding>) -> FoundImages {
    let mut images: BTreeMap<String, ChartImage> = BTreeMap::new();
    let mut open: BTreeMap<String, OpenReference> = BTreeMap::new();
    for FileFinding { file, finding } in found {
        let at = if finding.path.is_empty() && finding.line == 1 && finding.column == 1 {
            file
        } else {
            SourceLocation {
                file,
                line: finding.line,
                column: finding.column,
            }
            .to_string()
        };
        let mut leave = |why: String| {
            let reference = finding.reference.clone();
            open.entry(reference.clone()).or_insert(OpenReference {
                reference,
                at: at.clone(),
                why,
            });
        };
        match finding.coverage {
            LockCoverage::Missing {
                name: Some(name), ..
            } => match name {
                ImageRef {
                    tag: None,
                    digest: None,
                    ..
                } => leave("it names no version".into()),
                name => {
                    images
                        .entry(name.to_string())
                        .or_insert(ChartImage { name, at });
                }
            },
            LockCoverage::Undecided { why } | LockCoverage::Ambiguous { why, .. } => leave(why),
            LockCoverage::Missing { why, .. } => leave(why),
            LockCoverage::Held { .. } => {}
        }
    }
    FoundImages {
        images: images.into_values().collect(),
        open: open.into_values().collect(),
    }
}
