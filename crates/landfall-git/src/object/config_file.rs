//! Files in the format of git's configuration: `.gitmodules`, `.lfsconfig` (git-config, "Syntax"),
//! and pointers of Git LFS.

use landfall_model::{Digest, split_optional};
use std::collections::BTreeMap;
use std::str::Lines;

/// A value in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigEntry {
    /// The name of the section, in lower case.
    pub(crate) section: String,
    /// The subsection, whose case matters.
    pub(crate) subsection: Option<String>,
    /// The name of the key, in lower case.
    pub(crate) key: String,
    /// `None` if the key has no `=`, which git reads as `true`.
    pub(crate) value: Option<String>,
}

/// Reads the entries of a configuration in their order. Entries of `include` are not followed.
/// The error names the line that git could not read.
pub(crate) fn parse_config(text: &str) -> Result<Vec<ConfigEntry>, String> {
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
        let (section, subsection) = split_optional(head, '.');
        let subsection = subsection.map(|name| name.trim().to_ascii_lowercase());
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

// `.gitmodules`: the paths and URLs of submodules (gitmodules).

/// A submodule as `.gitmodules` describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SubmoduleEntry {
    pub(crate) path: Option<String>,
    pub(crate) url: Option<String>,
    /// Whether the submodule has `update = none`.
    is_skipped: bool,
}

/// Reads `.gitmodules`. The submodules are sorted by their names; later values replace earlier
/// ones. Other sections and keys are ignored, and so are submodules with `update = none`, which
/// `git clone --recurse-submodules` skips.
pub(crate) fn parse_gitmodules(text: &str) -> Result<Vec<SubmoduleEntry>, String> {
    let mut entries: BTreeMap<String, SubmoduleEntry> = BTreeMap::new();
    for found in parse_config(text)? {
        let Some(name) = found.subsection.filter(|_| found.section == "submodule") else {
            continue;
        };
        let entry = entries.entry(name).or_default();
        match found.key.as_str() {
            "path" => entry.path = found.value,
            "url" => entry.url = found.value,
            "update" => entry.is_skipped = found.value.as_deref() == Some("none"),
            _ => {}
        }
    }
    let entries = entries.into_values();
    Ok(entries.filter(|entry| !entry.is_skipped).collect())
}

/// What the `.lfsconfig` of a commit says about the server of its large files.
///
/// git-lfs reads only a few keys of this file, because it comes from strangers. Of these, a mirror
/// needs the URLs; `lfs.fetchinclude` and `lfs.fetchexclude` limit what a clone downloads first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LfsConfig {
    /// `lfs.url` or, without it, `remote.origin.lfsurl`: `origin` is the remote of a clone.
    pub url: Option<String>,
    /// `lfs.gitprotocol`, which replaces the scheme of a URL `git://…`.
    pub git_protocol: Option<String>,
}

impl LfsConfig {
    /// Reads the content of a `.lfsconfig`. Later values replace earlier ones; other keys are
    /// ignored, and so are included files.
    ///
    /// # Errors
    /// If git could not read `text`.
    pub fn parse(text: &str) -> Result<LfsConfig, String> {
        let mut config = LfsConfig::default();
        let mut of_remote = None;
        for entry in parse_config(text)? {
            let Some(value) = entry.value else {
                continue;
            };
            let subsection = entry.subsection.as_deref();
            match (entry.section.as_str(), subsection, entry.key.as_str()) {
                ("lfs", None, "url") => config.url = Some(value),
                ("lfs", None, "gitprotocol") => config.git_protocol = Some(value),
                ("remote", Some("origin"), "lfsurl") => of_remote = Some(value),
                _ => {}
            }
        }
        config.url = config.url.or(of_remote);
        Ok(config)
    }
}

// Pointers of Git LFS: small files in a repository that refer to large files elsewhere (git-lfs,
// docs/spec.md).

/// The large file to which a pointer refers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LfsPointer {
    /// SHA-256 of the large file.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// The versions of the format: the current one, and those of the releases before 1.0, whose
/// pointers git-lfs still reads (git-lfs, `lfs/pointer.go`).
const VERSIONS: [&str; 3] = [
    "version https://git-lfs.github.com/spec/v1",
    "version https://hawser.github.com/spec/v1",
    "version http://git-media.io/v/2",
];

impl LfsPointer {
    /// Files of this size or more are not pointers.
    pub const MAX_BYTES: u64 = 1024;

    /// Reads the content of a file. `None` if it is not a pointer. Like git-lfs, ignores blank
    /// lines and white space around the text, which editors add.
    pub fn parse(content: &[u8]) -> Option<LfsPointer> {
        if content.len() as u64 >= LfsPointer::MAX_BYTES {
            return None;
        }
        let text = std::str::from_utf8(content).ok()?.trim();
        let mut lines = text.lines().filter(|line| !line.is_empty());
        VERSIONS.contains(&lines.next()?).then_some(())?;
        let mut digest = None;
        let mut size = None;
        for line in lines {
            match line.split_once(' ')? {
                ("oid", text) => digest = text.parse::<Digest>().ok(),
                ("size", text) => size = text.parse().ok(),
                _ => {}
            }
        }
        let digest =
            digest.filter(|digest| digest.algorithm() == landfall_model::Algorithm::Sha256);
        Some(LfsPointer {
            digest: digest?,
            size: size?,
        })
    }
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

