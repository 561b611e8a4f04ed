//! Typed reading of one YAML document.

use super::yaml::YamlExcess;
use super::yaml_tree::YamlNode;
use super::{Diagnostic, explain, yaml};
use serde::de::DeserializeOwned;
use std::ops::Range;

/// The end of the message about a key that a mapping has twice.
pub(super) const REPEATED_KEY: &str = "is repeated in this mapping";

/// Reads one YAML document into `T`.
///
/// # Errors
/// A [`Diagnostic`] with the position, if the document is not YAML, has a key twice, does not fit
/// `T`, or exceeds the limits of [`yaml`].
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Box<Diagnostic>> {
    let fault = |span: Range<usize>, message: String, help: Option<String>| {
        Box::new(Diagnostic {
            file: file.into(),
            text: text.into(),
            span,
            message,
            help,
        })
    };
    let checked = yaml::check(text);
    if checked.is_err()
        && yaml::may_be_deep(text)
        && let Some(excess) = yaml::excess(text)
        && let YamlExcess::Depth(at) | YamlExcess::Invalid { at, .. } = excess
    {
        let end = text.ceil_char_boundary(text.len().min(at + 1));
        let start = text.floor_char_boundary(at);
        return Err(fault(start..end, excess.to_string(), None));
    }
    let root = if checked.is_ok() {
        YamlNode::parse(text)
    } else {
        None
    };
    // a map would silently keep the last of two values with one key
    if let Some((key, span)) = root.as_ref().and_then(YamlNode::repeated_key) {
        let message = format!("the key `{key}` {REPEATED_KEY}");
        return Err(fault(span, message, Some("keep one of the two".into())));
    }
    let read = checked.and_then(|()| yaml::from_checked(text));
    read.map_err(|error| Box::new(explain::explain(file, text, root.as_ref(), &error)))
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
