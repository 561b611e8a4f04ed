//! Reads shell commands word by word, and finds the URLs that curl and similar programs fetch and
//! the packages that package managers install.

use crate::text::{ShellVariables, is_separator, words};
use landfall_model::document::LineIndex;
use landfall_model::{after_web_scheme, is_web_url};
use landfall_packages::yum::RpmPin;

/// Programs that fetch the URLs among their arguments.
/// `ADD` is an instruction of Dockerfiles.
const FETCHERS: [&str; 5] = ["curl", "wget", "aria2c", "rpm", "ADD"];
/// Programs that fetch the URLs after `-f`.
const APPLIERS: [&str; 2] = ["kubectl", "oc"];
/// Programs that install packages, each with the name of the package manager and the subcommand.
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
/// Options of package managers whose value is the next word.
const WITH_VALUE: [&str; 17] = [
    "-t",
    "-o",
    "-c",
    "-x",
    "-p",
    "--target-release",
    "--default-release",
    "--option",
    "--virtual",
    "--repository",
    "--repo",
    "--repoid",
    "--enablerepo",
    "--disablerepo",
    "--exclude",
    "--releasever",
    "--installroot",
];

/// The command that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommandState {
    Nothing,
    Fetching,
    /// kubectl, which fetches the URLs after `-f`. Set if the last word was this flag.
    Applying(bool),
    /// helm, which fetches charts by their URLs.
    Charting,
    /// A package manager, before its subcommand.
    Managing(&'static str, &'static str),
    /// The subcommand that installs packages.
    Installing(&'static str),
    /// The subcommand of dnf for groups (true) or modules, before `install`.
    ManagingNamed(bool),
    /// The subcommand of dnf that installs groups (true) or modules.
    InstallingNamed(bool),
}

/// Finds the URLs and packages that the commands of `text` fetch and install. A line that ends with
/// `\` continues.
pub(super) fn of_script(text: &str) -> Vec<PlacedInstall> {
    of_commands(text, &LineIndex::new(text))
}

/// Like [`of_script`], for commands in the strings of a JSON document.
pub(super) fn of_json(text: &str) -> Vec<PlacedInstall> {
    of_commands(&unescaped(text), &LineIndex::new(text))
}

/// The text of a JSON document with the escaped characters of its strings, each after a blank, so
/// that all others keep their offsets.
fn unescaped(text: &str) -> String {
    let mut unescaped = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        match escaped {
            Some('n') => unescaped.push_str(" \n"),
            Some('r' | 't') => unescaped.push_str("  "),
            Some(escaped @ ('"' | '\\')) => unescaped.extend([' ', escaped]),
            _ => unescaped.extend(std::iter::once(c).chain(escaped)),
        }
    }
    unescaped
}

/// Finds the installs of `text`, whose offsets are those of `lines`.
fn of_commands(text: &str, lines: &LineIndex<'_>) -> Vec<PlacedInstall> {
    let mut reader = CommandReader {
        variables: ShellVariables::of(text),
        state: CommandState::Nothing,
        skips: SkippedWords::Nothing,
        in_backticks: false,
    };
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('#') || line.starts_with("//") {
            continue;
        }
        let mut backticks = 0;
        let mut words = words(line);
        // the arguments of this instruction may be a list
        if words.first() == Some(&"ADD") {
            words.retain(|word| *word != "[");
        }
        let urls_follow = urls_follow(&words);
        for (word, url_follows) in words.into_iter().zip(urls_follow) {
            backticks += usize::from(word == "`");
            if word.starts_with('#') && matches!(reader.state, CommandState::Installing(_)) {
                break;
            }
            let Some(install) = reader.read(word, backticks % 2 == 1, url_follows) else {
                continue;
            };
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            found.push(PlacedInstall::new(install, lines, at));
        }
        if !line.ends_with('\\') {
            (reader.state, reader.skips) = (CommandState::Nothing, SkippedWords::Nothing);
        }
    }
    found
}

