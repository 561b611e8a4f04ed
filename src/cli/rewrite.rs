//! `landfall rewrite`: change references to locked images so that they point to the destination.

use super::locked::Locked;
use super::{Context, Exit, Failure, Outcome, OutputMode};
use crate::report::{Report, escape};
use crate::rewrite::{self, Finding, Input, Kind, Known, Meaning, Options, RewriteError, Rewritten, Target};
use clap::Args;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

const NOTHING_KNOWN: &str = "\
nothing here is known to the lock, so nothing was changed. For Helm values that is usual: the references
are defaults inside the charts. `landfall render helm-values CHART` writes them as values to lay over the
charts'; or rewrite what `helm template` prints.";

/// Change references to locked images so that they point to the destination
///
/// Only references that the lock knows are changed; every other byte stays.
#[derive(Args)]
pub(super) struct Rewrite {
    /// Files, folders, or - for stdin
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The registry to point to [default: registry.address of the site]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<Target>,
    #[command(flatten)]
    locked: Locked,
    #[command(flatten)]
    mode: Mode,
}

/// Where the result goes; stdout without any of these.
#[derive(Args)]
#[group(multiple = false)]
struct Mode {
    /// Replace the files
    #[arg(short, long)]
    in_place: bool,
    /// Change nothing; list what would be changed and exit with 4 if there is anything
    #[arg(long)]
    check: bool,
    /// Change nothing; print a unified diff
    #[arg(long)]
    diff: bool,
    /// Write the files to this folder, changed or not
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// What became of one input.
struct Done {
    name: String,
    result: Result<Rewritten, RewriteError>,
}

impl Rewrite {
    pub(super) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let inputs = self.inputs()?;
        let lock = self.locked.load(context)?;
        let mapping = context.mapping(self.to.as_ref())?;
        if let Some(collision) = mapping.collision(&lock) {
            return Err(Failure::usage(collision.to_string()));
        }
        let known = Known::new(&lock, &mapping);
        let mut text = String::new();
        let done: Vec<Done> = inputs.iter().map(|input| self.one(input, &known, &mut text)).collect();
        self.outcome(context, &done, text)
    }

    fn to_stdout(&self) -> bool {
        !(self.mode.in_place || self.mode.check || self.mode.diff || self.mode.out.is_some())
    }

    fn inputs(&self) -> Result<Vec<Input>, Failure> {
        let stdin = self.paths.iter().filter(|path| is_stdin(path)).count();
        if stdin > 0 && (self.mode.in_place || self.mode.out.is_some()) {
            return Err(Failure::usage("- (stdin) goes to stdout; leave --in-place and --out away"));
        }
        let inputs = match stdin {
            0 => rewrite::inputs(&self.paths, self.mode.out.as_deref())?,
            _ if self.paths.len() == 1 => vec![Input { path: "-".into(), relative: "-".into() }],
            _ => return Err(Failure::usage("- (stdin) stands alone")),
        };
        if self.to_stdout() && (self.paths.len() > 1 || self.paths[0].is_dir()) {
            return Err(Failure::usage(
                "only one file goes to stdout; for several files or a folder say what to do with them: \
                 --in-place, --check, --diff or --out DIR",
            ));
        }
        if inputs.is_empty() {
            return Err(Failure::usage("there is no *.yaml, *.yml or *.json file in what was named"));
        }
        Ok(inputs)
    }

    /// Rewrites one file. What goes to stdout is added to `text`.
    fn one(&self, input: &Input, known: &Known, text: &mut String) -> Done {
        let name = if is_stdin(&input.path) { "<stdin>".into() } else { input.path.display().to_string() };
        let result = read(&input.path).and_then(|old| {
            let new = rewrite::rewrite(&old, Kind::of(&input.path), known, Options::default());
            match &self.mode.out {
                Some(out) => rewrite::write(&input.path, &out.join(&input.relative), &new.text)?,
                None if self.mode.in_place && new.text != old => {
                    rewrite::write(&input.path, &input.path, &new.text)?
                }
                None if self.mode.diff => text.push_str(&diff(&name, &old, &new.text)),
                None if self.to_stdout() => text.push_str(&new.text),
                None => {}
            }
            Ok(new)
        });
        Done { name, result }
    }

