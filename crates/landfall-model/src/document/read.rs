//! Typed reading of one YAML document.

use super::yaml_tree::YamlNode;
use super::{Diagnostic, explain, yaml};
use crate::Limits;
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
    if let Some(at) = too_deep(text) {
        let depth = Limits::DEFAULT.yaml_depth;
        let message = format!("this is nested deeper than {depth} levels");
        return Err(fault(at..at + 1, message, None));
    }
    let checked = yaml::check(text);
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

/// The byte at which brackets, or runs of `- - -` on one line, are nested too deeply: parsers take
/// quadratic time for those. Brackets inside scalars count too, because no real document has that
/// many without their closing brackets.
fn too_deep(text: &str) -> Option<usize> {
    let max_depth = Limits::DEFAULT.yaml_depth;
    let mut depth = 0usize;
    let mut dashes = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'-' | b'?' | b':' => dashes += 1,
            b' ' => {}
            _ => dashes = 0,
        }
        if depth > max_depth || dashes > 8 * max_depth {
            return Some(at);
        }
    }
    None
}
