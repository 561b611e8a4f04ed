//! Opens a bundle and checks it: its signatures, its digest or lock, its series, and that it is
//! complete.

use super::listing::lines;
use super::verb_report::{BundleMember, SerialMember, SignerRow};
use super::{CliError, Context, ReportMember, input_file};
use landfall_bundle as bundle;
use landfall_bundle::{Bundle, BundleSigner, Serial, UnopenedBundle, name_bad_volumes};
use landfall_content::bucket::{Bucket, BucketLocation, OpenObject};
use landfall_model::report::{SilentProgress, TransferSide};
use landfall_model::sign::AllowedSigners;
use landfall_model::{Digest, Limits};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The requirements that a bundle must meet to be accepted.
#[derive(Default)]
pub(crate) struct BundleRequirements<'a> {
    /// If not empty: the digest of the bundle or the fingerprint of its lock must be one of these.
    pub(crate) expect: &'a [Digest],
    /// If not empty: the lock of the bundle must have one of these fingerprints. See
    /// [`lock_fingerprints`].
    pub(crate) lock: &'a [Digest],
    /// The file of allowed signers. Without it, the one of the site is used.
    pub(crate) signers: Option<&'a Path>,
    pub(crate) allow_partial: bool,
    /// If a volume is missing or damaged, accept the content that can be read without it as a
    /// partial bundle.
    pub(crate) takes_rest: bool,
    /// The previously accepted bundles: an older bundle of a series is refused.
    pub(crate) history: Option<&'a SeriesHistory>,
}

/// A bundle that was accepted.
pub(crate) struct AcceptedBundle {
    pub(crate) path: PathBuf,
    pub(crate) bundle: Bundle,
    /// Who signed the bundle, if signatures were checked.
    signed_by: Option<Vec<BundleSigner>>,
}

/// Opens the bundle at `locations`, and refuses it if it does not meet the requirements.
pub(crate) fn open(
    context: &Context,
    locations: &[PathBuf],
    requirements: &BundleRequirements<'_>,
) -> Result<AcceptedBundle, CliError> {
    let bundle = try_open(context, locations)?.or_else(|error| {
        let UnopenedBundle { error, rest } = name_bad_volumes(error, locations, &*context.progress);
        match rest.filter(|_| requirements.takes_rest) {
            Some(rest) => {
                context.progress.note(&error.to_string());
                Ok(rest)
            }
            None => Err(input_file::bundle_error(locations, error)),
        }
    })?;
    let path = bundle.path().to_path_buf();
    let path = &*path;
    // The signatures first: they cover the data that the other checks compare.
    let signed_by = signed_by(context, &bundle, requirements.signers)?;
    check_approved(&bundle, path, requirements)?;
    if let Some(history) = requirements.history {
        history.check(&bundle, path)?;
    }
    if !requirements.allow_partial {
        refuse_partial(&bundle, path)?;
    }
    Ok(AcceptedBundle {
        path: path.into(),
        bundle,
        signed_by,
    })
}

/// Opens the bundle at `locations`, which may be partial. If the site names signers, they must have
/// signed it.
pub(crate) fn open_any(context: &Context, locations: &[PathBuf]) -> Result<Bundle, CliError> {
    let bundle = open_base(context, locations)?;
    signed_by(context, &bundle, None)?;
    Ok(bundle)
}

/// Opens the bundle at `locations` without checking its signatures. Only for bases, whose content
/// is compared with the digests of a lock that was checked.
pub(crate) fn open_base(context: &Context, locations: &[PathBuf]) -> Result<Bundle, CliError> {
    let opened = try_open(context, locations)?;
    opened.map_err(|error| {
        input_file::bundle_error(
            locations,
            name_bad_volumes(error, locations, &SilentProgress).error,
        )
    })
}

/// Opens the bundle at `locations`. The outer error is about the arguments or an object store, the
/// inner one about the bytes of the bundle.
fn try_open(
    context: &Context,
    locations: &[PathBuf],
) -> Result<Result<Bundle, bundle::BundleError>, CliError> {
    if let [place] = locations
        && let Some(bundle) = remote(context, place)?
    {
        context.inputs.add("bundle", place, bundle.digest());
        return Ok(Ok(bundle));
    }
    let opened = Bundle::open_at(locations);
    if let Ok(bundle) = &opened {
        context.inputs.add("bundle", bundle.path(), bundle.digest());
    }
    Ok(opened)
}

/// The fingerprints that the lock at `path` may have in a bundle: the hash of its text as this
/// release writes it, and the hash of its bytes. Another release may write the same lock
/// differently.
pub(crate) fn lock_fingerprints(path: Option<&Path>) -> Result<Vec<Digest>, CliError> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let (lock, text) = input_file::lock_and_text(path)?;
    Ok(vec![lock.fingerprint(), Digest::sha256(text.as_bytes())])
}

