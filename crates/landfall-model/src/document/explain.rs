//! Translates errors of serde and libyaml for users: one sentence, one position, one fix.

use super::Diagnostic;
use super::yaml_tree::YamlNode;
use crate::std_tools::nearest;

/// The message for a single value where a list is expected.
const NO_LIST: &str = "this should be a list";

/// The message for a single value where a mapping is expected.
const NO_MAPPING: &str = "this should be a mapping of keys and values";

/// The [`Diagnostic`] for an `error` from reading `text`.
pub(super) fn explain(
    file: &str,
    text: &str,
    root: Option<&YamlNode<'_>>,
    error: &serde_yaml::Error,
) -> Box<Diagnostic> {
    let start = error.location().map_or(0, |at| at.index());
    let start = text.floor_char_boundary(start);
    let span = root
        .and_then(|root| root.starting_at(start))
        .unwrap_or_else(|| {
            let word = text[start..].find(|c: char| c.is_whitespace() || c == ':');
            start..word.map_or(text.len(), |length| start + length)
        });
    let described = error.to_string();
    let path = described.split_once(": ").map_or("", |(path, _)| path);
    let (mut message, mut help) = message_and_help(&described);
    if text[start..].starts_with('\t') && message.starts_with("found character that cannot") {
        message = "YAML cannot be indented with tabs".into();
        help = Some("indent with spaces".into());
    }
    let written = &text[span.clone()];
    if message == NO_MAPPING && !written.is_empty() && !written.contains(['\n', '{']) {
        let key = match path {
            "registry" => Some("address"),
            "proxy" => Some("https"),
            _ if path.starts_with("upstreams.") => Some("mirror"),
            _ if path.starts_with("clusters[") => Some("name"),
            _ if written.contains("://") => Some("url"),
            _ => None,
        };
        help = key.map(|key| format!("write `{{{key}: {written}}}`"));
    }
    if message == NO_MAPPING && path == "proxy.noProxy" {
        help = Some("write `{installation: [HOST, …]}`".into());
    }
    if path.starts_with("registry.paths") {
        help = Some("write a path for each prefix, as in `{quay.io: quay}`".into());
    }
    // a password in place of its source would be in this file, and in messages
    if path.ends_with("credentials") {
        let source = "`{usernameEnv: REG_USER, passwordEnv: REG_TOKEN}` or `{file: FILE}`";
        help = Some(format!("name their source, as in {source}"));
    }
    if message == NO_LIST && !written.is_empty() && !written.contains(['\n', ':', '{']) {
        help = Some(format!("write `[{written}]`"));
    }
    Diagnostic::new(file, text, span, message, help.as_deref())
}

/// The message and the fix for an error of serde.
fn message_and_help(message: &str) -> (String, Option<String>) {
    let message = without_position(without_path(message));
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let Some((_, known)) = message.split_once(", expected ") {
        let choices: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        if message.starts_with("unknown field") {
            return (
                format!("unknown key `{}`", quoted[0]),
                choice(quoted[0], &choices),
            );
        }
        if message.starts_with("unknown variant") {
            return (
                format!("`{}` is not allowed here", quoted[0]),
                choice(quoted[0], &choices),
            );
        }
    }
    if message.starts_with("missing field") {
        return (
            format!("the key `{}` is missing here", quoted[0]),
            Some(format!("add `{}: …`", quoted[0])),
        );
    }
    if let Some((found, wanted)) = message.split_once(", expected ")
        && (found.starts_with("invalid type") || found.starts_with("invalid value"))
    {
        let wanted = if found.contains(": integer `") {
            range_in_words(wanted)
        } else {
            type_in_words(wanted)
        };
        return (format!("this should be {wanted}"), None);
    }
    if message.starts_with("data did not match any variant") {
        return (
            "this has none of the structures that are allowed here".into(),
            None,
        );
    }
    if message.starts_with("mapping values are not allowed") {
        let help = "quote a value that contains `: `";
        return (message, Some(help.into()));
    }
    if message.starts_with("found character that cannot start any token") {
        return (message, Some("quote the value".into()));
    }
    if message.contains("more than one document") {
        return (
            "the file contains more than one YAML document".into(),
            Some("write one document per file".into()),
        );
    }
    (message, None)
}

/// The fix for a word that is not one of `known`.
fn choice(word: &str, known: &[&str]) -> Option<String> {
    match nearest(word, known.iter().copied()) {
        Some(name) => Some(format!("did you mean `{name}`?")),
        None if known.is_empty() => None,
        None => Some(format!("allowed here: {}", known.join(", "))),
    }
}

/// Describes the type that serde expected, in words.
fn type_in_words(wanted: &str) -> String {
    match wanted {
        "a sequence" => "a list".into(),
        "a map" => "a mapping of keys and values".into(),
        "a boolean" => "true or false".into(),
        "unit" | "unit value" => "empty".into(),
        _ if wanted.starts_with("struct ") => "a mapping of keys and values".into(),
        _ if ["u8", "u16", "u32", "u64", "usize", "i64"].contains(&wanted) => {
            "a whole number".into()
        }
        _ if wanted.starts_with("a nonzero ") => "a whole number of at least 1".into(),
        _ => wanted.into(),
    }
}

/// Describes, in words, the range of integers that serde expected when it found an integer outside
/// the range.
fn range_in_words(wanted: &str) -> String {
    match wanted {
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number of at least 0".into(),
        _ => type_in_words(wanted),
    }
}

