//! Finds control characters in the texts of a YAML document. YAML can write any of them (`"a\nb"`),
//! and most formats that landfall writes texts into know lines: a line feed would begin another
//! line of a systemd unit, a script or a log.

use super::diagnostic::Diagnostic;
use granit_parser::{Event, Parser, options};

/// A mapping or list that is still open: the key or number that it is at, and whether the next
/// scalar is a key.
struct Open {
    at: String,
    is_mapping: bool,
    is_key_next: bool,
}

/// An error for every key and every text in the first document of `text` that holds a control
/// character or a separator of lines. Of keys that are called as in `prose`, texts may have several
/// lines.
pub fn control_characters(file: &str, text: &str, prose: &[&str]) -> Vec<Diagnostic> {
    let (mut open, mut found): (Vec<Open>, Vec<Diagnostic>) = (Vec::new(), Vec::new());
    for event in Parser::new_from_str_with_options(text, options! { emit_comments: false }) {
        // what is not YAML is told by whoever reads it
        let Ok((event, span)) = event else { break };
        let Some(span) = span.byte_range() else { break };
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let is_mapping = matches!(event, Event::MappingStart(..));
                open.push(Open {
                    at: String::new(),
                    is_mapping,
                    is_key_next: is_mapping,
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => drop(open.pop()),
            Event::Scalar(value, ..) => {
                let is_key = open.last().is_some_and(|parent| parent.is_key_next);
                let names: Vec<&str> = open
                    .iter()
                    .map(|parent| parent.at.as_str())
                    .filter(|at| !at.is_empty())
                    .collect();
                let is_prose = !is_key && names.last().is_some_and(|name| prose.contains(name));
                let is_bad = |c: &char| {
                    (c.is_control() && !(is_prose && *c == '\n'))
                        || matches!(c, '\u{2028}' | '\u{2029}')
                };
                if let Some(bad) = value.chars().find(is_bad) {
                    let what = match (is_key, names.join(".")) {
                        (true, _) => "this key".to_owned(),
                        (false, name) if name.is_empty() => "this text".to_owned(),
                        (false, name) => format!("`{name}`"),
                    };
                    let message = format!("{what} holds a control character, {}", name_of(bad));
                    let help = Some("write a text of one line, without control characters".into());
                    found.push(Diagnostic {
                        file: file.into(),
                        text: text.into(),
                        span,
                        message,
                        help,
                    });
                }
                if let Some(parent) = open.last_mut().filter(|parent| parent.is_key_next) {
                    parent.at = value.chars().filter(|c| !c.is_control()).collect();
                    parent.is_key_next = false;
                    continue;
                }
            }
            Event::DocumentEnd => break,
            event if event.is_node() => {}
            _ => continue,
        }
        if let Some(parent) = open.last_mut().filter(|parent| parent.is_mapping) {
            // a mapping or an alias may be a key too
            parent.is_key_next = !parent.is_key_next;
        }
    }
    found
}

fn name_of(c: char) -> String {
    let code = u32::from(c);
    match c {
        '\n' => format!("a line feed (U+{code:04X})"),
        '\r' => format!("a carriage return (U+{code:04X})"),
        '\t' => format!("a tab (U+{code:04X})"),
        '\u{1b}' => format!("an escape (U+{code:04X})"),
        _ => format!("U+{code:04X}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let found = control_characters("s.yaml", text, &["why"]);
        found
            .iter()
            .map(|one| format!("{} {}", one.line_column().0, one.message))
            .collect()
    }

    #[test]
    fn every_text_and_key_is_looked_at_and_named() {
        let text = "a: fine\nproxy:\n  noProxy: {installation: [\"x\", \"y\\nz\"]}\n  http: \"h\\u001b\"\n\"b\\tc\": 1\n\
                    list:\n- why: |\n    two\n    lines\n  name: |\n    one\n- \"\\u2028\"\n- why: \"a\\rb\"\nlast: \"\\x7f\"\n";
        assert_eq!(
            told(text),
            [
                "3 `proxy.noProxy.installation` holds a control character, a line feed (U+000A)",
                "4 `proxy.http` holds a control character, an escape (U+001B)",
                "5 this key holds a control character, a tab (U+0009)",
                "11 `list.name` holds a control character, a line feed (U+000A)",
                "12 `list` holds a control character, U+2028",
                "13 `list.why` holds a control character, a carriage return (U+000D)",
                "14 `last` holds a control character, U+007F",
            ]
        );
    }

    #[test]
    fn texts_that_are_folded_are_of_one_line() {
        assert!(
            told("a: >-\n  folded\n  text\nb: plain\n  text\nc: \"quoted\n  text\"\nd: käse 🧀\n")
                .is_empty()
        );
        assert!(told("a: [x\n").is_empty());
    }
}
