//! The interface of a platform: its command line and its output.

use super::rendered_file::RenderedFile;
use super::request::RenderRequest;
use super::settings::PlatformSetting;
use landfall_model::report::ReportItem;
use landfall_model::{Consumer, Failure};
use landfall_rewrite::audit::FileFinding;
use serde::Serialize;
use serde_yaml::Mapping;

/// A platform that `landfall render` writes configuration for.
pub trait RenderPlatform: Sync {
    /// Describes the platform for the command line.
    fn spec(&self) -> &'static PlatformSpec;

    /// Other names on the command line.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether the platform needs the address of a registry. A platform that does not need it
    /// ignores [`RenderRequest::mapping`].
    fn needs_registry(&self) -> bool {
        true
    }

    /// Whether a platform that reads the lock also works without one.
    fn works_without_lock(&self) -> bool {
        false
    }

    /// Whether the platform can configure only the proxy, if the site has one and no registry is
    /// known. [`RenderRequest::target`] is then `None` and the lock is empty.
    fn has_proxy_part(&self) -> bool {
        false
    }

    /// Renders the configuration.
    ///
    /// # Errors
    /// If an input cannot be read, or the inputs do not allow a configuration.
    fn render(&self, request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure>;
}

/// The description of a platform for the command line.
#[derive(Debug)]
pub struct PlatformSpec {
    /// The name on the command line.
    pub name: &'static str,
    /// What the platform writes, in one line.
    pub about: &'static str,
    /// The paragraphs after `about` in the output of `--help`.
    pub details: &'static str,
    /// The files that the platform reads besides the lock.
    pub inputs: &'static [PlatformInput],
    /// The settings that `--set` accepts.
    pub settings: &'static [PlatformSetting],
    /// The consumer of the registry that this configuration sets up. Every locked image must have
    /// the destinations from which this consumer pulls.
    pub consumer: Option<Consumer>,
    /// Whether the platform reads the lock.
    pub reads_lock: bool,
    /// The form of the output.
    pub writes: OutputForm,
}

/// The form of the output of a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputForm {
    /// One text, to a file or to stdout.
    Text {
        /// The help of `--out`, which names the file.
        out: &'static str,
    },
    /// Several files in the folder of `--out`.
    Files {
        /// Why `--into` is refused, or `None` if the files are YAML.
        not_into: Option<&'static str>,
    },
}

impl OutputForm {
    /// Why `--into` is refused, or `None` if it is allowed.
    pub fn not_into(self) -> Option<&'static str> {
        match self {
            OutputForm::Text { .. } => Some("this platform writes one text; write it with -o FILE"),
            OutputForm::Files { not_into } => not_into,
        }
    }
}

/// Files that a platform reads: arguments of the command line, or values of a repeatable flag.
#[derive(Debug)]
pub struct PlatformInput {
    /// The name of the input and of its flag.
    pub name: &'static str,
    /// Whether the files are arguments or values of a flag.
    pub flag: InputFlag,
    /// The name of a value in the help.
    pub value_name: &'static str,
    /// The help of the flag.
    pub help: &'static str,
}

/// How the command line names the files of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFlag {
    /// As arguments, at least one.
    Arguments,
    /// By a flag with this short form.
    Short(char),
    /// By a flag without a short form.
    Long,
}

/// A key of an overlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverlayKey {
    /// The path of the key, as in `helm --set`.
    pub path: String,
    /// The value in the charts, or in the user's values.
    pub from: String,
    /// The value in the overlay.
    pub to: String,
    /// Whether the value is a list. Helm replaces lists as a whole, so the overlay contains all of
    /// it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub list: bool,
}

/// The details of an overlay, for the report.
#[derive(Debug)]
pub struct OverlayDetails {
    /// The keys that the overlay sets.
    pub keys: Vec<OverlayKey>,
    /// References that the lock lacks.
    pub missing: Vec<FileFinding>,
    /// Possible references.
    pub undecided: Vec<FileFinding>,
    /// The values.
    pub values: Mapping,
}

/// Rendered configuration, with its notes and its part of the report.
#[derive(Debug, Default)]
pub struct RenderedConfig {
    /// The text or the files of the configuration.
    pub output: RenderedOutput,
    /// The changes that the configuration makes, one line each; shown if it is written to a file.
    pub changes: Vec<String>,
    /// Notes for the user, one line each.
    pub notes: Vec<String>,
    /// The items of the report.
    pub items: Vec<ReportItem>,
    /// The text for the report, if it is shorter than the output.
    pub text: Option<String>,
    /// The details of an overlay of Helm values.
    pub overlay: Option<OverlayDetails>,
    /// Why the configuration is useless, if it is. The run then fails.
    pub failure: Option<&'static str>,
}

impl RenderedConfig {
    /// Files without notes.
    pub(super) fn of_files(files: Vec<RenderedFile>) -> RenderedConfig {
        RenderedConfig {
            output: RenderedOutput::Files(files),
            ..RenderedConfig::default()
        }
    }
}

/// The output of a platform.
#[derive(Debug)]
pub enum RenderedOutput {
    /// A single text, to a file or to stdout.
    Text(String),
    /// Files, each with its path in the folder of `--out`.
    Files(Vec<RenderedFile>),
}

impl Default for RenderedOutput {
    fn default() -> RenderedOutput {
        RenderedOutput::Files(Vec::new())
    }
}
