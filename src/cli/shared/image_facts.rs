//! The licence and build time of an image, from annotations and labels.

use landfall_content::{BlobRead, EntryPart, LockEntry};
use landfall_model::media_type;
use serde_json::Value;

fn nonempty_text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// The facts that an image declares about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ImageFacts {
    /// The annotation or label `org.opencontainers.image.licenses`.
    pub(crate) licences: Option<String>,
    /// `org.opencontainers.image.created`, or the config's own time.
    pub(crate) created: Option<String>,
}

impl ImageFacts {
    /// Reads the facts of `entry`: annotations of its manifests win over labels of its configs.
    /// Content that `blobs` lacks is skipped.
    pub(crate) fn of(entry: &LockEntry, blobs: &dyn BlobRead) -> ImageFacts {
        let read = |part: &EntryPart| -> Option<Value> {
            serde_json::from_slice(&blobs.read(&part.descriptor).ok()?).ok()
        };
        // Starts at the last part, the top manifest, and continues with its children. Manifests of
        // signatures and attestations are left out: their annotations are not about the image.
        let manifests = entry
            .parts
            .iter()
            .rev()
            .filter(|part| part.is_manifest())
            .filter(|part| !entry.only_refers(&part.descriptor.digest));
        let configs = entry
            .parts
            .iter()
            .filter(|part| media_type::is_image_config(&part.descriptor.media_type));
        let mut facts = ImageFacts::default();
        let mut take = |notes: &Value, created: &Value| {
            facts.licences = facts
                .licences
                .take()
                .or_else(|| nonempty_text(&notes["org.opencontainers.image.licenses"]));
            let time = nonempty_text(&notes["org.opencontainers.image.created"]);
            // Reproducible builds set the time to 1970 or 1980, which says nothing.
            let time = time
                .or_else(|| nonempty_text(created))
                .filter(|time| time.as_str() >= "2000");
            facts.created = facts.created.take().or(time);
            facts.licences.is_some() && facts.created.is_some()
        };
        for manifest in manifests.filter_map(read) {
            if take(&manifest["annotations"], &Value::Null) {
                return facts;
            }
        }
        for config in configs.filter_map(read) {
            if take(&config["config"]["Labels"], &config["created"]) {
                return facts;
            }
        }
        facts
    }
}
