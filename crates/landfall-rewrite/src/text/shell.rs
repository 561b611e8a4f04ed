//! Reads the commands of scripts, pipelines and cloud-init word by word, and finds the charts that
//! helm installs and the repositories that git clones.

use super::OCI;
use super::terraform::AddressedChart;
use super::variables::{MAX_PLACEHOLDER_BYTES, placeholder};
use landfall_model::ChartVersion;
use std::collections::{BTreeMap, BTreeSet};

/// Whether `word` ends a command.
pub(crate) fn is_separator(word: &str) -> bool {
    matches!(word, "then" | "do") || word.starts_with(['>', '<', ';', '&', '|', '['])
}

/// The words of a line, separated by blanks, quotes, square brackets, parentheses and shell
/// operators. The operators, `)`, backticks, the `[` of a list, and texts that end with `$(` are
/// words themselves. A URL is one word. A comment at the end has no words, unless quotes before it
/// are open, as in a string of YAML.
pub(crate) fn words(line: &str) -> Vec<&str> {
    split_words(line, None)
}

/// Like [`words`]. With a `program`, a quoted text or a placeholder is a part of its word, unless
/// it calls the program itself.
fn split_words<'t>(line: &'t str, program: Option<&str>) -> Vec<&'t str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut is_url = false;
    let mut open_quotes = [false; 2];
    let mut group_end = 0;
    // the ends of quoted texts that call the program
    let mut closing = BTreeSet::new();
    for (at, c) in line.char_indices() {
        if at < group_end {
            continue;
        }
        let so_far = line.get(start..at).unwrap_or_default();
        let is_comment = c == '#' && open_quotes == [false; 2] && so_far.is_empty();
        if is_comment && line[..at].ends_with(char::is_whitespace) {
            start = line.len();
            break;
        }
        let may_open = !so_far.ends_with('\\') && !closing.contains(&at);
        if let Some(program) = program.filter(|_| may_open)
            && let Some(len) = group_len(&line[at..])
        {
            if !calls(&line[at..at + len], program) {
                group_end = at + len;
                continue;
            }
            closing.insert(at + len - 1);
        }
        open_quotes[0] ^= c == '"';
        open_quotes[1] ^= c == '\'';
        is_url |= c == '/' && so_far.ends_with(":/");
        // a redirection may follow a URL without a blank, but the other operators may be part of it
        let is_operator = match c {
            ';' | '&' | '|' => !is_url,
            '<' | '>' => is_url,
            _ => false,
        };
        let is_quoted = so_far.starts_with(['"', '\'']) && so_far.ends_with(['"', '\'']);
        // the items of a list may have no blanks between them: `["run","x"]`
        let is_comma = c == ',' && (so_far.is_empty() || is_quoted);
        let is_end = is_operator || is_comma || c.is_whitespace() || "\"'`[]()".contains(c);
        if !is_end || is_of_address(so_far, c) {
            continue;
        }
        let end = at + c.len_utf8();
        match c {
            '(' if so_far.ends_with('$') => words.push(&line[start..end]),
            // `[[apt-get, install, jq], [curl, …]]` has two commands; `${a[@]}` is one argument
            '[' if so_far.trim_start_matches(',').is_empty() => words.push(&line[at..end]),
            ';' | '&' | '|' | '<' | '>' | ')' | '`' => words.extend([so_far, &line[at..end]]),
            _ => words.push(so_far),
        }
        (start, is_url) = (end, false);
    }
    words.extend(line.get(start..));
    let bare = words
        .into_iter()
        .map(|word| word.trim_end_matches([',', '\\']));
    bare.filter(|word| !word.is_empty()).collect()
}

/// Whether `text` has the name of `program` before a blank. Paths such as `$HOME/.docker` and
/// single words such as `"docker"` do not call it.
fn calls(text: &str, program: &str) -> bool {
    let mut names = text.match_indices(program);
    names.any(|(at, name)| text[at + name.len()..].starts_with(char::is_whitespace))
}

/// The text in the quotes around `word`, if there are any.
fn unquoted(word: &str) -> &str {
    let quote = word.chars().next().filter(|c| matches!(c, '"' | '\''));
    let inner = quote.and_then(|quote| word[1..].strip_suffix(quote));
    inner
        .filter(|inner| !inner.contains(['"', '\'']))
        .unwrap_or(word)
}

