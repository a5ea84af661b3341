#!/usr/bin/env python3
"""mlp and ptb small in JAX: one process, one compiled step that takes over its arguments' memory."""
import os

import peer

args = peer.read_arguments(__doc__, ("mlp", "ptb"))
if args.threads:
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'false' if args.threads == 1 else 'true'}"
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])

import jax
import jax.numpy as jnp

SIZES = peer.sizes(args)
COMPUTE = jnp.bfloat16 if args.bfloat16 else jnp.float32


def product(a, b):
    return jnp.matmul(a.astype(COMPUTE), b.astype(COMPUTE), preferred_element_type=jnp.float32)


def mlp():
    widths = (SIZES["features"], SIZES["hidden"], SIZES["hidden"], SIZES["features"])
    keys = jax.random.split(jax.random.key(1), 3)
    layers = []
    for key, rows, columns in zip(keys, widths, widths[1:]):
        limit = (6 / (rows + columns)) ** 0.5
        layers.append((jax.random.uniform(key, (rows, columns), minval=-limit, maxval=limit), jnp.zeros(columns)))

    def loss(layers, key):
        x, y = jax.random.normal(key, (2, SIZES["batch"], SIZES["features"]))
        for weights, bias in layers:
            x = jnp.maximum(product(x, weights) + bias, 0)
        return jnp.square(x - y).mean()

    def step(state, key):
        layers, first, second, count = state
        gradients = jax.grad(loss)(layers, key)
        count += 1
        first = jax.tree.map(lambda m, g: m + 0.1 * (g - m), first, gradients)
        second = jax.tree.map(lambda v, g: v + 0.001 * (g * g - v), second, gradients)
        rate = 1e-4 * jnp.sqrt(1 - 0.999 ** count) / (1 - 0.9 ** count)
        layers = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), layers, first, second)
        return layers, first, second, count

    zeros = lambda: jax.tree.map(jnp.zeros_like, layers)
    return (layers, zeros(), zeros(), 0.0), step


def ptb():
    hidden, words, batch, unroll = (SIZES[k] for k in ("hidden", "vocabulary", "batch", "unroll"))
    keys = iter(jax.random.split(jax.random.key(1), 8))
    uniform = lambda *shape: jax.random.uniform(next(keys), shape, minval=-SIZES["scale"], maxval=SIZES["scale"])
    weights = dict(embedding=uniform(words, hidden), layers=[(uniform(2 * hidden, 4 * hidden), jnp.zeros(4 * hidden))
                                                             for _ in range(2)],
                   softmax=uniform(hidden, words), bias=uniform(words))

    def layer(x, w, b):
        from_x = product(x, w[:hidden]) + b

        def cell(state, gates_of_x):
            h, c = state
            i, j, f, o = jnp.split(gates_of_x + product(h, w[hidden:]), 4, axis=-1)
            c = c * jax.nn.sigmoid(f) + jax.nn.sigmoid(i) * jnp.tanh(j)
            h = jnp.tanh(c) * jax.nn.sigmoid(o)
            return (h, c), h
        start = jnp.zeros((batch, hidden))
        return jax.lax.scan(cell, (start, start), from_x)[1]

    def loss(weights, key):
        ids = jax.random.randint(key, (unroll + 1, batch), 0, words)
        x = weights["embedding"][ids[:-1]]
        for w, b in weights["layers"]:
            x = layer(x, w, b)
        logits = product(x, weights["softmax"]) + weights["bias"]
        picked = jnp.take_along_axis(logits, ids[1:, :, None], axis=-1)[..., 0]
        return (jax.nn.logsumexp(logits, axis=-1) - picked).sum() / batch

    def step(weights, key):
        gradients = jax.grad(loss)(weights, key)
        norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradients)))
        scale = SIZES["clip"] / jnp.maximum(norm, SIZES["clip"])
        return jax.tree.map(lambda w, g: w - scale * g, weights, gradients)

    return weights, step


state, step = dict(mlp=mlp, ptb=ptb)[args.model]()
compiled = jax.jit(step, donate_argnums=0)
root, count = jax.random.key(2), 0


def one_step():
    global state, count
    state = jax.block_until_ready(compiled(state, jax.random.fold_in(root, count)))
    count += 1


peer.say(peer.result("jax", jax.__version__, args, [peer.timed(one_step, args.seconds)]))
