#!/bin/sh
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
# Sets up this machine as a node for kubeadm; --help explains it.
set -eu

FILES=http://172.20.0.2:8080
ARCHITECTURES='amd64 arm64'
CONTAINERD=2.3.4
CONFIG_MODE=0644
APT_PACKAGES=conntrack
YUM_PACKAGES=conntrack-tools
YUM_MODULES=''
INTERFACE=eth0
SERVICE_CIDRS=10.112.0.0/16
NAMESERVER=172.20.0.2
POD_ROUTES='10.244.2.0/24@172.20.0.5 fd00:2::/64@fd00::5'

# name, kind, target, architecture, SHA-256, path at the file server
items() {
cat <<'LANDFALL'
containerd archive /usr/local amd64 2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6 github.com/containerd/containerd/releases/download/v2.3.4/containerd-2.3.4-linux-amd64.tar.gz
kubelet program /usr/local/bin/kubelet amd64 8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a dl.k8s.io/release/v1.35.8/bin/linux/amd64/kubelet
kubelet program /usr/local/bin/kubelet arm64 ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb dl.k8s.io/release/v1.35.8/bin/linux/arm64/kubelet
LANDFALL
}
sysctls() {
cat <<'LANDFALL'
net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
net.ipv4.ip_forward = 1
LANDFALL
}
site_certificates() {
cat <<'LANDFALL'
-----BEGIN CERTIFICATE-----
b25l
-----END CERTIFICATE-----
LANDFALL
}
site_trust() {
file "$1/landfall-site-1.$2" 0644 <<'LANDFALL'
-----BEGIN CERTIFICATE-----
b25l
-----END CERTIFICATE-----
LANDFALL
}
apt_sources() {
source_file /etc/apt/keyrings/landfall-AAAA1111.asc 0644 <<'LANDFALL'
-----BEGIN PGP PUBLIC KEY BLOCK-----
b25l
-----END PGP PUBLIC KEY BLOCK-----
LANDFALL
source_file /etc/apt/landfall.sources.d/landfall.sources 0644 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
Types: deb
URIs: http://172.20.0.2:8080/archive.example.com/debian
Suites: bookworm
Components: main
Architectures: amd64
Targets: Packages
Languages: none
PDiffs: no
Check-Valid-Until: no
Signed-By: /etc/apt/keyrings/landfall-AAAA1111.asc
LANDFALL
source_file /etc/apt/apt.conf.d/99landfall 0644 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "/etc/apt/landfall.sources.d";
APT::Install-Recommends "false";
Acquire::http::Proxy::172.20.0.2 "DIRECT";
LANDFALL
source_file /etc/apt/preferences.d/landfall.pref 0644 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
Package: conntrack
Pin: version 1:1.4.7-1+b2
Pin-Priority: 999

Package: *
Pin: origin "172.20.0.2"
Pin-Priority: -1
LANDFALL
}
yum_sources() {
source_file /etc/landfall/yum.repos.d/landfall-mirror.example.com-3931ba69.repo 0644 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
[landfall-mirror.example.com-3931ba69]
name=https://mirror.example.com/9/BaseOS/x86_64/os, carried by landfall
baseurl=http://172.20.0.2:8080/mirror.example.com/9/BaseOS/x86_64/os
enabled=1
gpgcheck=1
repo_gpgcheck=0
gpgkey=file:///etc/pki/rpm-gpg/landfall-mirror.example.com-3931ba69.asc
skip_if_unavailable=0
mddownloadpolicy=xml
proxy=_none_
includepkgs=
 conntrack-tools-1.4.7-2.el9.x86_64
LANDFALL
source_file /etc/pki/rpm-gpg/landfall-mirror.example.com-3931ba69.asc 0644 <<'LANDFALL'
-----BEGIN PGP PUBLIC KEY BLOCK-----
dHdv
-----END PGP PUBLIC KEY BLOCK-----
LANDFALL
}
containerd_1() {
cat <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
# Each table may occur only once in config.toml. Remove registry.mirrors and
# registry.configs.*.tls: beside config_path, containerd does not load its CRI plugin.
# `landfall doctor FILE.toml` checks the result.
version = 2

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "registry.corp.example/mirror/pause:3.10.1"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
LANDFALL
}
containerd_2() {
cat <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
# Each table may occur only once in config.toml. Remove registry.mirrors and
# registry.configs.*.tls: beside config_path, containerd does not load its CRI plugin.
# `landfall doctor FILE.toml` checks the result.
version = 3

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "registry.corp.example/mirror/pause:3.10.1"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = true

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
LANDFALL
}
configuration() {
file /etc/containerd/certs.d/_default/hosts.toml 0600 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
server = "https://registry.corp.example/v2/mirror"
capabilities = ["pull", "resolve"]
override_path = true
ca = "../registry.corp.example/ca.crt"

[header]
Authorization = ["Basic cHVsbGVyOnBhc3Mnd29yZA=="]

[host."https://registry.corp.example/v2/mirror"]
capabilities = ["pull", "resolve"]
override_path = true
ca = "../registry.corp.example/ca.crt"

[host."https://registry.corp.example/v2/mirror".header]
Authorization = ["Basic cHVsbGVyOnBhc3Mnd29yZA=="]
LANDFALL
file /etc/containerd/certs.d/k8s.gcr.io/hosts.toml 0600 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
server = "https://registry.corp.example/v2/mirror"
capabilities = ["pull", "resolve"]
override_path = true
ca = "../registry.corp.example/ca.crt"

[header]
Authorization = ["Basic cHVsbGVyOnBhc3Mnd29yZA=="]

[host."https://registry.corp.example/v2/mirror"]
capabilities = ["pull", "resolve"]
override_path = true
ca = "../registry.corp.example/ca.crt"

[host."https://registry.corp.example/v2/mirror".header]
Authorization = ["Basic cHVsbGVyOnBhc3Mnd29yZA=="]
LANDFALL
file /etc/containerd/certs.d/quay.io/hosts.toml 0600 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
server = "https://registry.corp.example/v2/mirror"
capabilities = ["pull", "resolve"]
override_path = true
ca = "../registry.corp.example/ca.crt"

[header]
Authorization = ["Basic cHVsbGVyOnBhc3Mnd29yZA=="]

[host."https://registry.corp.example/v2/mirror"]
capabilities = ["pull", "resolve"]
override_path = true
ca = "../registry.corp.example/ca.crt"

[host."https://registry.corp.example/v2/mirror".header]
Authorization = ["Basic cHVsbGVyOnBhc3Mnd29yZA=="]
LANDFALL
file /etc/containerd/certs.d/registry.corp.example/hosts.toml 0600 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
server = "https://registry.corp.example"
capabilities = ["pull", "resolve"]
ca = "../registry.corp.example/ca.crt"

[header]
Authorization = ["Basic cHVsbGVyOnBhc3Mnd29yZA=="]

[host."https://registry.corp.example"]
capabilities = ["pull", "resolve"]
ca = "../registry.corp.example/ca.crt"

[host."https://registry.corp.example".header]
Authorization = ["Basic cHVsbGVyOnBhc3Mnd29yZA=="]
LANDFALL
file /etc/containerd/certs.d/registry.k8s.io/hosts.toml 0600 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
server = "https://registry.corp.example/v2/mirror"
capabilities = ["pull", "resolve"]
override_path = true
ca = "../registry.corp.example/ca.crt"

[header]
Authorization = ["Basic cHVsbGVyOnBhc3Mnd29yZA=="]

[host."https://registry.corp.example/v2/mirror"]
capabilities = ["pull", "resolve"]
override_path = true
ca = "../registry.corp.example/ca.crt"

[host."https://registry.corp.example/v2/mirror".header]
Authorization = ["Basic cHVsbGVyOnBhc3Mnd29yZA=="]
LANDFALL
file /etc/containerd/certs.d/registry.corp.example/ca.crt 0644 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
-----BEGIN CERTIFICATE-----
b25l
-----END CERTIFICATE-----
LANDFALL
file /etc/systemd/system/containerd.service.d/http-proxy.conf 0600 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
[Service]
Environment="HTTP_PROXY=http://10.0.0.1:3128"
Environment="http_proxy=http://10.0.0.1:3128"
Environment="HTTPS_PROXY=http://10.0.0.1:3128"
Environment="https_proxy=http://10.0.0.1:3128"
Environment="NO_PROXY=10.112.0.0/16,svc,127.0.0.1,localhost,registry.corp.example,172.20.0.2"
Environment="no_proxy=10.112.0.0/16,svc,127.0.0.1,localhost,registry.corp.example,172.20.0.2"
LANDFALL
file /etc/crictl.yaml 0644 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
runtime-endpoint: unix:///run/containerd/containerd.sock
image-endpoint: unix:///run/containerd/containerd.sock
LANDFALL
file /etc/modules-load.d/landfall.conf 0644 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
overlay
br_netfilter
LANDFALL
file /etc/sysctl.d/99-landfall.conf 0644 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
net.ipv4.ip_forward = 1
LANDFALL
file /etc/systemd/system/landfall-route.service 0644 <<'LANDFALL'
# Written by `landfall render node --set bridge=10.244.1.0/24 --set cluster=blue --set interface=eth0 --set nameserver=172.20.0.2 --set pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5 --set proxy=on`; render it again instead of editing it.
[Unit]
Description=Routes to the services and pods of the cluster
Wants=network-online.target
After=network-online.target
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'exec ip route replace 10.112.0.0/16 dev eth0'
ExecStart=/bin/sh -c 'exec ip route replace 10.244.2.0/24 via 172.20.0.5'
ExecStart=/bin/sh -c 'exec ip route replace fd00:2::/64 via fd00::5'

[Install]
WantedBy=multi-user.target
LANDFALL
file /etc/cni/net.d/10-landfall.conflist 0644 <<'LANDFALL'
{
  "cniVersion": "1.0.0",
  "name": "landfall-bridge",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "ipMasq": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "ranges": [
          [
            {
              "subnet": "10.244.1.0/24"
            }
          ]
        ],
        "routes": [
          {
            "dst": "0.0.0.0/0"
          }
        ]
      }
    },
    {
      "type": "portmap",
      "capabilities": {
        "portMappings": true
      }
    }
  ]
}
LANDFALL
}
