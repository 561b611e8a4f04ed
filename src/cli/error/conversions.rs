//! Assigns an exit code, side and item to each error of a library.

use super::{CliError, Exit};
use crate::client::ClientError;
use crate::egress::EgressError;
use crate::evidence::EvidenceError;
use crate::pull::PullError;
use crate::push::PushError;
use landfall_bundle as bundle;
use landfall_bundle::image_archive::ImageArchiveError;
use landfall_content::WriteError;
use landfall_content::bucket::BucketLocation;
use landfall_content::registry::{CredentialError, SetupError};
use landfall_content::store::{ServedStoreError, StoreError};
use landfall_http::ErrorKind;
use landfall_item::lockfile::LockError;
use landfall_item::{DescribeError, TrimError};
use landfall_model::config::SiteError;
use landfall_model::document::Diagnostic;
use landfall_model::report::TransferSide;
use landfall_model::sign;
use landfall_render::RenderError;
use landfall_rewrite::{ChartError, RewriteError};
use landfall_serve::{ExportError, RegistrySourceError, ServeError};
use landfall_signature::SiteRuleError;
use std::sync::Arc;

impl From<Box<Diagnostic>> for CliError {
    fn from(diagnostic: Box<Diagnostic>) -> CliError {
        CliError::usage(diagnostic.to_string())
    }
}

impl From<LockError> for CliError {
    fn from(error: LockError) -> CliError {
        CliError {
            help: error.help(),
            ..CliError::usage(error.to_string())
        }
    }
}

impl From<landfall_item::manifest::LoadManifestError> for CliError {
    fn from(error: landfall_item::manifest::LoadManifestError) -> CliError {
        CliError::usage(error.to_string())
    }
}

impl From<RewriteError> for CliError {
    fn from(error: RewriteError) -> CliError {
        CliError::usage(error.to_string())
    }
}

impl From<ChartError> for CliError {
    fn from(error: ChartError) -> CliError {
        CliError::usage(error.to_string())
    }
}

impl From<RenderError> for CliError {
    fn from(error: RenderError) -> CliError {
        let message = error.to_string();
        match error {
            RenderError::MissingDestinations(_) | RenderError::Refused(_) => {
                CliError::refused(message)
            }
            RenderError::Write { .. } => {
                CliError::new(Exit::Failed, message).on(TransferSide::Destination)
            }
            _ => CliError::usage(message),
        }
    }
}

impl From<bundle::BundleError> for CliError {
    fn from(error: bundle::BundleError) -> CliError {
        use bundle::BundleError;
        let message = error.to_string();
        match error {
            // In an object store, the object exists: it was found before. So reading it failed.
            BundleError::Open { path, .. }
                if path.to_str().is_some_and(BucketLocation::has_scheme) =>
            {
                CliError::new(Exit::Failed, message).on(TransferSide::Source)
            }
            BundleError::Open { .. } => CliError::usage(message),
            BundleError::Damaged { .. }
            | BundleError::Missing { .. }
            | BundleError::Volumes { .. }
            | BundleError::Volume { .. }
            | BundleError::VolumeLock { .. }
            | BundleError::Newer { .. }
            | BundleError::NotSigned { .. }
            | BundleError::Signers { .. }
            | BundleError::Signature { .. } => CliError::refused(message),
            BundleError::NoVolume { .. }
            | BundleError::VolumeSize { .. }
            | BundleError::Tool { .. }
            | BundleError::TooLarge { .. } => CliError::usage(message),
            // Exit 3, as for other runs with missing items. The status is `refused`, because
            // nothing was written.
            BundleError::Incomplete { .. } => CliError {
                refuses: true,
                ..CliError::new(Exit::Partial, message).on(TransferSide::Source)
            },
            BundleError::Content { item, .. } | BundleError::Trim { item, .. } => {
                CliError::new(Exit::Failed, message)
                    .on(TransferSide::Source)
                    .about(item)
            }
            BundleError::Space { .. }
            | BundleError::Busy { .. }
            | BundleError::Write { .. }
            | BundleError::Sign { .. } => {
                CliError::new(Exit::Failed, message).on(TransferSide::Destination)
            }
        }
    }
}

// These errors are about a key or a file of allowed signers that the user named.
// `bundle::BundleError` wraps the errors of a signature in a bundle.
impl From<sign::SignatureError> for CliError {
    fn from(error: sign::SignatureError) -> CliError {
        let message = error.to_string();
        match error {
            sign::SignatureError::Agent { .. }
            | sign::SignatureError::NoRandomNumbers { .. }
            | sign::SignatureError::Failed { .. } => CliError::new(Exit::Failed, message),
            _ => CliError::usage(message),
        }
    }
}

impl From<SiteError> for CliError {
    fn from(error: SiteError) -> CliError {
        CliError::usage(error.to_string())
    }
}

impl From<ExportError> for CliError {
    fn from(error: ExportError) -> CliError {
        CliError::new(Exit::Failed, error.to_string()).on(TransferSide::Destination)
    }
}

impl From<DescribeError> for CliError {
    fn from(error: DescribeError) -> CliError {
        CliError::new(Exit::Failed, error.to_string())
    }
}

