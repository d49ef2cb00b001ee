#!/bin/sh
# bench/sites_netem.sh [--delay MS] [--loss PERCENT] [--iterations N] [--model NAME] [--compress HOW]
#   [--local-steps H]: four sites over a bad network. Each is in a network namespace of its own; two can
#   be dialled, two only dial out; every packet takes 50 ms, and one in a hundred is lost. They train, and
#   end with the bits of one process; an iteration's time is shown beside that of a plain TCP connection
#   for the same bytes, and the bytes on the wire beside those of the sites' letters.
# Needs root, iproute2 and python3 (slow_link.py carries the packets); skipped elsewhere.
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=$(readlink -f "${CROSSTALK:-$here/../build/crosstalk}")
delay=50 loss=1 iterations=40 model=mlp:32 compress=none steps=1
while [ $# -gt 1 ]; do
    case $1 in
    --delay) delay=$2 ;;
    --loss) loss=$2 ;;
    --iterations) iterations=$2 ;;
    --model) model=$2 ;;
    --compress) compress=$2 ;;
    --local-steps) steps=$2 ;;
    *) break ;;
    esac
    shift 2
done
if [ $# -gt 0 ]; then
    echo "sites_netem: unknown option $1" >&2
    exit 2
fi
names="north south east west"
scratch=$(mktemp -d) || exit 1
children=
space() { echo "ct-$1-$$"; }
clean_up() {
    for child in $children; do kill "$child" 2>/dev/null; done
    for name in $names; do ip netns del "$(space "$name")" 2>/dev/null; done
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

skip() {
    echo "skip $1"
    exit 0
}
give_up() {
    echo "sites_netem: $1" >&2
    exit 1
}

for tool in ip python3; do
    command -v $tool >/dev/null 2>&1 || skip "there is no $tool here"
done
[ -w /dev/net/tun ] || skip "no TUN devices, or not allowed to make them"
for name in $names; do
    ip netns add "$(space "$name")" 2>"$scratch/why" || skip "no network namespaces: $(cat "$scratch/why")"
done
inside() { # inside SITE COMMAND...: in its namespace
    site=$1
    shift
    ip netns exec "$(space "$site")" "$@"
}

python3 "$here/slow_link.py" "$(space north)" "$(space south)!" "$(space east)" "$(space west)!" \
    "$delay" "$loss" >"$scratch/ready" 2>"$scratch/why" &
children=$!
for _ in $(seq 50); do
    [ -s "$scratch/ready" ] && break
    sleep 0.1
done
[ -s "$scratch/ready" ] || skip "no slow links: $(tail -n 1 "$scratch/why")"
echo "four namespaces, $delay ms and $loss % loss each way; south and west cannot be dialled"

# ---- the sites' data and the federation ----
cd "$scratch" || exit 1
python3 - <<'PYTHON'
import os, random, struct
def array(path, values, shape):
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + values)
draw = random.Random(1)
for name, size in (("north", 100), ("south", 450), ("east", 2000), ("west", 300)):
    os.mkdir(name)
    for part, n in (("train", size), ("test", 50)):
        labels = bytes(draw.randrange(4) for _ in range(n))
        pixels = b"".join(bytes(min(255, 60 * c + b % 64) for b in draw.randbytes(784)) for c in labels)
        array(f"{name}/{part}_images.npy", pixels, (n, 28, 28))
        array(f"{name}/{part}_labels.npy", labels, f"({n},)")
PYTHON
{
    echo "federation slow"
    for name in $names; do
        at=
        [ $name != north ] || at=10.77.0.1:4711
        [ $name != east ] || at=10.77.0.3:4711
        echo "site $name $("$program" site keygen --key $name.key --quiet) $at"
    done
    for edge in "north south" "north east" "south east" "north west" "east west"; do echo "edge $edge"; done
    for option in "dataset npy" "model $model" "algorithm ccl" "batch-size 16" "lr 0.01" "epochs 1" \
        "iterations $iterations" "compress $compress" "local-steps $steps"; do
        echo "option $option"
    done
    echo "heartbeat 2"
} >f.conf || give_up "no keys"
printf '0 1\n0 2\n1 2\n0 3\n2 3\n' >edges

# ---- plain TCP: an exchange of as many bytes as a site and its neighbour have an iteration ----
cat >probe.py <<'PYTHON'
import socket, sys, time
who, n, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if who == "south":
    for _ in range(50):
        try:
            link = socket.create_connection(("10.77.0.1", 7000))
            break
        except OSError:
            time.sleep(0.1)
else:
    link = socket.create_server(("10.77.0.1", 7000)).accept()[0]
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
began = time.monotonic()
for _ in range(rounds):
    left = n
    link.settimeout(None)
    data = memoryview(bytes(n))
    link.setblocking(False)
    while left > 0 or data:
        try:
            if data:
                data = data[link.send(data):]
        except BlockingIOError:
            pass
        try:
            if left > 0:
                left -= len(link.recv(min(left, 1 << 16)))
        except BlockingIOError:
            time.sleep(0.0005)
if who == "south":
    print((time.monotonic() - began) / rounds)
PYTHON

# ---- the simulation: bits and bytes ----
"$program" train --quiet --dataset npy --data-dir %a --agent-names north,south,east,west --agents 4 \
    --topology file:edges --partition own --model "$model" --algorithm ccl --batch-size 16 --lr 0.01 \
    --epochs 1 --iterations "$iterations" --min-class-count 2 --threads 1 \
    --compress "$compress" --local-steps "$steps" --out one || give_up "no simulation"
bytes=$(python3 -c 'import json; s = json.load(open("one/summary.json"))
print(int(s["bytes_per_agent_per_iteration"] / 2.5))')
inside north python3 probe.py north "$bytes" "$iterations" &
listener=$!
inside south python3 probe.py south "$bytes" "$iterations" >plain || give_up "nothing gets over the link"
wait $listener

# ---- the sites ----
counted() { # of one namespace: sysfs shows those of the namespace it was mounted in
    for name in $names; do
        inside "$name" awk '$1 == "slow:" { print $10 }' /proc/net/dev
    done | awk '{ n += $1 } END { print n }'
}
before=$(counted)
sites=
for name in $names; do
    inside "$name" "$program" site run f.conf --key $name.key --data-dir $name --out run/$name --threads 1 \
        --quiet >$name.log 2>&1 &
    sites="$sites $!"
done
children="$children $sites"
for site in $sites; do
    wait "$site" || {
        cat ./*.log
        give_up "a site failed"
    }
done
after=$(counted)
python3 - "$(cat plain)" "$bytes" "$((after - before))" <<'PYTHON' || exit 1
import json, struct, sys
plain, row, wire = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    return data[8 + struct.unpack("<Q", data[:8])[0]:]
same = sum(tensors(f"run/{name}/consensus.safetensors") == tensors("one/consensus.safetensors")
           for name in ("north", "south", "east", "west"))
print(f"{same} of 4 sites have the consensus model of one process, to the bit")
summary = json.load(open("run/north/summary.json"))
per_iteration = summary["seconds"] / summary["iteration"]
print(f"plain TCP: {1e3 * plain:.0f} ms to exchange {row} bytes ({row / plain / 1e3:.0f} kB/s each way)")
print(f"sites: {1e3 * per_iteration:.0f} ms an iteration, in which each edge carries as many "
      f"({row / per_iteration / 1e3:.0f} kB/s each way on every edge); {plain / per_iteration:.2f} of plain TCP's speed")
letters = framed = 0
for name in ("north", "south", "east", "west"):
    letters += sum(json.loads(line)["bytes"] for line in open(f"run/{name}/sent.jsonl"))
    framed += sum(n["framed_sent"] for n in json.load(open(f"run/{name}/site.json"))["neighbours"])
print(f"letters {letters} bytes (sent.jsonl), framed {framed} ({100 * (framed / letters - 1):+.2f} %), "
      f"on the wire with encryption, TCP, IP and what was sent again {wire} ({100 * (wire / letters - 1):+.2f} %)")
sys.exit(same != 4)
PYTHON
