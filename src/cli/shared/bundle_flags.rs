//! The flags and arguments that name what a verb reads: bundles, locks, content, manifests.

use super::bundle_with_bases::{BundleWithBases, optional_store};
use super::image_facts::ImageSignatures;
use super::open_bundle::{AcceptedBundle, BundleRequirements, is_remote, open, put_first};
use super::stale_lock::note_stale;
use super::{CliError, Context, input_file, open_bundle};
use clap::Args;
use landfall_bundle::{Bundle, is_split, volume_locations};
use landfall_content::{BlobRead, LockEntry};
use landfall_item::lockfile::{FILE_NAME, Lock};
use landfall_model::document::open_input;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The flags that name the content that a delta omits.
#[derive(Args, Clone, Default)]
pub(crate) struct BaseFlags {
    /// A base that the delta was packed against (may be repeated)
    #[arg(long = "base", value_name = "BUNDLE")]
    bases: Vec<PathBuf>,
    /// Also use the store for content that a delta omits
    #[arg(long)]
    with_store: bool,
}

impl BaseFlags {
    fn is_given(&self) -> bool {
        self.with_store || !self.bases.is_empty()
    }

    /// The content of the bundle, of its bases, and of the store if it is used.
    fn content(&self, context: &Context, bundle: Bundle) -> Result<Arc<dyn BlobRead>, CliError> {
        let store = optional_store(context, self.with_store)?;
        Ok(BundleWithBases::new(context, bundle, &self.bases, store, false)?.blobs)
    }

    /// The same flags on another command line.
    fn as_arguments(&self) -> impl Iterator<Item = String> {
        let bases = self.bases.iter();
        let bases = bases.flat_map(|base| ["--base".into(), base.display().to_string()]);
        let with_store = self.with_store.then(|| "--with-store".into());
        bases.chain(with_store)
    }
}

/// The flags that name one bundle. It may be partial, and its volumes may be in several folders.
#[derive(Args)]
pub(crate) struct BundleFlags {
    /// The bundle. If its volumes are in several folders, name one volume in each
    /// folder, or the folders
    #[arg(value_name = "BUNDLE", required_unless_present = "named")]
    bundle: Option<PathBuf>,
    /// Other volumes of the bundle
    #[arg(value_name = "VOLUME|FOLDER")]
    more: Vec<PathBuf>,
    /// The bundle, instead of the first argument
    #[arg(long = "bundle", value_name = "BUNDLE")]
    named: Option<PathBuf>,
    #[command(flatten)]
    bases: BaseFlags,
}

impl BundleFlags {
    /// Opens the bundle, and the content of it and its bases. It is an error if an argument does
    /// not belong to the bundle.
    pub(crate) fn open(
        mut self,
        context: &Context,
    ) -> Result<(AcceptedBundle, Arc<dyn BlobRead>), CliError> {
        put_first(self.named, &mut self.bundle, &mut self.more);
        let locations = volume_locations(self.bundle.unwrap_or_default(), &mut self.more);
        if let Some(other) = self.more.first() {
            let other = other.display();
            let first = locations[0].display();
            return Err(CliError::usage(format!(
                "{other} contains no volume of {first}; name only one bundle"
            )));
        }
        let requirements = BundleRequirements {
            allow_partial: true,
            ..BundleRequirements::default()
        };
        let accepted = open(context, &locations, &requirements)?;
        let content = self.bases.content(context, accepted.bundle.clone())?;
        Ok((accepted, content))
    }
}

/// The flags that name a bundle, or a lock whose content is in the store.
#[derive(Args)]
pub(crate) struct ContentFlags {
    /// The bundle to read, or a lock whose content is in the store
    #[arg(value_name = "BUNDLE|LOCK", group = "carried")]
    bundle: Option<PathBuf>,
    /// The bundle, instead of the argument
    #[arg(long = "bundle", value_name = "BUNDLE", group = "carried")]
    flag: Option<PathBuf>,
    /// The lock whose content is in the store
    #[arg(long, value_name = "FILE", default_value = FILE_NAME, conflicts_with = "carried")]
    lock: PathBuf,
    /// A base that the delta was packed against (may be repeated)
    #[arg(long, value_name = "BUNDLE", requires = "carried")]
    base: Vec<PathBuf>,
    /// Also use the store for content that a delta omits
    #[arg(long, requires = "carried")]
    with_store: bool,
    /// Continue without the items that are missing
    #[arg(long)]
    pub(crate) allow_partial: bool,
}

