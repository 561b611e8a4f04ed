//! Parsed apt suites. Each is parsed once per run and shared by all sets with the same sources.

use super::locked::PackageSource;
use super::request::{PackageSetRequest, PackageSourceRequest};
use landfall_packages::apt::{AptRelease, Universe};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
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

type SuiteQuery = Box<dyn FnOnce(&Universe<'_>, &[Suite]) + Send>;

/// All packages of some suites. They borrow from the index texts, so one thread owns both and
/// answers queries in sequence.
pub(super) struct ReadSuites {
    suites: Arc<Vec<Suite>>,
    questions: mpsc::Sender<SuiteQuery>,
}

impl ReadSuites {
    /// Starts to parse `suites` for machines with these architectures.
    pub(super) fn read(suites: Vec<Suite>, architectures: Vec<String>) -> io::Result<ReadSuites> {
        let suites = Arc::new(suites);
        let (questions, asked) = mpsc::channel::<SuiteQuery>();
        let own = suites.clone();
        thread::Builder::new()
            .name("packages".into())
            .spawn(move || {
                let mut universe = Universe::new(&architectures);
                for suite in own.iter() {
                    let source = universe.source(suite.release.pin);
                    suite
                        .texts
                        .iter()
                        .for_each(|text| universe.add(source, text));
                }
                asked
                    .into_iter()
                    .for_each(|question| question(&universe, &own));
            })?;
        Ok(ReadSuites { suites, questions })
    }

    /// The suites that were read, in the order of the request.
    pub(super) fn suites(&self) -> &[Suite] {
        &self.suites
    }

    /// Runs a query on the thread; `None` if the thread has stopped.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Universe<'_>, &[Suite]) -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, answer) = oneshot::channel();
        let asked = self.questions.send(Box::new(move |universe, suites| {
            // the caller may have been cancelled
            let _ = tell.send(question(universe, suites));
        }));
        asked.ok()?;
        answer.await.ok()
    }
}

/// The suites that a run has parsed, by sources and architectures.
#[derive(Default)]
pub struct SharedSuites(Mutex<Vec<Shared>>);

struct Shared {
    sources: Vec<PackageSourceRequest>,
    architectures: Vec<String>,
    read: Arc<OnceCell<ReadSuites>>,
}

impl SharedSuites {
    /// The cache slot for the sources of `wish`.
    pub(super) fn of(&self, wish: &PackageSetRequest) -> Arc<OnceCell<ReadSuites>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            |one: &&Shared| one.sources == wish.sources && one.architectures == wish.architectures;
        if let Some(known) = all.iter().find(is_it) {
            return known.read.clone();
        }
        let read = Arc::default();
        let (sources, architectures) = (wish.sources.clone(), wish.architectures.clone());
        all.push(Shared {
            sources,
            architectures,
            read: Arc::clone(&read),
        });
        read
    }
}
