#!/bin/sh
# start.sh <folder> <port>: an OpenStack Swift with its S3 API, on this machine's loopback, with what it keeps in the folder.
#
# Of Debian's packages swift-proxy, swift-account, swift-container, swift-object and memcached. It runs in the foreground, by
# whom it is started, and ends with all its parts; five ports from the one given on are its own. Its key is `test:tester`, its
# secret `testing`, its region `us-east-1`. Not for anything but tests: one copy of each object, and no rest of a cluster.
set -eu

folder=$1
proxy=$2
account=$((proxy + 1))
container=$((proxy + 2))
object=$((proxy + 3))
cache=$((proxy + 4))
user=$(id -un)

mkdir -p "$folder/devices/one" "$folder/cache"
cd "$folder"

ring() {
  swift-ring-builder "$1.builder" create 4 1 0
  swift-ring-builder "$1.builder" add "r1z1-127.0.0.1:$2/one" 1
  swift-ring-builder "$1.builder" rebalance
}
for of in account:$account container:$container object:$object; do
  ring "${of%:*}" "${of#*:}" >ring.log 2>&1 || [ -e "${of%:*}.ring.gz" ] || { cat ring.log >&2; exit 1; }
done

common="
bind_ip = 127.0.0.1
user = $user
swift_dir = $folder
workers = 0
log_level = WARNING"

for of in account:$account container:$container object:$object; do
  name=${of%:*}
  cat >"$name.conf" <<CONF
[DEFAULT]$common
bind_port = ${of#*:}
devices = $folder/devices
mount_check = false
recon_cache_path = $folder/cache
[pipeline:main]
pipeline = $name-server
[app:$name-server]
use = egg:swift#$name
[$name-replicator]
[$name-updater]
[$name-auditor]
[account-reaper]
[container-sync]
CONF
done

cat >proxy.conf <<CONF
[DEFAULT]$common
bind_port = $proxy
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache s3api tempauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:$cache
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
CONF

pids=
trap 'kill $pids 2>/dev/null || true' EXIT
trap 'exit 0' TERM INT
memcached -u "$user" -l 127.0.0.1 -p "$cache" -U 0 &
pids="$pids $!"
for name in account container object proxy; do
  "swift-$name-server" "$folder/$name.conf" >"$name.log" 2>&1 &
  pids="$pids $!"
done
wait
