//! Finds control characters in the texts of a YAML document. YAML can write any of them (`"a\nb"`),
//! and most of the formats that landfall writes consist of lines: a line feed in a text would begin
//! another line of a systemd unit, a script or a log.

use super::diagnostic::{Diagnostic, MAX_DIAGNOSTICS};
use super::yaml_tree::{YamlNode, YamlScalar};

/// Returns an error for each key or scalar with a control character or a line separator, in the
/// first document of `text`, but at most 20 errors. Texts under the keys `prose` may have
/// several lines.
///
/// Returns no errors if `text` is not YAML: [`read`](super::read()) reports that.
pub fn control_characters(file: &str, text: &str, prose: &[&str]) -> Vec<Diagnostic> {
    let mut check = ControlCharacterCheck {
        file,
        text,
        prose,
        path: Vec::new(),
        faults: Vec::new(),
    };
    if let Some(root) = YamlNode::parse(text) {
        check.node(&root);
    }
    check.faults
}

/// The state of a check.
struct ControlCharacterCheck<'a> {
    file: &'a str,
    text: &'a str,
    prose: &'a [&'a str],
    /// The keys that lead to the current value, without control characters.
    path: Vec<String>,
    faults: Vec<Diagnostic>,
}

impl ControlCharacterCheck<'_> {
    fn node(&mut self, node: &YamlNode<'_>) {
        match node {
            YamlNode::Scalar(scalar) => self.value(scalar),
            YamlNode::Sequence(sequence) => {
                sequence.items.iter().for_each(|item| self.node(item));
            }
            YamlNode::Mapping(mapping) => {
                for entry in &mapping.entries {
                    let Some(key) = entry.key.scalar() else {
                        self.node(&entry.key);
                        self.node(&entry.value);
                        continue;
                    };
                    self.scalar(key, false, || "this key".to_owned());
                    let name = key.value.chars().filter(|c| !c.is_control()).collect();
                    self.path.push(name);
                    self.node(&entry.value);
                    self.path.pop();
                }
            }
            YamlNode::Alias(_) => {}
        }
    }

    fn value(&mut self, scalar: &YamlScalar<'_>) {
        let names: Vec<&str> = self
            .path
            .iter()
            .map(String::as_str)
            .filter(|name| !name.is_empty())
            .collect();
        let is_prose = names.last().is_some_and(|name| self.prose.contains(name));
        let path = names.join(".");
        self.scalar(scalar, is_prose, || {
            if path.is_empty() {
                "this text".to_owned()
            } else {
                format!("`{path}`")
            }
        });
    }

    fn scalar(
        &mut self,
        scalar: &YamlScalar<'_>,
        is_prose: bool,
        subject: impl FnOnce() -> String,
    ) {
        let is_forbidden = |c: &char| {
            (c.is_control() && !(is_prose && *c == '\n')) || matches!(c, '\u{2028}' | '\u{2029}')
        };
        let Some(found) = scalar.value.chars().find(is_forbidden) else {
            return;
        };
        if self.faults.len() == MAX_DIAGNOSTICS {
            return;
        }
        let message = format!("{} contains {}", subject(), character_name(found));
        let help = if is_prose {
            "remove the character; only line feeds may separate the lines of this text"
        } else {
            "write a text of one line, without control characters"
        };
        let span = scalar.span.clone();
        let fault = Diagnostic::new(self.file, self.text, span, message, Some(help));
        self.faults.push(*fault);
    }
}

fn character_name(c: char) -> String {
    let code = u32::from(c);
    match c {
        '\n' => format!("a control character, a line feed (U+{code:04X})"),
        '\r' => format!("a control character, a carriage return (U+{code:04X})"),
        '\t' => format!("a control character, a tab (U+{code:04X})"),
        '\u{1b}' => format!("a control character, an escape (U+{code:04X})"),
        '\u{2028}' => format!("a line separator (U+{code:04X})"),
        '\u{2029}' => format!("a paragraph separator (U+{code:04X})"),
        _ => format!("a control character, U+{code:04X}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(text: &str) -> Vec<String> {
        let found = control_characters("s.yaml", text, &["why"]);
        found
            .iter()
            .map(|one| format!("{} {}", one.line_column().0, one.message))
            .collect()
    }

    #[test]
    fn every_key_and_value_is_checked_and_named() {
        let text = "a: fine\nproxy:\n  noProxy: {installation: [\"x\", \"y\\nz\"]}\n  http: \"h\\u001b\"\n\"b\\tc\": 1\n\
                    list:\n- why: |\n    two\n    lines\n  name: |\n    one\n- \"\\u2028\"\n- why: \"a\\rb\"\nlast: \"\\x7f\"\n";
        assert_eq!(
            faults_of(text),
            [
                "3 `proxy.noProxy.installation` contains a control character, a line feed (U+000A)",
                "4 `proxy.http` contains a control character, an escape (U+001B)",
                "5 this key contains a control character, a tab (U+0009)",
                "11 `list.name` contains a control character, a line feed (U+000A)",
                "12 `list` contains a line separator (U+2028)",
                "13 `list.why` contains a control character, a carriage return (U+000D)",
                "14 `last` contains a control character, U+007F",
            ]
        );
    }

    #[test]
    fn the_help_for_a_text_that_may_have_several_lines_does_not_require_one_line() {
        for (key, help) in [
            ("why", "only line feeds may separate the lines"),
            ("name", "a text of one line"),
        ] {
            let text = format!("{key}: \"a\\u2029b\"\n");
            let found = control_characters("s.yaml", &text, &["why"]).remove(0);
            assert!(
                found
                    .message
                    .ends_with("contains a paragraph separator (U+2029)")
            );
            assert!(found.help.unwrap().contains(help), "{key}");
        }
    }

    #[test]
    fn a_folded_text_is_a_single_line() {
        assert!(
            faults_of(
                "a: >-\n  folded\n  text\nb: plain\n  text\nc: \"quoted\n  text\"\nd: käse 🧀\n"
            )
            .is_empty()
        );
        assert!(faults_of("a: [x\n").is_empty());
    }

    #[test]
    fn the_number_of_errors_is_limited() {
        let text = "- \"\\a\"\n".repeat(1000);
        assert_eq!(faults_of(&text).len(), MAX_DIAGNOSTICS);
    }
}
