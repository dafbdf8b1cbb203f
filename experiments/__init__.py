"""The experiments of the papers, run again: ``python -m experiments list``.

Each is one file in the folder of its paper. At the top is its declaration, ``EXPERIMENT``; then ``plan(size)``, the cases and how often
each is repeated, and ``run(case, seed)``, which does one of them. ``report(found)`` makes its part of the paper's page in
docs/replication of what was found, ``quotes(found)`` what other pages may quote, ``draw(found)`` its pictures.

Results are kept in experiments/results, one file an experiment: what is there is not run again, unless the version of
the declaration was raised.
"""
