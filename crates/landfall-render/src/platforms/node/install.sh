
# --- steps ------------------------------------------------------------------------------------

STEPS='system trust packages files config programs modules sysctl swap network services'
STATE=/var/lib/landfall
FROM=$FILES ROOT='' REPLACE=no SKIPPED=' ' STEP=options FAILED=no NOTES=0
CHANGES=0

usage() {
  echo "usage: sh install.sh [--from URL|DIR] [--skip STEP]... [--replace] [--root DIR]

Sets up this machine as a node for kubeadm. Run it as root, as often as you like: a step that is
done is not done again.

  --from URL|DIR  the file server, or a folder of \`landfall export files\` [default: ${FILES:-none}]
  --skip STEP     leave out a step (may be repeated): $STEPS
  --replace       replace files that landfall did not write; each is kept as FILE.before-landfall
  --root DIR      write below DIR, for the image of a machine, and start no service"
}

fail() { # WHY FIX
  FAILED=yes
  printf 'FAILED at step %s: %s\n  fix: %s; then run this script again, it continues here\n' \
    "$STEP" "$1" "$2" >&2
  exit 1
}
say_ok() { printf '%s ok: %s\n' "$STEP" "$1"; }
say_done() { CHANGES=$((CHANGES + 1)); printf '%s done: %s\n' "$STEP" "$1"; }
note() { NOTES=$((NOTES + 1)); printf '%s note: %s\n' "$STEP" "$1"; }
finish() {
  code=$?
  [ -z "${WORK:-}" ] || rm -rf "$WORK"
  [ "$code" = 0 ] || [ "$FAILED" = yes ] ||
    printf 'FAILED at step %s: a command ended with %s, see above\n' "$STEP" "$code" >&2
}

# Whether the machine has Flatcar, whose /usr cannot be written, and has containerd and runc.
is_flatcar() { grep -qs '^ID=flatcar$' "$ROOT/etc/os-release"; }

# The path of a program of the node, or nothing.
program() {
  for folder in /usr/local/sbin /usr/local/bin /opt/bin /usr/sbin /usr/bin /sbin /bin; do
    if [ -x "$ROOT$folder/$1" ]; then
      echo "$folder/$1"
      return 0
    fi
  done
  return 1
}
in_root() { if [ -n "$ROOT" ]; then chroot "$ROOT" "$@"; else "$@"; fi; }
file_sum() {
  sum=$(sha256sum < "$1")
  echo "${sum%% *}"
}
is_same() { [ "$(file_sum "$1")" = "$(file_sum "$2")" ]; }

# Whether landfall wrote the file at this path: by its header, its name, or the records.
is_ours() {
  case $1 in *landfall*) return 0 ;; esac
  if head -n 2 "$ROOT$1" | grep -q '^# Written by `landfall render'; then return 0; fi
  cat "$ROOT$STATE"/files/* 2> /dev/null | grep -q "^[0-9a-f]*  ${1#/}\$"
}

# Moves a new file to its path, in one step. A file of somebody else stays unless --replace is given.
place() { # FILE PATH MODE
  to=$ROOT$2
  mkdir -p "${to%/*}"
  if [ -e "$to" ] && ! is_same "$1" "$to" && ! is_ours "$2"; then
    [ "$REPLACE" = yes ] || fail "$2 exists and landfall did not write it" \
      "remove what an earlier installation left, or add --replace, which keeps it as $2.before-landfall"
    saved=$to.before-landfall count=1
    while [ -e "$saved" ]; do
      saved=$to.before-landfall.$count count=$((count + 1))
    done
    mv "$to" "$saved"
  fi
  : > "$ROOT$STATE/restart"
  (umask 077 && cp "$1" "$to.landfall-new")
  chmod "$3" "$to.landfall-new"
  mv -f "$to.landfall-new" "$to"
}

# Writes standard input to a path, unless the file has this content already.
file() { # PATH MODE
  cat > "$WORK/file"
  if [ -f "$ROOT$1" ] && is_same "$WORK/file" "$ROOT$1"; then
    chmod "$2" "$ROOT$1"
  else
    place "$WORK/file" "$1" "$2"
    say_done "wrote $1"
  fi
}

# --- the file server --------------------------------------------------------------------------

# The certificates with which downloads are verified: those of the machine and of the site.
ca_file() {
  if [ ! -f "$WORK/ca.pem" ]; then
    cat "$ROOT/etc/ssl/certs/ca-certificates.crt" "$ROOT/etc/pki/tls/certs/ca-bundle.crt" \
      "$ROOT/etc/ssl/ca-bundle.pem" 2>/dev/null > "$WORK/ca.pem" || true
    site_certificates >> "$WORK/ca.pem"
  fi
  [ -s "$WORK/ca.pem" ]
}

# The host of a server as apt has it: without the port, and without the brackets of IPv6.
bare_host() { # HOST[:PORT]
  case $1 in
    \[*) host=${1#?} && echo "${host%%\]*}" ;;
    *) echo "${1%%:*}" ;;
  esac
}

# Downloads without a proxy: the file server is at the site. Prints why it failed.
download() { # URL FILE
  if command -v curl > /dev/null; then
    set -- "$1" "$2" curl --noproxy '*' -fsSL --connect-timeout 30
    if ca_file; then set -- "$@" --cacert "$WORK/ca.pem"; fi
    url=$1 out=$2
    shift 2
    "$@" -o "$out" "$url" 2> "$WORK/said" && return 0
  elif command -v wget > /dev/null; then
    set -- "$1" "$2" wget --no-proxy -nv
    if ca_file; then set -- "$@" "--ca-certificate=$WORK/ca.pem"; fi
    url=$1 out=$2
    shift 2
    "$@" -O "$out" "$url" 2> "$WORK/said" && return 0
  elif [ -x /usr/lib/apt/apt-helper ]; then
    url=$1 out=$2 host=${1#*://}
    host=$(bare_host "${host%%/*}")
    set -- /usr/lib/apt/apt-helper -o "Acquire::http::Proxy::$host=DIRECT" \
      -o "Acquire::https::Proxy::$host=DIRECT" -o Acquire::Retries=0
    if ca_file; then set -- "$@" -o "Acquire::https::CAInfo=$WORK/ca.pem"; fi
    rm -f "$out"
    "$@" download-file "$url" "$out" > "$WORK/said" 2>&1 && return 0
  else
    fail "there is no curl, wget or apt-helper to download with" \
      "add curl to the packages of the manifest, or use --from with a folder of \`landfall export files\`"
  fi
  said=$(tr '\n' ' ' < "$WORK/said")
  case $said in
    *404*) fail "the file server has no $url" \
      "deliver the bundle of this lock there (landfall push, landfall serve), or render this script again for the bundle that is there" ;;
    *ertificate* | *SSL* | *TLS*) fail "no trusted TLS connection to $url: $said" \
      "set registry.ca of the site to the authority of this server, and render this script again" ;;
    *) fail "cannot download $url: $said" \
      "start the file server, or name another one, or a folder of \`landfall export files\`, with --from" ;;
  esac
}

fetch() { # PATH SHA256 FILE
  case $FROM in
    '') fail "no file server is known" \
      "add \`files: http://HOST:PORT\` to the site and render this script again, or add --from URL|DIR" ;;
    http://* | https://*) download "${FROM%/}/$1" "$3" ;;
    *)
      [ -f "${FROM%/}/$1" ] || fail "the folder has no ${FROM%/}/$1" \
        "run \`landfall export files -o DIR\` with the bundle of this lock, and copy the whole folder"
      cp "${FROM%/}/$1" "$3"
      ;;
  esac
  sum=$(file_sum "$3")
  [ "$sum" = "$2" ] || fail "wrong checksum of $1 from $FROM: $sum, the lock has $2" \
    "deliver the bundle of this lock to the file server again; nothing was installed from this file"
}

# Whether the recorded files of an item are installed and unchanged.
is_current() { # NAME SHA256
  record=$ROOT$STATE/files/$1
  [ -f "$record" ] && [ "$(head -n 1 "$record")" = "$2" ] &&
    (cd "${ROOT:-/}" && tail -n +2 "$record" | sha256sum -c - > /dev/null 2>&1)
}

# Installs a file of the lock, and records what it installed.
install_item() { # NAME HOW TARGET SHA256 PATH
  fetch "$5" "$4" "$WORK/item"
  printf '%s\n' "$4" > "$WORK/record"
  case $2 in
    program) add_file "$WORK/item" "$3" 0755 ;;
    unit)
      # the unit of Kubernetes' packages starts /usr/bin/kubelet
      folder=/usr/local/bin
      if is_flatcar; then folder=/opt/bin; fi
      sed "s:/usr/bin/kubelet:$folder/kubelet:g" "$WORK/item" > "$WORK/unit"
      add_file "$WORK/unit" "$3" 0644
      ;;
    archive)
      rm -rf "$WORK/stage"
      mkdir "$WORK/stage"
      tar -C "$WORK/stage" -xzf "$WORK/item" || fail "cannot unpack $5" \
        "check the disk space of $STATE, and that the machine has tar and gzip"
      (cd "$WORK/stage" && find . -type f | sort) > "$WORK/members"
      while read -r member; do
        member=${member#./} mode=0644
        [ ! -x "$WORK/stage/$member" ] || mode=0755
        add_file "$WORK/stage/$member" "$3/$member" "$mode"
      done < "$WORK/members"
      ;;
  esac
  mkdir -p "$ROOT$STATE/files"
  mv -f "$WORK/record" "$ROOT$STATE/files/$1"
}
add_file() { # FILE PATH MODE
  place "$1" "$2" "$3"
  printf '%s  %s\n' "$(file_sum "$1")" "${2#/}" >> "$WORK/record"
}

# --- what the steps do ------------------------------------------------------------------------

step_system() {
  case $(uname -m) in
    x86_64) ARCH=amd64 ;;
    aarch64) ARCH=arm64 ;;
    *) ARCH=$(uname -m) ;;
  esac
  case " $ARCHITECTURES " in
    # without files, everything comes from packages
    *" $ARCH "* | '  ') ;;
    *) fail "the lock has no files for $ARCH, only for: $ARCHITECTURES" \
      "add $ARCH to \`arch\` in the manifest, lock again, and render this script again" ;;
  esac
  [ -x "$ROOT/lib/systemd/systemd" ] || [ -x "$ROOT/usr/lib/systemd/systemd" ] ||
    fail "the machine has no systemd" "use a distribution with systemd, or another installer, such as k3s or k0s"
  LIVE=no
  if [ -z "$ROOT" ] && [ -d /run/systemd/system ]; then LIVE=yes; fi
  say_ok "$ARCH, systemd"
}

step_trust() {
  before=$CHANGES
  if is_flatcar; then
    site_trust "/etc/ssl/certs" pem
    refresh=update-ca-certificates
  elif [ -d "$ROOT/etc/pki/ca-trust/source/anchors" ]; then
    site_trust "/etc/pki/ca-trust/source/anchors" crt
    refresh=update-ca-trust
  elif [ -d "$ROOT/etc/pki/trust/anchors" ]; then
    # the program of SLES and openSUSE does not read /usr/local
    site_trust "/etc/pki/trust/anchors" crt
    refresh=update-ca-certificates
  else
    site_trust "/usr/local/share/ca-certificates" crt
    refresh=update-ca-certificates
  fi
  if [ "$CHANGES" = "$before" ]; then
    say_ok "the site's certificates are installed, or it has none"
  elif program "$refresh" > /dev/null; then
    in_root "$refresh" > "$WORK/said" 2>&1 || fail "$refresh failed: $(tail -n 1 "$WORK/said")" \
      "correct the certificates of the site (registry.ca)"
    say_done "the machine trusts the site's certificates"
  else
    note "the machine has no $refresh; only this script and containerd trust the site's certificates"
  fi
}

missing_packages() {
  for package in $1; do
    name=${package%%[=/]*}
    if [ "$2" = apt ]; then
      status=$(in_root dpkg-query -W -f '${db:Status-Status}' "$name" 2> /dev/null) || status=
      [ "$status" = installed ] || printf '%s ' "$package"
    else
      in_root rpm -q "$name" > /dev/null 2>&1 || printf '%s ' "$package"
    fi
  done
}
# The sources, with the server of --from.
source_file() { # PATH MODE
  case $FROM in
    "$FILES")
      file "$1" "$2"
      return
      ;;
    http://* | https://*) to=$FROM ;;
    *) to=file:$FROM ;;
  esac
  from=$(printf '%s' "$FILES/" | sed 's/[]\\.*^$|[]/\\&/g')
  to=$(printf '%s' "${to%/}/" | sed 's/[&|\\]/\\&/g')
  sed "s|$from|$to|g" > "$WORK/source"
  file "$1" "$2" < "$WORK/source"
}
# Runs apt-get. At the first start of a machine, its own updates hold the locks of apt for minutes.
apt() { # ARGUMENT...
  tries=150
  while ! in_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get "$@" < /dev/null > "$WORK/said" 2>&1; do
    grep -q '^E: Could not get lock' "$WORK/said" || return 1
    tries=$((tries - 1))
    if [ "$tries" = 0 ]; then
      fix='stop the program that holds the lock'
      return 1
    fi
    sleep 2
  done
}
step_packages() {
  if [ -n "$APT_PACKAGES" ] && program apt-get > /dev/null; then
    manager=apt missing=$(missing_packages "$APT_PACKAGES" apt)
  elif [ -n "$YUM_PACKAGES" ] && program dnf > /dev/null; then
    manager=yum missing=$(missing_packages "$YUM_PACKAGES" yum)
  else
    say_ok "the lock has no packages for this system"
    return 0
  fi
  if [ -z "$missing" ]; then
    say_ok "the packages of the lock are installed"
    return 0
  fi
  server=$FROM
  case $server in http://* | https://*) server=${server#*://} server=${server%%/*} ;; esac
  fix="deliver the packages of this lock to $server, and check \`landfall doctor packages\`"
  if [ "$manager" = apt ]; then
    apt_sources
    host=$(bare_host "$server")
    set -- -q -o "Acquire::http::Proxy::$host=DIRECT" -o "Acquire::https::Proxy::$host=DIRECT"
    if ca_file; then
      mkdir -p "$ROOT$STATE"
      cp "$WORK/ca.pem" "$ROOT$STATE/ca.pem"
      set -- "$@" -o "Acquire::https::CAInfo=$STATE/ca.pem"
    fi
    apt "$@" -o APT::Update::Error-Mode=any update ||
      fail "apt-get update: $(grep -m 1 '^[EW]:' "$WORK/said" || tail -n 1 "$WORK/said")" "$fix"
    # shellcheck disable=SC2086 # the names of packages are words
    apt "$@" install -y $missing ||
      fail "apt-get install $missing: $(grep -m 1 '^E:' "$WORK/said" || tail -n 1 "$WORK/said")" "$fix"
  else
    yum_sources
    # an empty proxy of dnf leaves that of the environment
    set -- -y --setopt=reposdir=/etc/landfall/yum.repos.d --setopt=proxy=
    # shellcheck disable=SC2086 # the names of streams are words
    [ -z "$YUM_MODULES" ] || in_root env no_proxy='*' dnf "$@" module enable $YUM_MODULES < /dev/null > "$WORK/said" 2>&1 ||
      fail "dnf module enable $YUM_MODULES: $(tail -n 1 "$WORK/said")" "$fix"
    # shellcheck disable=SC2086 # the names of packages are words
    in_root env no_proxy='*' dnf "$@" install $missing < /dev/null > "$WORK/said" 2>&1 ||
      fail "dnf install $missing: $(tail -n 1 "$WORK/said")" "$fix"
  fi
  say_done "installed $missing"
}

step_files() {
  items > "$WORK/items"
  while read -r name how target arch sum path; do
    case $arch in "$ARCH" | any) ;; *) continue ;; esac
    if is_flatcar; then
      case $name in
        containerd | runc | containerd.service)
          say_ok "$name is that of Flatcar"
          continue
          ;;
      esac
      case $target in /usr/local/*) target=/opt/${target#/usr/local/} ;; esac
    fi
    if is_current "$name" "$sum"; then
      say_ok "$name is installed"
    else
      install_item "$name" "$how" "$target" "$sum" "$path"
      say_done "installed $name ($target)"
    fi
  done < "$WORK/items"
}

step_config() {
  before=$CHANGES
  version=$CONTAINERD
  if is_flatcar; then
    version=''
    # its unit names a configuration below /usr
    file /etc/systemd/system/containerd.service.d/10-landfall-config.conf 0644 << 'END'
[Service]
ExecStart=
ExecStart=/usr/bin/containerd
END
    note "kubeadm mounts a folder below /usr/libexec, which Flatcar cannot create: in the file for kubeadm init, set flex-volume-plugin-dir in extraArgs of controllerManager to a folder below /opt"
  fi
  if [ -z "$version" ]; then
    containerd=$(program containerd) || fail "there is no containerd" \
      "add its archive or its package to the manifest, lock and deliver it, and render this script again"
    # containerd github.com/containerd/containerd/v2 v2.3.4 <commit>; Debian's has no v
    version=$(in_root "$containerd" --version | cut -d ' ' -f 3)
    version=${version#v}
  fi
  case $version in
    1.*) containerd_1 > "$WORK/toml" ;;
    [2-9].*) containerd_2 > "$WORK/toml" ;;
    *) fail "containerd has the version '$version'" "install containerd 1.6 or newer" ;;
  esac
  file /etc/containerd/config.toml "$CONFIG_MODE" < "$WORK/toml"
  configuration
  [ "$CHANGES" != "$before" ] || say_ok "the configuration of containerd $version is unchanged"
}

step_programs() {
  missing=''
  for name in containerd runc kubelet kubeadm conntrack ip iptables mount nsenter; do
    program "$name" > /dev/null || missing="$missing $name"
  done
  [ -z "$missing" ] || fail "kubeadm needs programs that the machine lacks:$missing" \
    "add their packages (conntrack, iptables, iproute2) or files to the manifest, as \`landfall init --from kubeadm\` has them"
  for unit in containerd kubelet; do
    found=no
    for folder in /etc /run /usr/local/lib /usr/lib /lib; do
      [ ! -f "$ROOT$folder/systemd/system/$unit.service" ] || found=yes
    done
    [ "$found" = yes ] || fail "there is no $unit.service" \
      "add the unit to the manifest, as \`landfall init --from kubeadm\` has it, or install the package that has it"
  done
  say_ok "containerd, runc, kubelet, kubeadm and what they need"
}

step_modules() {
  if [ "$LIVE" = no ]; then
    say_ok "loaded when the machine starts"
    return 0
  fi
  for module in overlay br_netfilter; do
    if [ -d "/sys/module/$module" ] || grep -qw "$module" /proc/filesystems ||
      { [ "$module" = br_netfilter ] && [ -d /proc/sys/net/bridge ]; }; then
      say_ok "$module is loaded"
    elif modprobe "$module" 2> "$WORK/said"; then
      say_done "loaded $module"
    else
      fail "cannot load $module: $(tail -n 1 "$WORK/said")" \
        "install the modules of kernel $(uname -r), or leave the step out with --skip modules"
    fi
  done
}

step_sysctl() {
  if [ "$LIVE" = no ]; then
    say_ok "set when the machine starts"
    return 0
  fi
  sysctls > "$WORK/sysctls"
  while IFS='= ' read -r key value; do
    path=/proc/sys/$(echo "$key" | tr . /)
    if [ "$(cat "$path" 2> /dev/null)" = "$value" ]; then
      say_ok "$key is $value"
    elif [ ! -e "$path" ]; then
      case $key in
        net.bridge.*) note "the kernel has no $key: br_netfilter is not loaded" ;;
        *) note "the kernel has no $key: IPv6 is off" ;;
      esac
    elif echo "$value" 2> /dev/null > "$path"; then
      say_done "set $key to $value"
    else
      fail "cannot set $key to $value" "set it on the host of this machine, or leave the step out with --skip sysctl"
    fi
  done < "$WORK/sysctls"
}

step_swap() {
  if [ "$LIVE" = yes ] && [ "$(wc -l < /proc/swaps)" -gt 1 ]; then
    fail "swap is on, so the kubelet does not start" \
      "run swapoff -a and remove the swap lines from /etc/fstab, or set failSwapOn: false in the KubeletConfiguration and leave the step out with --skip swap"
  fi
  say_ok "off"
}

# The ranges of other nodes' pods that have no route over their node.
missing_routes() {
  for route in $POD_ROUTES; do
    case $route in *:*) family=-6 ;; *) family=-4 ;; esac
    [ -n "$(ip "$family" route show "${route%@*}" via "${route#*@}")" ] || printf '%s ' "${route%@*}"
  done
}
step_network() {
  if [ -n "$INTERFACE" ] && [ "$LIVE" = yes ] && [ ! -e "/sys/class/net/$INTERFACE" ]; then
    fail "the machine has no interface $INTERFACE, but $(ls /sys/class/net | tr '\n' ' ')" \
      "render this script again with the right --set interface=NAME"
  fi
  [ -z "$INTERFACE$POD_ROUTES" ] || enable_units landfall-route
  missing=''
  if [ "$LIVE" = yes ]; then
    missing=$(missing_routes)
    for range in $SERVICE_CIDRS; do
      if ip route get "${range%/*}" > /dev/null 2>&1; then
        continue
      elif [ -z "$INTERFACE" ]; then
        note "no route to the services $range: pods do not reach the API server (network is unreachable); add a default route, or render this script again with --set interface=NAME"
      else
        missing="$range $missing"
      fi
    done
  fi
  if [ -n "$missing" ]; then
    systemctl daemon-reload
    systemctl restart landfall-route || fail "cannot add routes to $missing" "see journalctl -u landfall-route"
    say_done "added routes to $missing"
  fi
  if [ "$LIVE" = yes ] && [ -z "$(ip route show default)$(ip -6 route show default)" ]; then
    note "no default route: set localAPIEndpoint.advertiseAddress in the file for kubeadm init, the node's name in /etc/hosts, and the interface of the network (Flannel: --iface)"
  fi
  if grep -qs '^nameserver' "$ROOT/etc/resolv.conf"; then
    say_ok "/etc/resolv.conf has a name server"
  elif [ -n "$NAMESERVER" ] && { [ -z "$ROOT" ] || [ ! -h "$ROOT/etc/resolv.conf" ]; }; then
    printf 'nameserver %s\n' "$NAMESERVER" >> "$ROOT/etc/resolv.conf" || fail "cannot write /etc/resolv.conf" \
      "start the service that writes it, or remove the link"
    say_done "added the name server $NAMESERVER to /etc/resolv.conf"
  else
    note "/etc/resolv.conf has no name server: CoreDNS does not start; add one, or render this script again with --set nameserver=ADDRESS (it need not answer)"
  fi
}

enable_units() {
  for unit; do
    if [ -h "$ROOT/etc/systemd/system/multi-user.target.wants/$unit.service" ]; then
      say_ok "$unit is enabled"
    else
      systemctl --root="${ROOT:-/}" enable "$unit" 2> "$WORK/said" || fail "cannot enable $unit: $(tail -n 1 "$WORK/said")" \
        "check the unit: systemctl cat $unit"
      say_done "enabled $unit"
    fi
  done
}
step_services() {
  enable_units containerd kubelet
  if [ "$LIVE" = no ]; then
    say_ok "started when the machine starts"
    return 0
  fi
  if [ -e "$STATE/restart" ] || ! systemctl -q is-active containerd; then
    systemctl daemon-reload
    systemctl restart containerd || fail "containerd does not start: $(journalctl -q -n 1 -o cat -u containerd)" \
      "see journalctl -u containerd, and landfall doctor node"
    systemctl -q try-restart kubelet
    rm -f "$STATE/restart"
    say_done "started containerd"
  else
    say_ok "containerd runs"
  fi
  if crictl=$(program crictl); then
    "$crictl" info > "$WORK/said" 2>&1 || fail "the kubelet cannot use containerd: $(tail -n 1 "$WORK/said")" \
      "see journalctl -u containerd, and landfall doctor node"
  fi
  # until kubeadm writes its configuration, the kubelet starts again and again
  systemctl -q is-active kubelet || systemctl start --no-block kubelet
}

while [ $# -gt 0 ]; do
  case $1 in
    --from | --skip | --root)
      [ $# -gt 1 ] || fail "$1 needs a value" "write $1 VALUE"
      case $1 in
        --from) FROM=${2%/} ;;
        --root) ROOT=${2%/} ;;
        --skip)
          case " $STEPS " in
            *" $2 "*) SKIPPED="$SKIPPED$2 " ;;
            *) fail "there is no step '$2'" "the steps are $STEPS" ;;
          esac
          ;;
      esac
      shift 2
      ;;
    --replace) REPLACE=yes && shift ;;
    -h | --help) usage && exit 0 ;;
    *) fail "unknown argument '$1'" "see sh install.sh --help" ;;
  esac
done
case $FROM in http://* | https://* | /* | '') ;; *) FROM=$PWD/$FROM ;; esac
case $ROOT in /* | '') ;; *) ROOT=$PWD/$ROOT ;; esac
[ "$(id -u)" = 0 ] || [ -n "$ROOT" ] || fail "only root can set up a machine" "run sudo sh install.sh"
umask 022
mkdir -p "$ROOT$STATE"
WORK=$(mktemp -d "$ROOT$STATE/install.XXXXXX")
trap finish EXIT
for STEP in $STEPS; do
  case $SKIPPED in
    *" $STEP "*) echo "$STEP skipped" ;;
    *) "step_$STEP" ;;
  esac
done
echo "ready: $CHANGES changes, $NOTES notes; next: kubeadm init --config FILE, or kubeadm join"
