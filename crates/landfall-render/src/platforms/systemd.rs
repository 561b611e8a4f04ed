//! `systemd` and `kubelet`: drop-ins that give services of nodes the proxy.

use crate::error::RenderError;
use crate::file::RenderedFile;
use crate::no_proxy::Dialect;
use crate::platform::{Output, Platform, Rendered, Spec, Writes};
use crate::quote::systemd_environment;
use crate::request::Request;
use crate::settings::Setting;
use crate::site_proxy::ProxyAddress;

pub(super) struct DropIns(&'static Spec);

/// The form of drop-ins.
pub(super) const FORM: Setting = Setting {
    key: "form",
    value_name: "FORM",
    help: "As Giant Swarm has them (six variables), or as TKG (three, and the kubelet's below /usr/lib)",
    default: Some("giantswarm"),
    choices: &["giantswarm", "tkg"],
};

const NOT_INTO: Option<&str> =
    Some("a drop-in is a file of its own, and no YAML; write it with -o DIR");

pub(super) static KUBELET: DropIns = DropIns(&Spec {
    name: "kubelet",
    about: "A systemd drop-in that gives the kubelet the proxy",
    details: "Needed where the kubelet itself talks to hosts beyond the proxy, as with an in-tree cloud provider.",
    inputs: &[],
    settings: &[FORM],
    consumer: None,
    reads_lock: false,
    writes: Writes::Files { not_into: NOT_INTO },
});

pub(super) static SYSTEMD: DropIns = DropIns(&Spec {
    name: "systemd",
    about: "systemd drop-ins that give containerd, the kubelet or other services the proxy",
    details: "The paths below the folder are those on a node.",
    inputs: &[],
    settings: &[
        FORM,
        Setting {
            key: "services",
            value_name: "NAME,...",
            help: "The services",
            default: Some("containerd,kubelet"),
            choices: &[],
        },
    ],
    consumer: None,
    reads_lock: false,
    writes: Writes::Files { not_into: NOT_INTO },
});

impl Platform for DropIns {
    fn spec(&self) -> &'static Spec {
        self.0
    }

    fn needs_registry(&self) -> bool {
        false
    }

    fn render(&self, request: &Request<'_>) -> Result<Rendered, RenderError> {
        let services = request.settings.get("services").unwrap_or("kubelet");
        let mut files = Vec::new();
        for service in services.split(',') {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_@:.".contains(c);
            if service.is_empty() || service.starts_with('.') || !service.chars().all(plain) {
                let why = "it is a list of services, as in containerd,kubelet".to_owned();
                return Err(RenderError::Value {
                    key: "services".into(),
                    value: services.into(),
                    why,
                });
            }
            files.push(
                drop_in(service.trim_end_matches(".service"), Form::of(request), request)?.ok_or_else(
                    || {
                        RenderError::Site(
                    "the site has no proxy, so there is nothing to tell services; add proxy.http and \
                                   proxy.https to it"
                        .into(),
                )
                    },
                )?,
            );
        }
        Ok(Rendered {
            output: Output::Files(files),
            ..Rendered::default()
        })
    }
}

/// Who has the drop-in so: how many variables, where, with which mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Giant Swarm: six variables.
    GiantSwarm,
    /// TKG: three variables, the kubelet's below `/usr/lib`.
    Tkg,
}

impl Form {
    /// The form that `--set form` names.
    pub(super) fn of(request: &Request<'_>) -> Form {
        if request.settings.get(FORM.key) == Some("tkg") {
            Form::Tkg
        } else {
            Form::GiantSwarm
        }
    }
}

/// The drop-in of `service` in this form; `None` where the site has no proxy.
///
/// # Errors
/// When the proxy's account cannot be read.
pub(super) fn drop_in(
    service: &str,
    form: Form,
    request: &Request<'_>,
) -> Result<Option<RenderedFile>, RenderError> {
    let Some(proxy) = request.proxy()? else {
        return Ok(None);
    };
    let is_tkg = form == Form::Tkg;
    let (dialect, mode) = if is_tkg {
        (Dialect::Dotted, 0o640)
    } else {
        (Dialect::Bare, 0o600)
    };
    let url = |proxy: &Option<ProxyAddress>| proxy.as_ref().map(ProxyAddress::url);
    let no_proxy = Some(request.no_proxy().list(dialect));
    let mut text = "[Service]\n".to_owned();
    for (name, value) in [
        ("HTTP_PROXY", url(&proxy.http)),
        ("HTTPS_PROXY", url(&proxy.https)),
        ("NO_PROXY", no_proxy),
    ] {
        let Some(value) = value else { continue };
        text += &systemd_environment(name, &value);
        if !is_tkg {
            text += &systemd_environment(&name.to_ascii_lowercase(), &value);
        }
    }
    let folder = if is_tkg && service == "kubelet" {
        "usr/lib"
    } else {
        "etc"
    };
    let path = format!("{folder}/systemd/system/{service}.service.d/http-proxy.conf");
    Ok(Some(
        RenderedFile::new(path, text)
            .mode(mode)
            .secret(proxy.has_account()),
    ))
}