/// The length of the quoted text or the placeholder at the beginning of `text`: `$(…)`, `${…}`,
/// `${{…}}` or `{{…}}`.
fn group_len(text: &str) -> Option<usize> {
    match text.chars().next()? {
        '$' => placeholder(text, MAX_PLACEHOLDER_BYTES),
        '{' if text.starts_with("{{") => placeholder(text, MAX_PLACEHOLDER_BYTES),
        '"' => {
            let mut quotes = text[1..].match_indices('"').map(|(at, _)| at + 1);
            let close = quotes.find(|at| !text[..*at].ends_with('\\'))?;
            Some(close + 1)
        }
        quote @ ('\'' | '`') => Some(text[1..].find(quote)? + 2),
        _ => None,
    }
}

/// Whether `bracket` is one of the IPv6 address of a URL that begins with `so_far`.
fn is_of_address(so_far: &str, bracket: char) -> bool {
    match bracket {
        '[' => so_far.ends_with("://"),
        ']' => so_far
            .split_once("://[")
            .is_some_and(|(_, address)| !address.contains(']')),
        _ => false,
    }
}

/// The arguments of each command of `text` that calls `program`, except in comments. A line that
/// ends with `\` continues. Flags that `has_value` accepts have the next word as value. A quoted
/// text or a placeholder is a part of an argument, unless it calls the program itself.
pub(super) fn commands<'t>(
    text: &'t str,
    program: &str,
    has_value: fn(&str) -> bool,
) -> Vec<Arguments<'t>> {
    let mut found = Vec::new();
    let mut command: Option<Vec<&str>> = None;
    for line in text.lines() {
        let line = line.trim();
        if command.is_none() && !line.contains(program) || line.starts_with(['#', '/']) {
            continue;
        }
        let mut end = |command: &mut Option<Vec<&'t str>>| {
            let words = command.take();
            found.extend(words.map(|words| Arguments::of(&words, has_value)));
        };
        for word in split_words(line, Some(program)) {
            let argument = word.trim_end_matches(';');
            if is_separator(word) || word == ")" {
                end(&mut command);
            } else if let Some(words) = &mut command {
                words.push(unquoted(argument));
            } else if is_call(unquoted(argument), program) {
                command = Some(Vec::new());
            }
            if argument.len() < word.len() {
                end(&mut command);
            }
        }
        if !line.ends_with('\\') {
            end(&mut command);
        }
    }
    found
}

/// Whether the command `word` calls `program`. In a makefile, `@` and `-` may precede a command.
fn is_call(word: &str, program: &str) -> bool {
    let name = word.trim_start_matches('@');
    let name = name.strip_prefix('-').unwrap_or(name);
    name.rsplit('/').next() == Some(program)
}

/// The arguments of a command.
#[derive(Debug, Default)]
pub(super) struct Arguments<'t> {
    /// The subcommand and the arguments that are not flags.
    pub(super) positional: Vec<&'t str>,
    /// The flags that have a value.
    flags: BTreeMap<&'t str, &'t str>,
}

impl<'t> Arguments<'t> {
    fn of(words: &[&'t str], has_value: fn(&str) -> bool) -> Arguments<'t> {
        let mut arguments = Arguments::default();
        let mut flag = None;
        for word in words {
            if let Some(flag) = flag.take() {
                arguments.flags.insert(flag, word);
            } else if !word.starts_with('-') {
                arguments.positional.push(word);
            } else if let Some((flag, value)) = word.split_once('=') {
                arguments.flags.insert(flag, unquoted(value));
            } else if has_value(word) {
                flag = Some(*word);
            }
        }
        arguments
    }

    /// The value of the first of the flags `names` that is set.
    fn flag(&self, names: &[&str]) -> Option<&'t str> {
        names.iter().find_map(|name| self.flags.get(name).copied())
    }
}

/// Subcommands of helm whose argument is a chart, after the name of the release if there is one.
const OF_CHART: [&str; 6] = ["install", "upgrade", "template", "pull", "fetch", "show"];

/// Flags of helm that have a value.
const HELM_FLAGS: [&str; 27] = [
    "-n",
    "--namespace",
    "--version",
    "--repo",
    "-f",
    "--values",
    "--set",
    "--set-string",
    "--set-file",
    "--set-json",
    "--set-literal",
    "--timeout",
    "--kubeconfig",
    "--kube-context",
    "--kube-version",
    "--api-versions",
    "-a",
    "--description",
    "-d",
    "--destination",
    "-o",
    "--output",
    "--history-max",
    "--ca-file",
    "--username",
    "--password",
    "--keyring",
];

/// A chart that a command of helm installs, renders or downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandChart<'t> {
    /// The URL of an HTTP repository. `None` for a chart in a registry.
    pub(crate) repository: Option<&'t str>,
    /// The address in a registry, or the name in the repository.
    pub(crate) chart: &'t str,
    /// The argument of `--version`.
    pub(crate) version: Option<&'t str>,
}

