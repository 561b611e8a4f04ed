//! Errors: how the program reports them, and the rules for errors of the whole workspace.
//!
//! # Rules
//!
//! 1. **An error is a [`Failure`](landfall_model::Failure)**, created where the operation fails,
//!    with exit code, side, item and help. An enum is needed only where code decides by its
//!    variants; its other causes are one variant `Failed(Failure)`.
//! 2. **The message** is lower case without a full stop and reads `what failed: why`. It contains
//!    the text of the cause, so printing an error never walks the chain. It never consists of a
//!    library's text alone, and it contains no password and no query string.
//! 3. **Help** is the fix, with the flag, key or command to use. The program prints it as a line of
//!    its own, `help: …`.
//! 4. **Side and item** say which side failed (source, destination or input), and which item.
//! 5. **The exit code** follows from the failure:
//!
//!    | failure | exit code |
//!    |---|---|
//!    | wrong usage, or an input file that is missing or invalid | [`Exit::Usage`] |
//!    | a check failed: drift, or a bundle that is damaged, unsigned or not approved | [`Exit::Refused`] |
//!    | something succeeded, something failed | [`Exit::Partial`] |
//!    | anything else | [`Exit::Failed`] |
//!
//!    An enum assigns it in its `From<…> for Failure`, next to the enum. [`CliError`] is a failure
//!    with the report of the command.

mod cli_error;

pub(crate) use self::cli_error::CliError;
pub(crate) use landfall_model::Exit;
