//! The exit codes of the program.

use landfall_model::report::RunStatus;

/// The exit codes, as documented in the help and in `docs/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    /// The command failed, and nothing succeeded.
    Failed = 1,
    /// Wrong use, or an input file that is missing or wrong.
    Usage = 2,
    /// Something succeeded, and something failed or is missing.
    Partial = 3,
    /// A check failed: drift, or a bundle that is damaged, unsigned or not approved.
    Refused = 4,
    /// SIGINT: 128 plus the number of the signal, as shells report it.
    Interrupted = 130,
}

impl Exit {
    /// The member `status` of the report.
    pub(crate) fn status(self) -> RunStatus {
        match self {
            Exit::Done => RunStatus::Done,
            Exit::Partial => RunStatus::Partial,
            Exit::Refused => RunStatus::Refused,
            Exit::Failed | Exit::Usage | Exit::Interrupted => RunStatus::Failed,
        }
    }
}