/// The charts of the helm commands of `text`: addresses in registries, names with `--repo`, and
/// names in repositories that `text` adds. Other charts are folders, or in repositories that are
/// added elsewhere.
pub(crate) fn helm_charts(text: &str) -> Vec<CommandChart<'_>> {
    if !text.contains("helm") {
        return Vec::new();
    }
    let commands = commands(text, "helm", |flag| HELM_FLAGS.contains(&flag));
    let added = commands
        .iter()
        .filter_map(|command| match command.positional[..] {
            ["repo", "add", name, url, ..] => Some((name, url)),
            _ => None,
        });
    let added: BTreeMap<&str, &str> = added.collect();
    let charts = commands.iter().filter_map(|command| {
        let mut positional = command.positional.iter().copied();
        // plugins such as `helm diff upgrade` have the arguments of the subcommand
        positional.find(|word| OF_CHART.contains(word))?;
        let version = command.flag(&["--version"]);
        let names: Vec<&str> = positional.collect();
        let in_registry = names.iter().find(|name| name.starts_with(OCI));
        let (repository, chart) = match (in_registry, command.flag(&["--repo"])) {
            (Some(address), _) => (None, *address),
            (None, Some(url)) => (Some(url), *names.get(1).or(names.first())?),
            (None, None) => names.iter().find_map(|name| {
                let (repository, chart) = name.split_once('/')?;
                Some((Some(*added.get(repository)?), chart))
            })?,
        };
        Some(CommandChart {
            repository,
            chart,
            version,
        })
    });
    charts.collect()
}

/// The charts in a registry of the helm commands of `text`, by the offset of their address.
pub(super) fn chart_addresses(text: &str) -> BTreeMap<usize, AddressedChart> {
    if !text.contains(OCI) {
        return BTreeMap::new();
    }
    let charts = helm_charts(text).into_iter().filter_map(|command| {
        let address = command.chart.strip_prefix(OCI)?;
        // an address with its version is a complete reference
        let name = address.rsplit('/').next()?;
        if name.contains([':', '@']) {
            return None;
        }
        // a range selects one of the versions of the registry
        let version = command
            .version
            .filter(|version| version.parse::<ChartVersion>().is_ok());
        let chart = AddressedChart {
            name: None,
            version: version.map(str::to_owned),
        };
        let at = address.as_ptr() as usize - text.as_ptr() as usize;
        Some((at, chart))
    });
    charts.collect()
}

/// Flags of git that have a value.
const GIT_FLAGS: [&str; 13] = [
    "-b",
    "--branch",
    "--revision",
    "--depth",
    "-o",
    "--origin",
    "-c",
    "--config",
    "-C",
    "--reference",
    "-j",
    "--jobs",
    "--shallow-since",
];

