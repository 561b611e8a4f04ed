//! `landfall sign`: approves a bundle that is packed already.

use crate::bundle;
use crate::cli::shared::packed::signer;
use crate::cli::shared::{Context, Exit, Failure, Outcome, open_bundle};
use crate::report::{Report, escape};
use clap::Args;
use std::path::PathBuf;

/// Add a signature to a bundle; only its end changes
#[derive(Args)]
pub(crate) struct Sign {
    /// The bundle; `landfall verify` says what is in it
    bundle: PathBuf,
    /// An OpenSSH private key file without passphrase, or a public key (file) whose private half the SSH agent holds
    #[arg(long, value_name = "KEY")]
    key: String,
}

impl Sign {
    pub(crate) fn run(self, _: &Context) -> Result<Outcome, Failure> {
        let signer = signer(Some(&self.key))?.ok_or_else(|| Failure::usage("name a key with --key KEY"))?;
        let signed = bundle::add_signature(&self.bundle, &signer)?;
        let mut report = Report::default();
        report.extra.insert("bundle".into(), open_bundle::told(&self.bundle, &signed, None));
        let text = format!(
            "signed {} with {}\n  bundle digest     {}\n  lock fingerprint  {}\n  signatures        {}\n",
            self.bundle.display(),
            signer.key(),
            signed.digest(),
            signed.fingerprint(),
            signed.signatures().len(),
        );
        Ok(Outcome { report, text: escape(&text), exit: Exit::Done })
    }
}
