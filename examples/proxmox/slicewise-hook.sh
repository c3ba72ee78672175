#!/bin/sh
# A Proxmox VE hook script: `qm set VMID --hookscript local:snippets/slicewise-hook.sh`. Proxmox calls it as
# `slicewise-hook.sh VMID PHASE`. The request stands in the VM's description, on a line of its own:
#
#     slicewise: profile=3g.40gb tenant=acme
#
# It is handed to the libvirt hook (examples/libvirt-hook), which decides; a VM without that line starts as ever.
set -eu

vmid=$1 phase=$2
hook=${SLICEWISE_HOOK:-/usr/local/libexec/slicewise/qemu}

# `key=value` words as attributes. Values hold letters, digits, `.`, `_`, `-` and `+`; anything else is refused.
request() {
  line=$(qm config "$vmid" | sed -n 's/^description: *//p' | sed 's/%0A/\n/g; s/%3A/:/g; s/%3D/=/g; s/%20/ /g; s/%2B/+/g' |
    sed -n 's/^slicewise: *//p')
  for word in $line; do
    case $word in
    *[!A-Za-z0-9._=+-]* | *=*=* | =* | *=) echo "slicewise: cannot read \`$word\` in the description" >&2; exit 1 ;;
    *=*) printf ' %s="%s"' "${word%%=*}" "${word#*=}" ;;
    *) echo "slicewise: expected key=value, found \`$word\`" >&2; exit 1 ;;
    esac
  done
}

case $phase in
pre-start)
  attributes=$(request)
  [ -n "$attributes" ] || exit 0
  printf '<domain><metadata><s:gpu xmlns:s="https://slicewise.dev/domain/1"%s/></metadata></domain>' "$attributes" |
    "$hook" "$vmid" prepare begin -
  ;;
post-stop)
  "$hook" "$vmid" release end - </dev/null
  ;;
esac
