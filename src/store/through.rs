//! Upstream with a store in front of it.

use super::{Blobs, Destination, Disk, Lanes, Local, Source, fetch_wide};
use crate::http::{ByteStream, Error, ErrorKind};
use crate::model::Limits;
use crate::report::{Progress, Side, Silent};
use crate::source::Part;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// What a [`Through`] keeps of that which passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: what the store has is taken from it, the rest streams past.
    Nothing,
    /// Everything: what the store has not is brought into it first.
    Everything,
}

/// Upstream with a store in front of it.
pub struct Through {
    disk: Disk,
    local: Local,
    upstream: Arc<dyn Source>,
    keep: Keep,
    progress: Arc<dyn Progress>,
    lanes: Lanes,
}

impl Through {
    /// `upstream`, with `disk` in front.
    pub fn new(disk: Disk, upstream: Arc<dyn Source>, keep: Keep) -> Through {
        let local = Local(Arc::new(disk.clone()) as Arc<dyn Blobs>);
        // bytes are counted on their way out, not a second time on their way in
        let progress = Arc::new(Silent);
        // there is no end of a run to wait for: what comes is wanted now
        let (_, begun) = watch::channel(true);
        let lanes = Lanes::new(Arc::new(Semaphore::new(upstream.limits().jobs)), begun);
        Through { disk, local, upstream, keep, progress, lanes }
    }
}

impl Source for Through {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<(u64, ByteStream), Error>> {
        Box::pin(async move {
            let descriptor = &part.descriptor;
            let local = |error: String| Error::new(ErrorKind::Local, error);
            let there = self
                .disk
                .has(&descriptor.digest, descriptor.size)
                .map_err(|error| local(error.to_string()))?;
            if !there && self.keep == Keep::Nothing {
                return self.upstream.open(part, offset).await;
            }
            if !there {
                let disk: Arc<dyn Destination> = Arc::new(self.disk.clone());
                let fetching = fetch_wide(&self.upstream, &disk, part, &self.progress, &self.lanes).await;
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