/// The URL of each `git clone` and each `ADD URL.git#REF` of Dockerfiles in `text`, and its branch,
/// tag or commit.
pub(crate) fn git_clones(text: &str) -> Vec<(&str, Option<&str>)> {
    let mut found = Vec::new();
    if text.contains("git") && text.contains("clone") {
        let commands = commands(text, "git", |flag| GIT_FLAGS.contains(&flag)).into_iter();
        found.extend(commands.filter_map(|command| match command.positional[..] {
            ["clone", url, ..] => Some((url, command.flag(&["-b", "--branch", "--revision"]))),
            _ => None,
        }));
    }
    if text.contains("ADD") && text.contains(".git") {
        let commands = commands(text, "ADD", |_| false).into_iter();
        let sources = commands.flat_map(|command| command.positional);
        found.extend(sources.filter_map(|source| {
            // a folder in the repository may follow the version
            let (url, fragment) = source.split_once('#').unwrap_or((source, ""));
            let version = fragment.split(':').next();
            let version = version.filter(|version| !version.is_empty());
            url.ends_with(".git").then_some((url, version))
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextSyntax;
    use crate::tests::run_as;
    use landfall_model::document::growth::assert_linear;

    #[test]
    fn charts_of_helm_commands_are_found() {
        let script = "helm repo add c https://h.test/charts\n\
            helm upgrade --install -n kube-system x oci://h.test/c/d --version 1.2.3 --wait\n\
            sudo /usr/bin/helm install x c/d --set a=b --version=2.0.0 && helm pull c/e;\n\
            # helm install x c/no\nhelm template x d --repo https://h.test/r \\\n  --version 3\n\
            helm install x ./local; helm install x other/d; helm list oci://h.test/no\n\
            run: [\"helm\", \"diff\", \"upgrade\", \"x\", \"oci://h.test/f\"]\n\
            V=$(helm show chart --version $V oci://h.test/g)\n";
        let found: Vec<_> = helm_charts(script)
            .iter()
            .map(|one| (one.repository.unwrap_or("-"), one.chart, one.version))
            .collect();
        assert_eq!(
            found,
            [
                ("-", "oci://h.test/c/d", Some("1.2.3")),
                ("https://h.test/charts", "d", Some("2.0.0")),
                ("https://h.test/charts", "e", None),
                ("https://h.test/r", "d", Some("3")),
                ("-", "oci://h.test/f", None),
                ("-", "oci://h.test/g", Some("$V")),
            ]
        );
    }

    #[test]
    fn repositories_of_git_clone_are_found() {
        let script = "git clone https://h.test/a.git\ngit -C /x clone --depth 1 -b v1 https://h.test/b y\n\
            git pull https://h.test/no\n( git clone --branch=main git@h.test:c/d.git )\n\
            // git clone https://h.test/no\n[git, clone, http://[fd00::1]:80/e]\n\
            git clone -b 'v#1' \"https://h.test/h\" # -b v2\n\
            ADD --keep-git-dir=true https://h.test/f.git#v2:sub /f\nADD a.git.tgz git@h.test:g.git /g\n";
        assert_eq!(
            git_clones(script),
            [
                ("https://h.test/a.git", None),
                ("https://h.test/b", Some("v1")),
                ("git@h.test:c/d.git", Some("main")),
                ("http://[fd00::1]:80/e", None),
                ("https://h.test/h", Some("v#1")),
                ("https://h.test/f.git", Some("v2")),
                ("git@h.test:g.git", None),
            ]
        );
    }

    #[test]
    fn a_long_script_takes_linear_time() {
        assert_linear(5_000, |count| {
            let lines = "helm install x oci://h.test/c --version 1.2.3\n".repeat(count);
            assert_eq!(chart_addresses(&lines).len(), count);
            let line = format!("helm install {}", "x ".repeat(count));
            assert_eq!(helm_charts(&line), []);
            assert_eq!(helm_charts(&"helm install x \\\n".repeat(count)), []);
            for quotes in ["\\\" ", "$(", "${", "\"helm 'helm "] {
                let line = format!("helm install x \"{}", quotes.repeat(count));
                assert_eq!(helm_charts(&line), []);
            }
        });
    }

    #[test]
    fn charts_of_commands_are_rewritten_if_the_lock_has_their_version() {
        let install = |arguments: &str| format!("#!/bin/sh\nhelm install x {arguments} -n y\n");
        for (before, after) in [
            (
                "oci://quay.io/c/d --version 1.10",
                "oci://r:5/p/c/d --version 1.10",
            ),
            (
                "--version=\"1.10\" oci://quay.io/c/d",
                "--version=\"1.10\" oci://r:5/p/c/d",
            ),
            ("oci://quay.io/c/d:1.10", "oci://r:5/p/c/d:1.10"),
            ("oci://quay.io/c/d", "oci://r:5/p/c/d"),
            (
                "oci://quay.io/c/d --version '^1'",
                "oci://r:5/p/c/d --version '^1'",
            ),
            (
                "oci://quay.io/c/d --version $V",
                "oci://r:5/p/c/d --version $V",
            ),
        ] {
            for text in [before, after] {
                let result = run_as(&install(text), TextSyntax::Text);
                assert_eq!(result, (install(after), vec![]), "{text}");
            }
        }
        let other = install("oci://quay.io/c/d --version 2.0.0");
        let (new, left) = run_as(&other, TextSyntax::Text);
        assert_eq!(new, other);
        assert!(
            left.len() == 1 && left[0].contains("only as 1.10"),
            "{left:?}"
        );
    }
}
