//! Upstream with a store in front of it.

use crate::content::Part;
use crate::content::{BlobRead, IdleSlots, LocalSource, Sink, Source, fetch_parallel};
use crate::http::{ByteStream, Error, ErrorKind};
use crate::model::Limits;
use crate::report::{Progress, Side, Silent};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// What a [`Cached`] keeps of that which passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: what the store has is taken from it, the rest streams past.
    Nothing,
    /// Everything: what the store has not is brought into it first.
    Everything,
}

/// Upstream with a store in front of it.
pub struct Cached {
    disk: Arc<dyn Sink>,
    local: LocalSource,
    upstream: Arc<dyn Source>,
    keep: Keep,
    progress: Arc<dyn Progress>,
    lanes: IdleSlots,
}

impl Cached {
    /// `upstream`, with `disk` in front.
    pub fn new(disk: Arc<dyn Sink>, upstream: Arc<dyn Source>, keep: Keep) -> Cached {
        let local = LocalSource(disk.clone() as Arc<dyn BlobRead>);
        // bytes are counted on their way out, not a second time on their way in
        let progress = Arc::new(Silent);
        // there is no end of a run to wait for: what comes is wanted now
        let (_, begun) = watch::channel(true);
        let lanes = IdleSlots::new(Arc::new(Semaphore::new(upstream.limits().jobs)), begun);
        Cached { disk, local, upstream, keep, progress, lanes }
    }
}

impl Source for Cached {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<(u64, ByteStream), Error>> {
        Box::pin(async move {
            let descriptor = &part.descriptor;
            let local = |error: String| Error::new(ErrorKind::Local, error);
            let there = self.disk.holds(descriptor, false).map_err(|error| local(error.to_string()))?;
            if !there && self.keep == Keep::Nothing {
                return self.upstream.open(part, offset).await;
            }
            if !there {
                let fetching =
                    fetch_parallel(&self.upstream, &self.disk, part, &self.progress, &self.lanes).await;
                fetching.map_err(|error| {
                    let side = if error.side == Side::Source { "" } else { "store: " };
                    Error::new(error.kind, format!("{side}{}", error.message))
                })?;
            }
            self.local.open(part, offset).await
        })
    }

    fn is_checked(&self) -> bool {
        self.keep == Keep::Everything
    }

    fn limits(&self) -> Limits {
        self.upstream.limits()
    }

    fn distrust_ranges<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, ()> {
        self.upstream.distrust_ranges(part)
    }
}
