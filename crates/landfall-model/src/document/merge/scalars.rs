//! Sets the values of scalars, plain or base64. A scalar that contains YAML is merged like a
//! document.

use super::error::MergeError;
use super::facts::is_same_url;
use super::merger::{DecodedText, MergeRules, ObjectPosition, ValueMerger, documents, merge_once};
use super::no_proxy_lists::{is_no_proxy_path, is_separate, with_entries};
use super::texts;
use crate::redaction::redact_urls;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};

impl ValueMerger<'_> {
    /// Merges the plain text `new` into the text that `old` encodes in base64. Returns base64.
    pub(super) fn merge_base64(&mut self, old: &str, new: &str) -> Result<Value, MergeError> {
        let Some(plain) = texts::decode_base64(old) else {
            self.lose("it is not the base64 of a text");
            return Ok(Value::from(STANDARD.encode(new)));
        };
        let text = self.merge_text(&plain, new)?;
        if text == plain {
            return Ok(old.into());
        }
        let encoded = STANDARD.encode(&text);
        self.merged.decoded.push(DecodedText {
            path: self.dotted_path(),
            old: plain,
            new: text,
        });
        Ok(encoded.into())
    }

    /// Merges the text `new` into the text `old`.
    pub(super) fn merge_text(&mut self, old: &str, new: &str) -> Result<String, MergeError> {
        if is_no_proxy_path(&self.path) && !new.contains('\n') {
            return Ok(if is_separate(&self.path) {
                with_entries(old, new)
            } else {
                self.lists.merge(old, new)
            });
        }
        let mut reason = "it has lines that the new text lacks";
        if let Some(values) = embedded_mapping(new) {
            match documents(old).as_deref() {
                Ok([Value::Mapping(_)]) => return self.merge_embedded(old, &values),
                Ok([_, _, ..]) => reason = "it has several YAML documents",
                _ => reason = "it is not a YAML mapping, unlike the new text",
            }
        }
        if let Some(text) = texts::merge_known_text(old, new, self.lists) {
            return Ok(text);
        }
        let are_single_lines = ![old, new].iter().any(|text| text.trim_end().contains('\n'));
        if are_single_lines && is_same_url(old, new) {
            return Ok(old.to_owned());
        }
        // kubeadm accepts both spellings of a version
        let is_version = self
            .path
            .last()
            .is_some_and(|key| key == "kubernetesVersion");
        if is_version && old.trim_start_matches('v') == new.trim_start_matches('v') {
            return Ok(old.to_owned());
        }
        if are_single_lines {
            self.overwrite(old, new);
        } else {
            self.lose(reason);
        }
        Ok(new.to_owned())
    }

    /// Unless the rules allow it, records that the value `old` at the path would be replaced by
    /// `new`, if that is not a fact of the site or `old` states the fact too.
    pub(super) fn overwrite(&mut self, old: &str, new: &str) {
        let facts = self.rules.facts;
        if !facts.states(new) || facts.differ_beside(old, new) {
            let mut shown = redact_urls(new);
            if let Some((at, _)) = shown.char_indices().nth(100) {
                shown.truncate(at);
                shown.push('…');
            }
            let shown = serde_json::Value::from(shown);
            self.lose(&format!("it has another value than {shown}"));
        }
    }

    /// Sets `values` in the YAML text `old`, the value of a scalar.
    fn merge_embedded(&mut self, old: &str, values: &Mapping) -> Result<String, MergeError> {
        let path = self.dotted_path();
        let inner_path = |inner: &str| format!("{path}: {inner}");
        let rules = MergeRules {
            base64: None,
            ..self.rules
        };
        let inner = match merge_once(old, ObjectPosition::default(), values, rules, self.lists) {
            Ok(inner) => inner,
            Err(MergeError::Lost(lost)) => {
                self.lost.extend(lost.iter().map(|line| inner_path(line)));
                return Ok(old.to_owned());
            }
            Err(error) => return Err(error.map_path(inner_path)),
        };
        // an edit may turn JSON into YAML, which programs that expect JSON cannot read
        if is_json(old) && !is_json(&inner.text) {
            return Err(MergeError::Form(path));
        }
        self.merged
            .paths
            .extend(inner.paths.iter().map(|path| inner_path(path)));
        if old.ends_with('\n') {
            Ok(inner.text)
        } else {
            Ok(inner.text.trim_end_matches('\n').to_owned())
        }
    }

    /// Unless the rules allow it, records that the value at the path would be replaced.
    pub(super) fn lose(&mut self, reason: &str) {
        if !self.rules.replace {
            self.lost.push(format!("{}: {reason}", self.dotted_path()));
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok()
}

/// The mapping in `text`, if it is YAML of several lines, or JSON.
fn embedded_mapping(text: &str) -> Option<Mapping> {
    if !text.contains('\n') {
        return serde_json::from_str(text).ok();
    }
    match <[Value; 1]>::try_from(documents(text).ok()?) {
        // a template such as `{{ hostname }}` is a mapping with another mapping as its key
        Ok([Value::Mapping(mapping)]) if mapping.keys().all(Value::is_string) => Some(mapping),
        _ => None,
    }
}
