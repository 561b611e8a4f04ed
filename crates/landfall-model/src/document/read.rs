//! Typed reading of one YAML document.

use super::diagnostic::MAX_DIAGNOSTICS;
use super::yaml::YamlExcess;
use super::yaml_tree::{YamlEntry, YamlNode, document_roots};
use super::{Diagnostic, SourceText, explain, yaml};
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::rc::Rc;

/// The end of the message about a key that a mapping has twice.
pub(super) const REPEATED_KEY: &str = "is repeated in this mapping";

/// Reads one YAML document into `T`.
///
/// # Errors
/// A [`Diagnostic`] with the position, if the document is not YAML, has a key twice, does not fit
/// `T`, or exceeds the limits of [`yaml`].
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Box<Diagnostic>> {
    let checked = yaml::check(text);
    if checked.is_err()
        && yaml::may_be_deep(text)
        && let Some(excess) = yaml::excess(text)
        && let YamlExcess::Depth(at) | YamlExcess::Invalid { at, .. } = excess
    {
        let end = text.ceil_char_boundary(text.len().min(at + 1));
        let start = text.floor_char_boundary(at);
        let message = excess.to_string();
        return Err(Diagnostic::new(file, text, start..end, message, None));
    }
    let root = if checked.is_ok() {
        YamlNode::parse(text)
    } else {
        None
    };
    // a map would silently keep the last of two values with one key
    if let Some((key, span)) = root.as_ref().and_then(YamlNode::repeated_key) {
        let message = format!("the key `{key}` {REPEATED_KEY}");
        let help = Some("keep one of the two");
        return Err(Diagnostic::new(file, text, span, message, help));
    }
    let read = checked.and_then(|()| yaml::from_checked(text));
    read.map_err(|error| explain::explain(file, text, root.as_ref(), &error))
}

// Typed reading of one YAML document that continues after an error, so that all errors of a file
// are reported at once.

/// The section that all other sections depend on: if it were skipped, each use of a variable would
/// be reported as an error.
const VARIABLES: &str = "vars";

/// After an error, the whole text is read again without the faulty part. This many bytes are read
/// in this way at most, so that the cost of many errors is limited.
const MAX_REREAD_BYTES: usize = 4 << 20;

/// A document, as far as it can be read, and its errors.
pub struct ReadAll<T> {
    /// The document without the parts that have errors; `None` if there are too many errors, or if
    /// the part with an error cannot be skipped.
    pub value: Option<T>,
    /// The text, with the tree of the values in `value`.
    pub text: Rc<SourceText>,
    /// The errors in the order in which they were found.
    pub faults: Vec<Diagnostic>,
}

/// Reads the document `text` into `T`. Skips the smallest part that contains an error: an unknown
/// or repeated key with its value, an item of a list, or a section.
pub fn read_all<T: DeserializeOwned>(text: &Rc<SourceText>) -> ReadAll<T> {
    let original: &str = &text.text;
    // skipped parts are blanked, so that every other byte keeps its position
    let mut remaining = original.to_owned();
    let mut faults = Vec::<Diagnostic>::new();
    let mut read_bytes = 0;
    loop {
        let fault = match read::<T>(&text.file, &remaining) {
            Ok(value) => {
                let text = if faults.is_empty() {
                    text.clone()
                } else {
                    text.with_tree_of(&remaining)
                };
                return ReadAll {
                    value: Some(value),
                    text,
                    faults,
                };
            }
            Err(fault) => *fault,
        };
        // a text that exceeds the limits is refused as a whole, and not counted again part by part
        let is_refused = faults.is_empty() && yaml::check(original).is_err();
        let roots = if is_refused {
            Vec::new()
        } else {
            document_roots(&remaining).unwrap_or_default()
        };
        let root = roots.first();
        // a key that the document itself lacks is the last error: its parts are read before
        let absent = missing_key(&fault).filter(|_| is_at_start(root, fault.span.start));
        let skipped = root
            .filter(|_| absent.is_none())
            .and_then(|root| faulty_part(root, &remaining, &fault))
            .filter(|part| !remaining[part.clone()].trim().is_empty());
        // an error that only appears because a part was skipped before is not reported
        let is_in_skipped = original.get(fault.span.clone()) != remaining.get(fault.span.clone());
        let was_there = absent.is_some_and(|key| text.root.key_span(key).is_some());
        let is_misspelt = skipped
            .as_ref()
            .is_some_and(|part| is_misspelt(&faults, part, &fault));
        let follows = !faults.is_empty() && (is_in_skipped || was_there || is_misspelt);
        if !follows {
            faults.push(Diagnostic {
                text: original.to_owned(),
                ..fault
            });
        }
        // each round blanks some bytes or ends, so this loop terminates
        read_bytes += remaining.len();
        let may_continue = faults.len() < MAX_DIAGNOSTICS && read_bytes <= MAX_REREAD_BYTES;
        match skipped.filter(|_| may_continue) {
            Some(part) => blank(&mut remaining, part),
            None => {
                return ReadAll {
                    value: None,
                    text: text.clone(),
                    faults,
                };
            }
        }
    }
}

