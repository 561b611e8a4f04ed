//! What a platform is: how the command line offers it, and what it writes.

use super::error::RenderError;
use super::rendered_file::RenderedFile;
use super::request::RenderRequest;
use super::settings::PlatformSetting;
use landfall_model::Consumer;
use landfall_model::report::ReportItem;
use serde_json::Value;

/// A platform that `landfall render` writes configuration for.
pub trait RenderPlatform: Sync {
    /// How the command line offers it.
    fn spec(&self) -> &'static PlatformSpec;

    /// Whether it needs the address of a registry. A platform that does not has no use for
    /// [`RenderRequest::mapping`].
    fn needs_registry(&self) -> bool {
        true
    }

    /// Whether a platform that reads the lock has a use without one.
    fn works_without_lock(&self) -> bool {
        false
    }

    /// Its configuration.
    ///
    /// # Errors
    /// When an input cannot be read, or no configuration follows from them.
    fn render(&self, request: &RenderRequest<'_>) -> Result<RenderedConfig, RenderError>;
}

/// How the command line offers a platform.
#[derive(Debug)]
pub struct PlatformSpec {
    /// Its word on the command line.
    pub name: &'static str,
    /// What it writes, in one line.
    pub about: &'static str,
    /// More about it, for `--help`.
    pub details: &'static str,
    /// The files that it reads besides the lock.
    pub inputs: &'static [PlatformInput],
    /// What it takes by `--set`.
    pub settings: &'static [PlatformSetting],
    /// Who asks the registry where this configuration is used: every locked image must have the
    /// names that it asks for.
    pub consumer: Option<Consumer>,
    /// Whether it reads the lock.
    pub reads_lock: bool,
    /// What it writes.
    pub writes: OutputForm,
}

/// What a platform writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputForm {
    /// One text, to a file or to stdout.
    Text {
        /// The help of `--out`.
        out: &'static str,
    },
    /// Files in a folder.
    Files {
        /// Why `--into` is refused: `None` where the files are YAML.
        not_into: Option<&'static str>,
    },
}

impl OutputForm {
    /// Why `--into` is refused, where it is.
    pub fn not_into(self) -> Option<&'static str> {
        match self {
            OutputForm::Text { .. } => Some("this platform writes one text; write it with -o FILE"),
            OutputForm::Files { not_into } => not_into,
        }
    }
}

/// Files that a platform reads: arguments of the command line, or the values of a flag that may be
/// repeated.
#[derive(Debug)]
pub struct PlatformInput {
    /// Its name, and that of the flag.
    pub name: &'static str,
    /// How it stands on the command line.
    pub flag: InputFlag,
    /// The word for one file in the help.
    pub value_name: &'static str,
    /// Its help.
    pub help: &'static str,
}

/// How an input stands on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFlag {
    /// As arguments, of which there is at least one.
    Arguments,
    /// As a flag with this short form.
    Short(char),
    /// As a flag without one.
    Long,
}

/// The configuration, and what there is to say about it.
#[derive(Debug, Default)]
pub struct RenderedConfig {
    /// The configuration.
    pub output: RenderedOutput,
    /// What it changes, one line each: shown where the configuration goes to a file.
    pub changes: Vec<String>,
    /// What else there is to say, one line each.
    pub notes: Vec<String>,
    /// The items of the report.
    pub items: Vec<ReportItem>,
    /// Further members of the JSON document.
    pub members: Vec<(&'static str, Value)>,
    /// Why the configuration is useless, where it is.
    pub failure: Option<&'static str>,
}

/// What a platform made.
#[derive(Debug)]
pub enum RenderedOutput {
    /// One text.
    Text(String),
    /// Files, each with its path in the folder of `--out`.
    Files(Vec<RenderedFile>),
}

impl Default for RenderedOutput {
    fn default() -> RenderedOutput {
        RenderedOutput::Files(Vec::new())
    }
}