/// The words that are skipped, because they are values of options or parts of substitutions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SkippedWords {
    Nothing,
    /// The value of an option.
    Value,
    /// All words up to the end of this many nested `$(…)`.
    Commands(usize),
    /// All words up to the next backtick.
    Backtick,
    /// All words up to the end of a template's `{{…}}`.
    Template,
}

/// The state of reading a line and the lines that continue it.
struct CommandReader<'t> {
    /// The variables of the whole text.
    variables: ShellVariables<'t>,
    state: CommandState,
    skips: SkippedWords,
    /// Whether the command of the package manager is between backticks.
    in_backticks: bool,
}

impl CommandReader<'_> {
    /// Reads `word`. `is_in_backticks` is set if an odd number of backticks precedes it, and
    /// `url_follows` if a URL follows it in the same command.
    fn read(
        &mut self,
        word: &str,
        is_in_backticks: bool,
        url_follows: bool,
    ) -> Option<MachineInstall> {
        if self.skips_word(word) {
            return None;
        }
        if is_separator(word) {
            self.state = CommandState::Nothing;
            return None;
        }
        let (word, ends) = word
            .strip_suffix(';')
            .map_or((word, false), |word| (word, true));
        let install = self.word(word, is_in_backticks, url_follows);
        if ends {
            self.state = CommandState::Nothing;
        }
        install
    }

    /// Returns whether `word` is skipped, and updates which words are skipped next.
    fn skips_word(&mut self, word: &str) -> bool {
        let skipped = self.skips;
        self.skips = match skipped {
            SkippedWords::Nothing => return false,
            SkippedWords::Value => SkippedWords::Nothing,
            SkippedWords::Backtick if word == "`" => SkippedWords::Nothing,
            SkippedWords::Template if word.contains("}}") => SkippedWords::Nothing,
            SkippedWords::Commands(1) if word == ")" => SkippedWords::Nothing,
            SkippedWords::Commands(depth) if word == ")" => SkippedWords::Commands(depth - 1),
            SkippedWords::Commands(depth) if word.ends_with("$(") => {
                SkippedWords::Commands(depth + 1)
            }
            same => same,
        };
        true
    }

    fn word(
        &mut self,
        word: &str,
        is_in_backticks: bool,
        url_follows: bool,
    ) -> Option<MachineInstall> {
        // the last part of a URL may be the name of a program
        let path = if word.contains("://") { "" } else { word };
        // a backslash before a name skips its alias
        let program = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let is_fetcher = FETCHERS.contains(&program);
        match self.state {
            // a package, unless it fetches a URL: a list such as `[apt-get install jq, curl URL]`
            // has several commands
            CommandState::Installing(by) if !(is_fetcher && url_follows) => {
                self.installed(by, word)
            }
            _ if is_fetcher => {
                self.state = CommandState::Fetching;
                None
            }
            CommandState::Fetching => self.fetched(word.strip_prefix("--url=").unwrap_or(word)),
            CommandState::Applying(is_file) => {
                // other flags may be before the letter, and the file may be after it: `-Rf FILE`
                let is_short = word.starts_with('-') && !word.starts_with("--");
                self.state = CommandState::Applying(
                    word == "--filename" || (is_short && word.ends_with('f')),
                );
                let file = word
                    .strip_prefix("--filename=")
                    .or(word.strip_prefix("-f"))
                    .or(is_file.then_some(word));
                self.fetched(file?.trim_start_matches('='))
            }
            CommandState::Charting if word.ends_with(".tgz") => self.fetched(word),
            CommandState::Charting => None,
            CommandState::InstallingNamed(is_group) => self.named(is_group, word),
            CommandState::Managing(by, subcommand) if word == subcommand => {
                self.state = CommandState::Installing(by);
                None
            }
            CommandState::Managing("yum", _) if matches!(word, "group" | "groups" | "module") => {
                self.state = CommandState::ManagingNamed(word != "module");
                None
            }
            CommandState::Managing("yum", _) if word == "groupinstall" => {
                self.state = CommandState::InstallingNamed(true);
                None
            }
            CommandState::ManagingNamed(is_group) => {
                if !word.starts_with('-') {
                    self.state = match word {
                        "install" => CommandState::InstallingNamed(is_group),
                        _ => CommandState::Nothing,
                    };
                }
                None
            }
            CommandState::Nothing if APPLIERS.contains(&program) => {
                self.state = CommandState::Applying(false);
                None
            }
            CommandState::Nothing if program == "helm" => {
                self.state = CommandState::Charting;
                None
            }
            CommandState::Nothing | CommandState::Managing(..) | CommandState::Installing(_) => {
                if let Some((_, by, subcommand)) =
                    MANAGERS.iter().find(|(name, ..)| *name == program)
                {
                    (self.state, self.in_backticks) =
                        (CommandState::Managing(by, subcommand), is_in_backticks);
                }
                None
            }
        }
    }

    /// Reads an argument of a program that fetches. Variables are filled in if their values are
    /// known.
    fn fetched(&self, word: &str) -> Option<MachineInstall> {
        fetched(&self.variables.filled_or_written(word))
    }

    /// Reads an argument of the subcommand that installs.
    fn installed(&mut self, by: &'static str, word: &str) -> Option<MachineInstall> {
        let open = |text: String| Some(MachineInstall::OpenPackage(by, text));
        match word {
            // the closing backtick of a command substitution, a comment or an `echo`
            "`" if self.in_backticks => self.state = CommandState::Nothing,
            "`" => {
                self.skips = SkippedWords::Backtick;
                return open("`…`".into());
            }
            ")" => self.state = CommandState::Nothing,
            _ if WITH_VALUE.contains(&word) => self.skips = SkippedWords::Value,
            _ if word.starts_with('-') => {}
            _ if word.ends_with("$(") => {
                self.skips = SkippedWords::Commands(1);
                return open(format!("{word}…)"));
            }
            _ if word.contains("{{") => {
                self.skips = if word.contains("}}") {
                    SkippedWords::Nothing
                } else {
                    SkippedWords::Template
                };
                let end = if word.contains("}}") { "" } else { " …}}" };
                return open(format!("{word}{end}"));
            }
            _ if is_web_url(word) => return self.fetched(word),
            _ if word.contains('$') => return open(word.to_owned()),
            _ if is_package(word) => return Some(MachineInstall::package(by, word)),
            _ if by == "yum" && word.strip_prefix('@').is_some_and(is_package) => {
                return Some(MachineInstall::package(by, word));
            }
            _ => {}
        }
        None
    }

    /// Reads an argument of the subcommand of dnf that installs groups or modules.
    fn named(&mut self, is_group: bool, word: &str) -> Option<MachineInstall> {
        if WITH_VALUE.contains(&word) {
            self.skips = SkippedWords::Value;
        }
        // the words of a name in English, such as `"Development Tools"`, are not ids
        let is_id = is_package(word) && !(is_group && word.contains(|c: char| c.is_uppercase()));
        is_id.then(|| MachineInstall::package("yum", &format!("@{word}")))
    }
}

