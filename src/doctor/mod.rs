//! Why is a host not reached? Each step to it, explained: name, proxy and the rule that chose it, connection,
//! certificate, response, sign-in, redirects; and a lint of the settings that name proxies.

mod diagnose;
mod lint;
mod no_proxy;
mod status;
mod target;
mod variables;

pub(crate) use diagnose::{Diagnosis, diagnose};
pub(crate) use lint::LintMessage;
pub(crate) use no_proxy::lint_entries;
pub(crate) use status::CheckStatus;
pub(crate) use target::{CheckTarget, targets_of};
pub(crate) use variables::lint_environment;
