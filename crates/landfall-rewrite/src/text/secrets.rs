//! Finds values of Secrets in texts that are not YAML, so that a diff can mask them.

use super::{documents, is_of_kind, lines_at};
use std::ops::Range;

/// Returns the bytes that may be values of Secrets in a text that is not YAML: in each Secret,
/// everything except plain keys and template calls without literals.
pub fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (range, document) in documents(text) {
        if is_secret(document) {
            add_values(document, range.start, &mut found);
        }
    }
    found
}

/// Whether a `kind` contains the word `Secret` or `SecretList`, or kustomize generates a Secret.
fn is_secret(document: &str) -> bool {
    is_of_kind(document, &["Secret", "SecretList"]) || document.contains("secretGenerator")
}

/// Adds the bytes that must be masked in each line of `document`. The document begins at the byte
/// `start`.
fn add_values(document: &str, start: usize, found: &mut Vec<Range<usize>>) {
    // the indentation of the line with the key of a block scalar
    let mut block = None;
    for (at, line) in lines_at(document) {
        let body = line.trim_end();
        let indent = body.len() - body.trim_start().len();
        let content = &body[indent..];
        let is_call = content.starts_with("{{");
        // a template call may have any indentation without ending the block
        if !is_call && !content.is_empty() && block.is_some_and(|above| indent <= above) {
            block = None;
        }
        let shown = match (is_call, block) {
            (true, _) if is_plain_call(content) => content.len(),
            (true, _) | (false, Some(_)) => 0,
            (false, None) => key_len(content),
        };
        let value = content[shown..].trim_start();
        if !is_call && block.is_none() && value.starts_with(['|', '>']) {
            block = Some(indent);
        }
        if !value.is_empty() {
            let end = start + at + body.len();
            found.push(end - value.len()..end);
        }
    }
}

/// Whether a line is one template call without a literal.
fn is_plain_call(line: &str) -> bool {
    line.find("}}") == line.len().checked_sub(2)
        && !line.contains(|c: char| "\"'`".contains(c) || c.is_ascii_digit())
}

/// The length of the key at the beginning of a line, including its colon and the dashes before it;
/// 0 if there is none.
fn key_len(line: &str) -> usize {
    let key = line.trim_start_matches(['-', ' ']);
    let ends = |colon: &usize| matches!(key.as_bytes().get(colon + 1), None | Some(b' ' | b'\t'));
    let Some(colon) = key.find(':').filter(ends) else {
        return 0;
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let name = key[..colon].trim_end().trim_matches(['"', '\'']);
    if name.is_empty() || !name.chars().all(plain) {
        0
    } else {
        line.len() - key.len() + colon + 1
    }
}

#[cfg(test)]
mod tests {
    use super::secrets;

    /// `text` with its secrets masked.
    fn masked(text: &str) -> String {
        let mut shown = text.to_owned();
        for secret in secrets(text).into_iter().rev() {
            shown.replace_range(secret, "***");
        }
        shown
    }

    #[test]
    fn only_keys_and_plain_calls_are_shown() {
        let text = "{{- if .x }}\nkind: Secret # of x\nstringData:\n  a: hunter2\n  \"b\": 'hunter2'\n  c: |\n    hunter2: x\n{{ if .y }}\n    hunter2\n  d:\n    hunter2\n  # hunter2\n  {{ .k }}: hunter2\n  {{- $p := \"hunter2\" }}\n  e: {{ b64enc \"hunter2\" }}\n  {{ fail `hunter2` }}\n  {f: hunter2}\n  - hunter2\n  with hunter2 to: x\n  g:\thunter2\n{{- end }}\n";
        let expected = "{{- if .x }}\nkind: ***\nstringData:\n  a: ***\n  \"b\": ***\n  c: ***\n    ***\n{{ if .y }}\n    ***\n  d:\n    ***\n  ***\n  ***\n  ***\n  e: ***\n  ***\n  ***\n  ***\n  ***\n  g:\t***\n{{- end }}\n";
        assert_eq!(masked(text), expected);
    }

    #[test]
    fn all_notations_of_a_secret_are_recognized() {
        for kind in [
            "kind: Secret # comment",
            "kind : \"Secret\"",
            "kind:\n  Secret",
            "kind: {{ ternary \"Secret\" \"ConfigMap\" .x }}",
            "kind: SecretList",
            "{{ x }}{\"kind\":\"Secret\",",
            "secretGenerator:",
        ] {
            assert!(
                !masked(&format!("{kind}\nx: hunter2\n")).contains("hunter2"),
                "{kind}"
            );
        }
        let other = "kind: ConfigMap\ndata: {secret: x}\n---\nkind: SecretStore\n";
        assert_eq!(masked(other), other);
    }
}