/// For each of `words`, whether a URL follows it before the command ends.
fn urls_follow(words: &[&str]) -> Vec<bool> {
    let mut follow = vec![false; words.len()];
    let mut url_follows = false;
    for (at, word) in words.iter().enumerate().rev() {
        follow[at] = url_follows;
        url_follows = !is_separator(word) && (url_follows || word.contains("://"));
    }
    follow
}

/// Whether an argument is the name of a package.
pub(super) fn is_package(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "+-._=:~*^/".contains(c))
        && !word.contains("://")
        // `name-` removes a package, and the other endings are files
        && !["-", ".deb", ".rpm"].iter().any(|end| word.ends_with(end))
}

/// The file that a program fetches for the argument `word`.
pub(super) fn fetched(word: &str) -> Option<MachineInstall> {
    // a fragment is not sent to the server
    let word = word.split('#').next().unwrap_or_default();
    let rest = after_web_scheme(word)?;
    let (host, path) = rest.split_once('/')?;
    if word.contains(['$', '{', '}']) {
        return Some(MachineInstall::Unclear(word.to_owned()));
    }
    // a user name may precede the host
    let host = host.rsplit('@').next().unwrap_or(host);
    // loopback and link-local addresses (RFC 3927, RFC 4291) are services of the machine or its
    // host
    let is_local = host.split(['.', ':']).next() == Some("localhost")
        || ["127.", "169.254.", "[::1]", "[fe80:"]
            .iter()
            .any(|start| host.starts_with(*start));
    // other URLs are pages, services or git repositories, not files
    let is_other = path.is_empty() || path.ends_with(".git") || !host.contains(['.', '[']);
    let is_file = !(is_local || is_other);
    is_file.then(|| {
        if path.ends_with('/') {
            MachineInstall::Unclear(word.to_owned())
        } else {
            MachineInstall::File(word.to_owned())
        }
    })
}

