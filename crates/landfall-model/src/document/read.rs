//! Typed reading of one YAML document.

use super::{Diagnostic, Node, explain, yaml};
use crate::Limits;
use serde::de::DeserializeOwned;

/// Reads one YAML document into `T`.
///
/// # Errors
/// A [`Diagnostic`] with the place, when the document is not YAML, has a key twice, does not fit
/// `T`, or holds more than [`yaml`] allows.
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Box<Diagnostic>> {
    if let Some(at) = too_deep(text) {
        let depth = Limits::DEFAULT.yaml_depth;
        let message =
            format!("this is nested deeper than {depth}, which no document of landfall's is");
        let span = at..at + 1;
        return Err(Box::new(Diagnostic {
            file: file.into(),
            text: text.into(),
            span,
            message,
            help: None,
        }));
    }
    let checked = yaml::check(text);
    let root = checked.is_ok().then(|| Node::parse(text)).flatten();
    // maps would take the last of two equal keys without a word
    if let Some((key, span)) = root.as_ref().and_then(Node::repeated_key) {
        let message = format!("the key `{key}` stands twice in this mapping");
        let help = Some("keep one of the two".into());
        return Err(Box::new(Diagnostic {
            file: file.into(),
            text: text.into(),
            span,
            message,
            help,
        }));
    }
    let read = checked.and_then(|()| yaml::from_checked(text));
    read.map_err(|error| Box::new(explain::explain(file, text, root.as_ref(), &error)))
}

/// The place where brackets, or runs of `- - -` on one line, are nested too deeply. Brackets inside
/// of texts count too: no document of landfall has that many unbalanced ones.
fn too_deep(text: &str) -> Option<usize> {
    let most = Limits::DEFAULT.yaml_depth;
    let (mut depth, mut dashes) = (0usize, 0usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'-' | b'?' | b':' => dashes += 1,
            b' ' => {}
            _ => dashes = 0,
        }
        if depth > most || dashes > 8 * most {
            return Some(at);
        }
    }
    None
}
