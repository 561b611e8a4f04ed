//! `no-proxy`: NO_PROXY as one value.

use crate::error::RenderError;
use crate::no_proxy::{self, NoProxyDialect};
use crate::platform::{OutputForm, PlatformSpec, RenderPlatform, RenderedConfig, RenderedOutput};
use crate::request::RenderRequest;
use crate::settings::{PlatformSetting, SITE_CLUSTER};
use serde_json::json;

pub(super) struct NoProxyList;

impl RenderPlatform for NoProxyList {
    fn spec(&self) -> &'static PlatformSpec {
        &PlatformSpec {
            name: "no-proxy",
            about: "The value of NO_PROXY: the hosts that nodes and pods reach without the proxy",
            details: "It is composed of the entries of the cluster and the installation and the \
                      site's own hosts, always in the same order. The files of other platforms \
                      have the same entries.",
            inputs: &[],
            settings: &[
                PlatformSetting {
                    key: "form",
                    value_name: "FORM",
                    help: "How names are written: svc and cluster.local (bare), .svc and \
                           .svc.cluster.local (dotted), or every name with and without a dot, for \
                           any program (portable)",
                    default: Some("bare"),
                    choices: &["bare", "dotted", "portable"],
                },
                SITE_CLUSTER,
            ],
            consumer: None,
            reads_lock: false,
            writes: OutputForm::Text {
                out: "Where to write the value [default: stdout]",
            },
        }
    }

    fn needs_registry(&self) -> bool {
        false
    }

    fn render(&self, request: &RenderRequest<'_>) -> Result<RenderedConfig, RenderError> {
        let dialect = match request.settings.get("form") {
            Some("dotted") => NoProxyDialect::Dotted,
            Some("portable") => NoProxyDialect::Portable,
            _ => NoProxyDialect::Bare,
        };
        if let Some(site) = request.site {
            no_proxy::check(site)?;
        }
        let list = request.no_proxy().list(dialect);
        let members = vec![("text", json!(list))];
        Ok(RenderedConfig {
            output: RenderedOutput::Text(list + "\n"),
            members,
            ..RenderedConfig::default()
        })
    }
}
