"""One mutant in a process of its own: ``python -m tests.mutants.worker NAME SEED...``.

Prints one JSON object a line: the layer, and what it found.
"""

import importlib
import json
import sys


def main(name, seeds):
    zoo = importlib.import_module("tests.mutants.zoo")
    mutant = next((m for m in zoo.ZOO if m.name == name), None) or zoo.Mutant("", "", "", "")
    try:
        layers = importlib.import_module("tests.mutants.layers").LAYERS
    except Exception as error:
        print(json.dumps({"layer": "import", "found": f"{type(error).__name__}: {error}"}))
        return
    for layer, run in layers.items():
        if layer in ("contract", "API exploration") and not mutant.touches_context:
            continue
        for seed in seeds if layer == "Hypothesis" else (0,):
            try:
                found = run(mutant, seed)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"[:120]
            print(json.dumps({"layer": layer, "seed": seed, "found": found}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [int(word) for word in sys.argv[2:]])
