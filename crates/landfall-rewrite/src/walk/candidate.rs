//! Values that name an image, certainly or possibly.

use crate::text::{SCHEMES, has_placeholder, reference_at};
use landfall_model::{ImageRef, Limits, has_host, redact_reference};

/// A value that names an image, certainly or possibly.
#[derive(Debug)]
pub(crate) struct ImageCandidate {
    /// The offset of its first byte in the text.
    pub(crate) at: usize,
    pub(crate) path: Vec<String>,
    pub(crate) written: String,
    /// Whether it is certainly an image, by its position or by its form.
    pub(crate) sure: bool,
    /// Whether a container uses the image, so that a name without a tag means `latest`.
    pub(crate) in_container: bool,
    /// Whether it is a chart.
    pub(crate) is_chart: bool,
    /// The reason why the reference cannot be looked up, if there is one.
    pub(crate) why_not: Option<String>,
}

/// A text that a rule reads as an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageClaim<'t> {
    pub(crate) written: &'t str,
    /// Whether it is certainly an image, even if it does not look like a reference.
    pub(crate) sure: bool,
    /// Whether a container uses the image, so that a name without a tag means `latest`.
    pub(crate) in_container: bool,
}

/// The reason why a value with a placeholder is not looked up.
pub(crate) const HAS_PLACEHOLDER: &str =
    "it contains a placeholder; render it first, then audit the result";

impl ImageCandidate {
    /// The images of the list `text`. `None` if it is not a list of images.
    pub(crate) fn of_list(text: &str) -> Option<Vec<ImageCandidate>> {
        let one = |(at, word)| ImageCandidate::new(at, Vec::new(), word, true, false);
        Some(list(text)?.into_iter().filter_map(one).collect())
    }

    /// The images in `written`, which begins at the byte `at`: one image, the images of a list, or
    /// the literals in a template call.
    pub(crate) fn all(
        at: usize,
        path: &[String],
        written: &str,
        sure: bool,
        in_container: bool,
    ) -> Vec<ImageCandidate> {
        let several = |words: Vec<(usize, &str)>| -> Vec<ImageCandidate> {
            let one = |(start, word)| {
                ImageCandidate::new(at + start, path.to_vec(), word, true, in_container)
            };
            words.into_iter().filter_map(one).collect()
        };
        if written.contains("{{") {
            let literals = several(literals(written));
            if !literals.is_empty() {
                return literals;
            }
        } else if let Some(words) = list(written) {
            return several(words);
        }
        ImageCandidate::new(at, path.to_vec(), written, sure, in_container)
            .into_iter()
            .collect()
    }

    /// `None` if the value is certainly not an image.
    fn new(
        at: usize,
        path: Vec<String>,
        written: &str,
        sure: bool,
        in_container: bool,
    ) -> Option<ImageCandidate> {
        let scheme = SCHEMES
            .iter()
            .find_map(|scheme| Some((scheme, written.strip_prefix(scheme)?)));
        let rest = scheme.and_then(|(_, rest)| rest.strip_prefix("://"));
        let (at, written) = rest.map_or((at, written), |rest| {
            (at + written.len() - rest.len(), rest)
        });
        let candidate = |written: &str, sure, why_not: Option<&str>| {
            let written = written.to_owned();
            let why_not = why_not.map(str::to_owned);
            Some(ImageCandidate {
                at,
                path,
                written,
                sure,
                in_container,
                is_chart: false,
                why_not,
            })
        };
        let max_bytes = Limits::default().reference_bytes;
        if has_placeholder(written) || written.contains("<<") || written.starts_with('$') {
            return candidate(
                reference_at(written, max_bytes),
                sure,
                Some(HAS_PLACEHOLDER),
            );
        }
        match written.parse::<ImageRef>() {
            Ok(reference) => candidate(
                written,
                sure || reference.is_pinned() || has_host(written),
                None,
            ),
            Err(error) if sure => {
                // parsed again without its secrets, because the message quotes the text
                let shown = redact_reference(written).parse::<ImageRef>();
                let why = shown.err().unwrap_or(error).to_string();
                let written = &written[..written.floor_char_boundary(max_bytes)];
                candidate(written, true, Some(&why))
            }
            Err(_) => None,
        }
    }
}

/// The quoted literals of `text` that are pinned references with a path, with their offsets.
fn literals(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    // each quote ends a piece, which is a literal if the same quote precedes it
    for (at, quote) in text.match_indices(['"', '\'', '`']) {
        let piece = &text[start..at];
        let is_open = text[..start].ends_with(quote);
        if is_open && piece.contains('/') && is_pinned(piece) {
            found.push((start, piece));
        }
        start = at + quote.len();
    }
    found
}

/// Whether `text` is a list of references, or one pinned reference with a host.
pub(crate) fn is_list(text: &str) -> bool {
    list(text).is_some() || (has_host(text) && is_pinned(text))
}

/// The references of a list, with their offsets: words separated by blanks, line breaks or commas,
/// each optionally with a name (`4.2.0=REF`). `None` if `text` is one word without a name, or if a
/// word is not a pinned reference.
fn list(text: &str) -> Option<Vec<(usize, &str)>> {
    let mut found = Vec::new();
    let mut at = 0;
    for word in text.split_inclusive(|c: char| c.is_whitespace() || c == ',') {
        let name = word.trim_end_matches(|c: char| c.is_whitespace() || c == ',');
        if !name.is_empty() {
            let start = name.rfind('=').map_or(0, |equals| equals + 1);
            is_pinned(&name[start..]).then(|| found.push((at + start, &name[start..])))?;
        }
        at += word.len();
    }
    (found.len() > 1 || found.first().is_some_and(|(start, _)| *start > 0)).then_some(found)
}

fn is_pinned(text: &str) -> bool {
    text.parse::<ImageRef>()
        .is_ok_and(|reference| reference.is_pinned())
}
