"""Comparison of simulated lanes with forward traces of a real serving engine (issue 8).

The data goes one way: ``trace`` and ``ledger`` read files into ``runs``; ``metrics`` and
``decomposition`` measure runs; ``checks`` puts the measurements of a real run and of two
simulated runs side by side; ``present`` and ``pictures`` show the outcome.
"""