/// Checks the signatures against the file `signers`, or the one of the site. Returns who signed the
/// bundle, or `None` if no file is named.
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
    // The flag replaces the rule of the site, and requires one signature.
    let rule = signers
        .map(|file| (file.to_path_buf(), 1, String::new()))
        .or_else(site);
    let Some((file, at_least, key)) = rule else {
        return Ok(None);
    };
    let allowed = AllowedSigners::load(&file).map_err(|error| {
        let mut failure = CliError::from(error);
        failure.message.insert_str(0, &key);
        failure
    })?;
    context.record_input("signers", &file)?;
    if bundle.signatures().is_empty() {
        return Err(bundle.not_signed().into());
    }
    allowed
        .warnings()
        .iter()
        .for_each(|note| context.progress.note(note));
    Ok(Some(bundle.signed_by(
        &allowed,
        at_least,
        jiff::Timestamp::now(),
    )?))
}

/// Checks the digest and the lock.
fn check_approved(
    bundle: &Bundle,
    path: &Path,
    requirements: &BundleRequirements<'_>,
) -> Result<(), CliError> {
    let path = path.display();
    let digest = bundle.digest();
    let fingerprint = bundle.fingerprint();
    if !requirements.expect.is_empty()
        && ![digest, fingerprint]
            .iter()
            .any(|one| requirements.expect.contains(one))
    {
        let expected: Vec<String> = requirements.expect.iter().map(Digest::to_string).collect();
        return Err(CliError::refused(format!(
            "{path} does not match --expect\n  expected          {}\n  \
             bundle digest     {digest}\n  lock fingerprint  {fingerprint}",
            expected.join("\n                    ")
        )));
    }
    match requirements
        .lock
        .first()
        .filter(|_| !requirements.lock.contains(fingerprint))
    {
        Some(wanted) => Err(CliError::refused(format!(
            "{path} was packed from another lock\n  --lock            {wanted}\n  lock \
             fingerprint  {fingerprint}"
        ))),
        None => Ok(()),
    }
}

fn refuse_partial(bundle: &Bundle, path: &Path) -> Result<(), CliError> {
    if bundle.partial().is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} is partial; it lacks\n{}",
        path.display(),
        lines(&missing_items(bundle)).trim_end()
    );
    Err(CliError::refused(message).with_help("accept it with --allow-partial, or pack it again"))
}

/// The items that a partial bundle lacks.
pub(crate) fn missing_items(bundle: &Bundle) -> Vec<String> {
    bundle
        .partial()
        .iter()
        .map(|lost| format!("{} {}", lost.kind, lost.name))
        .collect()
}

/// Puts the bundle that `--bundle` names before the bundles that are arguments.
pub(crate) fn put_first(
    named: Option<PathBuf>,
    bundle: &mut Option<PathBuf>,
    bases: &mut Vec<PathBuf>,
) {
    if let Some(named) = named {
        bases.splice(0..0, bundle.replace(named));
    }
}

impl AcceptedBundle {
    /// The member `bundle` of the report.
    pub(crate) fn report_member(&self) -> ReportMember {
        report_member(&self.path, &self.bundle, self.signed_by.as_deref())
    }

    /// `signed by KEY, …`; `None` if no signatures were checked.
    pub(crate) fn signed_by_text(&self) -> Option<String> {
        let signers = self.signed_by.as_ref()?.iter();
        let signers: Vec<String> = signers.map(ToString::to_string).collect();
        Some(format!("signed by {}", signers.join(", ")))
    }
}

/// The member `bundle` of the report. Its `signer` and `signers` are null unless signatures were
/// checked; `signer` is the first of `signers`.
pub(crate) fn report_member(
    path: &Path,
    bundle: &Bundle,
    signed_by: Option<&[BundleSigner]>,
) -> ReportMember {
    let signer = |by: &BundleSigner| SignerRow::new(&by.key, Some(by.principals.clone()));
    let signers: Option<Vec<_>> = signed_by.map(|all| all.iter().map(signer).collect());
    ReportMember::Bundle(Box::new(BundleMember {
        path: path.display().to_string(),
        digest: bundle.digest().clone(),
        lock: bundle.fingerprint().clone(),
        bytes: bundle.bytes(),
        content_bytes: None,
        partial: bundle.partial().to_vec(),
        bases: bundle.bases().to_vec(),
        omitted: bundle.omitted().to_vec(),
        recipes: bundle.contents().recipes.clone(),
        references: bundle.references().to_vec(),
        written: None,
        signed: !bundle.signatures().is_empty(),
        signatures: Some(bundle.signature_keys()),
        signer: signers.as_ref().and_then(|all| all.first().cloned()),
        signers,
        serial: SerialMember::new(bundle.serial()),
    }))
}

