//! A bundle that a verb of the far side reads, and when it is refused: by its signature, by what
//! was approved, and by what it lacks.

use crate::cli::shared::listing::lines;
use crate::cli::shared::remote_bundle::remote;
use crate::cli::shared::series_history::SeriesHistory;
use crate::cli::shared::{CliError, Context, input_file};
use landfall_bundle::{self as bundle, Bundle, BundleSigner, UnopenedBundle, name_bad_volumes};
use landfall_model::Digest;
use landfall_model::report::SilentProgress;
use landfall_model::sign::AllowedSigners;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What a bundle must be to be taken.
#[derive(Default)]
pub(crate) struct BundleRequirements<'a> {
    /// Its digest or its lock's fingerprint is one of these, where there are any.
    pub(crate) expect: &'a [Digest],
    /// It was packed from this lock: [`lock_fingerprints`] of it.
    pub(crate) lock: &'a [Digest],
    /// One of this file signed it. Without it, the site's file counts.
    pub(crate) signers: Option<&'a Path>,
    /// It may say of itself that items are missing.
    pub(crate) allow_partial: bool,
    /// What is left of it without a volume is taken as a partial bundle.
    pub(crate) takes_rest: bool,
    /// What was taken before: an older bundle of a series is refused.
    pub(crate) taken: Option<&'a SeriesHistory>,
}

/// A bundle that is taken.
pub(crate) struct AcceptedBundle {
    path: PathBuf,
    pub(crate) bundle: Bundle,
    /// Who signed it, where that was asked for.
    pub(crate) signed_by: Option<Vec<BundleSigner>>,
}

/// Opens the bundle at `places`.
///
/// # Errors
/// When it cannot be read, and when it is not as demanded (exit 4).
pub(crate) fn open(
    context: &Context,
    places: &[PathBuf],
    demands: &BundleRequirements<'_>,
) -> Result<AcceptedBundle, CliError> {
    let bundle = at(context, places)?.or_else(|error| {
        let UnopenedBundle { error, rest } = name_bad_volumes(error, places, &*context.progress);
        match rest.filter(|_| demands.takes_rest) {
            Some(rest) => {
                context.progress.note(&error.to_string());
                Ok(rest)
            }
            None => Err(input_file::no_bundle(places, error)),
        }
    })?;
    let path = bundle.path().to_path_buf();
    let path = &*path;
    let signed_by = signed_by(context, &bundle, demands.signers)?;
    approved(&bundle, path, demands)?;
    if let Some(taken) = demands.taken {
        taken.check(&bundle, path)?;
    }
    if !demands.allow_partial {
        refuse_partial(&bundle, path)?;
    }
    Ok(AcceptedBundle {
        path: path.into(),
        bundle,
        signed_by,
    })
}

/// Opens the bundle at `places` without any demand.
///
/// # Errors
/// When it is none.
pub(crate) fn open_any(context: &Context, places: &[PathBuf]) -> Result<Bundle, CliError> {
    let opened = at(context, places)?;
    opened.map_err(|error| {
        input_file::no_bundle(
            places,
            name_bad_volumes(error, places, &SilentProgress).error,
        )
    })
}

/// The bundle at `places`, or why its bytes are none.
fn at(
    context: &Context,
    places: &[PathBuf],
) -> Result<Result<Bundle, bundle::BundleError>, CliError> {
    if let [place] = places
        && let Some(bundle) = remote(context, place)?
    {
        return Ok(Ok(bundle));
    }
    Ok(Bundle::open_at(places))
}

/// The fingerprints that the lock at `path` may have in a bundle: of its text as this release
/// writes it, and of its bytes as they are, which another release wrote and packed.
///
/// # Errors
/// When it is no lock.
pub(crate) fn lock_fingerprints(path: Option<&Path>) -> Result<Vec<Digest>, CliError> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let (lock, text) = input_file::lock_and_text(path)?;
    Ok(vec![lock.fingerprint(), Digest::sha256(text.as_bytes())])
}

