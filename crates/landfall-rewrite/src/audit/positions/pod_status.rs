//! The status of a pod: what runs, by digest.

use super::claim::Claim;
use super::enclosing::{Enclosing, Members};
use super::position::Position;
use super::reader::{Reader, text_start};
use crate::audit::candidate::Candidate;
use crate::yaml::{Node, member, text};
use landfall_model::{Digest, ImageRef};

/// Keys of lists in the status of a pod.
const STATUSES: [&str; 3] = [
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
];

pub(super) struct PodStatus;

impl Position for PodStatus {
    fn references<'d>(
        &self,
        reader: &mut Reader<'d, '_>,
        members: &Members<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        if !members.around.status {
            return Vec::new();
        }
        add(reader, members);
        (0..members.entries.len()).collect()
    }

    fn item<'d>(
        &self,
        list: Option<&str>,
        _previous: Option<&'d Node<'d>>,
        below: &mut Enclosing<'d>,
    ) {
        below.status = list.is_some_and(|list| STATUSES.contains(&list));
    }
}

fn add(reader: &mut Reader<'_, '_>, members: &Members<'_>) {
    let Some(scalar) = member(members.entries, "imageID").and_then(Node::scalar) else {
        return;
    };
    let Some(id) = scalar.text() else { return };
    let id = ["docker-pullable://", "docker://"]
        .iter()
        .find_map(|head| id.strip_prefix(head))
        .unwrap_or(id);
    let image = text(members.entries, "image").unwrap_or_default();
    let at = text_start(scalar);
    if let Ok(config) = id.parse::<Digest>() {
        let (written, why_not) = match reader.inventory.with_config(&config) {
            Some(name) => (name.to_string(), None),
            None => {
                let why = "the runtime tells the digest of its configuration only, which the lock does not have";
                (format!("{image} ({id})"), Some(why.to_owned()))
            }
        };
        let path = reader.path.clone();
        return reader.found.push(Candidate {
            at,
            path,
            written,
            sure: true,
            in_container: true,
            is_chart: false,
            why_not,
        });
    }
    let Ok(ran) = id.parse::<ImageRef>() else {
        return;
    };
    // the digest is what runs; the tag is what it was asked for by
    let asked = image
        .parse::<ImageRef>()
        .ok()
        .filter(|asked| asked.name() == ran.name());
    let tag = asked.and_then(|asked| asked.tag);
    let written = ImageRef {
        tag: tag.or(ran.tag.clone()),
        ..ran
    }
    .to_string();
    reader.add(
        at,
        Claim {
            written: &written,
            sure: true,
            in_container: true,
        },
    );
}
