//! The response to `/metrics`, in the text format of Prometheus.

use crate::state::ServerState;
use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

/// The metrics of the server. The metrics of an optional feature are omitted if it is not in use.
pub(crate) fn metrics_page(state: &ServerState) -> String {
    let metrics = &state.observer.metrics;
    let mut text = MetricsText(String::new());
    let requests = metrics.requests();
    text.head(
        "requests_total",
        "counter",
        "Requests answered, by method and status.",
    );
    for ((method, status), count) in &requests {
        text.value(
            &format!("requests_total{{method=\"{method}\",code=\"{status}\"}}"),
            count,
        );
    }
    text.head(
        "request_seconds",
        "summary",
        "Time from the head of a request to the end of its response.",
    );
    // a summary without quantiles: rates and averages can be computed from these two
    text.value("request_seconds_sum", metrics.seconds());
    text.value("request_seconds_count", requests.values().sum::<u64>());
    text.counter(
        "sent_bytes_total",
        "Bytes sent in response bodies.",
        load(&metrics.bytes_sent),
    );
    text.gauge(
        "requests_in_flight",
        "Requests in progress.",
        state.requests.count(),
    );
    text.gauge(
        "connections",
        "Open connections.",
        state.connections.count(),
    );
    text.head(
        "connections_closed_total",
        "counter",
        "Connections closed by the server, by cause.",
    );
    for (why, count) in state.connections.closed_by_cause() {
        text.value(&format!("connections_closed_total{{why=\"{why}\"}}"), count);
    }
    if let Some(users) = &state.users {
        text.gauge(
            "sign_ins",
            "Sign-ins that wait for the comparison of a password.",
            state.sign_ins.count(),
        );
        text.counter(
            "passwords_compared_total",
            "Passwords compared with bcrypt.",
            users.passwords_compared(),
        );
    }
    text.counter(
        "blobs_hashed_total",
        "Blobs hashed before they were served.",
        load(&state.verified_blobs.hashed),
    );
    text.counter(
        "blobs_damaged_total",
        "Damaged blobs, which were not served.",
        load(&state.verified_blobs.damaged),
    );
    text.counter(
        "reloads_total",
        "Successful reloads.",
        load(&metrics.reloads),
    );
    if state.is_outdated.is_some() {
        text.counter(
            "pointer_reads_total",
            "Requests to the store for the currently published lock.",
            load(&state.refresh.refreshes),
        );
        text.counter(
            "pointer_failures_total",
            "Requests of clients that failed because the current lock was unknown.",
            load(&state.refresh.failures),
        );
    }
    if state.redirect {
        text.counter(
            "redirects_total",
            "Blobs answered with redirects to the object store.",
            load(&metrics.redirects),
        );
    }
    text.gauge(
        "draining",
        "1 while the server is about to stop.",
        u8::from(state.draining.load(Ordering::Relaxed)),
    );
    if let Some(log) = &state.observer.log {
        text.counter(
            "log_lines_lost_total",
            "Lines that the access log lacks because the disk was too slow.",
            log.lost_lines(),
        );
    }
    if let Some(store) = &state.writable {
        text.gauge("uploads", "Uploads in progress.", state.uploads.count());
        text.gauge(
            "writable_bytes",
            "Bytes in the folder for pushes.",
            store.quota().used(),
        );
        if let Some(max) = store.quota().max {
            text.gauge(
                "writable_max_bytes",
                "Maximum bytes in the folder for pushes.",
                max,
            );
        }
    }
    text.0
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

struct MetricsText(String);

impl MetricsText {
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
