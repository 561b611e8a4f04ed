//! `no-proxy`: what goes past the proxy, as one value.

use crate::error::RenderError;
use crate::no_proxy::{self, Dialect};
use crate::platform::{Output, Platform, Rendered, Spec, Writes};
use crate::request::Request;
use crate::settings::Setting;
use serde_json::json;

pub(super) struct NoProxyList;

impl Platform for NoProxyList {
    fn spec(&self) -> &'static Spec {
        &Spec {
            name: "no-proxy",
            about: "The value of NO_PROXY: what nodes and pods reach without the proxy",
            details: "It is composed of the cluster's and the installation's parts and the site's own hosts, in one order. \
                      The files of other platforms have the same entries.",
            inputs: &[],
            settings: &[Setting {
                key: "form",
                value_name: "FORM",
                help: "How names are written: svc and cluster.local (bare), .svc and .svc.cluster.local (dotted), or \
                       every name with and without a dot, for programs of every kind (portable)",
                default: Some("bare"),
                choices: &["bare", "dotted", "portable"],
            }],
            consumer: None,
            reads_lock: false,
            writes: Writes::Text {
                out: "Where to write the value [default: stdout]",
            },
        }
    }

    fn needs_registry(&self) -> bool {
        false
    }

    fn render(&self, request: &Request<'_>) -> Result<Rendered, RenderError> {
        let dialect = match request.settings.get("form") {
            Some("dotted") => Dialect::Dotted,
            Some("portable") => Dialect::Portable,
            _ => Dialect::Bare,
        };
        if let Some(site) = request.site {
            no_proxy::check(site)?;
        }
        let list = request.no_proxy().list(dialect);
        let members = vec![("text", json!(list))];
        Ok(Rendered {
            output: Output::Text(list + "\n"),
            members,
            ..Rendered::default()
        })
    }
}
