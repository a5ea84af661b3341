#!/usr/bin/env python3
"""mlp, ptb small, cifar10, resnet and fetch in TensorFlow's own runtime: one process, or ps and workers on this host, asynchronous or with --sync."""
import json
import os
import time

import hosts
import peer

args = peer.read_arguments(__doc__, ("mlp", "ptb", *peer.IMAGES, "fetch"), ps=True, workers=True)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tensorflow2

tf = tensorflow2.compat.v1
tf.disable_eager_execution()


def variable(name, shape, initializer):
    return tf.get_variable(name, shape, initializer=initializer, use_resource=True)


def product(a, b):
    if not args.bfloat16:
        return tf.matmul(a, b)
    return tf.cast(tf.matmul(tf.cast(a, tf.bfloat16), tf.cast(b, tf.bfloat16)), tf.float32)


def mlp(s):
    x = tf.random_normal([s["batch"], s["features"]])
    y = tf.random_normal([s["batch"], s["features"]])
    for layer, width in enumerate((s["hidden"], s["hidden"], s["features"])):
        w = variable(f"w{layer}", [x.shape[1], width], tf.glorot_uniform_initializer())
        x = tf.nn.relu(product(x, w) + variable(f"b{layer}", [width], tf.zeros_initializer()))
    return tf.reduce_mean(tf.squared_difference(x, y)), tf.train.AdamOptimizer(1e-4), None


def lstm(inputs, s, name, init):
    hidden = s["hidden"]
    w = variable(f"{name}/w", [2 * hidden, 4 * hidden], init)
    b = variable(f"{name}/b", [4 * hidden], tf.zeros_initializer())
    h = c = tf.zeros([s["batch"], hidden])
    outputs = []
    for x in inputs:
        i, j, f, o = tf.split(product(tf.concat([x, h], axis=1), w) + b, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(j)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs.append(h)
    return outputs


def ptb(s):
    init = tf.random_uniform_initializer(-s["scale"], s["scale"])
    ids = tf.random_uniform([s["unroll"] + 1, s["batch"]], maxval=s["vocabulary"], dtype=tf.int32)
    table = variable("embedding", [s["vocabulary"], s["hidden"]], init)
    outputs = tf.unstack(tf.nn.embedding_lookup(table, ids[:-1]))
    for layer in range(2):
        outputs = lstm(outputs, s, f"lstm{layer}", init)
    logits = product(tf.concat(outputs, axis=0), variable("softmax", [s["hidden"], s["vocabulary"]], init))
    logits += variable("bias", [s["vocabulary"]], init)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(ids[1:], [-1]), logits=logits)
    return tf.reduce_sum(losses) / s["batch"], tf.train.GradientDescentOptimizer(1.0), s["clip"]


def images(s):
    """Drawn once, so that input takes no time."""
    shape = [s["batch"], s["pixels"], s["pixels"], 3]
    normal = tf.get_local_variable("images", initializer=lambda: tf.random_normal(shape), use_resource=True)
    classes = lambda: tf.random_uniform([s["batch"]], maxval=s["classes"], dtype=tf.int32)
    return normal.read_value(), tf.get_local_variable("labels", initializer=classes, use_resource=True).read_value()


def conv(x, channels, size, stride, name, stddev):
    shape = [size, size, int(x.shape[3]), channels]
    w = variable(f"{name}/w", shape, tf.truncated_normal_initializer(stddev=stddev))
    if not args.bfloat16:
        return tf.nn.conv2d(x, w, stride, "SAME")
    return tf.cast(tf.nn.conv2d(tf.cast(x, tf.bfloat16), tf.cast(w, tf.bfloat16), stride, "SAME"), tf.float32)


def dense(x, columns, name, stddev, bias):
    w = variable(f"{name}/w", [int(x.shape[1]), columns], tf.truncated_normal_initializer(stddev=stddev))
    return product(x, w) + variable(f"{name}/b", [columns], tf.constant_initializer(bias)), w


def cross_entropy(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def cifar10(s):
    x, labels = images(s)
    norm = lambda x: tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9, beta=0.75)
    pool = lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME")

    def layer(x, name, bias):
        biases = variable(f"{name}/b", [s["filters"]], tf.constant_initializer(bias))
        return tf.nn.relu(tf.nn.bias_add(conv(x, s["filters"], 5, 1, name, 0.05), biases))

    x = norm(pool(layer(x, "conv1", 0.0)))
    x = pool(norm(layer(x, "conv2", 0.1)))
    x, w1 = dense(tf.reshape(x, [s["batch"], -1]), 384, "dense1", 0.04, 0.1)
    x, w2 = dense(tf.nn.relu(x), 192, "dense2", 0.04, 0.1)
    x, _ = dense(tf.nn.relu(x), s["classes"], "dense3", 1 / 192, 0.0)
    decay = 0.004 * (tf.nn.l2_loss(w1) + tf.nn.l2_loss(w2))
    return cross_entropy(x, labels) + decay, tf.train.GradientDescentOptimizer(0.1), None


def batch_norm(x, name):
    channels = [int(x.shape[3])]
    gains = variable(f"{name}/gains", channels, tf.ones_initializer())
    offsets = variable(f"{name}/offsets", channels, tf.zeros_initializer())
    y, *statistics = tf.nn.fused_batch_norm(x, gains, offsets, epsilon=1e-3, is_training=True)
    for kind, now in zip(("mean", "variance"), statistics):
        moving = tf.get_variable(f"{name}/{kind}", channels, trainable=False, use_resource=True)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, moving.assign_sub(0.1 * (moving - now)))
    return y


