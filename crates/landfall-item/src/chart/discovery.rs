//! How the images of a chart are discovered.

use landfall_model::Digest;
use std::fmt;

/// How the images of a chart are discovered.
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

impl Discovery {
    /// The text for the lock. If it changes, the chart is searched again.
    pub(super) fn said(&self) -> String {
        let values = (!self.values.is_empty()).then(|| {
            format!(
                "values {}",
                Digest::sha256(self.values.join("\n---\n").as_bytes()).short(12)
            )
        });
        let kubernetes = self
            .kubernetes
            .as_ref()
            .map(|version| format!("kubernetes {version}"));
        let helm = self.helm.as_ref().map(|version| format!("helm {version}"));
        let said: Vec<String> = [helm, kubernetes, values].into_iter().flatten().collect();
        if said.is_empty() {
            "as it is".into()
        } else {
            said.join(", ")
        }
    }
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said())
    }
}
