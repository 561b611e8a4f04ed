//! The interface of the code that finds images in charts. Its implementation is in a crate above
//! this one, so the caller of `lock` passes it in.

use super::locked::{ChartImage, OpenReference};
use landfall_model::Digest;
use std::fmt;

/// The images that were found in a chart.
#[derive(Debug, Default)]
pub struct FoundImages {
    /// The images, sorted, without duplicates.
    pub images: Vec<ChartImage>,
    /// Texts that may be an image reference; a person has to decide.
    pub open: Vec<OpenReference>,
}

/// Finds the images of charts.
pub trait FindImages: Send + Sync {
    /// Finds the images of the chart in the archive with `digest`, whose bytes are `archive`.
    ///
    /// # Errors
    /// If the chart cannot be read or rendered.
    fn images(
        &self,
        archive: &[u8],
        digest: &Digest,
        how: &Discovery,
    ) -> Result<FoundImages, String>;
}

/// The settings with which the images of a chart are discovered. The lock records them as `Display`
/// formats them: if this text changes, the chart is searched again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovery {
    /// Values that override those of the chart, as YAML documents. Later ones win.
    pub values: Vec<String>,
    /// The version of Kubernetes to render for.
    pub kubernetes: Option<String>,
    /// The version of helm that renders the chart. If it is not set, the chart is searched without
    /// rendering.
    pub helm: Option<String>,
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut settings = Vec::new();
        settings.extend(self.helm.as_ref().map(|version| format!("helm {version}")));
        settings.extend(
            self.kubernetes
                .as_ref()
                .map(|version| format!("kubernetes {version}")),
        );
        if !self.values.is_empty() {
            let digest = Digest::sha256(self.values.join("\n---\n").as_bytes());
            settings.push(format!("values {}", digest.short(12)));
        }
        // part of the format of the lock
        if settings.is_empty() {
            settings.push("as it is".into());
        }
        f.write_str(&settings.join(", "))
    }
}
