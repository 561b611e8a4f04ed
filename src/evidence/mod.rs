//! The evidence log: an append-only file of JSON Lines that records commands and their results,
//! each line with the hash of the line before it.
//!
//! - `record.rs`: one line, and its hash.
//! - `chain.rs`: checks the lines of a log one after another.
//! - `log_file.rs`: the file, its lock, and how a line is appended.
//! - `statement.rs`: the description of a command as an in-toto Statement; `schema.rs`: the
//!   JSON schema of a line.

mod chain;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod log_file;
mod schema;
mod statement;
#[cfg(test)]
mod tests;

pub(crate) use self::chain::EvidenceSummary;
#[cfg(any(test, fuzzing))]
pub(crate) use self::fuzz::{fuzz, fuzz_seed};
pub(crate) use self::log_file::{EvidenceLog, verify_log};
pub(crate) use self::schema::schema;
pub(crate) use self::statement::{
    CommandPredicate, LoggedCommand, LoggedItem, NamedDigest, RecordedInput, RemovedContent,
    names_content, statement,
};
