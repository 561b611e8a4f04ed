//! Candidates: values that name an image, or may.

use super::finding::{Coverage, Finding};
use super::inventory::Inventory;
use super::location::Location;
use crate::model::{ImageRef, Limits, names_host};
use crate::rewrite::text::reference_at;

/// A value that names an image, or may.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) location: Location,
    pub(super) path: Vec<String>,
    pub(super) written: String,
    /// It is an image beyond doubt: by where it stands, or by how it looks.
    pub(super) sure: bool,
    /// Without a tag it means `latest`.
    pub(super) in_container: bool,
    /// Why it is not to be looked up.
    pub(super) why_not: Option<String>,
}

/// What stands in place of a value that is made elsewhere.
const PLACEHOLDERS: [&str; 5] = ["{{", "${", "$(", "__", "<<"];

impl Candidate {
    /// `None` where the value is surely no image.
    pub(super) fn new(
        location: Location,
        path: Vec<String>,
        written: &str,
        sure: bool,
        in_container: bool,
    ) -> Option<Candidate> {
        let candidate = |written: &str, sure, why_not: Option<&str>| {
            let (written, why_not) = (written.to_owned(), why_not.map(str::to_owned));
            Some(Candidate { location, path, written, sure, in_container, why_not })
        };
        let most = Limits::default().reference_bytes;
        if PLACEHOLDERS.iter().any(|mark| written.contains(mark)) || written.starts_with('$') {
            return candidate(
                reference_at(written, most),
                sure,
                Some("it is made of a placeholder; audit what comes out of it"),
            );
        }
        match written.parse::<ImageRef>() {
            Ok(reference) => candidate(written, sure || reference.is_pinned() || names_host(written), None),
            Err(error) if sure => {
                candidate(&written[..written.floor_char_boundary(most)], true, Some(&error.to_string()))
            }
            Err(_) => None,
        }
    }

    pub(super) fn decide(self, inventory: &Inventory<'_>) -> Finding {
        let coverage = match (self.why_not, self.written.parse::<ImageRef>()) {
            (Some(why), _) => Coverage::Undecided { why },
            (None, Err(error)) => Coverage::Undecided { why: error.to_string() },
            (None, Ok(reference)) => match inventory.decide(&reference, self.in_container) {
                Coverage::Missing { .. } if !self.sure => Coverage::Undecided {
                    why: "it has neither a host nor a tag, so it may be any word".into(),
                },
                coverage => coverage,
            },
        };
        let Location { line, column } = self.location;
        Finding { line, column, path: self.path, reference: self.written, coverage }
    }
}