impl From<TrimError> for CliError {
    fn from(error: TrimError) -> CliError {
        CliError::new(Exit::Failed, error.to_string()).on(TransferSide::Source)
    }
}

impl From<ImageArchiveError> for CliError {
    fn from(error: ImageArchiveError) -> CliError {
        let message = error.to_string();
        match error {
            ImageArchiveError::Unfit(_) => CliError::usage(message),
            ImageArchiveError::Content(_) => {
                CliError::new(Exit::Failed, message).on(TransferSide::Source)
            }
            ImageArchiveError::Write(_) => {
                CliError::new(Exit::Failed, message).on(TransferSide::Destination)
            }
        }
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> CliError {
        match error {
            ServeError::Listen { .. }
            | ServeError::Writable { .. }
            | ServeError::Busy { .. }
            | ServeError::Random => CliError::new(Exit::Failed, error.to_string()),
            ServeError::Address { .. }
            | ServeError::Exposed { .. }
            | ServeError::Tls { .. }
            | ServeError::PasswordFile { .. } => CliError::usage(error.to_string()),
        }
    }
}

impl From<ServedStoreError> for CliError {
    fn from(error: ServedStoreError) -> CliError {
        match error {
            ServedStoreError::Bucket(error) => ClientError::from(error).into(),
            ServedStoreError::Write(error) => error.into(),
            nothing @ ServedStoreError::Nothing { .. } => CliError::usage(nothing.to_string()),
            other => CliError::new(Exit::Failed, other.to_string()),
        }
    }
}

impl From<RegistrySourceError> for CliError {
    fn from(error: RegistrySourceError) -> CliError {
        CliError::new(Exit::Failed, error.to_string()).on(TransferSide::Source)
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> CliError {
        let help = error.help();
        let converted = match error {
            ClientError::Setup(error) => error.into(),
            ClientError::Signatures(error) => error.into(),
            ClientError::Trust { .. } => CliError::usage(error.to_string()),
            ClientError::Archive(error) => CliError::usage(error.to_string()),
            ClientError::ObjectStore(error) if error.kind == ErrorKind::Local => {
                CliError::usage(error.to_string())
            }
            ClientError::ObjectStore(error) => {
                CliError::new(Exit::Failed, error.to_string()).on(TransferSide::Destination)
            }
            ClientError::Manifest(error) => error.into(),
            ClientError::WriteDocument { .. } => {
                CliError::new(Exit::Failed, error.to_string()).on(TransferSide::Destination)
            }
            ClientError::Store(error) => error.into(),
            ClientError::Pull(error) => error.into(),
            ClientError::Bundle(error) => error.into(),
            ClientError::UnnamedSeries => CliError::usage(error.to_string()),
            ClientError::Stopped(_) => CliError::new(Exit::Failed, error.to_string()),
        };
        CliError {
            help: help.or(converted.help),
            ..converted
        }
    }
}

impl From<SiteRuleError> for CliError {
    fn from(error: SiteRuleError) -> CliError {
        CliError::usage(error.to_string()).with_help(error.source.help)
    }
}

impl From<SetupError> for CliError {
    fn from(error: SetupError) -> CliError {
        CliError::usage(error.to_string())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> CliError {
        CliError::new(Exit::Failed, error.to_string()).on(TransferSide::Destination)
    }
}

impl From<EvidenceError> for CliError {
    fn from(error: EvidenceError) -> CliError {
        let message = error.to_string();
        let help = error.help();
        let converted = match error {
            EvidenceError::Damaged { .. } | EvidenceError::End { .. } => CliError::refused(message),
            EvidenceError::Open { .. }
            | EvidenceError::Lock { .. }
            | EvidenceError::Read { .. }
            | EvidenceError::Write { .. } => {
                CliError::new(Exit::Failed, message).on(TransferSide::Destination)
            }
        };
        CliError { help, ..converted }
    }
}

impl From<EgressError> for CliError {
    fn from(error: EgressError) -> CliError {
        CliError::usage(error.to_string())
    }
}

impl From<WriteError> for CliError {
    fn from(error: WriteError) -> CliError {
        StoreError::from(error).into()
    }
}

impl From<PullError> for CliError {
    fn from(error: PullError) -> CliError {
        match error {
            PullError::Sink(error) => error.into(),
        }
    }
}

impl From<PushError> for CliError {
    fn from(error: PushError) -> CliError {
        let (exit, side) = match &error {
            // The site's `paths` and `--to` cause a collision, and nothing was sent.
            PushError::Collision(_) => (Exit::Usage, TransferSide::Input),
            PushError::Unreachable(error) if is_bad_account(error) => {
                (Exit::Usage, TransferSide::Input)
            }
            PushError::Unreachable(_) => (Exit::Failed, TransferSide::Destination),
        };
        CliError::new(exit, error.to_string()).on(side)
    }
}

/// Whether the cause is an account that the user configured and that cannot be read.
fn is_bad_account(error: &landfall_http::HttpError) -> bool {
    let source = std::error::Error::source(error);
    let fault = source.and_then(|source| source.downcast_ref::<Arc<CredentialError>>());
    fault.is_some_and(|fault| fault.is_setting())
}
