//! Which lock says what is known: shared by the verbs that compare references with it.

use crate::cli::shared::open_bundle::BundleRequirements;
use crate::cli::shared::remote_bundle::is_remote;
use crate::cli::shared::{CliError, Context, input_file, open_bundle};
use clap::Args;
use landfall_bundle::is_split;
use landfall_content::BlobRead;
use landfall_item::lockfile::{FILE_NAME, Lock};
use landfall_model::document::open_input;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether a bundle stands here, told by its first bytes: no chart and no text begins like one.
fn is_bundle(path: &Path) -> bool {
    let mut first = [0; 4];
    let mut is_zstd = || {
        let read = open_input(path).and_then(|mut file| file.read_exact(&mut first));
        read.is_ok() && first == zstd::zstd_safe::MAGICNUMBER.to_le_bytes()
    };
    if is_remote(path) {
        return true;
    }
    if path.is_file() {
        is_zstd()
    } else {
        !path.exists() && is_split(&[path.to_path_buf()])
    }
}

/// Flags that name a lock.
#[derive(Args)]
pub(crate) struct LockFlags {
    /// The lock that says which references are known [default: landfall.lock]
    #[arg(long, value_name = "FILE", conflicts_with = "bundle")]
    lock: Option<PathBuf>,
    /// The bundle whose lock says it
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Take a bundle that says of itself that items are missing; references to these are left
    #[arg(long)]
    allow_partial: bool,
}

impl LockFlags {
    /// The same with the bundle or the lock that is named by its place, if there is one.
    pub(crate) fn at(self, place: Option<PathBuf>) -> LockFlags {
        match place {
            Some(place) if is_bundle(&place) => LockFlags {
                bundle: Some(place),
                ..self
            },
            Some(place) => LockFlags {
                lock: Some(place),
                ..self
            },
            None => self,
        }
    }

    /// As [`Locked::load`], and `paths` without the bundle that is named among them in place of
    /// `--bundle`.
    ///
    /// # Errors
    /// As there; and when several bundles are named.
    pub(crate) fn load_beside(
        &self,
        context: &Context,
        paths: &[PathBuf],
    ) -> Result<(Lock, Vec<PathBuf>), CliError> {
        let may_be_named = self.lock.is_none() && self.bundle.is_none();
        let (bundles, others): (Vec<_>, Vec<_>) = paths
            .iter()
            .cloned()
            .partition(|path| may_be_named && is_bundle(path));
        match &bundles[..] {
            [] => Ok((self.load(context)?, others)),
            [bundle] => {
                let named = LockFlags {
                    bundle: Some(bundle.clone()),
                    lock: None,
                    allow_partial: self.allow_partial,
                };
                Ok((named.load(context)?, others))
            }
            [_, ..] => Err(CliError::usage(
                "several bundles are named; say which one counts with --bundle BUNDLE",
            )),
        }
    }

    /// Whether a lock is named, or landfall.lock is there.
    pub(crate) fn is_named(&self) -> bool {
        self.lock.is_some() || self.bundle.is_some() || Path::new(FILE_NAME).exists()
    }

    /// The flags by which another verb takes the same lock; `paths` are those of
    /// [`Locked::load_beside`].
    pub(crate) fn words(&self, paths: &[PathBuf]) -> Vec<String> {
        let bundle = self
            .bundle
            .as_ref()
            .or_else(|| paths.iter().find(|path| is_bundle(path)));
        let named = match (&self.lock, bundle) {
            (Some(lock), _) => vec!["--lock".into(), lock.display().to_string()],
            (None, Some(bundle)) => vec!["--bundle".into(), bundle.display().to_string()],
            (None, None) => Vec::new(),
        };
        named
            .into_iter()
            .chain(self.allow_partial.then(|| "--allow-partial".into()))
            .collect()
    }

    /// Whether there is content of what is locked: a bundle, or a store that has been made.
    pub(crate) fn has_content(&self, context: &Context) -> bool {
        self.bundle.is_some() || context.has_store()
    }

    /// The content of what is locked; `paths` are those of [`Locked::load_beside`].
    ///
    /// # Errors
    /// When the bundle or the store cannot be read.
    pub(crate) fn content(
        &self,
        context: &Context,
        paths: &[PathBuf],
    ) -> Result<Arc<dyn BlobRead>, CliError> {
        let bundle = self
            .bundle
            .as_ref()
            .or_else(|| paths.iter().find(|path| is_bundle(path)));
        let Some(bundle) = bundle.filter(|_| self.lock.is_none()) else {
            return Ok(context.store()?);
        };
        let demands = BundleRequirements {
            allow_partial: self.allow_partial,
            ..BundleRequirements::default()
        };
        Ok(Arc::new(
            open_bundle::open(context, std::slice::from_ref(bundle), &demands)?.bundle,
        ))
    }

    /// The lock that decides which references are known.
    ///
    /// # Errors
    /// When none is named and there is no landfall.lock, or when it cannot be read.
    pub(crate) fn load(&self, context: &Context) -> Result<Lock, CliError> {
        match (&self.lock, &self.bundle) {
            (Some(path), _) => Ok(input_file::lock(path)?),
            (None, Some(bundle)) => {
                let demands = BundleRequirements {
                    allow_partial: self.allow_partial,
                    ..BundleRequirements::default()
                };
                Ok(
                    open_bundle::open(context, std::slice::from_ref(bundle), &demands)?
                        .bundle
                        .held()?,
                )
            }
            (None, None) if Path::new(FILE_NAME).exists() => {
                Ok(input_file::lock(Path::new(FILE_NAME))?)
            }
            (None, None) => Err(CliError::usage(
                "which references are known? name a lock with --lock FILE, or a bundle with --bundle BUNDLE",
            )),
        }
    }
}