    fn outcome(&self, context: &Context, done: &[Done], mut text: String) -> Result<Outcome, Failure> {
        let failed = done.iter().filter(|done| done.result.is_err()).count();
        let good = || done.iter().filter_map(|done| Some((done.name.as_str(), done.result.as_ref().ok()?)));
        let count = |fits: fn(&Finding) -> bool| {
            good().flat_map(|(_, file)| &file.findings.found).filter(|finding| fits(finding)).count()
        };
        let changes = count(Finding::is_change);
        let settled = count(|finding| matches!(finding.meaning, Meaning::Settled { .. }));
        let left = count(|finding| matches!(finding.meaning, Meaning::Left { .. }));
        let mut report = report(done);
        if self.to_stdout() && context.global.output == OutputMode::Json {
            report.extra.insert("text".into(), text.clone().into());
        }

        let reasons = done.iter().filter_map(|done| Some(reason(&done.name, done.result.as_ref().err()?)));
        if failed == done.len() {
            let message = reasons.collect::<Vec<_>>().join("\n");
            return Err(Failure { report: report.into(), ..Failure::new(Exit::Failed, message) });
        }
        reasons.for_each(|line| context.progress.note(&line));
        let mut lines = Vec::new();
        if self.mode.check || self.mode.in_place || self.mode.out.is_some() {
            lines.extend(good().flat_map(|(name, file)| changes_of(name, file)));
        }
        lines.extend(good().flat_map(|(name, file)| left_of(name, file)));
        lines.push(match (changes, settled, left) {
            (0, 0, 0) => NOTHING_KNOWN.into(),
            _ => {
                let verb = if self.mode.check || self.mode.diff { "to rewrite" } else { "rewritten" };
                let files =
                    good().filter(|(_, file)| file.findings.found.iter().any(Finding::is_change)).count();
                let rest = [
                    (settled, "at their destination already"),
                    (left, "left"),
                    (failed, "files not rewritten"),
                ];
                let rest = rest.iter().filter(|(count, _)| *count > 0);
                let rest: String = rest.map(|(count, what)| format!("; {count} {what}")).collect();
                format!("{verb}: {changes} (in {files} of {} files){rest}", done.len())
            }
        });
        // stdout carries the result only: here that is a file or a diff
        if self.to_stdout() || self.mode.diff {
            lines.iter().for_each(|line| context.progress.note(line));
        } else {
            text.extend(lines.iter().map(|line| escape(line) + "\n"));
        }
        let exit = match (self.mode.check && changes > 0, failed) {
            (true, _) => Exit::Refused,
            (false, 0) => Exit::Done,
            (false, _) => Exit::Partial,
        };
        Ok(Outcome { report, text, exit })
    }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn read(path: &Path) -> Result<String, RewriteError> {
    if !is_stdin(path) {
        return rewrite::read(path);
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|source| RewriteError::Read { path: "<stdin>".into(), source })?;
    String::from_utf8(bytes).map_err(|_| RewriteError::Encoding)
}

/// A unified diff that `patch -p1` takes; empty where nothing differs.
fn diff(name: &str, old: &str, new: &str) -> String {
    let path = name.trim_start_matches("./").trim_start_matches('/');
    let diff = similar::TextDiff::from_lines(old, new);
    diff.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string()
}

/// What went wrong with a file: its name, and where in it.
fn reason(name: &str, error: &RewriteError) -> String {
    match error {
        RewriteError::Read { .. } | RewriteError::Write { .. } => error.to_string(),
        _ => format!("{name}: {error}"),
    }
}

/// `file:line:column`, and where in that, if it is encoded.
fn place(name: &str, finding: &Finding) -> String {
    let inside = finding.inside.as_ref().map(|inside| format!(" ({inside})")).unwrap_or_default();
    format!("{name}:{}:{}{inside}", finding.line, finding.column)
}

fn changes_of(name: &str, file: &Rewritten) -> Vec<String> {
    let line = |finding: &Finding| match &finding.meaning {
        Meaning::Known { to, reaches, .. } => {
            let reaches = match reaches.len() {
                0 => String::new(),
                _ => format!(" (a prefix; it can become {})", reaches.join(", ")),
            };
            Some(format!("{}: {} -> {to}{reaches}", place(name, finding), finding.written))
        }
        _ => None,
    };
    file.findings.found.iter().filter_map(line).collect()
}

fn left_of(name: &str, file: &Rewritten) -> Vec<String> {
    let line = |finding: &Finding| match &finding.meaning {
        Meaning::Left { why } => Some(format!("{}: left {}: {why}", place(name, finding), finding.written)),
        _ => None,
    };
    file.findings.found.iter().filter_map(line).collect()
}

/// `files`, `changes` and `left` of the JSON document.
fn report(done: &[Done]) -> Report {
    let (mut files, mut changes, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for Done { name, result } in done {
        let Ok(Rewritten { findings, .. }) = result else {
            let reason = result.as_ref().err().map(ToString::to_string);
            files.push(json!({"file": name, "status": "failed", "reason": reason}));
            continue;
        };
        let (mut settled, before) = (0, changes.len());
        for finding in &findings.found {
            let Finding { line, column, inside, written, position, .. } = finding;
            let mut entry = json!({"file": name, "line": line, "column": column, "position": position});
            if let Some(inside) = inside {
                entry["inside"] = json!(inside);
            }
            match &finding.meaning {
                Meaning::Known { item, to, reaches } => {
                    (entry["from"], entry["to"], entry["item"]) = (json!(written), json!(to), json!(item));
                    if !reaches.is_empty() {
                        entry["reaches"] = json!(reaches);
                    }
                    changes.push(entry);
                }
                Meaning::Left { why } => {
                    (entry["reference"], entry["why"]) = (json!(written), json!(why));
                    left.push(entry);
                }
                Meaning::Settled { .. } => settled += 1,
                Meaning::Unknown | Meaning::Undecided { .. } => {}
            }
        }
        let made = changes.len() - before;
        let status = if made == 0 { "unchanged" } else { "changed" };
        let read_as = findings.read_as;
        files.push(
            json!({"file": name, "status": status, "changes": made, "settled": settled, "readAs": read_as}),
        );
    }
    let mut report = Report::default();
    let members = [("files", files), ("changes", changes), ("left", left)];
    report.extra.extend(members.map(|(name, list)| (name.to_owned(), Value::Array(list))));
    report
}
