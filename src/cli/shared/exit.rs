//! Exit codes, and how a result or a failure is printed.

use crate::cli::shared::shown::{Shown, is_page};
use crate::cli::shared::{Global, OutputMode, github};
use crate::client::ClientError;
use crate::egress::EgressError;
use crate::pull::PullError;
use crate::push::PushError;
use landfall_bundle as bundle;
use landfall_bundle::image_archive::ImageArchiveError;
use landfall_content::bucket::Location;
use landfall_content::registry::{CredentialError, SetupError};
use landfall_content::store::{ShelfError, StoreError};
use landfall_content::{WriteError, write_whole};
use landfall_http::ErrorKind;
use landfall_item::lockfile::LockError;
use landfall_item::{DescribeError, TrimError};
use landfall_model::config::SiteError;
use landfall_model::document::Diagnostic;
use landfall_model::report::{
    ErrorInfo, RunReport, RunStatus, TransferSide, block, escape, one_line,
};
use landfall_model::sign;
use landfall_render::RenderError;
use landfall_rewrite::{ChartError, RewriteError};
use landfall_serve::{ExportError, RegistrySourceError, ServeError};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// The documented exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All done.
    Done = 0,
    /// Nothing succeeded.
    Failed = 1,
    /// Wrong use, or a bad input file of the user's.
    Usage = 2,
    /// Partly done.
    Partial = 3,
    /// A check said no.
    Refused = 4,
    /// Stopped by SIGINT.
    Interrupted = 130,
}

impl Exit {
    fn status(self) -> RunStatus {
        match self {
            Exit::Done => RunStatus::Done,
            Exit::Partial => RunStatus::Partial,
            Exit::Refused => RunStatus::Refused,
            Exit::Failed | Exit::Usage | Exit::Interrupted => RunStatus::Failed,
        }
    }
}

/// What a verb gives back when it ran to its end.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// For `--output json` and `--report`.
    pub report: RunReport,
    /// For stdout in text mode, with its last newline. Lines for people, in which control
    /// characters and commands to a CI are escaped when they are printed, unless it is a document.
    pub text: String,
    /// Whether the text is a document that was asked for, and printed byte for byte.
    pub is_document: bool,
    /// For stdout in Markdown mode; without it, the text is shown there as a block of code.
    pub markdown: Option<String>,
    /// The exit code.
    pub exit: Exit,
}

impl Outcome {
    /// It ended with this exit code.
    pub(crate) fn new(report: RunReport, text: impl Into<String>, exit: Exit) -> Outcome {
        Outcome {
            report,
            text: text.into(),
            is_document: false,
            markdown: None,
            exit,
        }
    }

    /// Exit 0 with this text and an empty report.
    pub(crate) fn text(text: impl Into<String>) -> Outcome {
        Outcome::new(RunReport::default(), text, Exit::Done)
    }

    /// The same with a text that is a document and not lines for people.
    pub(crate) fn document(self) -> Outcome {
        Outcome {
            is_document: true,
            ..self
        }
    }

    /// The exit code that the items call for: 0, 3, or 1 where nothing succeeded.
    pub(crate) fn of(report: RunReport, text: impl Into<String>) -> Outcome {
        let exit = match (report.has_losses(), report.has_successes()) {
            (false, _) => Exit::Done,
            (true, true) => Exit::Partial,
            (true, false) => Exit::Failed,
        };
        Outcome::new(report, text, exit)
    }
}

/// Why a verb stopped before its end.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// Which side, where there are sides.
    pub side: Option<TransferSide>,
    /// Which item.
    pub item: Option<String>,
    /// What happened and what to do.
    pub message: String,
    /// Whether the command refused, whatever its exit code says.
    pub refuses: bool,
    /// What was known when it stopped.
    pub report: Box<RunReport>,
}

