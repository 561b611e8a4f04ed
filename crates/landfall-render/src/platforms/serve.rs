//! `serve`: a systemd service for `landfall serve`. The packages of landfall install the same unit.

use crate::platform::{
    OutputForm, PlatformSetting, PlatformSettings, RenderPlatform, RenderRequest, RenderedConfig,
    wrong_value,
};
use crate::rendered_file::RenderedFile;
use landfall_model::{Failure, split_port, without_scheme};

const BUNDLE: PlatformSetting =
    PlatformSetting::new("bundle", "PATH", "The bundle on the machine that serves it")
        .with_default("/srv/landfall/release.tar.zst");

const LISTEN: PlatformSetting = PlatformSetting::new(
    "listen",
    "ADDRESS:PORT",
    "The address to listen on [default: all addresses, at the port of registry.address, or 5000 \
           without a registry]",
);

const TLS: PlatformSetting = PlatformSetting::new(
    "tls",
    "FOLDER",
    "A folder with tls.crt and tls.key on that machine; without it, plain http",
);

/// The systemd unit of the server, which is the same for every site.
const UNIT: &str = include_str!("../serve/landfall.service");

/// The capability that an unprivileged service needs for a port below 1024.
const LOW_PORT: &str = "[Service]
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
PrivateUsers=no
";

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "serve",
    about: "`landfall serve` as a hardened service: unit and environment",
    details: "You need not create a user for the service: systemd assigns one while it \
              runs. Its folder is /var/lib/landfall.",
    settings: &[BUNDLE, LISTEN, TLS],
    reads_lock: false,
    writes: OutputForm::Files {
        not_into: Some("a unit is a separate file and not YAML; write it with -o DIR"),
    },
    needs_registry: false,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let address = request.target.map_or("", |target| &target.registry);
    let (_, port) = split_port(address);
    let port = port.filter(|port| port.parse::<u16>().is_ok());
    // clients of an IPv6 address cannot reach 0.0.0.0; on Linux, [::] accepts IPv4 clients too
    let any = if address.starts_with('[') {
        "[::]"
    } else {
        "0.0.0.0"
    };
    let listen = match (request.settings.get(LISTEN.key), port) {
        (Some(listen), _) => listen.to_owned(),
        (None, Some(port)) => format!("{any}:{port}"),
        // the port of `landfall serve`
        (None, None) if request.target.is_none() => format!("{any}:5000"),
        // a registry address without a port means the port of its scheme
        (None, None) if request.registry()?.plain_http => format!("{any}:80"),
        (None, None) => format!("{any}:443"),
    };
    let arguments = arguments(&request.settings, &listen)?;
    let mut environment = format!("LANDFALL_SERVE={arguments}\n");
    let mut copies = "copy the bundle to its path";
    if request.site.is_some() {
        environment += "LANDFALL_SITE=/etc/landfall/site.yaml\n";
        copies = "copy the site file to /etc/landfall/site.yaml, and the bundle to its path";
    }
    let mut files = vec![
        RenderedFile::new("etc/systemd/system/landfall.service", UNIT),
        RenderedFile::new("etc/landfall/serve.env", environment),
    ];
    // a scheme selects the protocol of an address
    let (_, port) = split_port(without_scheme(&listen));
    if port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port < 1024)) {
        files.push(RenderedFile::new(
            "etc/systemd/system/landfall.service.d/port.conf",
            LOW_PORT,
        ));
    }
    let notes = vec![copies.to_owned()];
    Ok(RenderedConfig::of_files(files, notes))
}

/// The folders that the unit hides from the service (`ProtectHome=`, `PrivateTmp=`).
const HIDDEN: [&str; 5] = ["/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"];

/// The reason why the service cannot open a path. The URL of an object is no path.
fn why_unreachable(path: &str) -> Option<&'static str> {
    if path.contains("://") {
        None
    } else if !path.starts_with('/') {
        Some("the service runs in another folder; write the whole path")
    } else {
        let is_hidden = HIDDEN.iter().any(|folder| path.starts_with(folder));
        is_hidden.then_some(
            "the unit hides /home, /root, /run/user, /tmp and /var/tmp from the service; use \
             another folder, such as /srv/landfall",
        )
    }
}

/// Returns the arguments of `landfall serve` as the value of a variable in an environment file.
/// systemd splits `$LANDFALL_SERVE` at blanks outside of quotes (systemd.service(5), "Command
/// lines"). Fails if a setting has characters that systemd removes, or if the service would not
/// start with it. `PlatformSettings::parse` already refused tabs and line breaks.
fn arguments(settings: &PlatformSettings, listen: &str) -> Result<String, Failure> {
    for key in [BUNDLE.key, LISTEN.key, TLS.key] {
        let value = settings.get(key).unwrap_or_default();
        // releases of systemd differ in how they read backslashes in quotes
        if value.contains(['\'', '"', '\\']) {
            let why = "systemd does not pass quotes and backslashes to a service; use a value \
                       without them";
            return Err(wrong_value(key, value, why));
        }
    }
    for key in [BUNDLE.key, TLS.key] {
        if let Some(path) = settings.get(key)
            && let Some(why) = why_unreachable(path)
        {
            return Err(wrong_value(key, path, why));
        }
    }
    let (host, port) = split_port(without_scheme(listen));
    if host.is_empty() || port.is_none_or(|port| port.parse::<u16>().is_err()) {
        let why = "write ADDRESS:PORT, as in 0.0.0.0:5000";
        return Err(wrong_value(LISTEN.key, listen, why));
    }
    if listen.starts_with("https://") && settings.get(TLS.key).is_none() {
        let why = "https needs a certificate; add --set tls=FOLDER";
        return Err(wrong_value(LISTEN.key, listen, why));
    }
    let mut arguments = vec![
        settings.need(BUNDLE.key)?.to_owned(),
        "--listen".to_owned(),
        listen.to_owned(),
    ];
    if let Some(folder) = settings.get(TLS.key) {
        arguments.extend([
            "--tls-cert".to_owned(),
            format!("{folder}/tls.crt"),
            "--tls-key".to_owned(),
            format!("{folder}/tls.key"),
        ]);
    }
    for argument in &mut arguments {
        if argument.contains(' ') {
            *argument = format!("\"{argument}\"");
        }
    }
    let text = arguments.join(" ");
    // without the outer quotes, systemd would remove inner quotes at the beginning of the value
    // when it reads the file
    Ok(if text.contains('"') {
        format!("'{text}'")
    } else {
        text
    })
}
