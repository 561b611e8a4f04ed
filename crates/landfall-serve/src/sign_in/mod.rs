//! Authentication of API clients: the users of password files and their rights, and the queue for
//! comparing passwords.

mod password_checker;
mod users;

pub(crate) use self::password_checker::SignInQueue;
pub(crate) use self::users::AuthenticatedUser;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use self::users::fuzz;
pub use self::users::{AccessRight, HtpasswdUsers};