// The bundles that a site received before, from its receipts: an older bundle of a series is
// refused.

/// The last bundle of each series.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeriesHistory {
    /// For each series, the number of its last bundle and the receipt that records it.
    last: BTreeMap<String, (u64, PathBuf)>,
    allow_older: bool,
}

impl SeriesHistory {
    /// Reads the receipt of the site, and the one that this push replaces, if they exist. With
    /// `allow_older`, every bundle is accepted.
    pub(crate) fn load(
        context: &Context,
        receipt: Option<&Path>,
        allow_older: bool,
    ) -> Result<SeriesHistory, CliError> {
        let mut history = SeriesHistory {
            allow_older,
            ..SeriesHistory::default()
        };
        for path in receipt
            .map(Path::to_path_buf)
            .into_iter()
            .chain(context.site_receipt())
        {
            // If the receipt cannot be looked up, reading it below reports the cause.
            if matches!(path.try_exists(), Ok(false)) {
                continue;
            }
            for (series, number) in input_file::receipt(&path)?.series {
                let last = history
                    .last
                    .entry(series)
                    .or_insert_with(|| (number, path.clone()));
                if last.0 < number {
                    *last = (number, path.clone());
                }
            }
        }
        Ok(history)
    }

    /// Refuses a bundle that is older than the last one of its series.
    pub(crate) fn check(&self, bundle: &Bundle, path: &Path) -> Result<(), CliError> {
        let Some(Serial { series, number }) = bundle.serial().filter(|_| !self.allow_older) else {
            return Ok(());
        };
        match self.last.get(&series) {
            Some((last, receipt)) if *last > number => Err(CliError::refused(format!(
                "{} is number {number} of {series}, but number {last} was received before (see {})",
                path.display(),
                receipt.display()
            ))
            .with_help("add --allow-older to go back")),
            _ => Ok(()),
        }
    }

    /// The numbers for the receipts of a push of the bundle `pushed`.
    pub(crate) fn after(&self, pushed: Option<&Serial>) -> SeriesNumbers {
        let last = self.last.iter();
        let before: BTreeMap<String, u64> = last
            .map(|(series, (number, _))| (series.clone(), *number))
            .collect();
        let mut after = before.clone();
        after.extend(pushed.map(|serial| (serial.series.clone(), serial.number)));
        SeriesNumbers { before, after }
    }
}

/// The number of the last bundle of each series, before and after a push.
#[derive(Debug)]
pub(crate) struct SeriesNumbers {
    before: BTreeMap<String, u64>,
    after: BTreeMap<String, u64>,
}

impl SeriesNumbers {
    /// The numbers for a receipt that has the numbers `present` at the end of the push. Another
    /// push may have raised them meanwhile; without its numbers, older bundles would be accepted.
    pub(crate) fn merged_with(&self, present: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let mut merged = self.after.clone();
        for (series, number) in present {
            let before = self.before.get(&series);
            // a number that this push has lowered on purpose is not raised again
            if before.is_none_or(|before| number > *before) {
                let last = merged.entry(series).or_insert(number);
                *last = number.max(*last);
            }
        }
        merged
    }
}

// Bundles in an object store, named by a URL such as `s3://bucket/bundle.tar.zst`.

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
        .map_err(|error| CliError::from(error).on(TransferSide::Source))
}

/// The bucket folder and the name of the object at `path`; `None` if `path` is a file.
pub(crate) fn object(context: &Context, path: &Path) -> Result<Option<(Bucket, String)>, CliError> {
    let Some(text) = path
        .to_str()
        .filter(|text| BucketLocation::has_scheme(text))
    else {
        return Ok(None);
    };
    let location: BucketLocation = text.parse().map_err(CliError::usage)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<const N: usize>(numbers: [(&str, u64); N]) -> BTreeMap<String, u64> {
        numbers
            .map(|(series, number)| (series.to_owned(), number))
            .into()
    }

    #[test]
    fn a_receipt_keeps_the_numbers_of_a_push_that_ended_meanwhile() {
        let series = SeriesNumbers {
            before: numbers([("nodes", 6), ("lowered", 9), ("old", 1)]),
            after: numbers([("nodes", 7), ("lowered", 5), ("old", 1)]),
        };
        let unchanged = numbers([("nodes", 6), ("lowered", 9), ("old", 1)]);
        assert_eq!(series.merged_with(unchanged), series.after);
        assert_eq!(series.merged_with(BTreeMap::new()), series.after);
        let raised = numbers([("nodes", 8), ("lowered", 9), ("new", 3)]);
        assert_eq!(
            series.merged_with(raised),
            numbers([("nodes", 8), ("lowered", 5), ("old", 1), ("new", 3)])
        );
    }
}
