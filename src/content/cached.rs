//! Upstream with a store in front of it.

use super::blocking::blocking;
use super::{IdleSlots, Local, LocalSink, LocalSource, Opened, Part, Source, Transfer};
use crate::http::Error;
use crate::model::Limits;
use crate::report::Silent;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// What a [`Cached`] keeps of the content that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: content of the store comes from there, the rest streams past.
    Nothing,
    /// Everything: what the store lacks is brought into it first.
    Everything,
}

/// Upstream with a store in front of it.
pub(crate) struct Cached {
    disk: Arc<dyn LocalSink>,
    local: LocalSource,
    keep: Keep,
    /// From upstream into the store.
    transfer: Transfer,
}

impl Cached {
    /// `upstream`, with `disk` in front.
    pub(crate) fn new(
        disk: Arc<dyn LocalSink>,
        upstream: Arc<dyn Source>,
        keep: Keep,
        limits: Limits,
    ) -> Cached {
        // there is no end of a run to wait for: what comes is wanted now
        let (_, begun) = watch::channel(true);
        let slots = IdleSlots::new(Arc::new(Semaphore::new(limits.jobs)), begun);
        let sink = Arc::new(Local::new(disk.clone(), limits, Some(slots)));
        // bytes are counted on their way out, not a second time on their way in
        let transfer = Transfer { source: upstream, sink, limits, progress: Arc::new(Silent) };
        Cached { local: LocalSource(disk.clone()), disk, keep, transfer }
    }
}

impl Source for Cached {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(async move {
            let (disk, descriptor) = (self.disk.clone(), part.descriptor.clone());
            if !blocking(move || disk.holds(&descriptor, false)).await.map_err(|failed| *failed.why)? {
                if self.keep == Keep::Nothing {
                    return self.transfer.source.open(part, offset).await;
                }
                self.transfer.bring(part).await.map_err(|failed| *failed.why)?;
            }
            self.local.open(part, offset).await
        })
    }
}