// Files and packages that a machine fetches and installs, with their positions.

/// A file or package that a machine fetches or installs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineInstall {
    /// The URL of a file.
    File(String),
    /// A URL with placeholders whose values are not known, or the URL of a folder: the file is not
    /// known.
    Unclear(String),
    /// A package: the package manager, and the name as written, with the version if it has one.
    Package(&'static str, String),
    /// A package whose name has placeholders: the package manager, and the name as written.
    OpenPackage(&'static str, String),
}

/// A file or package, and its position in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedInstall {
    pub install: MachineInstall,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The path of the embedded file that contains the line, if there is one.
    pub inside: Option<String>,
}

impl PlacedInstall {
    /// Places `install` at the byte `at` of the text with these `lines`.
    pub(super) fn new(install: MachineInstall, lines: &LineIndex<'_>, at: usize) -> PlacedInstall {
        let (line, column) = lines.line_column(at);
        PlacedInstall {
            install,
            line,
            column,
            inside: None,
        }
    }

    /// The name of the file for messages: `file`, or the embedded file in it.
    pub(crate) fn file(&self, file: &str) -> String {
        self.inside
            .as_ref()
            .map_or_else(|| file.to_owned(), |inside| format!("{file} ({inside})"))
    }
}

/// Files and packages, each with its position `file:line`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineInstalls(pub Vec<(MachineInstall, String)>);

impl MachineInstall {
    /// Returns the package `written`, which may have a version, for the package manager `by`.
    pub(super) fn package(by: &'static str, written: &str) -> MachineInstall {
        MachineInstall::Package(by, written.to_owned())
    }

