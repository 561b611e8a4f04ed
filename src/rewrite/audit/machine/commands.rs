//! The words of commands: what curl and wget fetch, and what package managers install.

use super::installs::Install;

/// Programs that fetch URLs.
const FETCHERS: [&str; 3] = ["curl", "wget", "aria2c"];
/// Programs that install packages: each with the manager's name, and the word that says so.
const MANAGERS: [(&str, &str, &str); 8] = [
    ("apt-get", "apt", "install"),
    ("apt", "apt", "install"),
    ("yum", "yum", "install"),
    ("dnf", "yum", "install"),
    ("microdnf", "yum", "install"),
    ("tdnf", "yum", "install"),
    ("zypper", "zypper", "install"),
    ("apk", "apk", "add"),
];
/// Options of package managers that take the next word.
const WITH_VALUE: [&str; 7] = ["-t", "-o", "-c", "--target-release", "--virtual", "-p", "--repository"];

/// What a line of commands is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Nothing,
    Fetching,
    /// A package manager, before the word that says that it installs.
    Managing(&'static str, &'static str),
    Installing(&'static str),
}

/// What the commands of `text` fetch and install, each with its line, from 1. A line that ends with `\` goes on.
pub(super) fn of_script(text: &str) -> Vec<(Install, usize)> {
    let (mut found, mut doing, mut skips) = (Vec::new(), Doing::Nothing, false);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('#') || line.starts_with("//") {
            continue;
        }
        for word in words(line) {
            if std::mem::take(&mut skips) {
                continue;
            }
            if matches!(word, "&&" | "||" | ";" | "|" | "&" | "then" | "do") || word.starts_with(['>', '<']) {
                doing = Doing::Nothing;
                continue;
            }
            let (word, ends) = match word.strip_suffix(';') {
                Some(word) => (word, true),
                None => (word, false),
            };
            let program = word.rsplit('/').next().unwrap_or(word);
            doing = match doing {
                _ if FETCHERS.contains(&program) => Doing::Fetching,
                Doing::Managing(by, says) if word == says => Doing::Installing(by),
                Doing::Installing(by) if is_package(word) => {
                    found.push((Install::package(by, word), at + 1));
                    doing
                }
                Doing::Installing(_) if WITH_VALUE.contains(&word) => {
                    skips = true;
                    doing
                }
                Doing::Installing(_) => doing,
                _ => match MANAGERS.iter().find(|(name, ..)| *name == program) {
                    Some((_, by, says)) => Doing::Managing(by, says),
                    None => doing,
                },
            };
            if doing == Doing::Fetching
                && let Some(fetched) = fetched(word)
            {
                found.push((fetched, at + 1));
            }
            if ends {
                doing = Doing::Nothing;
            }
        }
        if !line.ends_with('\\') {
            doing = Doing::Nothing;
        }
    }
    found
}

/// The words of a line: what stands between blanks and quotes, and in lists of YAML and JSON.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '[' | ']' | '(' | ')');
    line.split(ends).map(|word| word.trim_end_matches([',', '\\'])).filter(|word| !word.is_empty())
}

/// Whether a word after `install` is a package, and no option or something put together elsewhere.
fn is_package(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "+-._=:~*^".contains(c))
        && !word.contains("://")
}

/// What `word` is to a program that fetches.
pub(super) fn fetched(word: &str) -> Option<Install> {
    let rest = word.strip_prefix("https://").or_else(|| word.strip_prefix("http://"))?;
    let (host, path) = rest.split_once('/')?;
    if word.contains(['$', '{', '}']) {
        return Some(Install::Unclear(word.to_owned()));
    }
    let is_local = host.starts_with("localhost") || host.starts_with("127.") || host.starts_with("169.254.");
    // a page or a service, and no file
    let is_file = !path.is_empty() && !path.ends_with('/') && host.contains('.') && !is_local;
    is_file.then(|| Install::File(word.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(script: &str) -> Vec<String> {
        of_script(script).into_iter().map(|(install, line)| format!("{line} {install:?}")).collect()
    }

    #[test]
    fn what_commands_fetch_and_install() {
        let script = "#!/bin/sh\n# curl https://example.com/comment.sh\nset -e\n\
            curl -fsSL https://dl.test/a.tgz -o /tmp/a.tgz && tar xf /tmp/a.tgz; wget \"https://dl.test/b\" | sh\n\
            curl -L https://dl.test/${VERSION}/c.tgz; curl https://dl.test/; curl http://127.0.0.1:80/health\n\
            apt-get update && apt-get install -y -t bookworm --no-install-recommends jq=1.6-2.1 \\\n  socat \"conntrack\" $MORE\n\
            dnf install -y containerd.io-1.7.24 >/dev/null\napt-key add x\necho https://dl.test/not-fetched\n";
        assert_eq!(
            told(script),
            [
                "4 File(\"https://dl.test/a.tgz\")",
                "4 File(\"https://dl.test/b\")",
                "5 Unclear(\"https://dl.test/${VERSION}/c.tgz\")",
                "6 Package(\"apt\", \"jq=1.6-2.1\")",
                "7 Package(\"apt\", \"socat\")",
                "7 Package(\"apt\", \"conntrack\")",
                "8 Package(\"yum\", \"containerd.io-1.7.24\")",
            ]
        );
    }

    #[test]
    fn a_version_is_known_by_the_managers_own_form() {
        assert!(Install::has_version("apt", "jq=1.6-2.1") && !Install::has_version("apt", "lib-2"));
        assert!(
            Install::has_version("yum", "containerd.io-1.7.24") && !Install::has_version("yum", "nfs-utils")
        );
    }
}
