//! The rules of a chart's `.helmignore` (helm, pkg/ignore/rules.go).

use landfall_model::Wildcards;
use std::io;

/// Hidden files of templates, which helm always ignores.
const DEFAULT: &str = "templates/.?*";

/// The rules of a `.helmignore`.
pub(crate) struct HelmIgnore(Vec<IgnoreRule>);

struct IgnoreRule {
    pattern: String,
    /// Ignore what does not match.
    negated: bool,
    /// Match only folders.
    is_folder: bool,
    /// Match the whole path instead of its last component.
    is_path: bool,
}

impl HelmIgnore {
    /// Reads the text of a `.helmignore`, which is empty if the chart has none. Fails if a pattern is
    /// not supported.
    pub(crate) fn parse(text: &str) -> io::Result<HelmIgnore> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rules: io::Result<Vec<IgnoreRule>> = lines.chain([DEFAULT]).map(rule).collect();
        rules.map(HelmIgnore)
    }

    /// Whether the file or folder at `path` is ignored. The content of an ignored folder is, too.
    pub(crate) fn ignores(&self, path: &str, is_folder: bool) -> bool {
        let last = path.rsplit('/').next().unwrap_or(path);
        self.0.iter().any(|rule| {
            let matches = if rule.is_path {
                has_components(&rule.pattern, path)
            } else {
                Wildcards::SHELL.matches(&rule.pattern, last)
            };
            if rule.negated {
                (rule.is_folder && !is_folder) || !matches
            } else {
                (is_folder || !rule.is_folder) && matches
            }
        })
    }

    /// Whether a file at `path` is ignored, or one of the folders above it.
    pub(crate) fn ignores_file(&self, path: &str) -> bool {
        let mut folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        folders.any(|folder| self.ignores(folder, true)) || self.ignores(path, false)
    }
}

fn rule(line: &str) -> io::Result<IgnoreRule> {
    if line.contains("**") || line.contains(['[', '\\']) {
        return Err(io::Error::other(format!(
            ".helmignore: the pattern {line} is not supported; use * and ?"
        )));
    }
    let (negated, line) = match line.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (is_folder, line) = match line.strip_suffix('/') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    Ok(IgnoreRule {
        is_path: line.contains('/'),
        pattern: line.trim_start_matches('/').to_owned(),
        negated,
        is_folder,
    })
}

/// Whether each component of `path` matches that of `pattern`: `*` does not match a slash.
fn has_components(pattern: &str, path: &str) -> bool {
    let mut path = path.split('/');
    let matches = pattern.split('/').all(|pattern| {
        path.next()
            .is_some_and(|name| Wildcards::SHELL.matches(pattern, name))
    });
    matches && path.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_ignored_as_helm_does() {
        let rules = "# comment\n.git/\n*.swp\n/ci\ntests/*.yaml\n";
        let ignore = HelmIgnore::parse(rules).unwrap();
        for (path, expected) in [
            (".git/config", true),
            ("a.swp", true),
            ("templates/.hidden.swp", true),
            ("templates/.hidden", true),
            ("templates/sub/.hidden", false),
            ("ci/values.yaml", true),
            ("charts/ci/values.yaml", false),
            ("tests/a.yaml", true),
            ("tests/deep/a.yaml", false),
            ("Chart.yaml", false),
            (".helmignore", false),
        ] {
            assert_eq!(ignore.ignores_file(path), expected, "{path}");
        }
        // helm reads a negated pattern as "ignore everything else"
        let only = HelmIgnore::parse("!*.yaml\n").unwrap();
        assert!(only.ignores_file("README.md") && !only.ignores_file("Chart.yaml"));
        assert!(HelmIgnore::parse("a/**/b\n").is_err());
    }
}
