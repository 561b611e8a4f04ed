//! What all handlers share.

use super::auth::Users;
use super::bundles::Bundles;
use super::upload_sessions::Uploads;
use super::writable::WritableStore;
use crate::content::BlobChain;
use crate::model::Limits;
use crate::report::Progress;
use std::sync::Arc;

/// What all handlers share.
pub(super) struct State {
    /// The names in the bundles, and what they stand for.
    pub(super) bundles: Bundles,
    /// All content: that of the bundles first, then what was pushed.
    pub(super) blobs: BlobChain,
    /// The folder of `--writable`.
    pub(super) writable: Option<Arc<WritableStore>>,
    pub(super) uploads: Uploads,
    /// Who may use the API; everybody where it is `None`.
    pub(super) users: Option<Users>,
    pub(super) limits: Limits,
    /// Where warnings go.
    pub(super) notes: Arc<dyn Progress>,
    /// `HOST:PORT` at which the server listens.
    pub(super) address: String,
}
