//! `.gitmodules`: the paths and URLs of submodules (gitmodules).

use super::config_file::parse_config;
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
    for found in parse_config(text)? {
        let Some(name) = found.subsection.filter(|_| found.section == "submodule") else {
            continue;
        };
        let entry = entries.entry(name).or_default();
        match found.key.as_str() {
            "path" => entry.path = found.value,
            "url" => entry.url = found.value,
            _ => {}
        }
    }
    Ok(entries.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
