//! `landfall rewrite`: change references to locked images so that they point to the destination.

use super::carried::{self, Demands};
use super::{Context, Exit, Failure, Outcome, OutputMode};
use crate::lock::Lock;
use crate::report::{Report, escape};
use crate::rewrite::{self, Input, Known, RewriteError, Rewritten, Target};
use clap::Args;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where the lock is looked for without a flag.
const LOCK: &str = "landfall.lock";

const NOTHING_KNOWN: &str = "\
nothing here is known to the lock, so nothing was changed. For Helm values that is usual: the references
are defaults inside the charts. Set them in your values, as in `dex: {image: {repository: …, tag: …}}`,
and rewrite again, or rewrite what `helm template` prints.";

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
    /// The lock that says which references are known [default: landfall.lock]
    #[arg(long, value_name = "FILE", conflicts_with = "bundle")]
    lock: Option<PathBuf>,
    /// The bundle whose lock says it
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Take a bundle that says of itself that items are missing; references to these are left
    #[arg(long)]
    allow_partial: bool,
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
        let lock = self.known_lock(context)?;
        let mapping = context.mapping(self.to.as_ref())?;
        if let Some(collision) = mapping.collision(&lock) {
            return Err(Failure::usage(collision.to_string()));
        }
        let known = Known::new(&lock, &mapping);
        let mut text = String::new();
        let done: Vec<Done> = inputs.iter().map(|input| self.one(input, &known, &mut text)).collect();
        self.outcome(context, &done, text)
    }

    /// The lock that decides which references are known.
    fn known_lock(&self, context: &Context) -> Result<Lock, Failure> {
        match (&self.lock, &self.bundle) {
            (Some(path), _) => Ok(Lock::load(path)?),
            (None, Some(bundle)) => {
                let demands = Demands { allow_partial: self.allow_partial, ..Demands::default() };
                Ok(carried::open(context, bundle, &demands)?.bundle.held()?)
            }
            (None, None) if Path::new(LOCK).exists() => Ok(Lock::load(Path::new(LOCK))?),
            (None, None) => Err(Failure::usage(
                "which references are known? name a lock with --lock FILE, or a bundle with --bundle BUNDLE",
            )),
        }
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
            let result = rewrite::rewrite(&old, known);
            let place = self.mode.out.as_ref().map(|out| out.join(&input.relative));
            match (&result, place) {
                (Ok(new), Some(place)) => rewrite::write(&input.path, &place, &new.text)?,
                // a folder of results is whole, so that it can be used in place of the old one
                (Err(_), Some(place)) => rewrite::write(&input.path, &place, &old)?,
                (Ok(new), None) if self.mode.in_place && new.text != old => {
                    rewrite::write(&input.path, &input.path, &new.text)?;
                }
                (Ok(new), None) if self.mode.diff => text.push_str(&diff(&name, &old, &new.text)),
                (Ok(new), None) if self.to_stdout() => text.push_str(&new.text),
                _ => {}
            }
            result
        });
        Done { name, result }
    }

    fn outcome(&self, context: &Context, done: &[Done], mut text: String) -> Result<Outcome, Failure> {
        let failed = done.iter().filter(|done| done.result.is_err()).count();
        let good = || done.iter().filter_map(|done| Some((done.name.as_str(), done.result.as_ref().ok()?)));
        let changes = good().map(|(_, file)| file.changes.len()).sum::<usize>();
        let settled = good().map(|(_, file)| file.settled).sum::<usize>();
        let left = good().map(|(_, file)| file.left.len()).sum::<usize>();
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
            lines.extend(good().flat_map(|(name, file)| {
                file.changes.iter().map(move |edit| {
                    format!("{name}:{}:{}: {} -> {}", edit.line, edit.column, edit.from, edit.to)
                })
            }));
        }
        lines.extend(good().flat_map(|(name, file)| {
            file.left.iter().map(move |left| {
                format!("{name}:{}:{}: left {}: {}", left.line, left.column, left.reference, left.why)
            })
        }));
        lines.push(match (changes, settled, left) {
            (0, 0, 0) => NOTHING_KNOWN.into(),
            _ => {
                let verb = if self.mode.check || self.mode.diff { "to rewrite" } else { "rewritten" };
                let files = good().filter(|(_, file)| !file.changes.is_empty()).count();
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
        RewriteError::Syntax { .. } => format!("{name}:{error}"),
        RewriteError::Read { .. } | RewriteError::Write { .. } => error.to_string(),
        _ => format!("{name}: {error}"),
    }
}

/// `files`, `changes` and `left` of the JSON document.
fn report(done: &[Done]) -> Report {
    let (mut files, mut changes, mut left) = (Vec::new(), Vec::new(), Vec::new());
    let with_file = |name: &str, value: Value| {
        let mut members = serde_json::Map::from_iter([("file".to_owned(), name.into())]);
        members.extend(value.as_object().cloned().unwrap_or_default());
        Value::Object(members)
    };
    for Done { name, result } in done {
        files.push(match result {
            Ok(file) => {
                let status = if file.changes.is_empty() { "unchanged" } else { "changed" };
                let settled = file.settled;
                json!({"file": name, "status": status, "changes": file.changes.len(), "settled": settled})
            }
            Err(error) => json!({"file": name, "status": "failed", "reason": error.to_string()}),
        });
        if let Ok(file) = result {
            changes.extend(file.changes.iter().map(|edit| with_file(name, json!(edit))));
            left.extend(file.left.iter().map(|left| with_file(name, json!(left))));
        }
    }
    let mut report = Report::default();
    let members = [("files", files), ("changes", changes), ("left", left)];
    report.extra.extend(members.map(|(name, list)| (name.to_owned(), Value::Array(list))));
    report
}
