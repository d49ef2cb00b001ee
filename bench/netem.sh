#!/bin/sh
# bench/netem.sh [--delay MS] [--loss PERCENT] [--option value ...]: a run over a bad network.
#   Two network namespaces, a link between them with a delay (20 ms) and loss (1 %), one rank in each,
#   joined by TCP. Trains there, and compares the time with what the ledger predicts from the latency
#   and bandwidth that plain TCP gets on the link. Options are those of train.
# The link is a veth pair with tc netem; where the kernel has no netem, slow_link.py carries the
# packets between two TUN devices. Needs root, iproute2, Open MPI and python3.
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=$(readlink -f "${CROSSTALK:-$here/../build/crosstalk}")
delay=20
loss=1
while [ $# -gt 1 ]; do
    case $1 in
    --delay) delay=$2 ;;
    --loss) loss=$2 ;;
    *) break ;;
    esac
    shift 2
done
if [ $# -eq 0 ]; then
    set -- --dataset shapes --model lenet5 --agents 2 --topology chain --algorithm ccl \
        --batch-size 32 --train-samples 12800 --test-samples 32 --epochs 2 --iterations 199
fi
a=ct-a-$$ b=ct-b-$$
scratch=$(mktemp -d) || exit 1
carrier=
clean_up() {
    [ -z "$carrier" ] || kill "$carrier" 2>/dev/null
    ip netns del $a 2>/dev/null
    ip netns del $b 2>/dev/null
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

give_up() {
    echo "netem: $1" >&2
    exit 1
}

for tool in ip mpirun python3; do
    command -v $tool >/dev/null 2>&1 || give_up "there is no $tool here"
done
for space in $a $b; do
    ip netns add "$space" 2>"$scratch/why" || give_up "no namespaces: $(cat "$scratch/why")"
done

link_of_the_kernel() {
    ip link add ct-veth0 netns $a type veth peer name ct-veth1 netns $b || return 1
    if ! ip netns exec $a tc qdisc add dev ct-veth0 root netem delay "$delay"ms loss "$loss"% 2>/dev/null
    then
        ip -n $a link del ct-veth0
        return 1
    fi
    ip netns exec $b tc qdisc add dev ct-veth1 root netem delay "$delay"ms loss "$loss"%
    ip -n $a addr add 10.77.0.1/24 dev ct-veth0
    ip -n $b addr add 10.77.0.2/24 dev ct-veth1
    for end in "$a ct-veth0" "$b ct-veth1" "$a lo" "$b lo"; do
        # Two words, to be split.
        # shellcheck disable=SC2086
        set -- $end
        ip -n "$1" link set "$2" up
    done
}

link_of_ours() {
    [ -w /dev/net/tun ] || return 1
    python3 "$here/slow_link.py" $a $b "$delay" "$loss" >"$scratch/ready" 2>"$scratch/why" &
    carrier=$!
    for _ in $(seq 50); do
        [ -s "$scratch/ready" ] && return 0
        sleep 0.1
    done
    return 1
}

if (link_of_the_kernel); then
    echo "link: tc netem, $delay ms and $loss % loss each way"
elif link_of_ours; then
    echo "this kernel has no netem: slow_link.py carries the packets, $delay ms and $loss % loss each way"
else
    give_up "this kernel has no netem, and no TUN devices to do it without: $(cat "$scratch/why")"
fi

# What the link is like to two that send each other messages at once and wait for both, as ranks do:
# mean time of short ones (latency, lost packets sent again) and of long ones (bandwidth).
cat >"$scratch/probe.py" <<'PYTHON'
import socket, sys, time
short, long = 1 << 10, 1 << 18
if sys.argv[1] == "a":
    link = socket.create_connection(("10.77.0.2", 7000))
else:
    link = socket.create_server(("10.77.0.2", 7000)).accept()[0]
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

def exchange(n):
    link.sendall(bytes(n))
    while n > 0:
        n -= len(link.recv(n))

def mean(n, rounds):
    began = time.monotonic()
    for _ in range(rounds):
        exchange(n)
    return (time.monotonic() - began) / rounds

mean(long, 20)
latency, both = mean(short, 150), mean(long, 150)
if sys.argv[1] == "a":
    print(1e3 * latency, (long - short) * 8e-6 / max(1e-9, both - latency))
PYTHON
ip netns exec $b python3 "$scratch/probe.py" b &
sleep 1
ip netns exec $a python3 "$scratch/probe.py" a >"$scratch/speed" || give_up "nothing gets over the link"
wait $!
read -r latency megabit <"$scratch/speed"
echo "plain TCP: $latency ms a short exchange, $megabit Mbit/s beyond that"

# The second host's ranks are started in its namespace instead of through ssh.
cat >"$scratch/agent" <<EOT
#!/bin/sh
shift
exec ip netns exec $b unshare --uts sh -c "hostname ct-b; \$*"
EOT
chmod +x "$scratch/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
common="--quiet --threads 1 --device cpu --link-latency $latency --link-bandwidth $megabit"
# Options, to be split.
# shellcheck disable=SC2086
ip netns exec $a mpirun -n 2 --host 10.77.0.1:1,10.77.0.2:1 \
    --mca plm_rsh_agent "$scratch/agent" --mca oob_tcp_if_include 10.77.0.0/24 \
    --mca btl tcp,self --mca pml ob1 --mca btl_tcp_if_include 10.77.0.0/24 \
    --mca btl_tcp_eager_limit 16777216 --mca btl_tcp_rndv_eager_limit 16777216 \
    --mca btl_tcp_max_send_size 16777216 --bind-to none \
    "$program" train "$@" $common --out "$scratch/far" || give_up "the run over the link failed"
# shellcheck disable=SC2086
"$program" train "$@" $common --out "$scratch/near" || exit 1
cmp "$scratch/far/consensus.safetensors" "$scratch/near/consensus.safetensors" ||
    give_up "the models differ from those of one process"
python3 - "$scratch" "$latency" <<'PYTHON'
import json, sys
def summary(name):
    with open(f"{sys.argv[1]}/{name}/summary.json") as file:
        return json.load(file)
far, near = summary("far"), summary("near")
link, computing = far["link_seconds"], near["seconds"] / 2
talks = far["iteration"] / 16 * 2 * float(sys.argv[2]) / 1e3
predicted = link + computing + talks
print(f"the same model as in one process; {far['iteration']} iterations in {far['seconds']:.2f} s, "
      f"{100 * far['transport_wait_share']:.0f} % of it waiting")
print(f"predicted: {link:.2f} s on the link (ledger), {talks:.2f} s of talks every 16 iterations, "
      f"{computing:.2f} s of computing: {predicted:.2f} s; it took {far['seconds'] / predicted:.2f} "
      "times that")
PYTHON
