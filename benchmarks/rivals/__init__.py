"""Other libraries beside upturn: a file for each, in an environment of its own, driven as a process of its own.

    make bench-install                                # environments under build/rivals, all that can be installed
    python -m benchmarks.rivals list                  # what is there, and which version
    python -m benchmarks.rivals speed [--only forest] # every job at several sizes; results/speed.json and the page

A file declares what to install (``REQUIRES``), what it can do (``JOBS``: a name and a function of arrays) and which models it brings to the
comparison of quality (``MODELS``, and ``DRAWS`` of their parameters). It imports its library inside functions, so that any interpreter can
read what it declares, and never upturn; ``upturn.py`` is upturn's own file.
"""
