//! Parsed apt suites. The suites of a list of sources are parsed once per run, for all sets with
//! these sources and the same architectures.

use super::locked::PackageSource;
use super::resolvable::{PackageSetRequest, PackageSourceRequest};
use landfall_model::locked;
use landfall_packages::apt::{AptRelease, Universe};
use std::sync::{Arc, Mutex, mpsc};
use std::{io, thread};
use tokio::sync::{OnceCell, oneshot};

/// The metadata of a suite.
pub(super) struct Suite {
    /// The lock's record of the suite, still without packages.
    pub(super) source: PackageSource,
    /// The path of the Release file.
    pub(super) name: String,
    /// The parsed Release file of the suite.
    pub(super) release: AptRelease,
    /// The decompressed package indexes.
    pub(super) texts: Vec<String>,
}

/// A function that the thread of [`ReadSuites`] calls with its packages.
type SuiteQuery = Box<dyn FnOnce(&Universe<'_>, &[Suite]) + Send>;

/// All packages of some suites. They borrow from the index texts, so one thread owns both and
/// answers queries in sequence.
pub(super) struct ReadSuites {
    /// The suites that were read, in the order of the request.
    pub(super) suites: Arc<Vec<Suite>>,
    queries: mpsc::Sender<SuiteQuery>,
}

impl ReadSuites {
    /// Starts to parse `suites` for machines with these architectures.
    pub(super) fn read(suites: Vec<Suite>, architectures: Vec<String>) -> io::Result<ReadSuites> {
        let suites = Arc::new(suites);
        let (queries, received) = mpsc::channel::<SuiteQuery>();
        let own = suites.clone();
        thread::Builder::new()
            .name("packages".into())
            .spawn(move || {
                let mut universe = Universe::new(&architectures);
                for suite in own.iter() {
                    let source = universe.add_source(suite.release.pin);
                    for text in &suite.texts {
                        universe.add_index(source, text);
                    }
                }
                // the loop ends when the `ReadSuites`, and the sender in it, is dropped
                for query in received {
                    query(&universe, &own);
                }
            })?;
        Ok(ReadSuites { suites, queries })
    }

    /// Runs `query` on the thread and returns its result. `None` if the thread has stopped.
    pub(super) async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Universe<'_>, &[Suite]) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, result) = oneshot::channel();
        let query: SuiteQuery = Box::new(move |universe, suites| {
            // the caller may have been cancelled
            let _ = sender.send(query(universe, suites));
        });
        self.queries.send(query).ok()?;
        result.await.ok()
    }
}

/// The suites that a run has parsed, by sources and architectures.
#[derive(Default)]
pub(crate) struct SharedSuites(Mutex<Vec<SuitesSlot>>);

/// The slot for the suites of one list of sources and one list of architectures.
struct SuitesSlot {
    sources: Vec<PackageSourceRequest>,
    architectures: Vec<String>,
    read: Arc<OnceCell<ReadSuites>>,
}

impl SharedSuites {
    /// The slot for the sources of `request`. The first set that uses the slot fills it, and the
    /// other sets wait.
    pub(super) fn slot_for(&self, request: &PackageSetRequest) -> Arc<OnceCell<ReadSuites>> {
        let mut slots = locked(&self.0);
        let known = slots.iter().find(|slot| {
            slot.sources == request.sources && slot.architectures == request.architectures
        });
        if let Some(known) = known {
            return known.read.clone();
        }
        let read = Arc::default();
        slots.push(SuitesSlot {
            sources: request.sources.clone(),
            architectures: request.architectures.clone(),
            read: Arc::clone(&read),
        });
        read
    }
}
