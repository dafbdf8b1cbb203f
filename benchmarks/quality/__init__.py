"""How well models rank, at their defaults: sets, contestants, a runner, and tables of paired differences.

    python -m benchmarks.quality run --sets choose --models svm-p1,svm-p2 --splits 10 --jobs 2 --name svm_power
    python -m benchmarks.quality show svm_power --baseline svm-p1

Choices (of defaults) are made on the sets of the half "choose"; what is claimed of them is measured on the half "report".
"""
