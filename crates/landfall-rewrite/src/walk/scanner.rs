//! The scanner decides how a text is read, and how deeply texts within texts are read.

use super::collector::{ImageCandidate, is_list};
use super::rule::{Collects, ReferenceRule};
use super::walker;
use super::walker::DocumentScan;
use crate::occurrence::ReferenceRole;
use crate::scan_result::{ReadAs, ScanResult, ScanSettings, TextSyntax};
use crate::text::{self, JoinedText, TextLines};

const OCCURRENCES: Collects = Collects {
    occurrences: true,
    candidates: false,
};

/// Scans texts, and the texts within their values.
#[derive(Clone, Copy)]
pub(crate) struct ReferenceScanner<'i> {
    pub settings: ScanSettings<'i>,
    /// The rules, in their order.
    pub rules: &'static [&'static dyn ReferenceRule],
}

impl ReferenceScanner<'_> {
    /// Finds the occurrences in `text`, which is nested in `depth` other texts. With the edits
    /// applied, the text still has the same meaning, except for the changed references.
    pub(crate) fn scan(&self, text: &str, syntax: TextSyntax, depth: usize) -> ScanResult {
        match syntax {
            TextSyntax::Document => self.read(text, depth, OCCURRENCES).0,
            TextSyntax::Text if self.settings.may_report(text) => self.words(text),
            TextSyntax::Text => ScanResult::nothing(),
        }
    }

    /// Finds what `collects` says in `text`, which is nested in `depth` other texts: as documents,
    /// or else the occurrences word by word. The second value is `None` if the text is not YAML or
    /// was not read as YAML.
    pub(crate) fn read(
        &self,
        text: &str,
        depth: usize,
        collects: Collects,
    ) -> (ScanResult, Option<DocumentScan>) {
        let searched = collects.occurrences && self.settings.may_report(text);
        let collects = Collects {
            // each level of texts within texts is parsed again, so deeper texts are read word by
            // word
            occurrences: searched && depth < self.settings.limits.embedded_depth,
            ..collects
        };
        let mut documents = None;
        if collects.occurrences || collects.candidates {
            documents = walker::read(self, text, depth, collects);
        }
        let occurrences = documents
            .as_mut()
            .and_then(|documents| documents.occurrences.take());
        let result = match occurrences {
            Some(result) => result,
            None if searched => self.words(text),
            None => ScanResult::nothing(),
        };
        (result, documents)
    }

    /// Finds the occurrences in `text` word by word.
    fn words(&self, text: &str) -> ScanResult {
        let secrets = text::secrets(text);
        ScanResult {
            found: text::scan(&self.settings, text, TextLines::Many, ReferenceRole::Text),
            read_as: ReadAs::Text,
            secrets,
        }
    }

    /// Scans the value of a scalar, which is nested in `depth` texts: as a document if it is a
    /// block scalar (`block`) or looks like a document, else word by word. `role` is that of the
    /// whole value.
    pub(crate) fn scan_value(
        &self,
        value: &str,
        block: bool,
        role: ReferenceRole,
        depth: usize,
    ) -> ScanResult {
        let trimmed = value.trim();
        // `{{ call }}` is a template, not JSON
        let flow = trimmed.starts_with(['{', '[']) && !trimmed.starts_with("{{");
        if block || flow || trimmed.contains('\n') {
            return self.scan(value, TextSyntax::Document, depth);
        }
        // most values are prose, which need not be split into words
        if !self.settings.may_report(value) {
            return ScanResult::nothing();
        }
        let found = text::scan(&self.settings, value, TextLines::One, role);
        ScanResult {
            found,
            read_as: ReadAs::Text,
            secrets: Vec::new(),
        }
    }
}

// Finds the images of texts that are not YAML, such as templates and TOML, by lines whose key ends
// in `image`.

/// The images in lines such as `image: REF` and `sandbox_image = "REF"` of a text that is not YAML.
pub(crate) fn candidates(text: &str) -> Vec<ImageCandidate> {
    let Some(joined) = JoinedText::of(text) else {
        return in_lines(text);
    };
    let mut found = in_lines(joined.text());
    found
        .iter_mut()
        .for_each(|one| one.at = joined.offset(one.at));
    found
}

/// The images in the lines of `text`, whose quoted lines are joined.
fn in_lines(text: &str) -> Vec<ImageCandidate> {
    let mut found = Vec::new();
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        let Some((key, value, assigned)) = entry(line) else {
            continue;
        };
        let value = match value
            .chars()
            .next()
            .filter(|quote| ['"', '\''].contains(quote))
        {
            Some(quote) => unquoted(&value[1..], quote).unwrap_or(value),
            None => value
                .split(" #")
                .next()
                .unwrap_or_default()
                .trim_end_matches(','),
        };
        let at = start + (value.as_ptr() as usize - line.as_ptr() as usize);
        // a script may assign any text to such a variable
        if !value.is_empty() && (!assigned || is_list(value)) {
            found.extend(ImageCandidate::all(at, &[], value, false, key == "image"));
        }
    }
    found
}

/// The text before the closing quote: the first one that a comment follows, or else the last one,
/// since expressions of a template can contain quotes.
fn unquoted(text: &str, quote: char) -> Option<&str> {
    let mut quotes = text.match_indices(quote);
    let before_comment = quotes.find(|(at, _)| {
        let after = &text[at + 1..];
        after.starts_with([' ', '\t']) && after.trim_start().starts_with('#')
    });
    match before_comment {
        Some((at, _)) => Some(&text[..at]),
        None => text.rsplit_once(quote).map(|(inside, _)| inside),
    }
}

/// The key and value of a line whose key ends in `image`, and whether they are separated by `=`.
fn entry(line: &str) -> Option<(&str, &str, bool)> {
    let line = line.trim_start().trim_start_matches("- ").trim();
    let (key, value) = line.split_once([':', '='])?;
    let assigned = line[key.len()..].starts_with('=');
    let name = key.trim_end().trim_matches(['"', '\'']);
    let is_key = name.to_ascii_lowercase().ends_with("image") && !name.contains([' ', '{', '#']);
    (is_key && (assigned || value.starts_with([' ', '\t']))).then_some((
        name,
        value.trim(),
        assigned,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_is_that_of_the_value_even_if_the_key_contains_its_text() {
        let text = "image: image\n- image: ge\n  agent-image: 'agent:1' # it's x\n\
                image: \"quay.io/\\\n  a:1\"\nimage: b:2\n";
        let found: Vec<(usize, String)> = candidates(text)
            .into_iter()
            .map(|one| (one.at, one.written))
            .collect();
        let expected = [
            (7, "image"),
            (22, "ge"),
            (41, "agent:1"),
            (67, "quay.io/a:1"),
            (91, "b:2"),
        ];
        assert_eq!(found, expected.map(|(at, text)| (at, text.to_owned())));
    }
}
