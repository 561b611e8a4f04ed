//! The flags that name a lock or a bundle, for verbs that compare references with a lock.

use crate::cli::shared::open_bundle::BundleRequirements;
use crate::cli::shared::remote_bundle::is_remote;
use crate::cli::shared::{CliError, Context, input_file, open_bundle};
use clap::Args;
use landfall_bundle::{Bundle, is_split};
use landfall_content::BlobRead;
use landfall_item::lockfile::{FILE_NAME, Lock};
use landfall_model::document::open_input;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether `path` is a bundle. The first bytes of a bundle differ from those of charts and texts.
/// An object in an object store is assumed to be a bundle.
fn is_bundle(path: &Path) -> bool {
    if is_remote(path) {
        return true;
    }
    // A split bundle has no file with its own name.
    if !path.is_file() {
        return !path.exists() && is_split(&[path.to_path_buf()]);
    }
    let mut start = [0; 4];
    let read = open_input(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == zstd::zstd_safe::MAGICNUMBER.to_le_bytes()
}

/// The flags that name a lock or a bundle.
#[derive(Args)]
pub(crate) struct LockFlags {
    /// The lock that lists what is mirrored [default: landfall.lock]
    #[arg(long, value_name = "FILE", conflicts_with = "bundle")]
    lock: Option<PathBuf>,
    /// A bundle, whose lock is used
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Accept a partial bundle; items that it lacks count as not locked
    #[arg(long)]
    allow_partial: bool,
}

impl LockFlags {
    /// Adds the bundle or lock that is named by an argument instead of a flag.
    pub(crate) fn with_argument(self, argument: Option<PathBuf>) -> LockFlags {
        match argument {
            Some(path) if is_bundle(&path) => LockFlags {
                bundle: Some(path),
                ..self
            },
            Some(path) => LockFlags {
                lock: Some(path),
                ..self
            },
            None => self,
        }
    }

    /// Like [`LockFlags::load`], for a verb whose arguments may include a bundle instead of
    /// `--bundle`. Returns the lock and the other arguments.
    pub(crate) fn load_with_paths(
        &self,
        context: &Context,
        paths: &[PathBuf],
    ) -> Result<(Lock, Vec<PathBuf>), CliError> {
        let may_be_argument = self.lock.is_none() && self.bundle.is_none();
        let (bundles, others): (Vec<_>, Vec<_>) = paths
            .iter()
            .cloned()
            .partition(|path| may_be_argument && is_bundle(path));
        match &bundles[..] {
            [] => Ok((self.load(context)?, others)),
            [bundle] => Ok((self.load_bundle(context, bundle)?, others)),
            [_, ..] => Err(CliError::usage("several bundles are named")
                .with_help("name the one to use with --bundle BUNDLE")),
        }
    }

    /// Whether a lock or bundle is named, or landfall.lock exists.
    pub(crate) fn is_named(&self) -> bool {
        self.lock.is_some() || self.bundle.is_some() || Path::new(FILE_NAME).exists()
    }

    /// The flags that name the same lock on another command line. `paths` are the arguments of
    /// [`LockFlags::load_with_paths`].
    pub(crate) fn as_arguments(&self, paths: &[PathBuf]) -> Vec<String> {
        let mut arguments = Vec::new();
        if let Some(lock) = &self.lock {
            arguments.extend(["--lock".into(), lock.display().to_string()]);
        } else if let Some(bundle) = self.named_bundle(paths) {
            arguments.extend(["--bundle".into(), bundle.display().to_string()]);
        }
        if self.allow_partial {
            arguments.push("--allow-partial".into());
        }
        arguments
    }

    /// Whether content is available: a bundle, or a store that exists.
    pub(crate) fn has_content(&self, context: &Context) -> bool {
        self.bundle.is_some() || context.has_store()
    }

    /// Opens the content: the bundle, or the store. `paths` are the arguments of
    /// [`LockFlags::load_with_paths`].
    pub(crate) fn content(
        &self,
        context: &Context,
        paths: &[PathBuf],
    ) -> Result<Arc<dyn BlobRead>, CliError> {
        match self.named_bundle(paths).filter(|_| self.lock.is_none()) {
            Some(path) => Ok(Arc::new(self.open_bundle(context, path)?)),
            None => Ok(context.store()?),
        }
    }

    /// Reads the lock. It is an error if no lock or bundle is named and there is no landfall.lock.
    pub(crate) fn load(&self, context: &Context) -> Result<Lock, CliError> {
        let default = Path::new(FILE_NAME);
        if let Some(path) = &self.lock {
            input_file::lock(path)
        } else if let Some(path) = &self.bundle {
            self.load_bundle(context, path)
        } else if default.exists() {
            input_file::lock(default)
        } else {
            Err(
                CliError::usage("no lock is named, and there is no landfall.lock").with_help(
                    "name the lock or bundle that lists the mirrored references: --lock FILE or \
                     --bundle BUNDLE",
                ),
            )
        }
    }

    /// Opens the bundle, if one is named.
    pub(crate) fn bundle(&self, context: &Context) -> Result<Option<Bundle>, CliError> {
        let path = self.bundle.as_ref().filter(|_| self.lock.is_none());
        path.map(|path| self.open_bundle(context, path)).transpose()
    }

    fn load_bundle(&self, context: &Context, path: &Path) -> Result<Lock, CliError> {
        Ok(self.open_bundle(context, path)?.available_lock()?)
    }

    fn open_bundle(&self, context: &Context, path: &Path) -> Result<Bundle, CliError> {
        let requirements = BundleRequirements {
            allow_partial: self.allow_partial,
            ..BundleRequirements::default()
        };
        Ok(open_bundle::open(context, &[path.to_path_buf()], &requirements)?.bundle)
    }

    fn named_bundle<'a>(&'a self, paths: &'a [PathBuf]) -> Option<&'a PathBuf> {
        self.bundle
            .as_ref()
            .or_else(|| paths.iter().find(|path| is_bundle(path)))
    }
}
