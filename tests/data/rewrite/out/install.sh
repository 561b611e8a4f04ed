#!/bin/sh
IMAGE="${IMAGE:-172.20.0.2:5000/dexidp/dex:v2.42.0}"
skopeo copy docker://172.20.0.2:5000/kubermatic/api:v2.26.2 docker://elsewhere.example/api:v1
docker pull quay.io/prometheus/node-exporter:$VERSION
for i in 172.20.0.2:5000/dexidp/dex:v2.42.0 "172.20.0.2:5000/kubernetes/pause:3.1"; do ctr i pull $i; done
echo "172.20.0.2:5000/kubermatic/api:v2.26.2,172.20.0.2:5000/dexidp/dex:v2.42.0;ok"
docker run "quay.io/kubermatic/api":v9