/// The key whose absence is the error `fault`.
fn missing_key(fault: &Diagnostic) -> Option<&str> {
    let rest = fault.message.strip_prefix("the key `")?;
    rest.strip_suffix("` is missing here")
}

/// Whether the byte `at` is where the document itself begins, not one of its values.
fn is_at_start(root: Option<&YamlNode<'_>>, at: usize) -> bool {
    match root {
        Some(YamlNode::Mapping(mapping)) => {
            let first = mapping.entries.first();
            first.is_none_or(|entry| at <= entry.key.span().start)
        }
        _ => true,
    }
}

/// Whether `fault` is a missing key of the item at `part`, and an earlier error says that this key
/// is misspelt in the item.
fn is_misspelt(faults: &[Diagnostic], part: &Range<usize>, fault: &Diagnostic) -> bool {
    let meant = missing_key(fault).map(|key| format!("did you mean `{key}`?"));
    faults.iter().any(|earlier| {
        part.contains(&earlier.span.start) && earlier.help.is_some() && earlier.help == meant
    })
}

/// The bytes to skip because of `fault`.
fn faulty_part(root: &YamlNode<'_>, text: &str, fault: &Diagnostic) -> Option<Range<usize>> {
    let at = fault.span.start;
    let is_key = fault.message.starts_with("unknown key") || fault.message.ends_with(REPEATED_KEY);
    if is_key && let Some((entry, flow)) = entry_at(root, at) {
        let key = entry.key.span();
        let end = entry.content_end(text).max(key.end);
        return Some(with_comma(text, key.start..end, flow));
    }
    let YamlNode::Mapping(mapping) = root else {
        return None;
    };
    let section = mapping
        .entries
        .iter()
        .find(|section| (section.key.span().start..=section.content_end(text)).contains(&at))?;
    if let YamlNode::Sequence(sequence) = &section.value
        && let Some(item) = sequence
            .items
            .iter()
            .find(|item| (item.extent(text).start..=item.content_end(text)).contains(&at))
    {
        let start = item.extent(text).start;
        let end = item.content_end(text);
        if sequence.flow {
            return Some(with_comma(text, start..end, true));
        }
        let dash = text[..start]
            .rfind('-')
            .filter(|dash| text[dash + 1..start].trim().is_empty());
        return Some(dash.unwrap_or(start)..end);
    }
    if section.key.is_text(VARIABLES) {
        return None;
    }
    let part = section.key.span().start..section.content_end(text);
    Some(with_comma(text, part, mapping.flow))
}

/// The entry whose key begins at `at`, and whether its mapping is in flow notation.
fn entry_at<'n>(root: &'n YamlNode<'n>, at: usize) -> Option<(&'n YamlEntry<'n>, bool)> {
    root.descendants().find_map(|node| {
        let YamlNode::Mapping(mapping) = node else {
            return None;
        };
        let mut entries = mapping.entries.iter();
        let entry = entries.find(|entry| entry.key.span().start == at)?;
        Some((entry, mapping.flow))
    })
}

/// Extends `range` by the comma that follows it in flow notation.
fn with_comma(text: &str, range: Range<usize>, flow: bool) -> Range<usize> {
    let rest = text[range.end..].trim_start();
    if flow && rest.starts_with(',') {
        range.start..text.len() - rest.len() + 1
    } else {
        range
    }
}

