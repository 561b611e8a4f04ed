//! Opens an input file that may be a bundle, a lock or a receipt.

use crate::cli::shared::remote_bundle::is_remote;
use crate::cli::shared::{CliError, Context, input_file, open_bundle};
use crate::client::DeliveredBundles;
use crate::push::Receipt;
use landfall_bundle::{Bundle, DeltaBase, is_split};
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use landfall_model::document::open_input;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

/// An input file. Its content decides which kind it is.
pub(crate) enum OpenedFile {
    Bundle(Bundle),
    Lock(Lock),
    Receipt(Receipt),
}

impl OpenedFile {
    /// Opens the file at `path`, or the object that it names. A bundle must be signed by the
    /// signers of the site.
    pub(crate) fn open(context: &Context, path: &Path) -> Result<OpenedFile, CliError> {
        let opened = OpenedFile::open_base(context, path)?;
        if let OpenedFile::Bundle(bundle) = &opened {
            open_bundle::signed_by(context, bundle, None)?;
        }
        Ok(opened)
    }

    /// Like [`open`](Self::open), without checking the signatures of a bundle. See
    /// [`open_bundle::open_base`].
    pub(crate) fn open_base(context: &Context, path: &Path) -> Result<OpenedFile, CliError> {
        let paths = [path.to_path_buf()];
        let bundle = || open_bundle::open_base(context, &paths).map(OpenedFile::Bundle);
        if is_remote(path) || is_split(&paths) {
            return bundle();
        }
        let mut start = Vec::new();
        open_input(path)
            .and_then(|file| file.take(4).read_to_end(&mut start))
            .map_err(|error| CliError::usage(format!("cannot read {}: {error}", path.display())))?;
        // A lock is text, perhaps with a byte order mark. A file that is not text was meant as a
        // bundle, perhaps a damaged one: opening it gives the better error. A bundle starts with
        // the magic number of zstd, which is not UTF-8.
        let is_text = match str::from_utf8(&start) {
            Ok(text) => !text.is_empty(),
            // the four bytes may end within a character
            Err(error) => error.error_len().is_none(),
        };
        if !is_text {
            return bundle();
        }
        if start.trim_ascii_start().first() == Some(&b'{') {
            let receipt = input_file::receipt(path)?;
            context.record_input("receipt", path)?;
            return Ok(OpenedFile::Receipt(receipt));
        }
        Ok(OpenedFile::Lock(context.read_lock(path)?))
    }

    /// The bundle. It is an error if the file is something else; the message calls the file
    /// `path`.
    pub(crate) fn into_bundle(self, path: &Path) -> Result<Bundle, CliError> {
        let path = path.display();
        match self {
            OpenedFile::Bundle(bundle) => Ok(bundle),
            OpenedFile::Lock(_) => Err(CliError::usage(format!(
                "{path} is a lock, which has no content; name the bundle that was packed from it"
            ))),
            OpenedFile::Receipt(_) => Err(CliError::usage(format!(
                "{path} is a push receipt, which only a push can use; name the bundle that was \
                 pushed"
            ))),
        }
    }

    /// Adds to `delivered` the content that the owner of this file has. A receipt lists blobs
    /// without the items that need them, so it adds nothing.
    pub(crate) fn add_to(&self, delivered: &mut DeliveredBundles) -> Result<(), CliError> {
        match self {
            OpenedFile::Bundle(bundle) => {
                delivered.locks.push(bundle.available_lock()?);
                delivered.bundles.push(bundle.clone());
            }
            OpenedFile::Lock(lock) => delivered.locks.push(lock.clone()),
            OpenedFile::Receipt(_) => {}
        }
        Ok(())
    }

    /// The names of the items in a receipt; `None` for a bundle or a lock.
    pub(crate) fn pushed_items(&self) -> Option<BTreeSet<String>> {
        match self {
            OpenedFile::Receipt(receipt) => {
                let names = receipt.items.iter().map(|item| item.name.clone());
                Some(names.collect())
            }
            _ => None,
        }
    }

    /// The base for a delta that is packed against this file.
    pub(crate) fn into_base(self) -> DeltaBase {
        match self {
            OpenedFile::Bundle(bundle) => bundle.as_base(),
            OpenedFile::Lock(lock) => DeltaBase::lock(&lock),
            OpenedFile::Receipt(receipt) => {
                DeltaBase::receipt(receipt.lock, receipt.registry, receipt.blobs)
            }
        }
    }

    /// The fingerprint of the lock, if the owner of this file has all content of the lock; `None`
    /// for a partial bundle.
    pub(crate) fn complete_lock(&self) -> Option<Digest> {
        match self {
            OpenedFile::Bundle(bundle) if !bundle.partial().is_empty() => None,
            OpenedFile::Bundle(bundle) => Some(bundle.fingerprint().clone()),
            OpenedFile::Lock(lock) => Some(lock.fingerprint()),
            OpenedFile::Receipt(receipt) => Some(receipt.lock.clone()),
        }
    }
}