/// `images[0].ref: message` -> `message`: the displayed line has the position.
fn without_path(message: &str) -> &str {
    match message.split_once(": ") {
        Some((path, what))
            if !path.starts_with("invalid ")
                && !path.contains(|c: char| c.is_whitespace() || c == '`') =>
        {
            what
        }
        _ => message,
    }
}

/// `message at line 3 column 1, while … at line 2 column 1` ->
/// `message, while … that begins in line 2`.
fn without_position(message: &str) -> String {
    let Some((what, rest)) = message.split_once(" at line ") else {
        return message.into();
    };
    let Some((place, context)) = rest.split_once(", ") else {
        return what.into();
    };
    match context
        .split_once(" at line ")
        .map(|(context, at)| (context, at.split(' ').next()))
    {
        Some((context, Some(line))) if place.split(' ').next() != Some(line) => {
            format!("{what}, {context} that begins in line {line}")
        }
        Some((context, _)) => format!("{what}, {context}"),
        None => format!("{what}, {context}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::document::read;
    use serde::Deserialize;
    use std::collections::BTreeMap;
    use std::num::NonZeroUsize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Sample {
        images: Vec<Item>,
        #[serde(default)]
        upstreams: BTreeMap<String, u16>,
        #[serde(default)]
        keep: Option<NonZeroUsize>,
        #[serde(default)]
        kind: Kind,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Item {
        platforms: Vec<String>,
        digest: Option<String>,
    }

    #[derive(Debug, Default, Deserialize)]
    enum Kind {
        #[default]
        Manifest,
    }

    /// `line:column word: message; help`
    fn fault(text: &str) -> String {
        let fault = read::<Sample>("x.yaml", text).unwrap_err();
        let (line, column) = fault.line_column();
        let help = fault
            .help
            .as_ref()
            .map(|help| format!("; {help}"))
            .unwrap_or_default();
        format!(
            "{line}:{column} {:?}: {}{help}",
            &text[fault.span.clone()],
            fault.message
        )
    }

    #[test]
    fn wrong_keys_and_values_are_explained_in_one_sentence() {
        let known = "did you mean `platforms`?";
        assert_eq!(
            fault("images:\n- platfroms: []\n"),
            format!("2:3 \"platfroms\": unknown key `platfroms`; {known}")
        );
        assert_eq!(
            fault("\u{feff}# ééé\r\nimages:\r\n- platforms: []\r\n  zzz: 1\r\n"),
            "4:3 \"zzz\": unknown key `zzz`; allowed here: platforms, digest"
        );
        assert_eq!(
            fault("images:\n- digest: x\n"),
            "2:3 \"digest\": the key `platforms` is missing here; add `platforms: …`"
        );
        assert_eq!(
            fault("images: x\n"),
            "1:9 \"x\": this should be a list; write `[x]`"
        );
        assert_eq!(
            fault("images: [x]\n"),
            "1:10 \"x\": this should be a mapping of keys and values"
        );
        assert_eq!(
            fault("images: [https://h/x]\n"),
            "1:10 \"https://h/x\": this should be a mapping of keys and values; write `{url: \
             https://h/x}`"
        );
        assert_eq!(
            fault("images: []\nupstreams: {quay.io: no}\n"),
            "2:22 \"no\": this should be a whole number"
        );
        for (number, range) in [
            ("70000", "a whole number from 0 to 65535"),
            ("-1", "a whole number from 0 to 65535"),
        ] {
            assert_eq!(
                fault(&format!("images: []\nupstreams: {{a: {number}}}\n")),
                format!("2:16 \"{number}\": this should be {range}")
            );
        }
        for wrong in ["0", "-1", "x"] {
            assert_eq!(
                fault(&format!("images: []\nkeep: {wrong}\n")),
                format!("2:7 \"{wrong}\": this should be a whole number of at least 1")
            );
        }
        assert_eq!(
            fault("images: []\nkind: Manifset\n"),
            "2:7 \"Manifset\": `Manifset` is not allowed here; did you mean `Manifest`?"
        );
        assert_eq!(
            fault("images: []\nimages: []\n"),
            "2:1 \"images\": the key `images` is repeated in this mapping; keep one of the two"
        );
        assert_eq!(
            fault("images: []\nupstreams: {a: 1, b: 2, a: 1}\n"),
            "2:25 \"a\": the key `a` is repeated in this mapping; keep one of the two"
        );
    }

    #[test]
    fn a_syntax_error_is_explained_without_a_second_position() {
        assert_eq!(
            fault("images:\n\t- a\n"),
            "2:1 \"\": YAML cannot be indented with tabs; indent with spaces"
        );
        assert_eq!(
            fault("images:\n- platforms: []\n  digest: a: b\n"),
            "3:12 \"\": mapping values are not allowed in this context; quote a value that contains `: `"
        );
        assert_eq!(
            fault("images: @a\n"),
            "1:9 \"@a\": found character that cannot start any token, while scanning for the next token; \
         quote the value"
        );
        assert_eq!(
            fault("images: [\"a\n"),
            "2:1 \"\": found unexpected end of stream, while scanning a quoted scalar that begins in line 1"
        );
        assert!(fault("images: []\n---\nimages: []\n").contains("one document per file"));
    }
}