/// Replaces every byte of `range` with a blank, except line ends.
fn blank(text: &mut String, range: Range<usize>) {
    let blanks: String = text[range.clone()]
        .bytes()
        .map(|byte| match byte {
            b'\n' => '\n',
            b'\r' => '\r',
            _ => ' ',
        })
        .collect();
    text.replace_range(range, &blanks);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_yaml::Value;

    fn message(text: &str) -> String {
        read::<Value>("m.yaml", text).map_or_else(|error| error.to_string(), |_| "read".into())
    }

    #[test]
    fn dashes_and_brackets_in_comments_are_not_nesting() {
        let ruler = format!("# {}\n", "-".repeat(600));
        let brackets = "# see [the docs\n".repeat(100);
        let text = format!("{ruler}{brackets}a: 1\n");
        assert_eq!(message(&text), "read");
        // an error is reported at its own position, not at a bracket in a comment
        let invalid = message(&format!("{text}b: [\n"));
        assert!(
            invalid.starts_with("m.yaml:103:4: error: this is not YAML: unclosed"),
            "{invalid}"
        );
        for text in ["[".repeat(65), "- ".repeat(600)] {
            let message = message(&text);
            assert!(
                message.contains("error: this is nested deeper than 64 levels"),
                "{message}"
            );
        }
        assert!(message(&format!("{ruler}{}", "[".repeat(65))).starts_with("m.yaml:2:65: error:"));
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Sample {
        #[serde(default)]
        items: Vec<Item>,
        #[serde(default)]
        vars: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Item {
        name: String,
        #[serde(default)]
        size: u32,
    }

    /// Reads `text`, checks the positions of the names, and returns the names and sizes, and the
    /// faults with their positions.
    fn names_and_faults(text: &str) -> (Option<String>, Vec<String>) {
        let source = SourceText::yaml("x.yaml".into(), text.into());
        let all = read_all::<Sample>(&source);
        let faults = all.faults.iter().map(|fault| {
            let (line, column) = fault.line_column();
            assert_eq!(fault.text, text);
            format!("{line}:{column} {}", fault.message)
        });
        let items = |sample: Sample| {
            let items = sample.items.iter().enumerate().map(|(at, item)| {
                let written = &text[all.text.root.get("items").item(at).get("name").span()];
                assert_eq!(written, item.name, "the position of a value");
                format!("{}={}", item.name, item.size)
            });
            items.collect::<Vec<_>>().join(" ")
        };
        (all.value.map(items), faults.collect())
    }

    #[test]
    fn errors_after_an_unknown_key_are_reported() {
        let text = "itms: [1]\nitems:\n- {zzz: é, name: a, size: 1}\n- name: b\n  yyy: |\n    c\n    d\n  size: 2\n\
                - xxx: 1\n  name: c\n";
        let (read, faults) = names_and_faults(text);
        assert_eq!(read.as_deref(), Some("a=1 b=2 c=0"));
        assert_eq!(
            faults,
            [
                "1:1 unknown key `itms`",
                "3:4 unknown key `zzz`",
                "5:3 unknown key `yyy`",
                "9:3 unknown key `xxx`"
            ]
        );
    }

    #[test]
    fn values_of_a_wrong_type_are_skipped_with_their_item() {
        let text = "items: [{name: a, size: x}, {name: b}, c, {name: d, name: e}]\n";
        let (read, faults) = names_and_faults(text);
        assert_eq!(read.as_deref(), Some("b=0 d=0"));
        let expected = [
            "1:53 the key `name` is repeated in this mapping",
            "1:25 this should be a whole number",
            "1:40 this should be a mapping of keys and values",
        ];
        assert_eq!(faults, expected);
        // a section that is not a list, and an item at the end of a list
        assert_eq!(names_and_faults("items: x\n").0.as_deref(), Some(""));
        assert_eq!(
            names_and_faults("items:\n- size: 1\n").1,
            ["2:3 the key `name` is missing here"]
        );
    }

    #[test]
    fn an_error_that_an_earlier_error_causes_is_not_reported() {
        assert_eq!(
            names_and_faults("items:\n- nmae: a\n- name: b\n").1,
            ["2:3 unknown key `nmae`"]
        );
        assert_eq!(
            names_and_faults("items:\n- {nmae: a, size: 1}\n").1,
            ["2:4 unknown key `nmae`"]
        );
        assert_eq!(
            names_and_faults("items:\n- {nmae: a, size: 1}\n- {name: b}\n")
                .0
                .as_deref(),
            Some("b=0")
        );
        // without variables nothing can be checked
        let (read, faults) = names_and_faults("vars: 1\nitems: [{size: x}]\n");
        assert_eq!((read, faults.len()), (None, 1));
    }

    #[test]
    fn errors_are_limited_and_invalid_yaml_is_final() {
        let text = (0..60)
            .map(|key| format!("key{key}: 1\n"))
            .collect::<String>();
        let (read, faults) = names_and_faults(&text);
        assert_eq!((read, faults.len()), (None, MAX_DIAGNOSTICS));
        assert_eq!(names_and_faults("items: [").1.len(), 1);
        assert_eq!(names_and_faults("- 1\n").0, None);
        let repeated = format!(
            "itms: &a {}\nitems: [{}]\n",
            "x".repeat(10_000),
            "*a,".repeat(2000)
        );
        let (read, faults) = names_and_faults(&repeated);
        assert_eq!((read, faults.len()), (None, 1), "{faults:?}");
    }

    #[test]
    fn a_large_text_is_read_again_for_a_few_errors_only() {
        let repeated = "a: 1\n".repeat(9);
        let large = format!("#{}\n{repeated}", "x".repeat(2 << 20));
        let faults = |text: String| {
            let text = SourceText::yaml("m.yaml".into(), text);
            read_all::<serde_yaml::Value>(&text).faults.len()
        };
        assert_eq!((faults(repeated), faults(large)), (8, 2));
    }
}