def resnet(s):
    x, labels = images(s)
    activated = lambda x, name: tf.nn.leaky_relu(batch_norm(x, name), 0.1)
    x = conv(x, 16, 3, 1, "conv0", 0.1)
    for stage, channels in enumerate((16, 32, 64)):
        for unit in range(s["units"]):
            name, stride = f"stage{stage}/unit{unit}", 2 if stage > 0 and unit == 0 else 1
            a = activated(x, name + "/norm1")
            shortcut = a if stage + unit == 0 else x
            if stride == 2:
                more = channels // 4
                shortcut = tf.pad(tf.nn.avg_pool2d(shortcut, 2, 2, "VALID"), [[0, 0], [0, 0], [0, 0], [more, more]])
            y = conv(a, channels, 3, stride, name + "/conv1", 0.1)
            x = shortcut + conv(activated(y, name + "/norm2"), channels, 3, 1, name + "/conv2", 0.1)
    x = tf.reduce_mean(tf.nn.relu(batch_norm(x, "norm")), [1, 2])
    logits, _ = dense(x, s["classes"], "dense", 0.1, 0.0)
    decay = 0.0002 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if v.op.name.endswith("/w")])
    return cross_entropy(logits, labels) + decay, tf.train.MomentumOptimizer(0.1, 0.9), None


def simulated_gradients():
    """Reads every variable, waits as long as a faster device would compute, and has a dense gradient of every one."""
    variables = tf.trainable_variables()
    with tf.control_dependencies([tf.identity(v) for v in variables]):
        waited = tf.py_func(lambda: time.sleep(args.sim_step_ms / 1e3) or 0.0, [], tf.double, stateful=True)
    return [(tf.fill(v.shape, tf.cast(waited, tf.float32)), v) for v in variables]


def train_op(workers, index):
    """The op of a step, and the hooks of its session."""
    models = dict(mlp=mlp, ptb=ptb, cifar10=cifar10, resnet=resnet)
    loss, optimizer, clip = models[args.model](peer.sizes(args))
    hooks = []
    if args.sync and workers:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
        hooks = [optimizer.make_session_run_hook(is_chief=index == 0)]
    pairs = optimizer.compute_gradients(loss) if args.sim_step_ms is None else simulated_gradients()
    if clip and args.sim_step_ms is None:
        gradients, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], clip)
        pairs = list(zip(gradients, [of for _, of in pairs]))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS) if args.sim_step_ms is None else []):
        return optimizer.apply_gradients(pairs, global_step=tf.train.get_or_create_global_step()), hooks


def config():
    per_op = args.threads if args.intra_op is None else args.intra_op
    return tf.ConfigProto(intra_op_parallelism_threads=per_op, inter_op_parallelism_threads=args.threads)


def train(server, index):
    device, cluster = None, json.loads(args.cluster) if server else {}
    if server:
        device = tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")
    with tf.device(device):
        op, hooks = train_op(len(cluster.get("worker", ())), index)
    settings = config()
    if server and not args.sync:  # a worker needs no other worker to begin
        settings.device_filters.extend(["/job:ps", f"/job:worker/task:{index}"])
    with tf.train.MonitoredTrainingSession(server.target if server else "", is_chief=index == 0, hooks=hooks,
                                           config=settings) as session:
        step = lambda: session.run(op)
        before = (lambda: peer.wait_for_all(step if args.sync else None)) if server else lambda: None
        run = peer.timed(step, args.seconds, before)
        if not server:
            return run
        peer.say(run)
        while True:  # keeps up the load while the others are still measured
            step()


def fetch(server):
    rows = []
    for features, batch, hidden in peer.FETCH:
        with tf.variable_scope(f"s{features}_{batch}_{hidden}"):
            normal = tf.random_normal_initializer()
            with tf.device("/job:worker/task:0"):
                x = variable("x", [batch, features], normal)
                own = tf.matmul(x, variable("own", [features, hidden], normal)).op
            with tf.device("/job:ps/task:0"):
                remote_w = variable("remote", [features, hidden], normal)
            with tf.device("/job:worker/task:0"):
                remote = tf.matmul(x, remote_w).op
        rows.append((f"{features},{batch},{hidden}", own, remote))
    with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
        peer.wait_for_all()
        lines = []
        for shape, own, remote in rows:
            local_us, remote_us = (peer.median_us(session.make_callable(op)) for op in (own, remote))
            lines.append(dict(shape=shape, local_us=local_us, remote_us=remote_us, added_us=remote_us - local_us))
        peer.say(lines)


def task():
    job, index = args.task.split(":")
    server = tf.train.Server(json.loads(args.cluster), job_name=job, task_index=int(index), config=config())
    if job == "ps":
        server.join()
    if args.model == "fetch":
        return fetch(server)
    return train(server, int(index))


def main():
    if args.task:
        return task()
    ps, workers = args.ps, args.workers
    if args.model == "fetch":
        ps, workers = 1, 1
    if ps == 0 and workers > 1:
        raise SystemExit("--workers needs --ps")
    if ps == 0:
        runs = [train(None, 0)]
    elif args.gbps:
        with hosts.Hosts(ps + workers, args.gbps) as lab:
            addresses = [f"{lab.address(host)}:2222" for host in range(ps + workers)]
            runs = peer.run_tasks(dict(ps=addresses[:ps], worker=addresses[ps:]), hosts=lab)
    else:
        addresses = lambda count: [peer.free_address() for _ in range(count)]
        runs = peer.run_tasks(dict(ps=addresses(ps), worker=addresses(workers)))
    if args.model == "fetch":
        return peer.say(dict(peer="tensorflow", version=tensorflow2.__version__, model="fetch", fetch=runs[0]))
    peer.say(peer.result("tensorflow", tensorflow2.__version__, args, runs))


main()
