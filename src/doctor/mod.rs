//! Why is a host not reached? Each step to it, explained: name, proxy and the rule that chose it, connection,
//! certificate, response, sign-in, redirects; and a lint of the settings that name proxies.

mod diagnose;
mod lint;
mod no_proxy;
mod status;
mod target;
mod variables;

pub use diagnose::{Diagnosis, Step, diagnose};
pub use lint::LintMessage;
pub use no_proxy::lint_entries;
pub use status::CheckStatus;
pub use target::{CheckTarget, TargetError, targets_of};
pub use variables::lint_environment;
