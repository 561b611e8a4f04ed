//! Texts in scalars: YAML in them is merged as outside of them, in base64 too.

use super::error::MergeError;
use super::merger::{DecodedText, MergeRules, Merger, documents, merge};
use super::texts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};

impl Merger<'_> {
    /// The text `old` in base64 with what the plain text `new` adds or changes, in base64.
    pub(super) fn base64(&mut self, old: &str, new: &str) -> Result<Value, MergeError> {
        let Some(plain) = texts::decoded(old) else {
            self.lose("it is no text in base64");
            return Ok(Value::from(STANDARD.encode(new)));
        };
        let text = self.text(&plain, new)?;
        if text == plain {
            return Ok(old.into());
        }
        let encoded = STANDARD.encode(&text);
        self.merged.decoded.push(DecodedText {
            path: self.path.join("."),
            old: plain,
            new: text,
        });
        Ok(encoded.into())
    }

    /// The text `old` with what `new` adds or changes.
    pub(super) fn text(&mut self, old: &str, new: &str) -> Result<String, MergeError> {
        if self
            .path
            .iter()
            .rev()
            .take(2)
            .any(|key| texts::is_no_proxy(key))
            && !new.contains('\n')
        {
            return Ok(texts::with_entries(old, new));
        }
        let mut why = "it has lines that the new text lacks";
        if let Some(values) = yaml_in(new) {
            match documents(old).as_deref() {
                Ok([Value::Mapping(_)]) => return self.yaml(old, &values),
                Ok([_, _, ..]) => why = "it has several documents of YAML",
                _ => why = "it is no mapping of YAML, as the new text is",
            }
        }
        Ok(texts::merged(old, new).unwrap_or_else(|| {
            self.lose(why);
            new.to_owned()
        }))
    }

    /// The YAML `old` in a scalar with `values` set.
    fn yaml(&mut self, old: &str, values: &Mapping) -> Result<String, MergeError> {
        let path = self.path.join(".");
        let below = |inner: &str| format!("{path}: {inner}");
        let rules = MergeRules {
            base64: None,
            ..self.rules
        };
        let inner = match merge(old, 0, values, rules) {
            Ok(inner) => inner,
            Err(MergeError::Lost(lost)) => {
                self.lost.extend(lost.iter().map(|one| below(one)));
                return Ok(old.to_owned());
            }
            Err(MergeError::Kind {
                path,
                there,
                wanted,
            }) => {
                return Err(MergeError::Kind {
                    path: below(&path),
                    there,
                    wanted,
                });
            }
            Err(MergeError::Order { path, items }) => {
                return Err(MergeError::Order {
                    path: below(&path),
                    items,
                });
            }
            Err(MergeError::Form(path)) => return Err(MergeError::Form(below(&path))),
            Err(error @ MergeError::NotYaml(_)) => return Err(error),
        };
        let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
        if is_json(old) && !is_json(&inner.text) {
            return Err(MergeError::Form(path));
        }
        self.merged
            .paths
            .extend(inner.paths.iter().map(|one| below(one)));
        Ok(match old.ends_with('\n') {
            true => inner.text,
            false => inner.text.trim_end_matches('\n').to_owned(),
        })
    }

    /// Notes that the text at the path would be replaced, unless that is allowed.
    pub(super) fn lose(&mut self, why: &str) {
        if !self.rules.replace {
            self.lost.push(format!("{}: {why}", self.path.join(".")));
        }
    }
}

/// The mapping that `text` holds, if it is YAML or JSON rather than one line.
fn yaml_in(text: &str) -> Option<Mapping> {
    if !text.contains('\n') && !text.trim_start().starts_with('{') {
        return None;
    }
    match <[Value; 1]>::try_from(documents(text).ok()?) {
        Ok([Value::Mapping(mapping)]) => Some(mapping),
        _ => None,
    }
}
