//! The pages of `docs/` that are compiled into the program, so that `landfall help` shows them
//! without a network.

use crate::cli::shared::VerbOutcome;
use flate2::read::GzDecoder;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The name of each page, sorted, and its file below `docs/`. The build script writes the list.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Other words for pages.
const ALIASES: &[(&str, &str)] = &[
    ("exit-codes", "command-line"),
    ("firewall", "egress"),
    ("glossary", "concepts"),
    ("helm-values", "helm"),
    ("kkp", "kubermatic"),
    ("kubelet", "systemd"),
    ("no-proxy", "systemd"),
    ("proxy", "proxies"),
    ("rke2", "k3s"),
    ("troubleshooting", "doctor"),
];

/// All pages, compressed by the build script.
const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pages.tar.gz"));

/// The page whose name, or whose path in `docs/`, is `word`.
pub(crate) fn page(word: &str) -> Option<String> {
    let word = word.trim_start_matches("docs/").trim_end_matches(".md");
    let last = word.rsplit('/').next().unwrap_or(word);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == last);
    let last = alias.map_or(last, |(_, name)| name);
    let by_path = PAGES
        .iter()
        .find(|(_, path)| path.trim_end_matches(".md") == word);
    let (_, path) = by_path.or_else(|| PAGES.iter().find(|(name, _)| *name == last))?;
    archived_file(&Path::new("docs").join(path))
}

/// The name of the page whose file is `path` below `docs/`.
pub(crate) fn name_of(path: &str) -> Option<&'static str> {
    let page = PAGES.iter().find(|(_, known)| *known == path);
    page.map(|(name, _)| *name)
}

/// The text of the file at `path` in the archive, or `None` if the archive does not contain it.
/// `path` begins with `docs/`.
pub(crate) fn archived_file(path: &Path) -> Option<String> {
    let mut archive = tar::Archive::new(GzDecoder::new(ARCHIVE));
    let mut page = archive
        .entries()
        .ok()?
        .filter_map(Result::ok)
        .find(|entry| entry.path().is_ok_and(|name| name == path))?;
    let mut text = String::new();
    page.read_to_string(&mut text).ok()?;
    Some(text)
}

/// The names of all pages, and other words for them.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    PAGES.iter().chain(ALIASES).map(|(word, _)| *word)
}

/// The names of all pages, in lines of at most `width` columns, not counting a comma at the end.
pub(crate) fn listing(width: usize) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for (word, _) in PAGES {
        if line.len() + word.len() + 2 > width {
            text += &format!("{line},\n");
            line.clear();
        }
        line += if line.is_empty() { "  " } else { ", " };
        line += word;
    }
    text + &line
}

// Shows long texts in the user's pager if stdout is a terminal.

/// Shows `text` in the pager; without a terminal or a pager, the outcome prints it.
pub(crate) fn show(text: &str) -> VerbOutcome {
    let is_shown = std::io::stdout().is_terminal() && show_in_pager(text);
    VerbOutcome::text(if is_shown { "" } else { text }).document()
}

/// Shows `text` in `MANPAGER` or `PAGER`, or else in less or more. Returns whether a pager
/// succeeded.
fn show_in_pager(text: &str) -> bool {
    let configured = ["MANPAGER", "PAGER"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|pager| !pager.trim().is_empty());
    let pagers = match configured {
        Some(pager) => vec![pager],
        None => vec!["less".to_owned(), "more".to_owned()],
    };
    pagers.iter().any(|pager| {
        // Through a shell, since the variable may contain flags.
        let started = Command::new("sh")
            .args(["-c", pager])
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut started) = started else {
            return false;
        };
        if let Some(mut stdin) = started.stdin.take() {
            // A pager that is quit early closes the pipe, which is not an error.
            let _ = stdin.write_all(text.as_bytes());
        }
        started.wait().is_ok_and(|status| status.success())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_page_is_found_by_its_name_and_its_path() {
        let mut texts = BTreeSet::new();
        for (name, path) in PAGES {
            let text = page(path).unwrap();
            assert_eq!(
                page(&format!("docs/{path}")).as_ref(),
                Some(&text),
                "{path}"
            );
            assert_eq!(page(name).as_ref(), Some(&text), "{name}");
            texts.insert(text);
        }
        // the names and the texts differ
        assert!(PAGES.is_sorted_by(|(one, _), (next, _)| one < next));
        assert_eq!(texts.len(), PAGES.len());
        assert!(PAGES.len() > 70, "{}", PAGES.len());
        let path_of = |word| PAGES.iter().find(|(name, _)| *name == word).unwrap().1;
        assert_eq!(path_of("platform-serve"), "how-to/platforms/serve.md");
        assert_eq!(path_of("serve"), "how-to/serve.md");
        for (alias, name) in ALIASES {
            assert!(
                page(alias).is_some() && page(alias) == page(name),
                "{alias}"
            );
        }
        for platform in landfall_render::PLATFORMS {
            assert!(page(platform.name).is_some(), "{}", platform.name);
        }
        assert_eq!(page("platforms/nonsense"), None);
        // the table of contents and the index contain only links
        assert_eq!(page("SUMMARY"), None);
    }
}