impl ContentFlags {
    /// Opens the lock and the content. A delta, its bases and the store of `--with-store` must
    /// together have all content of the entries that are `wanted`, and these entries must be signed
    /// as the site demands.
    pub(crate) fn open(
        &self,
        context: &Context,
        wanted: impl Fn(&LockEntry) -> bool,
    ) -> Result<(Lock, Arc<dyn BlobRead>), CliError> {
        let (lock, blobs) = self.open_content(context, &wanted)?;
        let site = context.site.as_ref();
        if let Some(site) = site.filter(|site| !site.verify.is_empty()) {
            let mut delivered = lock.clone();
            delivered.retain(|item| wanted(&item.entry()));
            ImageSignatures::verify(Some(site), &delivered, blobs.clone())?;
        }
        Ok((lock, blobs))
    }

    fn open_content(
        &self,
        context: &Context,
        wanted: impl Fn(&LockEntry) -> bool,
    ) -> Result<(Lock, Arc<dyn BlobRead>), CliError> {
        let Some(path) = self.bundle.as_ref().or(self.flag.as_ref()) else {
            return Ok((input_file::lock(&self.lock)?, context.store()?));
        };
        if input_file::is_lock(path) {
            return Ok((input_file::lock(path)?, context.store()?));
        }
        let requirements = BundleRequirements {
            allow_partial: self.allow_partial,
            ..BundleRequirements::default()
        };
        let bundle = open_bundle::open(context, std::slice::from_ref(path), &requirements)?.bundle;
        let chain = BundleWithBases::new(
            context,
            bundle,
            &self.base,
            optional_store(context, self.with_store)?,
            false,
        )?;
        let lock = chain.bundle.available_lock()?;
        chain.check_complete(lock.entries().iter().filter(|entry| wanted(entry)))?;
        Ok((lock, chain.blobs))
    }
}

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
    #[command(flatten)]
    bases: BaseFlags,
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

    /// Whether a lock or bundle is named.
    pub(crate) fn is_given(&self) -> bool {
        self.lock.is_some() || self.bundle.is_some()
    }

    /// Whether a lock or bundle is named, or landfall.lock exists.
    pub(crate) fn is_named(&self) -> bool {
        self.is_given() || Path::new(FILE_NAME).exists()
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
        arguments.extend(self.bases.as_arguments());
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
            Some(path) => self
                .bases
                .content(context, self.open_bundle(context, path)?),
            None => Ok(context.store()?),
        }
    }

    /// Reads the lock. It is an error if no lock or bundle is named and there is no landfall.lock.
    pub(crate) fn load(&self, context: &Context) -> Result<Lock, CliError> {
        if self.bundle.is_none() && self.bases.is_given() {
            return Err(CliError::usage(
                "--base and --with-store are for a delta, and no bundle is named",
            )
            .with_help("name the delta with --bundle BUNDLE"));
        }
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

/// The arguments that name a lock.
#[derive(Args)]
pub(crate) struct LockArgs {
    /// The lock [default: landfall.lock]
    #[arg(value_name = "LOCK")]
    argument: Option<PathBuf>,
    /// The lock, instead of the argument
    #[arg(long, value_name = "FILE", conflicts_with = "argument")]
    lock: Option<PathBuf>,
}

impl LockArgs {
    pub(crate) fn path(&self) -> &Path {
        self.named().unwrap_or(Path::new(FILE_NAME))
    }

    /// The path that was given without a flag.
    pub(crate) fn argument(&self) -> Option<&Path> {
        self.argument.as_deref()
    }

    /// The path that was given, if any.
    pub(crate) fn named(&self) -> Option<&Path> {
        self.argument.as_deref().or(self.lock.as_deref())
    }

    /// Reads the lock, and prints a note if a manifest in its folder names more items.
    pub(crate) fn load(&self, context: &Context) -> Result<Lock, CliError> {
        let lock = context.read_lock(self.path())?;
        note_stale(self.path(), &lock, &*context.progress);
        Ok(lock)
    }
}

// The manifests that a verb reads: arguments, or values of `-f`.

/// The arguments that name manifests.
#[derive(Args)]
pub(crate) struct ManifestArgs {
    /// A manifest, a folder of manifests, or a plain list of images (may be repeated)
    #[arg(value_name = "MANIFEST|DIR|LIST")]
    pub(crate) arguments: Vec<PathBuf>,
    /// A manifest, folder or list, instead of an argument (may be repeated)
    #[arg(short = 'f', long = "file", value_name = "MANIFEST|DIR|LIST", num_args = 1..)]
    manifests: Vec<PathBuf>,
}

impl ManifestArgs {
    /// The paths, those of `-f` first. It is an error if there are none.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>, CliError> {
        let paths: Vec<PathBuf> = self
            .manifests
            .iter()
            .chain(&self.arguments)
            .cloned()
            .collect();
        if paths.is_empty() {
            return Err(CliError::usage("no manifest is named").with_help(
                "name one, as in -f manifest.yaml; `landfall init` writes a first one",
            ));
        }
        Ok(paths)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.manifests.is_empty() && self.arguments.is_empty()
    }
}
