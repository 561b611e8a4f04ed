//! What a platform is: how the command line offers it, and what it writes.

use super::error::RenderError;
use crate::lockfile::Lock;
use crate::model::{Limits, Mapping};
use crate::report::Item;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A platform that `landfall render` writes configuration for.
pub(crate) trait Platform: Sync {
    /// How the command line offers it.
    fn spec(&self) -> &'static Spec;

    /// Its configuration.
    ///
    /// # Errors
    /// When an input cannot be read, or no configuration follows from them.
    fn render(&self, request: &Request<'_>) -> Result<Rendered, RenderError>;
}

/// How the command line offers a platform.
#[derive(Debug)]
pub(crate) struct Spec {
    /// Its word on the command line.
    pub name: &'static str,
    /// What it writes, in one line.
    pub about: &'static str,
    /// More about it, for `--help`.
    pub details: &'static str,
    /// The files that it reads besides the lock.
    pub inputs: &'static [Input],
    /// The help of `--out`.
    pub out: &'static str,
}

/// Files that a platform reads: arguments of the command line, or the values of a flag that may be repeated.
#[derive(Debug)]
pub(crate) struct Input {
    /// Its name, and that of the flag.
    pub name: &'static str,
    /// The short form of its flag. Without one, the files are arguments, and there is at least one.
    pub flag: Option<char>,
    /// The word for one file in the help.
    pub value_name: &'static str,
    /// Its help.
    pub help: &'static str,
}

/// What to write configuration from.
#[derive(Debug)]
pub(crate) struct Request<'r> {
    /// The lock.
    pub lock: &'r Lock,
    /// Where its items go.
    pub mapping: &'r Mapping,
    /// The day, `YYYY-MM-DD`.
    pub today: &'r str,
    /// Bounds of what is read.
    pub limits: &'r Limits,
    /// The files that the user named, by the names of the platform's inputs.
    pub inputs: &'r BTreeMap<&'static str, Vec<PathBuf>>,
}

impl Request<'_> {
    /// The files of the input `name`.
    pub(crate) fn paths(&self, name: &str) -> &[PathBuf] {
        self.inputs.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The configuration, and what there is to say about it.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    /// The configuration.
    pub text: String,
    /// What it changes, one line each: shown where the configuration goes to a file.
    pub changes: Vec<String>,
    /// What else there is to say, one line each.
    pub notes: Vec<String>,
    /// The items of the report.
    pub items: Vec<Item>,
    /// Further members of the JSON document.
    pub members: Vec<(&'static str, Value)>,
    /// Why the configuration is useless, where it is.
    pub failure: Option<&'static str>,
}
