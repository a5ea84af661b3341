"""Linear regression with NumPy alone, distributed: python regression.py, or several workers:

    paceline launch --ps 1 --workers 2 -- python regression.py --strategy sync --steps 200
"""

import sys

import numpy as np

import paceline

with paceline.Store({"weights": np.zeros((8, 1), np.float32), "bias": np.zeros(1, np.float32)}, paceline.Momentum(0.05),
                    model="regression", examples_per_step=64, arguments=sys.argv[1:] or ["--steps", "200"]) as store:
    random = np.random.default_rng(store.worker)  # each worker has examples of its own
    for step in store.steps():
        inputs = random.standard_normal((64, 8), np.float32)
        targets = inputs.sum(axis=1, keepdims=True) + 3
        with step:
            error = inputs @ store.need("weights") + store.need("bias") - targets
            store.ready("bias", 2 * error.mean(axis=0))
            store.ready("weights", 2 * inputs.T @ error / 64)
            step.loss = float((error**2).mean())
    print(f"bias {store.read('bias')[0]:.3f}, weights {store.read('weights')[:, 0].round(3)}")
