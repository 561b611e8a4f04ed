//! Sets the values of scalars, plain or base64. A scalar that contains YAML is merged like a
//! document.

use super::edits::{MergeError, is_same_url};
use super::no_proxy_lists::{
    NoProxyLists, is_no_proxy, is_no_proxy_path, is_separate, with_entries,
};
use super::{DecodedText, MergeRules, ObjectPosition, ValueMerger, documents, merge_once};
use crate::redaction::redact_urls;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};

impl ValueMerger<'_> {
    /// Merges the plain text `new` into the text that `old` encodes in base64. Returns base64.
    pub(super) fn merge_base64(&mut self, old: &str, new: &str) -> Result<Value, MergeError> {
        let Some(plain) = decode_base64(old) else {
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
        if let Some(text) = merge_known_text(old, new, self.lists) {
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

// Merges two texts of a known format into one text that has the parts of both.

/// The first line of a certificate in PEM form.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
/// The last line of a certificate in PEM form.
const END: &str = "-----END CERTIFICATE-----";

/// Merges `new` into `old`: certificates and the variables of systemd drop-ins are added. Any other
/// text becomes `new` if `old` is blank, or if `new` has all lines of `old`; otherwise `None`.
/// NO_PROXY in drop-ins is merged with `lists`.
pub(super) fn merge_known_text(old: &str, new: &str, lists: &mut NoProxyLists) -> Option<String> {
    if old.trim().is_empty() {
        return Some(new.to_owned());
    }
    if old.contains(BEGIN) && new.contains(BEGIN) {
        return Some(with_certificates(old, new));
    }
    if let (Some(old), Some(new)) = (encoded_certificates(old), encoded_certificates(new)) {
        return Some(STANDARD.encode(with_certificates(&old, &new)));
    }
    if let Some(unit) = with_variables(old, new, lists) {
        return Some(unit);
    }
    let is_kept = |line: &str| {
        line.trim().is_empty() || new.lines().any(|other| other.trim_end() == line.trim_end())
    };
    old.lines().all(is_kept).then(|| new.to_owned())
}

/// Decodes `text` if it encodes certificates in base64, as TKG's variables do.
fn encoded_certificates(text: &str) -> Option<String> {
    decode_base64(text).filter(|text| text.contains(BEGIN))
}

/// Decodes the base64 `text`, which may have line breaks. `None` if it does not encode UTF-8.
pub(super) fn decode_base64(text: &str) -> Option<String> {
    let packed: String = text.split_whitespace().collect();
    String::from_utf8(STANDARD.decode(packed).ok()?).ok()
}

/// `old` followed by the certificates of `new` that it lacks.
fn with_certificates(old: &str, new: &str) -> String {
    let existing = without_whitespace(old);
    let mut text = old.to_owned();
    for part in new.split_inclusive(END) {
        let Some(start) = part.find(BEGIN) else {
            continue;
        };
        let certificate = &part[start..];
        if certificate.ends_with(END) && !existing.contains(&without_whitespace(certificate)) {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(certificate);
            text.push('\n');
        }
    }
    text
}

/// Line lengths of PEM differ between programs, so certificates are compared without white space.
fn without_whitespace(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Adds the variables of the systemd drop-in `new` to the drop-in `old`. `None` if a line of
/// `new` sets anything other than one variable, if `old` has no `[Service]` section or several, or
/// if a line of that section may set one of the variables but cannot be read.
fn with_variables(old: &str, new: &str, lists: &mut NoProxyLists) -> Option<String> {
    let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
    let mut sections = (0..lines.len()).filter(|at| lines[*at].trim() == "[Service]");
    let section = sections.next()?;
    // systemd reads several sections as one: their lines would have to be searched, too
    if sections.next().is_some() {
        return None;
    }
    let next = lines
        .iter()
        .skip(section + 1)
        .position(|line| line.trim_start().starts_with('['));
    let mut end = next.map_or(lines.len(), |next| section + 1 + next);
    // an empty line before the next section stays there
    while end > section + 1 && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    // assignments before an empty one have no effect (`Environment=` in systemd.exec(5))
    let reset = lines[section..end]
        .iter()
        .rposition(|line| environment(line) == Some(""));
    let start = section + reset.unwrap_or(0);
    for line in new.lines() {
        let is_comment = line.starts_with(['#', ';']);
        if line.trim().is_empty() || is_comment || line.trim() == "[Service]" {
            continue;
        }
        let [(name, value)] = unit_variables(line)?[..] else {
            return None;
        };
        if lines[section..end]
            .iter()
            .any(|other| may_hide(other, name))
        {
            return None;
        }
        // systemd uses the last assignment of a variable
        let last = lines[start..end]
            .iter()
            .rposition(|other| variable_value(other, name).is_some());
        let Some(at) = last.map(|last| start + last) else {
            lines.insert(end, line.to_owned());
            end += 1;
            continue;
        };
        let existing = variable_value(&lines[at], name).unwrap_or_default();
        let value = if is_no_proxy(name) {
            lists.merge(existing, value)
        } else {
            value.to_owned()
        };
        if value == existing || is_same_url(existing, &value) {
            continue;
        }
        let merged = format!("Environment=\"{name}={value}\"");
        // a line that also sets other variables is kept, and overridden by the next one
        if unit_variables(&lines[at]).is_some_and(|variables| variables.len() > 1) {
            lines.insert(at + 1, merged);
            end += 1;
        } else {
            lines[at] = merged;
        }
    }
    let mut text = lines.join("\n");
    if old.ends_with('\n') {
        text.push('\n');
    }
    Some(text)
}

/// The value of a line `Environment=` of a unit. An empty one removes the variables that earlier
/// lines set.
fn environment(line: &str) -> Option<&str> {
    let (key, value) = line.split_once('=')?;
    (key.trim() == "Environment").then_some(value.trim())
}

/// The names and values of the variables that a line of a unit sets (`Environment=` in
/// systemd.exec(5)). The values still contain their escapes. Empty if the line is another setting.
/// `None` if the line cannot be read: it continues on the next line, quotes parts of a word, or has
/// a word without `=`.
fn unit_variables(line: &str) -> Option<Vec<(&str, &str)>> {
    let mut variables = Vec::new();
    let mut rest = environment(line).unwrap_or_default();
    while let Some(first) = rest.chars().next() {
        let quote = Some(first).filter(|first| matches!(first, '"' | '\''));
        rest = &rest[usize::from(quote.is_some())..];
        let (word, after) = rest.split_at(unit_word_length(rest, quote)?);
        rest = match quote {
            Some(quote) => after.strip_prefix(quote)?,
            None => after,
        };
        // the merged line has double quotes: a value that contains quotes stays unchanged in them
        // only if it is in double quotes already
        let is_plain = quote == Some('"') || !word.contains(['"', '\'']);
        if !is_plain || !(rest.is_empty() || rest.starts_with(char::is_whitespace)) {
            return None;
        }
        rest = rest.trim_start();
        variables.push(word.split_once('=')?);
    }
    Some(variables)
}

/// The length in bytes of the word at the start of `text`. The word ends at `quote`, or at white
/// space if there is no quote. `None` if `text` ends with an incomplete escape.
fn unit_word_length(text: &str, quote: Option<char>) -> Option<usize> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if quote.map_or(c.is_whitespace(), |quote| c == quote) {
            return Some(at);
        }
        if c == '\\' {
            chars.next()?;
        }
    }
    Some(text.len())
}

/// The last value that a line of a unit sets for the variable `name`.
fn variable_value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let variables = unit_variables(line)?;
    let mut last = variables.into_iter().rev();
    last.find_map(|(other, value)| (other == name).then_some(value))
}

/// Whether a line of a unit cannot be read and may set the variable `name`.
fn may_hide(line: &str, name: &str) -> bool {
    unit_variables(line).is_none() && (line.contains(name) || line.trim_end().ends_with('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(old: &str, new: &str) -> Option<String> {
        merge_known_text(old, new, &mut NoProxyLists::default())
    }

    fn pem(body: &str) -> String {
        format!("{BEGIN}\n{body}\n{END}\n")
    }

    #[test]
    fn certificates_are_added_once() {
        let old = format!("# ours\n{}", pem("YQ=="));
        let both = merged(&old, &(pem("Yg==") + &pem("YQ=="))).unwrap();
        assert_eq!(both, format!("{old}{}", pem("Yg==")));
        assert_eq!(merged(&both, &pem("Yg==")).unwrap(), both);
        let encoded = merged(&STANDARD.encode(pem("YQ==")), &STANDARD.encode(pem("Yg=="))).unwrap();
        assert_eq!(decode_base64(&encoded).unwrap(), pem("YQ==") + &pem("Yg=="));
    }

    #[test]
    fn a_drop_in_keeps_its_lines_and_gets_the_variables() {
        let old = "[Unit]\nAfter=x\n[Service]\n# ours\nEnvironment=\"HTTP_PROXY=http://old\"\nEnvironment=NO_PROXY=10.0.0.0/8\n\
               LimitNOFILE=1\n\n[Install]\nWantedBy=y\n";
        let new = "[Service]\nEnvironment=\"HTTP_PROXY=http://new\"\nEnvironment=\"HTTPS_PROXY=http://new\"\n\
               Environment=\"NO_PROXY=svc,10.0.0.0/8\"\n";
        let expected = "[Unit]\nAfter=x\n[Service]\n# ours\nEnvironment=\"HTTP_PROXY=http://new\"\n\
                    Environment=\"NO_PROXY=10.0.0.0/8,svc\"\nLimitNOFILE=1\nEnvironment=\"HTTPS_PROXY=http://new\"\n\n\
                    [Install]\nWantedBy=y\n";
        assert_eq!(merged(old, new).unwrap(), expected);
        assert_eq!(merged(expected, new).unwrap(), expected);
    }

    #[test]
    fn a_line_that_sets_several_variables_is_kept() {
        let new =
            "[Service]\nEnvironment=\"HTTP_PROXY=http://new\"\nEnvironment=\"NO_PROXY=svc\"\n";
        let old = "[Service]\nEnvironment=HTTP_PROXY=http://old FOO=bar\n\
               Environment = 'NO_PROXY=a, b' \"X=1 \\\" 2\"\nUser=x\n";
        let expected = "[Service]\nEnvironment=HTTP_PROXY=http://old FOO=bar\n\
                    Environment=\"HTTP_PROXY=http://new\"\n\
                    Environment = 'NO_PROXY=a, b' \"X=1 \\\" 2\"\n\
                    Environment=\"NO_PROXY=a, b,svc\"\nUser=x\n";
        assert_eq!(merged(old, new).unwrap(), expected);
        assert_eq!(merged(expected, new).unwrap(), expected);
    }

    #[test]
    fn a_drop_in_is_refused_if_it_may_set_a_variable_in_an_unknown_way() {
        let new = "[Service]\nEnvironment=\"NO_PROXY=svc\"\n";
        for line in [
            "Environment=NO_PROXY=\"a\",b",
            "Environment='NO_PROXY=a\"b'",
            "Environment=\"NO_PROXY=a",
            "Environment=FOO=bar \\\nNO_PROXY=a",
        ] {
            let old = format!("[Service]\n{line}\nUser=x\n");
            assert_eq!(merged(&old, new), None, "{line}");
        }
        let old = "[Service]\nEnvironment=FOO=\"a\"b\n";
        let expected = format!("{old}Environment=\"NO_PROXY=svc\"\n");
        assert_eq!(merged(old, new).unwrap(), expected);
    }

    #[test]
    fn a_variable_before_an_empty_assignment_is_not_set() {
        let new = "[Service]\nEnvironment=\"NO_PROXY=svc\"\n";
        let old = "[Service]\nEnvironment=NO_PROXY=a\nEnvironment =\nUser=x\n";
        let expected = format!("{old}Environment=\"NO_PROXY=svc\"\n");
        assert_eq!(merged(old, new).unwrap(), expected);
        assert_eq!(merged(&expected, new).unwrap(), expected);
    }

    #[test]
    fn a_drop_in_with_two_service_sections_is_refused() {
        let new = "[Service]\nEnvironment=\"NO_PROXY=svc\"\n";
        let old = "[Service]\nUser=x\n[Service]\nEnvironment=NO_PROXY=a\n";
        assert_eq!(merged(old, new), None);
    }

    #[test]
    fn another_text_is_replaced_if_no_line_is_lost() {
        assert_eq!(merged("a\nb\n", "a\nc\nb\n").as_deref(), Some("a\nc\nb\n"));
        assert_eq!(merged("a\nb\n", "a\nc\n"), None);
        assert_eq!(merged("one", "two"), None);
        assert_eq!(merged("one", "a\nb\n"), None);
        assert_eq!(merged(" \n", "x").as_deref(), Some("x"));
    }
}
