//! `systemd` and `kubelet`: systemd drop-ins that give services of nodes the proxy.

use crate::platform::{
    OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig, RenderedOutput,
    SITE_CLUSTER, wrong_value,
};
use crate::proxy::{self, NoProxyDialect, ProxyAddress, no_proxy_failure};
use crate::rendered_file::{RenderedFile, systemd_environment};
use landfall_model::Failure;

/// Selects the form of the drop-ins.
pub(super) const FORM: PlatformSetting = PlatformSetting::new(
    "form",
    "FORM",
    "As in Giant Swarm (six variables), or as in TKG (three, and the kubelet's drop-in below \
           /usr/lib)",
)
.one_of(&["giantswarm", "tkg"]);

const NOT_INTO: Option<&str> =
    Some("a drop-in is a separate file and not YAML; write it with -o DIR");

pub(super) static KUBELET: RenderPlatform = RenderPlatform {
    name: "kubelet",
    about: "A systemd drop-in that gives the kubelet the proxy",
    details: "Needed if the kubelet itself connects to hosts behind the proxy, as with an in-tree \
              cloud provider.",
    settings: &[FORM, SITE_CLUSTER],
    reads_lock: false,
    writes: OutputForm::Files { not_into: NOT_INTO },
    needs_registry: false,
    ..RenderPlatform::new(render_drop_ins)
};

pub(super) static SYSTEMD: RenderPlatform = RenderPlatform {
    name: "systemd",
    about: "systemd drop-ins that give containerd or other services the proxy",
    details: "The kubelet needs it only with an in-tree cloud provider: add it to the services, or \
              use `landfall render kubelet`. Paths in the output folder are the paths on a node.",
    settings: &[
        FORM,
        SITE_CLUSTER,
        PlatformSetting::new("services", "NAME,...", "The services").with_default("containerd"),
    ],
    reads_lock: false,
    writes: OutputForm::Files { not_into: NOT_INTO },
    needs_registry: false,
    ..RenderPlatform::new(render_drop_ins)
};

fn render_drop_ins(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let services = request.settings.get("services").unwrap_or("kubelet");
    let mut files = Vec::new();
    for service in services.split(',') {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_@:.".contains(c);
        if service.is_empty() || service.starts_with('.') || !service.chars().all(plain) {
            // the name becomes a part of a path
            let why = "it must be a list of services, such as containerd,kubelet";
            return Err(wrong_value("services", services, why));
        }
        let name = service.trim_end_matches(".service");
        let file = drop_in(name, DropInForm::of(request), request)?;
        files.push(file.ok_or_else(no_proxy_failure)?);
    }
    Ok(RenderedConfig::of_files(files, Vec::new()))
}

/// The form of a drop-in: its variables, its folder and its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DropInForm {
    /// As in Giant Swarm: six variables.
    SixVariables,
    /// As in TKG: three variables; the kubelet's drop-in is below `/usr/lib`.
    Tkg,
}

impl DropInForm {
    /// Returns the form that `--set form` selects.
    pub(super) fn of(request: &RenderRequest<'_>) -> DropInForm {
        if request.settings.get(FORM.key) == Some("tkg") {
            DropInForm::Tkg
        } else {
            DropInForm::SixVariables
        }
    }
}

/// Returns the drop-in of `service` in this form, or `None` if the site has no proxy.
pub(super) fn drop_in(
    service: &str,
    form: DropInForm,
    request: &RenderRequest<'_>,
) -> Result<Option<RenderedFile>, Failure> {
    let Some(proxy) = request.proxy()? else {
        return Ok(None);
    };
    let is_tkg = form == DropInForm::Tkg;
    let (dialect, mode) = if is_tkg {
        (NoProxyDialect::Dotted, 0o640)
    } else {
        (NoProxyDialect::Bare, 0o600)
    };
    let [http, https] = [&proxy.http, &proxy.https].map(|one| one.as_ref().map(ProxyAddress::url));
    let no_proxy = Some(request.no_proxy().list(dialect));
    let mut text = "[Service]\n".to_owned();
    for (name, value) in [
        ("HTTP_PROXY", http),
        ("HTTPS_PROXY", https),
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

/// Returns only the drop-ins of `services`, for a site without a registry.
pub(super) fn only_drop_ins(
    services: &[&str],
    form: DropInForm,
    request: &RenderRequest<'_>,
) -> Result<RenderedConfig, Failure> {
    let mut files = Vec::new();
    for service in services {
        files.extend(drop_in(service, form, request)?);
    }
    Ok(RenderedConfig::of_files(files, Vec::new()))
}

pub(super) static NO_PROXY: RenderPlatform = RenderPlatform {
    name: "no-proxy",
    about: "The value of NO_PROXY: the hosts that nodes and pods reach without the proxy",
    details: "It is composed of the entries of the cluster and the installation and the \
              site's own hosts, always in the same order. The files of other platforms \
              have the same entries.",
    settings: &[
        PlatformSetting::new(
            "form",
            "FORM",
            "How names are written: svc and cluster.local (bare), .svc and \
                   .svc.cluster.local (dotted), or every name with and without a dot, for \
                   any program (portable)",
        )
        .one_of(&["bare", "dotted", "portable"]),
        SITE_CLUSTER,
    ],
    reads_lock: false,
    writes: OutputForm::Text {
        out: "Where to write the value [default: stdout]",
    },
    needs_registry: false,
    ..RenderPlatform::new(render_no_proxy)
};

fn render_no_proxy(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let dialect = match request.settings.get("form") {
        Some("dotted") => NoProxyDialect::Dotted,
        Some("portable") => NoProxyDialect::Portable,
        _ => NoProxyDialect::Bare,
    };
    if let Some(site) = request.site {
        proxy::check(site)?;
    }
    let list = request.no_proxy().list(dialect);
    Ok(RenderedConfig {
        output: RenderedOutput::Text(format!("{list}\n")),
        text: Some(list),
        ..RenderedConfig::default()
    })
}
