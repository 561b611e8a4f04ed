//! `.gitmodules`: the paths and URLs of submodules (gitmodules, git-config "Syntax").

use std::collections::BTreeMap;

/// A submodule as `.gitmodules` describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SubmoduleEntry {
    pub(crate) path: Option<String>,
    pub(crate) url: Option<String>,
}

/// Reads `.gitmodules`. The submodules are sorted by their names; later values replace earlier
/// ones. Other sections and keys are ignored.
pub(crate) fn parse_gitmodules(text: &str) -> Result<Vec<SubmoduleEntry>, String> {
    let mut entries: BTreeMap<String, SubmoduleEntry> = BTreeMap::new();
    let mut section = None;
    // git skips a byte order mark, which editors on Windows write
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let fault = |why: &str| format!("line {}: {why}", index + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(head) = line.strip_prefix('[') {
            let (head, rest) =
                split_section(head).ok_or_else(|| fault("the section is not closed"))?;
            // git allows an entry on the line of its section, but nobody writes one there
            if !rest.trim().is_empty() && !rest.trim().starts_with(['#', ';']) {
                return Err(fault("an entry is on the same line as its section"));
            }
            section = submodule_name(head);
            continue;
        }
        let Some(name) = &section else {
            continue;
        };
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let value = config_value(value.trim()).ok_or_else(|| fault("the value is not valid"))?;
        let entry = entries.entry(name.clone()).or_default();
        match key.trim().to_ascii_lowercase().as_str() {
            "path" => entry.path = Some(value),
            "url" => entry.url = Some(value),
            _ => {}
        }
    }
    Ok(entries.into_values().collect())
}

/// Splits `line`, the text after the `[` of a section, into the head of the section and the text
/// after the closing `]`. A `]` in quotes belongs to the name, and one in a comment does not end
/// the section.
fn split_section(line: &str) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ']' if !is_quoted => return Some((&line[..at], &line[at + 1..])),
            _ => {}
        }
    }
    None
}

/// The name in the head of a section `submodule "name"`.
fn submodule_name(head: &str) -> Option<String> {
    const KIND: &str = "submodule";
    let (kind, rest) = head.split_at_checked(KIND.len())?;
    let name = rest.trim().strip_prefix('"')?.strip_suffix('"')?;
    kind.eq_ignore_ascii_case(KIND).then(|| name.to_owned())
}

/// A value, with its quotes and comment removed and its escapes resolved. `None` if a quote is not
/// closed, an escape is not known, or the value is continued on the next line.
fn config_value(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut is_quoted = false;
    // the length of the value without the blanks at its end
    let mut length = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            '\\' => value.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                c @ ('"' | '\\') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
        if is_quoted || !c.is_whitespace() {
            length = value.len();
        }
    }
    value.truncate(length);
    (!is_quoted).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sections_have_paths_and_urls() {
        let text = "# modules\n[submodule \"libs/a\"]\n\tpath = libs/a\n\turl = ../a.git ; relative\n\
                    \tbranch = main\n[Submodule \"b\"]\npath=\"b #1\"\nURL = https://h/b\n\
                    [core]\nurl = x\n[submodule \"b\"]\nurl = https://h/c\n";
        let entries = parse_gitmodules(text).unwrap();
        let entry = |path: &str, url: &str| SubmoduleEntry {
            path: Some(path.into()),
            url: Some(url.into()),
        };
        assert_eq!(
            entries,
            [entry("b #1", "https://h/c"), entry("libs/a", "../a.git")]
        );
        for bad in [
            "[submodule \"a\"",
            "[submodule \"a\"]\nurl = \"x",
            "[submodule \"a\"]\nurl = x\\",
        ] {
            assert!(parse_gitmodules(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn comments_and_names_may_contain_brackets() {
        for head in [
            r#"[submodule "a"] # see [1]"#,
            r#"[submodule "a]b"]"#,
            r#"[submodule "a\"]b"] ; [2]"#,
        ] {
            let text = format!("{head}\npath = a\nurl = ../a.git\n");
            let entries = parse_gitmodules(&text).unwrap();
            assert_eq!(entries.len(), 1, "{head}");
            assert_eq!(entries[0].url.as_deref(), Some("../a.git"), "{head}");
        }
    }

    #[test]
    fn the_first_submodule_after_a_byte_order_mark_is_read() {
        let text = "\u{feff}[submodule \"a\"]\r\n\tpath = a\r\n\turl = ../a.git\r\n";
        let entries = parse_gitmodules(text).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].path.as_deref(), Some("a"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\[submodule \"[a-z]\"\\]|url|path|=|\"|\\\\|#|\n| |[a-z])*") {
            let _ = parse_gitmodules(&text);
        }
    }
}