    /// The reason why the file of the URL `url` is not known.
    pub fn why_unclear(url: &str) -> &'static str {
        if url.ends_with('/') {
            "it is the URL of a folder"
        } else {
            "a part of this URL is defined elsewhere"
        }
    }

    /// Whether the package `written` for the package manager `by` has a version.
    pub fn has_version(by: &str, written: &str) -> bool {
        match by {
            "apt" | "apk" | "zypper" => written.contains('='),
            // a pattern such as `kubelet-1.31.*` restricts the version, so it counts as one
            _ => RpmPin::parse(&written.replace(['*', '?'], "x")).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::document::growth::assert_linear;

    fn formatted(script: &str) -> Vec<String> {
        let formatted =
            |one: PlacedInstall| format!("{}:{} {:?}", one.line, one.column, one.install);
        of_script(script).into_iter().map(formatted).collect()
    }

    #[test]
    fn urls_and_packages_of_commands_are_found() {
        let script = "#!/bin/sh\n# curl https://example.com/comment.sh\nset -e\n\
        curl -fsSL https://dl.test/a.tgz -o /tmp/a.tgz && tar xf /tmp/a.tgz; wget \"https://dl.test/b\" | sh\n\
        curl -L https://dl.test/${VERSION}/c.tgz; curl https://dl.test/; curl http://127.0.0.1:80/health\n\
        apt-get update && apt-get install -y -t bookworm --no-install-recommends jq=1.6-2.1 \\\n  socat \"conntrack\" $MORE\n\
        dnf install -y containerd.io-1.7.24 >/dev/null\napt-key add x\necho https://dl.test/not-fetched\n\
        B=https://dl.test/v1; curl -LO $B/d.tgz; curl https://dl.test/folder/\nADD https://dl.test/e.tgz /\n";
        assert_eq!(
            formatted(script),
            [
                "4:12 File(\"https://dl.test/a.tgz\")",
                "4:76 File(\"https://dl.test/b\")",
                "5:9 Unclear(\"https://dl.test/${VERSION}/c.tgz\")",
                "6:74 Package(\"apt\", \"jq=1.6-2.1\")",
                "7:3 Package(\"apt\", \"socat\")",
                "7:10 Package(\"apt\", \"conntrack\")",
                "7:21 OpenPackage(\"apt\", \"$MORE\")",
                "8:16 Package(\"yum\", \"containerd.io-1.7.24\")",
                "11:32 File(\"https://dl.test/v1/d.tgz\")",
                "11:47 Unclear(\"https://dl.test/folder/\")",
                "12:5 File(\"https://dl.test/e.tgz\")",
            ]
        );
    }

    #[test]
    fn a_long_line_of_commands_takes_linear_time() {
        assert_linear(20_000, |count| {
            let packages = "jq ".repeat(count);
            let found = of_script(&format!("apt-get install {packages}\n"));
            assert_eq!(found.len(), count);
            let url = "x".repeat(count) + "://" + &";".repeat(count);
            assert_eq!(of_script(&format!("curl {url}\n")), []);
        });
    }

    #[test]
    fn packages_with_substitutions_are_undecided_and_operators_end_a_command() {
        for (line, expected) in [
            (
                "apt-get install -y linux-headers-$(uname -r) jq&&rm x",
                "OpenPackage linux-headers-$(…) Package jq",
            ),
            (
                "apt install -y linux-headers-`uname -r` jq",
                "OpenPackage `…` Package jq",
            ),
            ("run `apt-get install jq` and reboot", "Package jq"),
            (
                "X=$(curl -L https://dl.test/a.tgz) && echo done",
                "File https://dl.test/a.tgz",
            ),
            (
                "apt-get install -y jq=${V} nano- ./x.deb y.deb 2>&1 | tee log",
                "OpenPackage jq=${V}",
            ),
            ("(apt-get install foo) bar # baz", "Package foo"),
            (
                "dnf --repo x install -y --enablerepo more foo-1.2-3 # why not",
                "Package foo-1.2-3",
            ),
            (
                "yum install -y foo-1.2-${REL} bar-$VER 'baz-{{ version }}'",
                "OpenPackage foo-1.2-${REL} OpenPackage bar-$VER OpenPackage baz-{{ …}}",
            ),
            (
                "RUN [\"microdnf\", \"install\", \"-y\", \"tar\"]",
                "Package tar",
            ),
            (
                "dnf -y install @core jq @nginx:1.22/common && dnf module -y install app:2/x",
                "Package @core Package jq Package @nginx:1.22/common Package @app:2/x",
            ),
            (
                "dnf group install -y core; yum groupinstall 'Dev Tools' base; dnf module enable a:1",
                "Package @core Package @base",
            ),
            (
                "apt-get install docker-ce={{ docker_version }} {{ more }} jq/backports",
                "OpenPackage docker-ce={{ …}} OpenPackage {{ …}} Package jq/backports",
            ),
            (
                "apt-get install -y jq curl wget socat && curl -LO https://dl.test/a.tgz",
                "Package jq Package curl Package wget Package socat File https://dl.test/a.tgz",
            ),
            (
                "runcmd: [[apt-get, install, -y, aria2c], [curl, -LO, https://dl.test/a.tgz]]",
                "Package aria2c File https://dl.test/a.tgz",
            ),
            (
                "runcmd: [\"apt-get install -y jq\", \"curl -LO https://dl.test/a.tgz\"]",
                "Package jq File https://dl.test/a.tgz",
            ),
            (
                r#"[["apt-get","install","jq"],["wget","https://dl.test/a.tgz"]]"#,
                "Package jq File https://dl.test/a.tgz",
            ),
            (
                "apt-get install -y ${TOOLS[@]} curl",
                "OpenPackage ${TOOLS Package curl",
            ),
            (
                "kubectl apply -n x -f https://dl.test/a.yaml --server https://dl.test/no -f https://dl.test/b.yaml",
                "File https://dl.test/a.yaml File https://dl.test/b.yaml",
            ),
            (
                "k3s kubectl create --filename=https://dl.test/a.yaml; oc -f https://dl.test/b.yaml; kubectl apply -f - https://dl.test/no",
                "File https://dl.test/a.yaml File https://dl.test/b.yaml",
            ),
            (
                "wget https://dl.test/curl; kubectl -Rf https://dl.test/wget -fhttps://dl.test/b.yaml",
                "File https://dl.test/curl File https://dl.test/wget File https://dl.test/b.yaml",
            ),
            (
                "\\curl https://dl.test/a?x=1&y=2>b; wget https://dl.test/c>>d 2>&1 https://dl.test/no",
                "File https://dl.test/a?x=1&y=2 File https://dl.test/c",
            ),
            (
                "curl -O https://dl.test/a#b # https://dl.test/no",
                "File https://dl.test/a",
            ),
            (
                "run: \"echo # ; curl -O https://dl.test/a\"; x # curl https://dl.test/no",
                "File https://dl.test/a",
            ),
            (
                "ADD [\"https://dl.test/a.tgz\", \"/a\"]",
                "File https://dl.test/a.tgz",
            ),
            ("ADD https://dl.test/a.git#v1 /a", ""),
            (
                "curl -LO --url=https://dl.test/a.tgz; rpm --import https://dl.test/key",
                "File https://dl.test/a.tgz File https://dl.test/key",
            ),
            (
                "curl http://[fd00::1]:80/a.tgz http://[::1]/no http://u@127.0.0.1/no http://localhost.x/no http://localhosts.test/b",
                "File http://[fd00::1]:80/a.tgz File http://localhosts.test/b",
            ),
            (
                "dnf install -y jq https://dl.test/a.rpm https://dl.test/b-$V.rpm; rpm -q jq",
                "Package jq File https://dl.test/a.rpm Unclear https://dl.test/b-$V.rpm",
            ),
            (
                "yum install -y https://dl.test/a.rpm jq \"https://dl.test/$V/b.rpm\"",
                "File https://dl.test/a.rpm Package jq Unclear https://dl.test/$V/b.rpm",
            ),
            (
                "rpm --import https://dl.test/a.asc && curl -LO https://dl.test/rpm",
                "File https://dl.test/a.asc File https://dl.test/rpm",
            ),
            (
                "helm install x https://dl.test/c-1.tgz && helm repo add c https://dl.test/c",
                "File https://dl.test/c-1.tgz",
            ),
            (
                "ExecStart=/usr/bin/apt-get install -qq socat; apt-get update jq",
                "Package socat",
            ),
        ] {
            let formatted = |one: PlacedInstall| match one.install {
                MachineInstall::File(text) => format!("File {text}"),
                MachineInstall::Unclear(text) => format!("Unclear {text}"),
                MachineInstall::Package(_, text) => format!("Package {text}"),
                MachineInstall::OpenPackage(_, text) => format!("OpenPackage {text}"),
            };
            let found: Vec<String> = of_script(line).into_iter().map(formatted).collect();
            assert_eq!(found.join(" "), expected, "{line}");
        }
    }

    #[test]
    fn versions_are_recognized_by_the_notation_of_the_package_manager() {
        assert!(
            MachineInstall::has_version("apt", "jq=1.6-2.1")
                && !MachineInstall::has_version("apt", "lib-2")
        );
        assert!(
            MachineInstall::has_version("yum", "containerd.io-1.7.24")
                && !MachineInstall::has_version("yum", "nfs-utils")
        );
        assert!(
            MachineInstall::has_version("dnf", "kubelet-1.31.*")
                && !MachineInstall::has_version("dnf", "java-17-openjdk")
        );
    }
}