impl Failure {
    /// A failure with this exit code and message.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Failure {
        let (message, refuses) = (message.into(), exit == Exit::Refused);
        Failure {
            exit,
            side: None,
            item: None,
            message,
            refuses,
            report: Box::default(),
        }
    }

    /// A failure whose message is these lines, in which foreign text begins none.
    pub(crate) fn of_lines<'l>(exit: Exit, lines: impl IntoIterator<Item = &'l String>) -> Failure {
        let lines: Vec<String> = lines.into_iter().map(|line| one_line(line)).collect();
        Failure::new(exit, lines.join("\n"))
    }

    /// Exit 2: what the user gave is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure {
            side: Some(TransferSide::Input),
            ..Failure::new(Exit::Usage, message)
        }
    }

    /// Exit 4: a check said no.
    pub(crate) fn refused(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Refused, message)
    }

    /// Exit 130: Ctrl-C.
    pub(crate) fn interrupted() -> Failure {
        Failure::new(
            Exit::Interrupted,
            "interrupted; run it again to go on from here",
        )
    }

    /// The same with a side.
    pub(crate) fn on(self, side: TransferSide) -> Failure {
        Failure {
            side: Some(side),
            ..self
        }
    }

    /// The same about an item.
    pub(crate) fn about(self, item: impl Into<String>) -> Failure {
        Failure {
            item: Some(item.into()),
            ..self
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Box<Diagnostic>> for Failure {
    fn from(diagnostic: Box<Diagnostic>) -> Failure {
        Failure::usage(diagnostic.to_string())
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<landfall_item::manifest::Error> for Failure {
    fn from(error: landfall_item::manifest::Error) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<RewriteError> for Failure {
    fn from(error: RewriteError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<ChartError> for Failure {
    fn from(error: ChartError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Failure {
        let message = error.to_string();
        match error {
            RenderError::Unasked(_) | RenderError::Refused(_) => Failure::refused(message),
            RenderError::Write { .. } => {
                Failure::new(Exit::Failed, message).on(TransferSide::Destination)
            }
            _ => Failure::usage(message),
        }
    }
}

impl From<bundle::BundleError> for Failure {
    fn from(error: bundle::BundleError) -> Failure {
        use bundle::BundleError;
        let message = error.to_string();
        match error {
            // an object was opened before, so this is about the way to it
            BundleError::Open { path, .. } if path.to_str().is_some_and(Location::is_meant) => {
                Failure::new(Exit::Failed, message).on(TransferSide::Source)
            }
            BundleError::Open { .. } => Failure::usage(message),
            BundleError::Damaged { .. }
            | BundleError::Missing { .. }
            | BundleError::Volumes { .. }
            | BundleError::Volume { .. }
            | BundleError::VolumeLock { .. }
            | BundleError::Newer { .. }
            | BundleError::NotSigned { .. }
            | BundleError::Signers { .. }
            | BundleError::Signature { .. } => Failure::refused(message),
            BundleError::NoVolume { .. }
            | BundleError::VolumeSize { .. }
            | BundleError::Tool { .. }
            | BundleError::TooLarge { .. } => Failure::usage(message),
            BundleError::Incomplete { .. } => Failure {
                refuses: true,
                ..Failure::new(Exit::Partial, message).on(TransferSide::Source)
            },
            BundleError::Content { item, .. } | BundleError::Trim { item, .. } => {
                Failure::new(Exit::Failed, message)
                    .on(TransferSide::Source)
                    .about(item)
            }
            BundleError::Space { .. }
            | BundleError::Busy { .. }
            | BundleError::Write { .. }
            | BundleError::Sign { .. } => {
                Failure::new(Exit::Failed, message).on(TransferSide::Destination)
            }
        }
    }
}

/// Of a key or a file of allowed signers that was named.
impl From<sign::SignatureError> for Failure {
    fn from(error: sign::SignatureError) -> Failure {
        let message = error.to_string();
        match error {
            sign::SignatureError::Agent { .. } | sign::SignatureError::Failed { .. } => {
                Failure::new(Exit::Failed, message)
            }
            _ => Failure::usage(message),
        }
    }
}

impl From<SiteError> for Failure {
    fn from(error: SiteError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Failure {
        Failure::new(Exit::Failed, error.to_string()).on(TransferSide::Destination)
    }
}

impl From<DescribeError> for Failure {
    fn from(error: DescribeError) -> Failure {
        Failure::new(Exit::Failed, error.to_string())
    }
}

impl From<TrimError> for Failure {
    fn from(error: TrimError) -> Failure {
        Failure::new(Exit::Failed, error.to_string()).on(TransferSide::Source)
    }
}

impl From<ImageArchiveError> for Failure {
    fn from(error: ImageArchiveError) -> Failure {
        let message = error.to_string();
        match error {
            ImageArchiveError::Unfit(_) => Failure::usage(message),
            ImageArchiveError::Content(_) => {
                Failure::new(Exit::Failed, message).on(TransferSide::Source)
            }
            ImageArchiveError::Write(_) => {
                Failure::new(Exit::Failed, message).on(TransferSide::Destination)
            }
        }
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::Listen { .. }
            | ServeError::Writable { .. }
            | ServeError::Busy { .. }
            | ServeError::Random => Failure::new(Exit::Failed, error.to_string()),
            ServeError::Address { .. }
            | ServeError::Exposed { .. }
            | ServeError::Tls { .. }
            | ServeError::PasswordFile { .. } => Failure::usage(error.to_string()),
        }
    }
}

impl From<ShelfError> for Failure {
    fn from(error: ShelfError) -> Failure {
        match error {
            ShelfError::Bucket(error) => ClientError::from(error).into(),
            ShelfError::Write(error) => error.into(),
            nothing @ ShelfError::Nothing { .. } => Failure::usage(nothing.to_string()),
            other => Failure::new(Exit::Failed, other.to_string()),
        }
    }
}

impl From<RegistrySourceError> for Failure {
    fn from(error: RegistrySourceError) -> Failure {
        Failure::new(Exit::Failed, error.to_string()).on(TransferSide::Source)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        match error {
            ClientError::Setup(error) => error.into(),
            ClientError::Trust { .. } => Failure::usage(error.to_string()),
            ClientError::Archive(error) => Failure::usage(error.to_string()),
            ClientError::ObjectStore(error) if error.kind == ErrorKind::Local => {
                Failure::usage(error.to_string())
            }
            ClientError::ObjectStore(error) => {
                Failure::new(Exit::Failed, error.to_string()).on(TransferSide::Destination)
            }
            ClientError::Pull(error) => error.into(),
            ClientError::Bundle(error) => error.into(),
            ClientError::Stopped(_) => Failure::new(Exit::Failed, error.to_string()),
        }
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::new(Exit::Failed, error.to_string()).on(TransferSide::Destination)
    }
}

impl From<EgressError> for Failure {
    fn from(error: EgressError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        StoreError::from(error).into()
    }
}

impl From<PullError> for Failure {
    fn from(error: PullError) -> Failure {
        match error {
            PullError::Sink(error) => error.into(),
        }
    }
}

impl From<PushError> for Failure {
    fn from(error: PushError) -> Failure {
        let (exit, side) = match &error {
            PushError::Collision(_) => (Exit::Usage, TransferSide::Input),
            PushError::Unreachable(error) if is_setting(error) => {
                (Exit::Usage, TransferSide::Input)
            }
            PushError::Unreachable(_) => (Exit::Failed, TransferSide::Destination),
        };
        Failure::new(exit, error.to_string()).on(side)
    }
}

/// Whether the account that the user names for a registry cannot be read.
fn is_setting(error: &landfall_http::HttpError) -> bool {
    let source = std::error::Error::source(error);
    let fault = source.and_then(|source| source.downcast_ref::<Arc<CredentialError>>());
    fault.is_some_and(|fault| fault.is_setting())
}

/// A result without Markdown of its own, or an error.
fn plain_markdown(
    command: &str,
    status: RunStatus,
    text: &str,
    error: Option<&ErrorInfo>,
) -> String {
    let told = error.map(|error| escape(&error.message));
    format!(
        "**landfall {command}: {}**\n\n{}",
        status.word(),
        block(told.as_deref().unwrap_or(text))
    )
}

/// Prints what there is to print and gives the process's exit code.
pub(crate) fn finish(
    command: &str,
    global: &Global,
    shown: &Shown,
    result: Result<Outcome, Failure>,
) -> ExitCode {
    let (report, text, markdown, exit, status, error) = match result {
        Ok(Outcome {
            report,
            text,
            is_document,
            markdown,
            exit,
        }) => {
            let text = if is_document { text } else { escape(&text) };
            (report, text, markdown, exit, exit.status(), None)
        }
        Err(failure) => {
            let Failure {
                exit,
                side,
                item,
                message,
                refuses,
                report,
            } = failure;
            let status = if refuses {
                RunStatus::Refused
            } else {
                exit.status()
            };
            let error = ErrorInfo {
                side,
                item,
                message,
            };
            (*report, String::new(), None, exit, status, Some(error))
        }
    };
    if let Some(error) = &error {
        let side = match (status, exit) {
            // the same exit code as of what is partly done
            (RunStatus::Refused, Exit::Partial) => Some("refused: ".to_owned()),
            _ => error
                .side
                .filter(|side| *side != TransferSide::Input)
                .map(|side| format!("{side}: ")),
        };
        let item = error.item.as_ref().map(|item| format!("{item}: "));
        let (side, item) = (side.unwrap_or_default(), item.unwrap_or_default());
        let _ = writeln!(
            std::io::stderr().lock(),
            "landfall: {side}{}",
            escape(&format!("{item}{}", error.message))
        );
    }
    let document = || {
        let value = report.to_json(command, status, error.as_ref());
        serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
    };
    let mut code = exit as u8;
    let printed = match global.output {
        OutputMode::Text => text,
        OutputMode::Json => document(),
        OutputMode::Markdown => {
            markdown.unwrap_or_else(|| plain_markdown(command, status, &text, error.as_ref()))
        }
        OutputMode::Github => {
            let summary =
                markdown.unwrap_or_else(|| plain_markdown(command, status, &text, error.as_ref()));
            let told = github::append_summary(&summary);
            if let Err(message) = told {
                let _ = writeln!(std::io::stderr().lock(), "landfall: {message}");
            }
            text + &github::annotations(command, &report, error.as_ref())
        }
    };
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(printed.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let _ = writeln!(
                std::io::stderr().lock(),
                "landfall: cannot write to stdout: {error}"
            );
            code = code.max(Exit::Failed as u8);
        }
        _ => {}
    }
    let written = global.report.as_ref().map(|path| {
        let written = if is_page(path) {
            shown.page(command, status, error.as_ref(), &report)
        } else {
            document()
        };
        (path, write_whole(path, written.as_bytes()))
    });
    if let Some((path, Err(error))) = written {
        let _ = writeln!(
            std::io::stderr().lock(),
            "landfall: cannot write the report {}: {error}",
            path.display()
        );
        code = code.max(Exit::Failed as u8);
    }
    ExitCode::from(code)
}
