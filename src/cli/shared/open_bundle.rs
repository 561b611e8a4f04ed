//! A bundle that a verb of the far side reads, and when it is refused: by its signature, by what was
//! approved, and by what it lacks.

use crate::bundle::{self, Bundle, SignedBy, name_bad_volumes};
use crate::cli::shared::listing::lines;
use crate::cli::shared::{Context, Failure, input_file};
use crate::lockfile::Lock;
use crate::model::Digest;
use crate::sign::AllowedSigners;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What a bundle must be to be taken.
#[derive(Default)]
pub(crate) struct Demands<'a> {
    /// Its digest or its lock's fingerprint is one of these, where there are any.
    pub(crate) expect: &'a [Digest],
    /// It was packed from this lock.
    pub(crate) lock: Option<&'a Lock>,
    /// One of this file signed it. Without it, the site's file counts.
    pub(crate) signers: Option<&'a Path>,
    /// It may say of itself that items are missing.
    pub(crate) allow_partial: bool,
}

/// A bundle that is taken.
pub(crate) struct Carried {
    path: PathBuf,
    pub(crate) bundle: Bundle,
    /// Who signed it, where that was asked for.
    pub(crate) signed_by: Option<SignedBy>,
}

/// Opens the bundle at `path`.
///
/// # Errors
/// When it cannot be read, and when it is not as demanded (exit 4).
pub(crate) fn open(context: &Context, path: &Path, demands: &Demands<'_>) -> Result<Carried, Failure> {
    let bundle = Bundle::open(path)
        .map_err(|error| input_file::no_bundle(path, name_bad_volumes(error, path, &*context.progress)))?;
    let signed_by = signed_by(context, &bundle, demands.signers)?;
    approved(&bundle, path, demands)?;
    if !demands.allow_partial {
        refuse_partial(&bundle, path)?;
    }
    Ok(Carried { path: path.into(), bundle, signed_by })
}

/// Who of the file `signers` signed the bundle, or of the site's where there is none; `None` where nobody is named.
///
/// # Errors
/// When nobody of these did (exit 4), or the file cannot be read.
pub(crate) fn signed_by(
    context: &Context,
    bundle: &Bundle,
    signers: Option<&Path>,
) -> Result<Option<SignedBy>, Failure> {
    let site = || context.site.as_ref().and_then(|site| Some(site.resolve(site.signers.as_ref()?)));
    let Some(file) = signers.map(Path::to_path_buf).or_else(site) else { return Ok(None) };
    if bundle.signature().is_none() {
        return Err(bundle::Error::NotSigned { path: bundle.path().into() }.into());
    }
    let allowed = AllowedSigners::load(&file)?;
    allowed.notes().iter().for_each(|note| context.progress.note(note));
    Ok(Some(bundle.signed_by(&allowed, jiff::Timestamp::now())?))
}

/// Whether it is the bundle that was asked for.
fn approved(bundle: &Bundle, path: &Path, demands: &Demands<'_>) -> Result<(), Failure> {
    let (path, digest, fingerprint) = (path.display(), bundle.digest(), bundle.fingerprint());
    if !demands.expect.is_empty() && ![digest, fingerprint].iter().any(|one| demands.expect.contains(one)) {
        let expected: Vec<String> = demands.expect.iter().map(Digest::to_string).collect();
        return Err(Failure::refused(format!(
            "{path} is not what was expected\n  expected          {}\n  bundle digest     {digest}\n  \
             lock fingerprint  {fingerprint}",
            expected.join("\n                    ")
        )));
    }
    match demands.lock.map(Lock::fingerprint).filter(|wanted| wanted != fingerprint) {
        Some(wanted) => Err(Failure::refused(format!(
            "{path} was packed from another lock\n  --lock            {wanted}\n  lock fingerprint  {fingerprint}"
        ))),
        None => Ok(()),
    }
}

/// Refuses a bundle that says of itself that items are missing.
fn refuse_partial(bundle: &Bundle, path: &Path) -> Result<(), Failure> {
    if bundle.partial().is_empty() {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "{} is partial; take it with --allow-partial, or pack it again. It lacks\n{}",
        path.display(),
        lines(&lacks(bundle)).trim_end()
    )))
}

/// What the bundle says of itself that it lacks.
pub(crate) fn lacks(bundle: &Bundle) -> Vec<String> {
    bundle.partial().iter().map(|lost| format!("{} {}", lost.kind, lost.name)).collect()
}

impl Carried {
    /// The member `bundle` of reports.
    pub(crate) fn told(&self) -> Value {
        told(&self.path, &self.bundle, self.signed_by.as_ref())
    }
}

/// The member `bundle` of reports. `signer` is there only where the signature was checked.
pub(crate) fn told(path: &Path, bundle: &Bundle, signed_by: Option<&SignedBy>) -> Value {
    let signer = signed_by.map(|SignedBy { principals, key }| {
        json!({"principals": principals, "key": key.fingerprint(), "type": key.kind()})
    });
    json!({
        "path": path.display().to_string(), "digest": bundle.digest(), "lock": bundle.fingerprint(),
        "bytes": bundle.bytes(), "partial": bundle.partial(), "bases": bundle.bases(), "omitted": bundle.omitted(),
        "signed": bundle.signature().is_some(),
        "signer": signer,
    })
}