    #[test]
    fn sections_have_paths_and_urls() {
        let text = "# modules\n[submodule \"libs/a\"]\n\tpath = libs/a\n\turl = ../a.git ; relative\n\
                \tbranch = main\n[Submodule \"b\"]\npath=\"b #1\"\nURL = https://h/b\n\
                [core]\nurl = x\n[submodule \"b\"]\nurl = https://h/c\n";
        let entries = parse_gitmodules(text).unwrap();
        let entry = |path: &str, url: &str| SubmoduleEntry {
            path: Some(path.into()),
            url: Some(url.into()),
            is_skipped: false,
        };
        assert_eq!(
            entries,
            [entry("b #1", "https://h/c"), entry("libs/a", "../a.git")]
        );
        // forms that git reads too
        let text = "[submodule \"a\"] path = a\nurl = ../\\\na.git\n";
        assert_eq!(parse_gitmodules(text).unwrap(), [entry("a", "../a.git")]);
        for bad in [
            "[submodule \"a\"",
            "[submodule \"a\"]\nurl = \"x",
            "[submodule \"a\"]\nurl = x\\",
        ] {
            assert!(parse_gitmodules(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_submodule_that_git_does_not_update_is_skipped() {
        let text = "[submodule \"a\"]\npath = a\nurl = ../a.git\nupdate = none\n\
                    [submodule \"b\"]\npath = b\nurl = ../b.git\nupdate = merge\n";
        let entries = parse_gitmodules(text).unwrap();
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(entries[0].path.as_deref(), Some("b"));
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

    #[test]
    fn only_the_keys_that_git_lfs_trusts_name_a_server() {
        let url = |text: &str| LfsConfig::parse(text).unwrap().url;
        let remote = "[remote \"origin\"]\n\tlfsurl = https://h/remote\n\turl = https://h/git\n";
        assert_eq!(url(remote).as_deref(), Some("https://h/remote"));
        let both = format!("[lfs]\n\turl = https://h/lfs\n{remote}");
        assert_eq!(url(&both).as_deref(), Some("https://h/lfs"));
        let twice = "[lfs]\nurl = https://h/a\nurl = https://h/b\n";
        assert_eq!(url(twice).as_deref(), Some("https://h/b"));
        for other in [
            "",
            "[lfs]\n\tpushurl = https://h/push\n\tlocksverify = true\n",
            "[lfs \"https://h/\"]\n\taccess = basic\n\turl = https://h/x\n",
            "[remote \"fork\"]\n\tlfsurl = https://h/fork\n",
            "[remote \"origin\"]\n\turl = https://h/git\n\tlfspushurl = https://h/push\n",
            "[url \"https://h/\"]\n\tinsteadOf = https://other/\n",
            "[include]\n\tpath = other\n",
            "[lfs]\n\turl\n",
        ] {
            assert_eq!(url(other), None, "{other}");
        }
        let config = LfsConfig::parse("[lfs]\ngitprotocol = http\n").unwrap();
        assert_eq!(config.git_protocol.as_deref(), Some("http"));
        assert!(LfsConfig::parse("<<<<<<< HEAD\n[lfs]\n").is_err());
    }

    #[test]
    fn pointers_name_a_digest_and_a_size() {
        let digest = Digest::sha256(b"large");
        let text = format!("version https://git-lfs.github.com/spec/v1\noid {digest}\nsize 5\n");
        let pointer = LfsPointer::parse(text.as_bytes()).unwrap();
        assert_eq!((pointer.digest, pointer.size), (digest, 5));
        for other in [
            text.replace("oid", "id"),
            text.replace("size 5", "size -5"),
            text.replace("/v1", "/v2"),
            text.replace("sha256", "md5"),
            text.clone() + &" x".repeat(600),
        ] {
            assert_eq!(LfsPointer::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn pointers_that_git_lfs_reads_are_pointers() {
        let oid = format!("oid {}", Digest::sha256(b"large"));
        for text in [
            format!("version https://git-lfs.github.com/spec/v1\n{oid}\nsize 5\n"),
            format!("version https://hawser.github.com/spec/v1\n{oid}\nsize 5\n"),
            format!("version http://git-media.io/v/2\n{oid}\nsize 5\n"),
            format!("\nversion https://git-lfs.github.com/spec/v1\r\n{oid}\r\nsize 5\r\n\r\n"),
            format!("version https://git-lfs.github.com/spec/v1\n\n{oid}\nsize 5"),
        ] {
            let pointer = LfsPointer::parse(text.as_bytes());
            assert_eq!(pointer.map(|pointer| pointer.size), Some(5), "{text}");
        }
        for text in [
            format!("version https://h.example/v1\n{oid}\nsize 5\n"),
            format!("version https://git-lfs.github.com/spec/v1\n{oid}\n"),
            String::new(),
        ] {
            assert_eq!(LfsPointer::parse(text.as_bytes()), None, "{text}");
        }
    }
}