/// Who of the file `signers` signed the bundle, or of the site's where there is none; `None` where
/// nobody is named.
///
/// # Errors
/// When too few of these did (exit 4), or the file cannot be read.
pub(crate) fn signed_by(
    context: &Context,
    bundle: &Bundle,
    signers: Option<&Path>,
) -> Result<Option<Vec<BundleSigner>>, CliError> {
    let site = || {
        let site = context.site.as_ref()?;
        let (file, at_least) = site.signers.as_ref()?.rule();
        Some((site.resolve(file), at_least, site.key("signers") + ": "))
    };
    let rule = signers
        .map(|file| (file.to_path_buf(), 1, String::new()))
        .or_else(site);
    let Some((file, at_least, key)) = rule else {
        return Ok(None);
    };
    if bundle.signatures().is_empty() {
        return Err(bundle::BundleError::NotSigned {
            path: bundle.path().into(),
        }
        .into());
    }
    let allowed = AllowedSigners::load(&file).map_err(|error| {
        let failure = CliError::from(error);
        CliError {
            message: key + &failure.message,
            ..failure
        }
    })?;
    allowed
        .notes()
        .iter()
        .for_each(|note| context.progress.note(note));
    Ok(Some(bundle.signed_by(
        &allowed,
        at_least,
        jiff::Timestamp::now(),
    )?))
}

/// Whether it is the bundle that was asked for.
fn approved(
    bundle: &Bundle,
    path: &Path,
    demands: &BundleRequirements<'_>,
) -> Result<(), CliError> {
    let (path, digest, fingerprint) = (path.display(), bundle.digest(), bundle.fingerprint());
    if !demands.expect.is_empty()
        && ![digest, fingerprint]
            .iter()
            .any(|one| demands.expect.contains(one))
    {
        let expected: Vec<String> = demands.expect.iter().map(Digest::to_string).collect();
        return Err(CliError::refused(format!(
            "{path} is not what was expected\n  expected          {}\n  bundle digest     {digest}\n  \
             lock fingerprint  {fingerprint}",
            expected.join("\n                    ")
        )));
    }
    match demands
        .lock
        .first()
        .filter(|_| !demands.lock.contains(fingerprint))
    {
        Some(wanted) => Err(CliError::refused(format!(
            "{path} was packed from another lock\n  --lock            {wanted}\n  lock fingerprint  {fingerprint}"
        ))),
        None => Ok(()),
    }
}

/// Refuses a bundle that says of itself that items are missing.
fn refuse_partial(bundle: &Bundle, path: &Path) -> Result<(), CliError> {
    if bundle.partial().is_empty() {
        return Ok(());
    }
    Err(CliError::refused(format!(
        "{} is partial; take it with --allow-partial, or pack it again. It lacks\n{}",
        path.display(),
        lines(&lacks(bundle)).trim_end()
    )))
}

/// What the bundle says of itself that it lacks.
pub(crate) fn lacks(bundle: &Bundle) -> Vec<String> {
    bundle
        .partial()
        .iter()
        .map(|lost| format!("{} {}", lost.kind, lost.name))
        .collect()
}

/// Puts the bundle that `--bundle` names before those that are named without it.
pub(crate) fn name_first(
    named: Option<PathBuf>,
    bundle: &mut Option<PathBuf>,
    bases: &mut Vec<PathBuf>,
) {
    if let Some(named) = named {
        bases.splice(0..0, bundle.replace(named));
    }
}

impl AcceptedBundle {
    /// Where it stands.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The member `bundle` of reports.
    pub(crate) fn told(&self) -> Value {
        told(&self.path, &self.bundle, self.signed_by.as_deref())
    }
}

/// The member `bundle` of reports. `signer` and `signers` are there only where the signatures were
/// checked; `signer` is the first of them.
pub(crate) fn told(path: &Path, bundle: &Bundle, signed_by: Option<&[BundleSigner]>) -> Value {
    let signer = |BundleSigner { principals, key }: &BundleSigner| json!({"principals": principals, "key": key.fingerprint(), "type": key.kind()});
    let signers: Option<Vec<Value>> = signed_by.map(|all| all.iter().map(signer).collect());
    let serial = bundle.serial();
    json!({
        "path": path.display().to_string(), "digest": bundle.digest(), "lock": bundle.fingerprint(),
        "bytes": bundle.bytes(), "partial": bundle.partial(), "bases": bundle.bases(), "omitted": bundle.omitted(),
        "signed": !bundle.signatures().is_empty(), "signatures": bundle.signature_keys(),
        "signer": signers.as_ref().and_then(|all| all.first()), "signers": signers,
        "series": serial.as_ref().map(|serial| &serial.series),
        "serial": serial.as_ref().map(|serial| serial.number),
    })
}
