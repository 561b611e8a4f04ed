//! Authentication of API clients: the users of password files and their rights, and the queue for
//! comparing passwords.

mod password_checker;
mod queue;
mod users;

pub(crate) use queue::SignInQueue;
pub(crate) use users::AuthenticatedUser;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use users::fuzz;
pub use users::{AccessRight, HtpasswdUsers};
