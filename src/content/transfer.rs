//! The way of one part from a source to a sink. The loop in [`Transfer::bring`] is the only one that tries a part
//! again; what it counts stands in [`super::retry`].

use super::opener::wait;
use super::{Cause, Opener, Part, Sink, Source, TransferError};
use crate::model::Limits;
use crate::report::Progress;
use std::sync::Arc;

/// A source, a sink, and how parts are moved from one to the other.
pub struct Transfer {
    /// Where parts are read from.
    pub source: Arc<dyn Source>,
    /// Where they are brought to.
    pub sink: Arc<dyn Sink>,
    /// Attempts, and the pauses between them.
    pub limits: Limits,
    /// Who is told of the bytes.
    pub progress: Arc<dyn Progress>,
}

/// How a part came to be at a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brought {
    /// It was there, or the sink had it elsewhere.
    There,
    /// So many bytes of it were received.
    Received(u64),
}

impl Transfer {
    /// Brings one part to the sink. What broke off resumes at the last byte that the sink holds.
    ///
    /// # Errors
    /// Which side failed, after all attempts.
    pub async fn bring(&self, part: &Part) -> Result<Brought, TransferError> {
        let opener = Opener::new(self.source.clone(), part, &self.limits, self.progress.clone());
        let opener = Arc::new(opener);
        let mut in_order = false;
        loop {
            let Some(write) = self.sink.begin(&part.descriptor, in_order).await? else {
                return Ok(match opener.received() {
                    0 => Brought::There,
                    received => Brought::Received(received),
                });
            };
            opener.begin(write.held());
            let Err(failed) = write.fill(&opener).await else {
                return Ok(Brought::Received(opener.received()));
            };
            in_order |= matches!(failed.cause, Cause::Wrong | Cause::WrongOnce);
            match opener.after(&failed) {
                Some(pause) => wait(pause).await,
                None => return Err(failed.error),
            }
        }
    }
}
