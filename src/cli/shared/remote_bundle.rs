//! Bundles in an object store, named by a URL such as `s3://bucket/bundle.tar.zst`.

use crate::cli::shared::{CliError, Context};
use crate::client::ClientError;
use landfall_bundle::Bundle;
use landfall_content::bucket::{Bucket, BucketLocation, OpenObject};
use landfall_model::Limits;
use landfall_model::report::TransferSide;
use std::path::Path;
use std::sync::Arc;

/// Whether `path` names an object and not a file.
pub(crate) fn is_remote(path: &Path) -> bool {
    path.to_str().is_some_and(BucketLocation::has_scheme)
}

/// Opens the bundle at `path` by reading only its end; `None` if `path` is a file.
pub(crate) fn remote(context: &Context, path: &Path) -> Result<Option<Bundle>, CliError> {
    open_object(context, path)?
        .map(|object| Ok(Bundle::open_object(Arc::new(object))?))
        .transpose()
}

/// Looks up the object at `path`; `None` if `path` is a file.
pub(crate) fn open_object(context: &Context, path: &Path) -> Result<Option<OpenObject>, CliError> {
    let Some((bucket, name)) = object(context, path)? else {
        return Ok(None);
    };
    OpenObject::open(&bucket, &name)
        .map(Some)
        .map_err(|error| CliError::from(ClientError::from(error)).on(TransferSide::Source))
}

/// The bucket folder and the name of the object at `path`; `None` if `path` is a file.
pub(crate) fn object(context: &Context, path: &Path) -> Result<Option<(Bucket, String)>, CliError> {
    let Some(text) = path
        .to_str()
        .filter(|text| BucketLocation::has_scheme(text))
    else {
        return Ok(None);
    };
    let location: BucketLocation = text
        .parse()
        .map_err(|error| CliError::usage(format!("{error}")))?;
    let (folder, name) = location.split();
    if name.is_empty() {
        return Err(CliError::usage(format!(
            "{text} is a bucket; name a bundle in it"
        )));
    }
    // `landfall serve` reads one range for each request in progress. These requests may exceed the
    // usual limit of connections to one host.
    let limits = Limits {
        per_host: context.limits.requests.max(context.limits.per_host),
        ..context.limits
    };
    Ok(Some((
        context.additional_client(limits)?.bucket(&folder)?,
        name.to_owned(),
    )))
}
