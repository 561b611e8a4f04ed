//! `landfall sign`: adds a signature to a bundle.

use crate::cli::shared::bundle_report::signer;
use crate::cli::shared::open_bundle::{self, is_remote};
use crate::cli::shared::{CliError, Context, Exit, VerbOutcome, VerbReport};
use clap::Args;
use landfall_bundle as bundle;
use std::path::PathBuf;

/// Add a signature to a bundle
///
/// Only the end of the file changes.
#[derive(Args)]
pub(crate) struct SignCommand {
    /// The bundle to sign; check it with `landfall verify` first
    #[arg(value_name = "BUNDLE", required_unless_present = "named")]
    bundle: Option<PathBuf>,
    /// The bundle, instead of the argument
    #[arg(long = "bundle", value_name = "BUNDLE", conflicts_with = "bundle")]
    named: Option<PathBuf>,
    /// An OpenSSH private key file without a passphrase, or, if the private key is in the SSH
    /// agent, the public key or its file
    #[arg(long, value_name = "KEY")]
    key: String,
}

impl SignCommand {
    pub(crate) fn run(self, _: &Context) -> Result<VerbOutcome, CliError> {
        let signer =
            signer(Some(&self.key))?.ok_or_else(|| CliError::usage("name a key with --key KEY"))?;
        let path = self.bundle.or(self.named).unwrap_or_default();
        if is_remote(&path) {
            return Err(
                CliError::usage("a bundle in an object store cannot be signed afterwards")
                    .with_help("sign it with `landfall pack --sign`"),
            );
        }
        let signed = bundle::add_signature(&path, &signer)?;
        let mut report = VerbReport::default();
        report.add(open_bundle::report_member(&path, &signed, None));
        let text = format!(
            "signed {} with {}\n  bundle digest     {}\n  lock fingerprint  {}\n  \
             signatures        {}\n",
            path.display(),
            signer.key(),
            signed.digest(),
            signed.fingerprint(),
            signed.signatures().len(),
        );
        Ok(VerbOutcome::new(report, text, Exit::Done))
    }
}
