//! The licence and build time of an image, from annotations and labels.

use jiff::Timestamp;
use landfall_content::{BlobRead, EntryPart, LockEntry};
use landfall_model::media_type;
use serde_json::Value;

fn nonempty_text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// The first of `annotation` and `created` that is a time in 2000 or later: reproducible builds set
/// the time to 1970 or 1980.
fn build_time(annotation: &Value, created: &Value) -> Option<String> {
    [annotation, created]
        .into_iter()
        .filter_map(nonempty_text)
        .find(|time| time.as_str() >= "2000" && time.parse::<Timestamp>().is_ok())
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
            facts.created = facts
                .created
                .take()
                .or_else(|| build_time(&notes["org.opencontainers.image.created"], created));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_1970_does_not_hide_the_time_of_the_config() {
        let [epoch, built] = ["1970-01-01T00:00:00Z", "2026-03-02T00:00:00Z"].map(Value::from);
        assert_eq!(
            build_time(&epoch, &built),
            Some("2026-03-02T00:00:00Z".into())
        );
        assert_eq!(build_time(&Value::Null, &built), build_time(&built, &epoch));
        assert_eq!(build_time(&epoch, &epoch), None);
        assert_eq!(
            build_time(&Value::from("unknown"), &built),
            build_time(&built, &epoch)
        );
    }
}
