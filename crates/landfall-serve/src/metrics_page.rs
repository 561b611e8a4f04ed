//! The page of `/metrics`, in the text format of Prometheus.

use super::state::State;
use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

/// The page.
pub(super) fn metrics_page(state: &State) -> String {
    let metrics = &state.observer.metrics;
    let mut page = Page(String::new());
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let requests = metrics.requests();
    page.head(
        "requests_total",
        "counter",
        "Requests answered, by method and status.",
    );
    for ((method, status), count) in &requests {
        page.value(
            &format!("requests_total{{method=\"{method}\",code=\"{status}\"}}"),
            count,
        );
    }
    let seconds = metrics.seconds();
    page.head(
        "request_seconds",
        "summary",
        "Time from the head of a request to the end of its answer.",
    );
    page.value("request_seconds_sum", seconds);
    page.value("request_seconds_count", requests.values().sum::<u64>());
    page.counter(
        "sent_bytes_total",
        "Bytes of bodies sent.",
        load(&metrics.bytes_sent),
    );
    page.gauge(
        "requests_in_flight",
        "Requests being answered.",
        state.in_flight.count(),
    );
    page.gauge("connections", "Open connections.", state.seats.count());
    page.head(
        "connections_closed_total",
        "counter",
        "Connections closed by the server, by cause.",
    );
    for (why, count) in ["idle", "stalled", "room"].iter().zip(&state.seats.closed) {
        page.value(
            &format!("connections_closed_total{{why=\"{why}\"}}"),
            load(count),
        );
    }
    if let Some(users) = &state.users {
        page.gauge(
            "sign_ins",
            "Sign-ins that wait for the comparison of a password.",
            state.sign_ins.count(),
        );
        page.counter(
            "passwords_compared_total",
            "Passwords compared by bcrypt.",
            users.compared(),
        );
    }
    let known = &state.known;
    page.counter(
        "blobs_hashed_total",
        "Blobs hashed before they were served.",
        load(&known.hashed),
    );
    page.counter(
        "blobs_damaged_total",
        "Blobs found damaged, and not served.",
        load(&known.damaged),
    );
    page.counter(
        "reloads_total",
        "Reloads that succeeded.",
        load(&metrics.reloads),
    );
    if state.is_outdated.is_some() {
        let (asked, failed) = (load(&state.freshness.asked), load(&state.freshness.failed));
        page.counter(
            "pointer_reads_total",
            "How often the store was asked what is to be served.",
            asked,
        );
        page.counter(
            "pointer_failures_total",
            "How often it did not say.",
            failed,
        );
    }
    if state.redirect {
        let redirects = load(&metrics.redirects);
        page.counter(
            "redirects_total",
            "Blobs answered by links to the object store.",
            redirects,
        );
    }
    page.gauge(
        "draining",
        "1 while the server is about to stop.",
        u8::from(state.draining.load(Ordering::Relaxed)),
    );
    if let Some(log) = &state.observer.log {
        page.counter(
            "log_lines_lost_total",
            "Lines of the access log left out.",
            log.lost(),
        );
    }
    if let Some(store) = &state.writable {
        page.gauge("uploads", "Uploads in progress.", state.uploads.count());
        page.gauge(
            "writable_bytes",
            "Bytes in the folder for pushes.",
            store.room().used(),
        );
        if let Some(most) = store.room().most() {
            page.gauge(
                "writable_max_bytes",
                "Bytes that the folder for pushes may have.",
                most,
            );
        }
    }
    page.0
}

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(
            self.0,
            "# HELP landfall_{name} {help}\n# TYPE landfall_{name} {kind}"
        );
    }

    fn value(&mut self, name: &str, value: impl Display) {
        let _ = writeln!(self.0, "landfall_{name} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.value(name, value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.value(name, value);
    }
}
