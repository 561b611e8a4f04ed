//! Errors: how the program reports them, and the rules that every error enum of the workspace
//! follows.
//!
//! # Rules
//!
//! 1. **An enum** belongs to a stage or crate area (`BundleError`, `PushError`, `SiteError`) and
//!    derives `thiserror::Error`. It is never a `String`, and never a wrapper around one text.
//! 2. **A variant** is an action that failed: `Open`, `Write`, `Verify`, not `Io` or `Parse`.
//!    Two causes of one failed action are one variant with two sources.
//! 3. **Fields** are what the user needs to act: the path, URL, item, digest, or limit, each with
//!    its own type. They are not sentences that were formatted earlier.
//! 4. **The cause** is a field called `source` (or `#[from]`), with its own type, so that callers
//!    can match on it.
//! 5. **The message** (`Display`) is lower case without a full stop and reads `what failed: why`.
//!    It contains the text of the cause, so printing an error never walks the chain. It never
//!    consists of a library's text alone, and it contains no password and no query string.
//! 6. **Help is data**: `fn help(&self) -> Option<String>` of the enum returns the fix, with the
//!    flag, key or command to use. The program prints it as a line of its own, `help: …`.
//! 7. **Side and item** are data too. A library error says what failed; [`conversions`]
//!    says on which side (source, destination or input), by variant, and takes the item from the
//!    field `item`.
//! 8. **The exit code** of a variant is assigned in [`conversions`] and nowhere else:
//!
//!    | the variant says | exit code |
//!    |---|---|
//!    | wrong usage, or an input file that is missing or invalid | [`Exit::Usage`] |
//!    | a check failed: drift, or a bundle that is damaged, unsigned or not approved | [`Exit::Refused`] |
//!    | something succeeded, something failed | [`Exit::Partial`] |
//!    | anything else | [`Exit::Failed`] |
//!
//!    If the variants of an enum have different exit codes, its `match` in [`conversions`] should
//!    name all of them: a new variant then does not compile before it has an exit code.

mod cli_error;
mod conversions;

pub(crate) use self::cli_error::{CliError, Exit};
