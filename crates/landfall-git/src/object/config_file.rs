//! Files in the format of git's configuration: `.gitmodules`, `.lfsconfig` (git-config, "Syntax").

use std::str::Lines;

/// A value in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigEntry {
    /// The name of the section, in lower case.
    pub(super) section: String,
    /// The subsection, whose case matters.
    pub(super) subsection: Option<String>,
    /// The name of the key, in lower case.
    pub(super) key: String,
    /// `None` if the key has no `=`, which git reads as `true`.
    pub(super) value: Option<String>,
}

/// Reads the entries of a configuration in their order. Entries of `include` are not followed.
/// The error names the line that git could not read.
pub(super) fn parse_config(text: &str) -> Result<Vec<ConfigEntry>, String> {
    let mut entries = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    // git skips a byte order mark, which editors on Windows write
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = NumberedLines {
        lines: text.lines(),
        number: 0,
    };
    while let Some(line) = lines.next() {
        let number = lines.number;
        let fault = |why: &str| format!("line {number}: {why}");
        let mut line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            let (head, rest) =
                split_section(head).ok_or_else(|| fault("the section is not closed"))?;
            section = Some(section_of(head).ok_or_else(|| fault("the section is not valid"))?);
            // an entry may be on the line of its section
            line = rest.trim_start();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let Some((section, subsection)) = &section else {
            return Err(fault("there is an entry before the first section"));
        };
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => {
                let value = config_value(value.trim_start(), &mut lines);
                (
                    key,
                    Some(value.ok_or_else(|| fault("the value is not valid"))?),
                )
            }
            None => (line.split(['#', ';']).next().unwrap_or(line), None),
        };
        entries.push(ConfigEntry {
            section: section.clone(),
            subsection: subsection.clone(),
            key: key.trim().to_ascii_lowercase(),
            value,
        });
    }
    Ok(entries)
}

/// The lines of a text, with the number of the last one that was returned.
struct NumberedLines<'a> {
    lines: Lines<'a>,
    number: usize,
}

impl<'a> NumberedLines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.number += 1;
        self.lines.next()
    }
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

/// The names in the head of a section: `section`, `section "subsection"`, or the old form
/// `section.subsection`, whose case does not matter.
fn section_of(head: &str) -> Option<(String, Option<String>)> {
    let Some((section, quoted)) = head.split_once('"') else {
        let (section, subsection) = match head.split_once('.') {
            Some((section, subsection)) => (section, Some(subsection.trim())),
            None => (head, None),
        };
        let subsection = subsection.map(str::to_ascii_lowercase);
        return Some((section.trim().to_ascii_lowercase(), subsection));
    };
    let quoted = quoted.trim_end().strip_suffix('"')?;
    let mut subsection = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        subsection.push(if c == '\\' { chars.next()? } else { c });
    }
    Some((section.trim().to_ascii_lowercase(), Some(subsection)))
}

/// A value, with its quotes and comment removed and its escapes resolved. A backslash at the end of
/// a line continues the value on the next one. `None` if a quote is not closed, or an escape is not
/// known.
fn config_value(first: &str, lines: &mut NumberedLines<'_>) -> Option<String> {
    let mut value = String::new();
    let mut is_quoted = false;
    // the length of the value without the blanks at its end
    let mut length = 0;
    let mut chars = first.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => value.push('\u{8}'),
                Some(c @ ('"' | '\\')) => value.push(c),
                Some(_) => return None,
                None => chars = lines.next()?.chars(),
            },
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

    /// The entries of `text`, as `git config --list` writes them.
    fn listed(text: &str) -> Result<Vec<String>, String> {
        let entries = parse_config(text)?.into_iter();
        let listed = entries.map(|entry| {
            let middle = entry.subsection.map_or(String::new(), |name| name + ".");
            let value = entry
                .value
                .map_or(String::new(), |value| format!("={value}"));
            format!("{}.{middle}{}{value}", entry.section, entry.key)
        });
        Ok(listed.collect())
    }

    #[test]
    fn every_form_of_an_entry_that_git_reads_is_read() {
        for (text, expected) in [
            ("[lfs]\n\turl = https://h/a\n", "lfs.url=https://h/a"),
            ("[lfs] url = https://h/a # comment", "lfs.url=https://h/a"),
            (
                "[LFS]\r\nURL=\"https://h/a#b\"\r\n",
                "lfs.url=https://h/a#b",
            ),
            ("[lfs]\nurl = https://h\\\n/a", "lfs.url=https://h/a"),
            ("[lfs]\nlocksverify", "lfs.locksverify"),
            ("[lfs]\nlocksverify ; x", "lfs.locksverify"),
            ("[remote \"O\\\"x\"]\nlfsurl = a", "remote.O\"x.lfsurl=a"),
            ("[remote.Origin]\nlfsurl = a", "remote.origin.lfsurl=a"),
            ("[a \"x]y\"] # see [1]\nk = v", "a.x]y.k=v"),
            ("\u{feff}[a]\nk = \" v \"  ", "a.k= v "),
            ("[a]\nk =", "a.k="),
        ] {
            assert_eq!(listed(text), Ok(vec![expected.to_owned()]), "{text}");
        }
        for (bad, line) in [
            ("[a\nk = v", "line 1"),
            ("[a]\n\nk = \"v", "line 3"),
            ("[a]\nk = v\\", "line 2"),
            ("[a]\nk = \\x", "line 2"),
            ("[a \"b]\nk = v", "line 1"),
            ("../other/.lfsconfig", "line 1"),
        ] {
            let why = listed(bad).unwrap_err();
            assert!(why.starts_with(line), "{bad}: {why}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\[a \"[a-z]\"\\]|\\[b\\]|url|path|=|\"|\\\\|#|\n| |[a-z])*") {
            let _ = parse_config(&text);
        }
    }
}
